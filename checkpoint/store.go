package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	// Warn, when set, is told of collections and merges that failed. They are tried again behind a later epoch, and no checkpoint depends on them.
	Warn func(error)
	// Again, when set, does something until it works, as far as errors that are transient are worth the wait. Reads of objects go through it; of all
	// else the caller knows best.
	Again func(ctx context.Context, do func() error) error
	// Inline: nothing runs behind. The lease is renewed, objects are collected and merged within Publish.
	Inline bool
	// Untended: nothing is collected and nothing merged before Tend. A start that is refused then leaves all as it was, what somebody tries to rescue too.
	Untended bool

	// Objects and Dir, when set, stand for the URL.
	Objects objstore.Store
	Dir     string

	self *holder // tests: another process
}

// Store is the checkpoints of one pipeline. What only reads may be called by any goroutine; Write, Publish and Fence by one.
//
// Errors of the object store that may pass are transient: whoever calls may call again with the same arguments.
type Store struct {
	o       Options
	objects objstore.Store
	dir     string
	self    holder
	nonce   string
	names   atomic.Int64 // of data objects under this lease
	tended  atomic.Bool

	leaseMu sync.Mutex // of the lease's file
	lease   lease

	mu      sync.Mutex
	lost    error
	lostCh  chan struct{}
	newest  *Manifest               // known to be the newest; nil: none, or nobody has asked
	kept    map[flow.Epoch][]string // objects that manifests name, as far as they were read
	making  map[string]bool         // objects that no published manifest names yet, and one may
	writing string                  // of them, that of the epoch being written
	merged  *merged                 // that no published manifest names yet

	swept     bool       // of what older processes left; this and the next two are of tendOnce alone
	mergeAt   flow.Epoch // no merge before, since one has failed
	seenHolds map[string]time.Time
	stop      context.CancelFunc
	running   sync.WaitGroup
	published chan struct{} // something to collect or to merge
}

var stores atomic.Int64 // opened by this process

// Open finds the pipeline's folder and, unless it is only read, takes its lease.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{o: o, objects: o.Objects, dir: o.Dir, lostCh: make(chan struct{}), published: make(chan struct{}, 1),
		kept: map[flow.Epoch][]string{}, making: map[string]bool{}}
	if s.objects == nil {
		var err error
		if s.objects, s.dir, err = objstore.For(o.URL); err != nil {
			return nil, err
		}
	}
	if strings.ContainsAny(o.Pipeline, "/\\") || strings.HasPrefix(o.Pipeline, ".") {
		return nil, errs.New(errs.Usage, "checkpoint", "a pipeline's id names a folder, and %q cannot", o.Pipeline).WithHint("use letters, digits, '-' and '_'")
	}
	s.dir = path.Join(s.dir, o.Pipeline)
	if s.o.Clock == nil {
		s.o.Clock = clock.Wall{}
	}
	if s.o.Retain <= 0 {
		s.o.Retain = 3
	}
	if s.self = thisProcess(); o.self != nil {
		s.self = *o.self
	}
	if o.ReadOnly {
		return s, nil
	}
	s.nonce = fmt.Sprint(stores.Add(1))
	if o.Rand != nil {
		s.nonce = fmt.Sprintf("%016x-%s", o.Rand.Uint64(), s.nonce)
	}
	wait := o.Wait
	if wait == 0 {
		wait = 10 * time.Second
	}
	if err := s.take(ctx, wait, o.Waiting); err != nil {
		return nil, err
	}
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if !o.Inline {
		s.running.Go(func() { guarded(func() { s.keepLease(behind) }) })
		s.running.Go(func() { guarded(func() { s.tend(behind) }) })
	}
	return s, nil
}

// guarded keeps a fault of what runs behind from ending the process: it loses a merge or a collection, not a checkpoint.
func guarded(run func()) {
	defer func() { _ = recover() }()
	run()
}

// Close ends what runs behind and gives the lease back.
func (s *Store) Close() error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	s.running.Wait()
	s.stop = nil
	ctx, cancel := context.WithTimeout(context.Background(), staleAfter) // by then it is stale anyway
	defer cancel()
	return s.release(ctx)
}

// Lost is closed when another process has taken the lease. Write and Publish fail from then on.
func (s *Store) Lost() <-chan struct{} { return s.lostCh }

// Epochs are those that have a manifest, oldest first.
func (s *Store) Epochs(ctx context.Context) ([]flow.Epoch, error) {
	found, err := s.list(ctx, manifestPattern)
	return epochsIn(found), err
}

