// Package lance declares Lance tables as sinks. What writes them is pylance, in the Python package.
//
// Invariant: rows of an epoch are in files of the table before its manifest is published, and part of the table by one transaction of it that
// carries the epoch's marker.
package lance

import (
	"context"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/host"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

const name = "lance"

// Sink declares Lance tables.
var Sink = connectors.Sink{
	Name: name, Class: "Lance", Summary: "Write rows to a Lance table: add them, or keep the table equal to the query by key.",
	Updates: connectors.Keyed, ExactlyOnce: true,
	Options: connectors.Options{
		{Name: "path", Type: connectors.String, Required: true, Doc: "The folder of the table, or its address in an object store.", Example: "lake/trades.lance"},
		{Name: "key", Type: connectors.List, Doc: "Columns that tell the rows of the query apart. With them a row replaces the one of its key and a row that goes is deleted; without, rows are only added.", Example: "customer, day"},
		{Name: "create", Type: connectors.Bool, Default: "true", Doc: "Create the table when it is missing."},
		{Name: "storage_options", Type: connectors.List, Secret: true, Doc: "Options of the object store for pylance, as name=value. What is left out comes from the environment.", Example: "region=eu-central-1"},
		connectors.ChangelogOption,
	},
	Open: open,
}

// options is what the host's class takes.
type options struct {
	Path    string   `json:"path"`
	Key     []string `json:"key,omitempty"`
	Create  bool     `json:"create"`
	Storage []string `json:"storage_options,omitempty"`
}

func open(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
	s := req.Settings
	o := options{Path: s.String("path"), Create: s.Bool("create"), Storage: s.List("storage_options")}
	if o.Path == "" {
		return nil, errs.New(errs.Usage, "options", "sink 'lance': the path is empty").WithHint("write path = 'lake/trades.lance'")
	}
	of := host.SinkOf{Connector: name, What: "the Lance sink without the option key", Options: &o}
	var err error
	if of.Fields, of.Weights, err = fields(req, &o); err != nil {
		return nil, err
	}
	for _, f := range of.Fields {
		if holds(f.Type, types.Interval) {
			return nil, errs.New(errs.Schema, "open sink", "column %q: a Lance table holds no %s", f.Name, f.Type).WithHint("cast it in the query, to VARCHAR for instance")
		}
	}
	return host.OpenSink(ctx, of, req)
}

// fields are the columns to write, and whether weights go with them: those of a changelog are a column of the table, those of a sink with a
// key tell the host what goes.
func fields(req connectors.SinkRequest, o *options) (out []types.Field, weights bool, err error) {
	key, err := connectors.SinkKey("the Lance sink", req)
	if err != nil {
		return nil, false, err
	}
	if key == nil {
		out, changelog, err := connectors.AppendFields("the Lance sink without the option key", req)
		if e := errs.As(err); e != nil && e.Kind == errs.Unsupported {
			return nil, false, e.WithHint("name the columns that tell its rows apart (key = 'id'), use EMIT ON WATERMARK, or set changelog = true to write each change with its __weight")
		} else if err != nil {
			return nil, false, err
		}
		if changelog {
			out = out[:len(out)-1] // the weight travels as one
		}
		return out, changelog, nil
	}
	for _, at := range key {
		o.Key = append(o.Key, req.Fields[at].Name)
	}
	return req.Fields, true, nil
}

// holds reports whether values of a type have some of a kind in them.
func holds(t types.Type, kind types.Kind) bool {
	switch {
	case t.Kind == kind:
		return true
	case t.Elem != nil && holds(*t.Elem, kind), t.Key != nil && holds(*t.Key, kind):
		return true
	}
	for _, f := range t.Fields {
		if holds(f.Type, kind) {
			return true
		}
	}
	return false
}
