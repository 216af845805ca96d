package host

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// SinkOf says how rows go to a sink of the host.
type SinkOf struct {
	Connector string
	What      string        // in words, for messages: "the Flight sink"
	Fields    []types.Field // columns to write, without the weight
	Weights   bool          // write the weight as the last column; otherwise a weight of n is n rows
	Forwards  bool          // watermarks go with the rows, and without
	Options   any           // JSON, as the host's class takes them
}

// OpenSink opens a sink. Its writer is a Committer when the request is exactly once.
func OpenSink(ctx context.Context, of SinkOf, req connectors.SinkRequest) (connectors.Writer, error) {
	w := &writer{of: of, clock: req.Clock, mark: flow.NoWatermark}
	if w.clock == nil {
		w.clock = clock.Wall{}
	}
	schema := types.ArrowSchema(of.Fields)
	if of.Weights {
		schema = flow.WithWeights(schema)
	}
	with := map[string]any{"options": of.Options, "pipeline": req.Pipeline, "exactly_once": req.ExactlyOnce}
	err := again(ctx, w.clock, func() (err error) {
		w.object, _, err = open(ctx, of.Connector, "sink", with, flow.NoRows(schema), nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	if req.ExactlyOnce {
		return &committer{w}, nil
	}
	return w, nil
}

// writer writes at least once.
type writer struct {
	of     SinkOf
	object *object
	clock  clock.Clock
	mark   flow.Watermark // the last that was handed over
	alone  bool           // since the last rows
}

// Room is what the host says to rows: whether it wants to be rid of what it has before more come.
type Room struct {
	Full bool `json:"full"`
}

// Staged is what Stage gives.
type Staged struct {
	Committable connectors.Committable `json:"committable"` // base64; null: nothing was written
}

// Held is the marker that a sink holds.
type Held struct {
	Marker connectors.Marker `json:"marker"`
}

// Forwards reports whether watermarks are handed on.
func (w *writer) Forwards() bool { return w.of.Forwards }

// Write hands rows over. They are visible, or staged, behind Stage.
func (w *writer) Write(ctx context.Context, d flow.Delta) error {
	rows, err := w.rows(d)
	if err != nil {
		return err
	}
	if rows == nil {
		w.alone = w.of.Forwards && (w.alone || d.Watermark > w.mark)
		w.mark = max(w.mark, d.Watermark)
		return nil
	}
	w.mark, w.alone = max(w.mark, d.Watermark), false
	var room Room
	// Not tried again: the host only keeps them.
	if _, err := w.object.call(ctx, "write", map[string]any{"beside": string(d.Beside().Bytes())}, rows, &room); err != nil || !room.Full {
		return err
	}
	return again(ctx, w.clock, func() error {
		_, err := w.object.call(ctx, "flush", nil, nil, nil)
		return err
	})
}

// rows are what is written of a delta; nil where it has none.
func (w *writer) rows(d flow.Delta) (arrow.RecordBatch, error) {
	if d.Rows() == 0 {
		return nil, nil
	}
	schema := types.ArrowSchema(w.of.Fields)
	if w.of.Weights {
		return array.NewRecordBatch(flow.WithWeights(schema), connectors.ChangeColumns(d), int64(d.Rows())), nil
	}
	weights, err := connectors.Repeats(w.of.What, d)
	if err != nil {
		return nil, err
	}
	cols, n := connectors.Repeated(d.Columns(), d.Rows(), weights)
	if n == 0 {
		return nil, nil
	}
	return array.NewRecordBatch(schema, cols, int64(n)), nil
}

// Stage has all that was written taken by whom it goes to, or, exactly once, kept by it until the commit.
func (w *writer) Stage(ctx context.Context, epoch flow.Epoch) (connectors.Committable, error) {
	with := map[string]any{"epoch": epoch}
	if w.alone {
		with["beside"] = string(flow.Beside{Watermark: w.mark}.Bytes())
	}
	var out Staged
	err := again(ctx, w.clock, func() error {
		_, err := w.object.call(ctx, "stage", with, nil, &out)
		return err
	})
	if err == nil {
		w.alone = false
	}
	return out.Committable, err
}

func (w *writer) Close() error {
	w.object.close()
	return nil
}

// committer is a writer whose epochs become visible once.
type committer struct{ *writer }

func (c *committer) Begin(ctx context.Context, first connectors.Marker) (connectors.Marker, error) {
	var held Held
	err := again(ctx, c.clock, func() error {
		_, err := c.object.call(ctx, "begin", map[string]any{"first": first}, nil, &held)
		return err
	})
	return held.Marker, err
}

// Commit is called again by the engine where it fails transiently; the host looks for the marker before it does anything.
func (c *committer) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	if len(e.Rows) > 0 {
		return errs.Bug("commit", "rows are held for the sink %q", c.of.Connector)
	}
	with := map[string]any{"epoch": e.Epoch, "marker": e.Marker, "previous": e.Previous, "committable": e.Committable}
	_, err := c.object.call(ctx, "commit", with, nil, nil)
	return err
}