// epochsIn are those of the manifests among files.
func epochsIn(files []string) (out []flow.Epoch) {
	for _, name := range files {
		if n, ok := numberOf(name, "manifest-", ".json"); ok {
			out = append(out, flow.Epoch(n))
		}
	}
	slices.Sort(out)
	return out
}

// Manifest is that of an epoch.
func (s *Store) Manifest(ctx context.Context, epoch flow.Epoch) (*Manifest, error) {
	name := manifestName(epoch)
	data, err := s.get(ctx, name)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, errs.New(errs.State, "restore", "the pipeline %q has no checkpoint of epoch %d", s.o.Pipeline, epoch)
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(s.url(name), data, s.o.Version)
	if err != nil {
		return nil, err
	}
	if m.Epoch != epoch {
		return nil, corrupt(s.url(name), "it is of epoch %d", m.Epoch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[epoch] = m.objectNames()
	return m, nil
}

// Newest is the newest manifest, nil when there is none. It is the one that decides: when it cannot be read, the error says which
// earlier checkpoint is whole.
func (s *Store) Newest(ctx context.Context) (*Manifest, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil || len(epochs) == 0 {
		return nil, err
	}
	last := epochs[len(epochs)-1]
	m, err := s.Manifest(ctx, last)
	if err != nil {
		return nil, s.withWhole(ctx, err, last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil || m.Epoch > s.newest.Epoch { // we may publish at the same time
		s.newest = m
	}
	return m, nil
}

func (m *Manifest) objectNames() []string {
	out := make([]string, len(m.Objects))
	for i, o := range m.Objects {
		out[i] = o.Name
	}
	return out
}

// writable refuses what a store that is only read, or lost its lease, may not do.
func (s *Store) writable() error {
	if s.o.ReadOnly {
		return errs.New(errs.Usage, "checkpoint", "the checkpoints were opened to be read")
	}
	return s.loss()
}

// at is the whole name of an object.
func (s *Store) at(name string) string { return path.Join(s.dir, name) }

// url is how an object is called in messages.
func (s *Store) url(name string) string { return objstore.URL(s.objects, s.at(name)) }

// list gives the names within the folder that match a pattern.
func (s *Store) list(ctx context.Context, pattern string) ([]string, error) {
	found, err := s.objects.Glob(ctx, path.Join(globEscaped.Replace(s.dir), pattern))
	if err != nil {
		return nil, storeFailed(ctx, errs.Source, "list", s.url(""), err)
	}
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = strings.TrimPrefix(strings.TrimPrefix(f.Name, s.dir), "/")
	}
	return out, nil
}

var globEscaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`)

// get reads a whole file.
func (s *Store) get(ctx context.Context, name string) ([]byte, error) {
	data, err := objstore.Get(ctx, s.objects, s.at(name))
	if err != nil {
		return nil, storeFailed(ctx, errs.Source, "read", s.url(name), err)
	}
	return data, nil
}

// put writes a file that is not there yet; otherwise the error wraps objstore.ErrExists.
func (s *Store) put(ctx context.Context, name string, data []byte) error {
	if err := s.objects.PutIfAbsent(ctx, s.at(name), data); err != nil {
		return storeFailed(ctx, errs.Checkpoint, "write", s.url(name), err)
	}
	return nil
}

// replace writes a file anew.
func (s *Store) replace(ctx context.Context, name string, data []byte) error {
	if err := objstore.Put(ctx, s.objects, s.at(name), data); err != nil {
		return storeFailed(ctx, errs.Checkpoint, "write", s.url(name), err)
	}
	return nil
}

// storeFailed says what could not be done. Who made the error knows whether it may pass; of the file system's, such as a full disk,
// all may that are not about names and rights.
func storeFailed(ctx context.Context, kind errs.Kind, what, name string, err error) error {
	if ctx.Err() != nil {
		return cancelled(ctx.Err())
	}
	e := errs.New(kind, "checkpoint", "cannot %s %s: %w", what, name, err)
	var known *errs.Error
	if errors.As(err, &known) {
		e.Transient, e.Hint = known.Transient, known.Hint
		if known.Kind != errs.Source && known.Kind != errs.Internal {
			e.Kind = known.Kind
		}
	} else {
		e.Transient = !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrInvalid)
	}
	return e
}

func cancelled(err error) error {
	return errs.New(errs.Cancelled, "checkpoint", "the run was stopped: %w", err)
}
