// Package connectors is the service interface of sources and sinks: what a connector declares, how its options
// are read, and the small interfaces it may satisfy. A connector is one folder; connectors/all lists them.
//
// Invariant: a declaration is a plain value. Nothing registers itself, nothing is opened before Open is called, and
// what a connector can do is said by its declaration, never found out by trying.
package connectors

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Source declares something that can be read.
type Source struct {
	Name    string // the word in connector = '…'
	Class   string // the Python class
	Summary string
	Options Options
	// Extensions are the file name endings under which FROM 'file' finds this source (".parquet").
	Extensions []string
	// Holds is a folder by which FROM 'folder' finds this source, where the folder has it (_delta_log).
	Holds string
	// Functions are the table functions that open it (read_parquet).
	Functions []string
	// Replayable: a position can be read again, so that exactly-once is possible.
	Replayable bool
	// NeedsSchema: the columns must be declared; nothing can be inferred.
	NeedsSchema bool
	// Relation opens bounded input; nil when there is none.
	Relation func(ctx context.Context, req OpenRequest) (flow.Relation, error)
	// Stream opens live input; nil when there is none.
	Stream func(ctx context.Context, req OpenRequest) (flow.Stream, error)
}

// OpenRequest is what a source is opened with.
type OpenRequest struct {
	Name     string        // of the stream or table, for messages; may be empty
	Settings Settings      // parsed by the declaration's Options
	Schema   []types.Field // declared columns; nil: infer
	Key      []string      // declared PRIMARY KEY; may be empty
	Clock    clock.Clock   // nil is the wall clock
	Other    Opener        // opens the parts of a source that is made of others
}

// Opener opens sources for a source that is made of others.
type Opener interface {
	// Part finds what an option names: a table or a stream of the session, or a source as JSON.
	Part(text string) (Part, error)
	Relation(ctx context.Context, name string, p Part) (flow.Relation, error)
	Stream(ctx context.Context, name string, p Part) (flow.Stream, error)
}

// Part is a source that another is made of.
type Part struct {
	Connector string
	Options   map[string]string
	Schema    []types.Field // nil: infer
}

// Offsets is a stream whose splits number their records, so that it can be read from any of them on.
type Offsets interface {
	// PositionAt is where the record of an offset comes next.
	PositionAt(offset int64) flow.Position
	// Held are the offsets that each split has now: from the first, to behind the last.
	Held(ctx context.Context) (map[string][2]int64, error)
}

// Time returns the clock of the request.
func (r OpenRequest) Time() clock.Clock {
	if r.Clock == nil {
		return clock.Wall{}
	}
	return r.Clock
}

// Sink declares something that can be written.
type Sink struct {
	Name       string
	Class      string
	Summary    string
	Options    Options
	Extensions []string // endings by which COPY … TO 'file' finds it
	// Updates: how it takes retractions.
	Updates Updates
	// ExactlyOnce: its Writer is a Committer, so that exactly_once=True may start.
	ExactlyOnce bool
	// Held: what the sink is handed before the commit would not survive our process. So the rows of an epoch are kept in the checkpoint and
	// go to Commit; under exactly_once Write and Stage are not called.
	Held bool
	Open func(ctx context.Context, req SinkRequest) (Writer, error)
}

// Updates says what a sink does with rows of negative weight.
type Updates uint8

const (
	// AppendOnly refuses them. With the option changelog = true the weight is written as a column, and any edge is taken.
	AppendOnly Updates = iota
	// Changelog takes deltas as they are, weights included (console, callable).
	Changelog
	// Keyed upserts and deletes by key.
	Keyed
)

// SinkRequest is what a sink is opened with.
type SinkRequest struct {
	Name     string
	Settings Settings
	Fields   []types.Field // of the query, without the weight
	Updating bool          // the query's edge carries weights
	Keys     [][]int       // unique keys of the rows that stand, as positions in Fields; the empty key says that there is one row at most
	Pipeline string        // id that is stable across restarts; names files and markers
	// ExactlyOnce: epochs are staged, published by a manifest and then committed; otherwise Stage makes rows visible, at least once.
	ExactlyOnce bool
	Clock       clock.Clock
}

// Writer takes deltas of one query. It is used by one goroutine.
type Writer interface {
	// Write takes one delta. It may buffer; nothing need be visible before Stage.
	Write(ctx context.Context, d flow.Delta) error
	// Stage ends an epoch: what was written is handed over. A sink without a Committer makes it visible here, at least
	// once, and returns nil. A Committer, under SinkRequest.ExactlyOnce, makes it durable and returns what Commit needs, in whatever process;
	// nil when there was nothing to write.
	Stage(ctx context.Context, epoch flow.Epoch) (Committable, error)
	// Close releases the writer. Rows written since the last Stage are dropped.
	Close() error
}

// Committable is what one staged epoch needs to become visible. It is written into checkpoint manifests as it is.
type Committable []byte

// Marker names a committed epoch in the sink itself. Markers of one run of a pipeline form a chain: each epoch that has rows adds a link.
type Marker string

// Committer is a Writer whose epochs become visible once, whatever ends our process or the sink's in between. Sinks that have one
// declare Sink.ExactlyOnce.
type Committer interface {
	Writer
	// Begin makes the sink ready for SinkRequest.Pipeline and returns the marker that it holds for it, "" when it has none. Other writers of
	// the pipeline are fenced where the sink can do so. first, when it is not "", is written as the marker of a sink that has none.
	Begin(ctx context.Context, first Marker) (Marker, error)
	// Commit makes an epoch visible and its marker the sink's, both or neither. An epoch whose marker the sink holds already is left as it is:
	// the answer to an earlier Commit may have been lost. Any other marker than the epoch's predecessor is an error of kind errs.ExactlyOnce.
	Commit(ctx context.Context, e StagedEpoch) error
}

// Gatherer is a Committer that makes several epochs visible by one commit, where each costs much. Until then they wait in the checkpoints' chain, and after a
// crash they are committed one by one.
type Gatherer interface {
	Committer
	// Gather is how many epochs a commit takes; 1: each has its own.
	Gather() int
}

// StagedEpoch is what is committed.
type StagedEpoch struct {
	Epoch            flow.Epoch
	Marker, Previous Marker
	// Committable is what Stage returned.
	Committable Committable
	// Gathered are those of the epochs before it that the same commit takes, oldest first: Previous is the predecessor of the first. A Gatherer's alone.
	Gathered []Committable
	// Rows are the epoch's consolidated changes, for a sink that declares Held: the query's columns and, where it is updating, the weights.
	Rows []arrow.RecordBatch
}

// FieldCounter is a Reader whose decoder meets fields that the schema does not have, and misses some that it has.
type FieldCounter interface {
	UnknownFields() int64
	MissingFields() int64
}

// Pusher is a stream that is fed from this process.
type Pusher interface {
	Push(ctx context.Context, split string, rows arrow.RecordBatch, weights []int64) error
}
