// Package console writes rows to the standard output of the process, for a look at what a query does.
//
// Invariant: a line is one row as a JSON object; rows of an updating query carry their weight as __weight.
package console

import (
	"context"
	"io"
	"os"

	"github.com/riverbed/riverbed/connectors"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares the console.
var Sink = connectors.Sink{
	Name: "console", Class: "Console", Summary: "Write rows to standard output, a JSON object a line.", Updates: connectors.Changelog,
	Options: connectors.Options{{Name: "stderr", Type: connectors.Bool, Default: "false", Doc: "Write to standard error instead."}},
	Open: func(_ context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
		out := io.Writer(os.Stdout)
		if req.Settings.Bool("stderr") {
			out = os.Stderr
		}
		return New(out, req.Fields, req.Updating), nil
	},
}

type writer struct {
	out      io.Writer
	fields   []types.Field
	updating bool
	buf      []byte
}

// New writes to out.
func New(out io.Writer, fields []types.Field, updating bool) connectors.Writer {
	w := &writer{out: out, fields: append([]types.Field{}, fields...), updating: updating}
	if updating {
		w.fields = append(w.fields, types.Field{Name: flow.WeightColumn, Type: types.Int64})
	}
	return w
}

// Write prints at once: who looks at a console wants to see what happens when it does.
func (w *writer) Write(_ context.Context, d flow.Delta) error {
	if d.Rows() == 0 {
		return nil
	}
	cols := d.Columns()
	if w.updating {
		cols = connectors.ChangeColumns(d)
	}
	enc, err := djson.NewEncoder(w.fields, cols)
	if err != nil {
		return errs.New(errs.Usage, "write", "the console: %w", err)
	}
	w.buf = w.buf[:0]
	for row := range d.Rows() {
		w.buf = append(enc.Append(w.buf, row), '\n')
	}
	if _, err := w.out.Write(w.buf); err != nil {
		return errs.New(errs.Source, "write", "the console cannot be written: %w", err)
	}
	return nil
}

func (w *writer) Stage(context.Context, flow.Epoch) (connectors.Committable, error) { return nil, nil }
func (w *writer) Close() error                                                      { return nil }
