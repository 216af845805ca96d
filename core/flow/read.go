package flow

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// Relation is bounded input: files, an in-memory table, the rows of a finished stream.
type Relation interface {
	// Fields are the columns, in the order of the relation.
	Fields() []types.Field
	// Stats is what is known without reading rows; the planner orders joins by it.
	Stats() Stats
	// Scan starts a read. The schema of its batches is the requested columns, in the request's order.
	Scan(ctx context.Context, req ScanRequest) (Scan, error)
}

// Checker is a Relation whose Stats a query may answer from without reading rows: Check fails when they no longer hold.
type Checker interface {
	Check(ctx context.Context) error
}

// Scan hands out batches to req.Workers callers at once.
type Scan interface {
	// Next returns the next morsel for the worker, or nil at its end. A worker number is used by one goroutine at a time.
	Next(ctx context.Context, worker int) (*Morsel, error)
	Close() error
}

// Morsel is a piece of a scan. Seq orders morsels as the relation orders its rows ("scan order").
type Morsel struct {
	Seq   int64
	Batch arrow.RecordBatch
	// Narrowed: the rows went through all stages of ScanRequest.Narrow.
	Narrowed bool
	// Places of the rows, when ScanRequest.Places asks for them and the relation knows; nil otherwise.
	Places *Places
}

// ScanRequest tells a relation what a query needs of it.
type ScanRequest struct {
	Columns   []int       // positions in Fields; empty slice reads only row counts
	Filters   []Predicate // conjunction; a relation may use them to skip rows, the engine filters again
	BatchRows int         // wished batch size; 0 lets the relation choose
	Workers   int         // at least 1
	Limit     int64       // rows needed in scan order; 0 is all
	Narrow    *Narrowing  // nil: none. A relation may ignore it
	Places    bool        // say where the rows of each morsel stand; goes without Narrow
	// Room gives bytes of any content, for columns that are written whole; nil: make.
	Room func(bytes int) []byte
}

// Narrowing drops rows while a relation decodes a batch: a relation that reads its columns apart decodes those of a stage,
// asks which rows are left, and decodes what comes after for those rows alone.
type Narrowing struct {
	// Stages, in order. Behind the last one that is not Pure they may be asked in any order.
	Stages []Stage
	// Kept, when set, tells of each stage how many rows it was shown and kept so far; whoever asks the stages counts.
	Kept []Kept
	// Take gathers rows of an array.
	Take func(a arrow.Array, rows []int32) arrow.Array
}

// Stage is one filter of a Narrowing. It must not keep the arrays that it is shown.
type Stage struct {
	Columns []int // positions in ScanRequest.Columns
	// Pure: what is said of a row depends on its values alone, or keeps more, and no values make it fail. Then a relation may
	// ask about values instead of rows, also about some that no row has.
	Pure bool
	// Select returns the rows to keep, in rising order, or all. What it returns holds until the worker's next call. A worker
	// number is used by one goroutine at a time.
	Select func(worker int, cols []arrow.Array, n int) (rows []int32, all bool, err error)
}

// Kept counts rows of a stage, of all workers together.
type Kept struct{ Shown, Kept atomic.Int64 }

// CompareOp is a comparison that scans understand.
type CompareOp uint8

const (
	CmpEq CompareOp = iota + 1
	CmpNe
	CmpLt
	CmpLe
	CmpGt
	CmpGe
	CmpIn
	CmpIsNull
	CmpIsNotNull
)

// Predicate compares one column with constants. Values hold Go values as types.Value defines them for
// the column's SQL type; a row where the comparison is not true may be skipped.
type Predicate struct {
	Column int // position in Fields
	Op     CompareOp
	Values []types.Value
	Rising *Rising // applied to the column before it is compared; nil: nothing
}

// Rising is a function that never falls while its argument rises. Of gives nil where the value is not known.
type Rising struct {
	Type types.Type // of its values
	Of   func(types.Value) types.Value
}

// Stats is what a relation knows of itself.
type Stats struct {
	Rows    int64 // -1: unknown
	Exact   bool
	Columns map[int]ColumnStats // by position in Fields
}

// ColumnStats describes one column; zero values mean unknown.
type ColumnStats struct {
	Min, Max types.Value // nil: unknown
	Nulls    int64       // -1: unknown
	Distinct int64       // estimate; 0: unknown
	Tight    bool        // Min and Max are values of the column, not only bounds of them
}

