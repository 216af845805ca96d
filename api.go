// Package riverbed is the engine as a Go library: one SQL text, run once over bounded data or incrementally
// over streams. It is the only package that knows all the others; capi and so Python are a thin shell over it.
//
// Invariant: Query.Run over the rows read so far and the accumulated output of an incremental run are equal.
package riverbed

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
)

// Version is the version of the library, the wheel and the C ABI's users.
const Version = "0.1.0"

// ConnectorSpec names a connector and its options, as CREATE … WITH (…) and the Python classes give them.
type ConnectorSpec struct {
	Connector string            `json:"connector"`
	Options   map[string]string `json:"options"`
}

// StreamSpec declares a stream or table over a connector.
type StreamSpec struct {
	ConnectorSpec
	// Columns are "name TYPE" pairs; empty means: infer from the source.
	Columns []ColumnSpec `json:"columns,omitempty"`
	// Watermark is an SQL expression over the columns ("ts - INTERVAL '5 seconds'"); may be empty.
	Watermark string `json:"watermark,omitempty"`
	// EventTime names the column that the watermark is for; found in the expression when empty.
	EventTime string `json:"event_time,omitempty"`
	// PrimaryKey names the columns by which rows of an upsert stream replace each other.
	PrimaryKey []string `json:"primary_key,omitempty"`
}

// ColumnSpec is one column of a declared schema.
type ColumnSpec struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// UDF is a vectorised user function: one array in per argument, one array out, all of the batch's length.
type UDF struct {
	Name          string
	Args          []string // SQL types; empty accepts any
	Returns       string   // SQL type
	Deterministic bool
	// Call gets the context of the run: what it asks of the session with that context belongs to the run.
	Call func(ctx context.Context, args []arrow.Array, rows int) (arrow.Array, error)
}

// SubscribeOptions configures an incremental run read in process.
type SubscribeOptions struct {
	Until     string `json:"until,omitempty"`      // "" for ever, "latest": up to the present end of every source
	QueueSize int    `json:"queue_size,omitempty"` // deltas that may wait for a slow reader; 0 is 64
}

// Metrics is what a run tells about itself. Field names end in their unit.
type Metrics struct {
	Pipeline       string                   `json:"pipeline"` // the name of the run in __late and __bad
	Steps          int64                    `json:"steps"`
	StepMicros     int64                    `json:"step_us"` // of the last step
	RowsIn         int64                    `json:"rows_in"`
	RowsOut        int64                    `json:"rows_out"`
	LateRows       int64                    `json:"late_rows"`
	BadRows        int64                    `json:"bad_rows"`
	StateBytes     int64                    `json:"state_bytes"`
	StateRows      int64                    `json:"state_rows"`
	StateTouched   int64                    `json:"state_touched"` // rows of state that were looked up, made or dropped so far
	WatermarkUS    int64                    `json:"watermark_us"`
	LagMS          int64                    `json:"lag_ms"` // processing time less watermark
	QueueRows      int64                    `json:"queue_rows"`
	UnknownFields  int64                    `json:"unknown_fields"`
	Sources        map[string]SourceMetrics `json:"sources,omitempty"`
	State          string                   `json:"state"` // starting, running, stopping, stopped, failed
	Error          string                   `json:"error,omitempty"`
	BadRetractions int64                    `json:"bad_retractions"` // retractions of rows that were never there

	Epoch           int64 `json:"epoch"`            // the newest that is durable; 0 without checkpoints
	CheckpointMS    int64 `json:"checkpoint_ms"`    // from its barrier to the end of its commit
	CheckpointBytes int64 `json:"checkpoint_bytes"` // that it wrote

	CheckpointPauseUS int64 `json:"checkpoint_pause_us"` // for which the steps stood still while it was copied

	CheckpointWarning string `json:"checkpoint_warning,omitempty"` // the last thing that failed behind, such as a merge of objects

	Outages    int64  `json:"outages"`               // how often a service did not answer and was waited for
	WaitingFor string `json:"waiting_for,omitempty"` // what does not answer at present
}

// SourceMetrics is the part of one source.
type SourceMetrics struct {
	Rows, Bytes, Bad, Late int64
	Splits                 int
	Positions              map[string]string
}

// SinkSpec says where a pipeline's output goes: a connector, or a callback in process.
type SinkSpec struct {
	ConnectorSpec
	// ID names the pipeline across restarts: its checkpoints and its markers. Without one it is the name of the sink of INSERT INTO, or made of the
	// query and the sink.
	ID string
	// ExactlyOnce refuses what cannot be exactly once. With checkpoint_url a sink that can is exactly once in any case.
	ExactlyOnce bool
	Func        func(ctx context.Context, d flow.Delta) error // when set, Connector is empty
}

// Result streams batches of a batch run; the caller releases it.
type Result = array.RecordReader
