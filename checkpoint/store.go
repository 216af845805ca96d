package checkpoint

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// Options says which pipeline's checkpoints to open, and how.
type Options struct {
	URL      string // of the folder of all pipelines' checkpoints
	Pipeline string // its folder below; empty: URL is the folder itself, as of a savepoint
	Clock    clock.Clock
	Rand     clock.Rand
	Retain   int    // manifests kept; 0: 3
	Version  string // of this program
	ReadOnly bool   // takes no lease and writes nothing

	// Wait is how long Open waits for a holder that lives; 0: 10 s. Waiting, when set, is told once for whom.
	Wait    time.Duration
	Waiting func(holder string)
	// Inline: nothing runs behind. The lease is renewed, objects are merged and collected within Publish.
	Inline bool

	// Objects and Dir, when set, stand for the URL.
	Objects objstore.Store
	Dir     string
}

// Store is the checkpoints of one pipeline. Read, Newest and what else only reads may be called by any goroutine; Write, Publish and
// Fence by one.
type Store struct{}

// Open finds the pipeline's folder and, unless it is only read, takes its lease.
func Open(ctx context.Context, o Options) (*Store, error) { return nil, unfinished() }

// Close gives the lease back.
func (s *Store) Close() error { return unfinished() }

// Lost is closed when another process has taken the lease.
func (s *Store) Lost() <-chan struct{} { return nil }

// Newest is the newest manifest, nil when there is none.
func (s *Store) Newest(ctx context.Context) (*Manifest, error) { return nil, unfinished() }

// Manifest is that of an epoch.
func (s *Store) Manifest(ctx context.Context, epoch flow.Epoch) (*Manifest, error) {
	return nil, unfinished()
}

// Epochs are those that have a manifest, oldest first.
func (s *Store) Epochs(ctx context.Context) ([]flow.Epoch, error) { return nil, unfinished() }

// Fence publishes the content of the newest manifest as the next epoch, so that nobody who held the lease before can publish
// anything more. It gives nil when there is no manifest.
func (s *Store) Fence(ctx context.Context) (*Manifest, error) { return nil, unfinished() }

// Write uploads the sections of an epoch as one object and says in next.Objects which objects count: those of prev that still do, and
// the new one. With prev nil nothing older counts.
func (s *Store) Write(ctx context.Context, prev, next *Manifest, sections []Section) error {
	return unfinished()
}

// Publish makes an epoch durable. After an error it may be called again with the same manifest.
func (s *Store) Publish(ctx context.Context, m *Manifest) error { return unfinished() }

// Read visits the sections that count, oldest first. All objects are verified before anything is visited.
// A section of state comes in pieces, other sections whole.
func (s *Store) Read(ctx context.Context, m *Manifest, visit func(Section) error) error {
	return unfinished()
}

// ReadOnce reads the rows that an epoch held for a sink.
func (s *Store) ReadOnce(ctx context.Context, m *Manifest, epoch flow.Epoch, owner, table string) ([]arrow.RecordBatch, error) {
	return nil, unfinished()
}

func unfinished() error {
	return errs.New(errs.Unsupported, "checkpoint", "checkpoints are not written yet")
}