// Position is where a reader stands in its split: opaque to the engine, written into checkpoints as it is.
// The empty position is the start that the stream's options ask for.
type Position string

// Split is a part of a source that is read in order.
type Split struct {
	ID string
}

// Stream is input that is read in order, split by split, for ever or to its end.
type Stream interface {
	Fields() []types.Field
	// Splits lists the splits known now; the runner asks again every few seconds, so new partitions and files appear.
	Splits(ctx context.Context) ([]Split, error)
	// Open starts reading a split at a position.
	Open(ctx context.Context, split Split, from Position) (Reader, error)
	// Bounded reports whether the stream ends by itself.
	Bounded() bool
	// Updating reports whether batches carry weights.
	Updating() bool
	// Replayable reports whether a position can be read again.
	Replayable() bool
}

// Resumer is a Stream that must know when a run goes on from a checkpoint: a split without a position is one that appeared since.
type Resumer interface {
	// Resumed returns the stream for such a run.
	Resumed() Stream
}

// Rememberer is a Stream that compares what it finds with what was read of it before a run went on, splits that were read to their end included.
type Rememberer interface {
	// Remember tells where each split was. It is called before a run that goes on from a checkpoint asks for the splits.
	Remember(upTo map[string]Position)
}

// Listener is a Reader that knows when its source answered. A split is silent for as long as its source says that there is nothing: one that is away has
// not said so. Without it, reads that do not fail are taken for answers.
type Listener interface {
	// Heard gives the time of the last answer, and since when they come without a gap.
	Heard() (since, last time.Time)
}

// Settler is a Stream whose beginning may be another each time it is looked for, such as the present end of a topic. A checkpoint waits until each
// split of the first listing has told where it began, so that a run which goes on never looks for it again.
type Settler interface {
	// Settles reports whether that is so with this stream's options.
	Settles() bool
}

// Acknowledger is a Stream that frees, or shows to those who watch, what a durable checkpoint holds.
type Acknowledger interface {
	// Acknowledge tells up to where each split is in a durable checkpoint. It is called behind the running steps, by one goroutine.
	Acknowledge(ctx context.Context, upTo map[string]Position) error
}

// Unique is a Stream of rows that knows which columns tell them apart, at the end of each step that has whole transactions.
type Unique interface {
	// UniqueKeys are sets of columns, as positions in Fields, none of which is ever NULL.
	UniqueKeys() [][]int
}

// Reader reads one split. It is used by one goroutine.
type Reader interface {
	// Read returns at most max rows. It blocks until there are some, ctx ends, or the split ends (io.EOF,
	// with no rows). A return without rows and without error is allowed and means "nothing yet".
	Read(ctx context.Context, max int) (Rows, error)
	Close() error
}

// Rows is what one Read brought.
type Rows struct {
	Batch arrow.RecordBatch // columns of Fields, with weights if the stream is updating; may be nil
	Bad   []BadRow          // what did not decode
	// Places of the rows of Batch; nil where the source has none.
	Places *Places
	// Lent is the memory that Batch lies in, retained for the reader; nil where it is the engine's own.
	Lent Lent
	Next Position // where to go on after these rows
	// TxnOpen: the source transaction of the last row is still open; its rows belong to one step.
	TxnOpen bool
	// Watermark is set by hand behind these rows, for the whole stream (push sources); nil otherwise.
	Watermark *Watermark
	// Idle: the split says of itself that it is silent until its next row (push sources).
	Idle  bool
	Bytes int64 // read from the source, for metrics
}

// BadRow is a row of __bad: bytes that did not decode, or a row that an expression of one query failed on.
type BadRow struct {
	Source, Split string
	Position      string
	Raw           []byte // what did not decode
	Key           []byte // of the message that it was; nil: none
	Row           string // the row that an expression failed on, as a struct
	Error         string
	Time          time.Time // of ingestion; of the step or the batch run for an expression
}

// LatestStream is a stream that can be read up to its present end (until='latest').
type LatestStream interface {
	Stream
	// UntilLatest returns a bounded stream that ends where each split ends now.
	UntilLatest(ctx context.Context) (Stream, error)
}

// Retry says how often and how long transient errors are retried.
type Retry struct {
	Attempts int
	First    time.Duration
}
