package iceberg

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares Iceberg tables as sinks.
var Sink = connectors.Sink{
	Name: "iceberg", Class: "Iceberg", Summary: "Write rows to an Iceberg table: add them, or keep the table equal to the query by key.",
	Updates: connectors.Keyed, ExactlyOnce: true,
	Options: connection.With(
		connectors.Option{Name: "key", Type: connectors.List, Doc: "Columns that tell the rows of the query apart. With them a row replaces the one of its key and a row that goes is deleted, by writing the data files anew that hold one (copy-on-write); without, rows are only added.", Example: "symbol, minute"},
		connectors.Option{Name: "create", Type: connectors.Bool, Default: "true", Doc: "Create the table, and its namespace, when it is missing."},
		connectors.Option{Name: "partition_by", Type: connectors.List, Doc: "How a table that is created is partitioned: columns, or year, month, day and hour of a time, bucket(n, column), truncate(n, column).", Example: "day(ts), bucket(16, symbol)"},
		connectors.Option{Name: "evolve", Type: connectors.Bool, Default: "false", Doc: "Add columns of the query that the table does not have, and widen those that are narrower."},
		connectors.Option{Name: "compression", Type: connectors.Enum, Values: []string{"zstd", "snappy", "gzip", "uncompressed"}, Default: "zstd", Doc: "How pages of data files are compressed."},
		connectors.Option{Name: "file_bytes", Type: connectors.Int, Default: "536870912", Doc: "A data file that has so many bytes gets no more rows; it ends up larger by a row group. 0 is no limit."},
		connectors.Option{Name: "commit_every", Type: connectors.Int, Default: "1", Doc: "Epochs of a pipeline with checkpoints that one snapshot takes: fewer snapshots, and rows that are seen later. With a key each epoch has its own."},
		connectors.ChangelogOption,
	),
	Open: openSink,
}

// writer writes rows to a table.
type writer struct {
	t         *table
	meta      *meta.Table
	place     place
	layout    layout
	fields    []types.Field // of the rows
	key       []int         // columns of the key; nil: rows are only added
	changelog bool
	pipeline  string
	exactly   bool
	every     int    // epochs of a commit
	token     string // of this process, in the names of files
	clock     clock.Clock

	data    *dataWriter
	changes *changes // with a key
	number  int64    // of the epoch, in the names of files
	part    int

	mu       sync.Mutex        // Commit is called behind Write and Stage
	marker   connectors.Marker // that the table holds, as far as we know; "" is not known
	leftover []objstore.Staged // what was staged when we began
	replaced int               // data files that were written anew
}

func openSink(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
	s := req.Settings
	t, err := newTable(s)
	if err != nil {
		return nil, err
	}
	w := &writer{t: t, pipeline: req.Pipeline, exactly: req.ExactlyOnce, token: strings.ToLower(clock.Unique()[:8]), clock: req.Clock,
		layout: layout{compression: s.String("compression"), fileBytes: s.Int("file_bytes")}}
	if w.clock == nil {
		w.clock = clock.Wall{}
	}
	if w.key, err = connectors.SinkKey("the Iceberg sink", req); err != nil {
		return nil, err
	}
	for _, at := range w.key {
		if f := req.Fields[at]; f.Type.IsNested() || f.Type.IsFloat() {
			return nil, errs.New(errs.Unsupported, "open sink", "column %q of the key is %s, whose values do not tell rows apart", f.Name, f.Type).WithHint("choose another key, or cast it in the query")
		}
	}
	switch {
	case w.key == nil:
		if w.fields, w.changelog, err = connectors.AppendFields("the Iceberg sink without the option key", req); err != nil {
			if e := errs.As(err); e.Kind == errs.Unsupported {
				return nil, e.WithHint("name the columns that tell its rows apart (key = 'id'), use EMIT ON WATERMARK, or set changelog = true to write each change with its __weight")
			}
			return nil, err
		}
	default:
		w.fields = req.Fields
	}
	if w.every = int(s.Int("commit_every")); w.every < 1 || w.key != nil {
		w.every = 1
	}
	if err := w.prepare(ctx, s); err != nil {
		return nil, err
	}
	return w, nil
}

// prepare finds the table, or makes it, and how rows become its data files.
func (w *writer) prepare(ctx context.Context, s connectors.Settings) error {
	if s.Bool("create") {
		if err := makeFolder(s.String("catalog")); err != nil {
			return errs.Because(err, errs.Source, "open sink", "", "the Iceberg table %q: the folder of its catalog", w.t.name)
		}
	}
	a, err := w.t.ask(ctx, meta.Request{Op: "load"})
	if kindOf(err) == "absent" && s.Bool("create") {
		if a, err = w.create(ctx, s); kindOf(err) == "exists" { // by another process, at this moment
			a, err = w.t.ask(ctx, meta.Request{Op: "load"})
		}
	}
	if err != nil {
		return err
	}
	w.meta = a.Table
	if s.Bool("evolve") {
		if err := w.evolve(ctx); err != nil {
			return err
		}
	}
	if w.place, err = placeOf(w.meta); err != nil {
		return err
	}
	if w.data, err = w.writerFor(w.meta, w.fields, "", func() int64 { return w.number + 1 }, &w.part); err != nil {
		return err
	}
	if w.key != nil {
		if _, err := viewOf(w.t, w.meta, nil); err != nil { // its files are written anew whole
			return err
		}
		w.changes = newChanges(w.key, w.fields)
	}
	return nil
}

// writerFor makes a writer of data files for rows of some columns.
func (w *writer) writerFor(m *meta.Table, fields []types.Field, kind string, number func() int64, part *int) (*dataWriter, error) {
	f, err := newForm(w.t, m, fields)
	if err != nil {
		return nil, err
	}
	p, err := newPartitioner(w.t, m, f)
	if err != nil {
		return nil, err
	}
	name := func() string {
		*part++
		return fileName(w.fileID(), number(), kind, *part, w.token)
	}
	return &dataWriter{t: w.t, form: f, parts: p, spec: m.Spec, place: w.place, layout: w.layout, name: name}, nil
}

// fileID is the pipeline's id as a part of a name.
func (w *writer) fileID() string {
	if w.pipeline == "" {
		return "part"
	}
	return strings.NewReplacer(".", "%2E").Replace(url.PathEscape(w.pipeline))
}

func (w *writer) create(ctx context.Context, s connectors.Settings) (meta.Answer, error) {
	fields, err := fieldsOf(w.fields)
	if err != nil {
		return meta.Answer{}, err
	}
	req := meta.Request{Op: "create", Schema: fields}
	for _, text := range splitParts(s.List("partition_by")) {
		p, err := partOf(text)
		if err != nil {
			return meta.Answer{}, err
		}
		at := findField(fields, p.Column)
		if at < 0 {
			all := make([]string, len(fields))
			for i, f := range fields {
				all[i] = f.Name
			}
			return meta.Answer{}, errs.New(errs.Schema, "open sink", "partition_by names %q, which is no column of the query", p.Column).WithHint("%s", errs.DidYouMean(p.Column, all))
		}
		t, err := columnOf(fields[at], nil)
		if err != nil {
			return meta.Answer{}, err
		}
		if _, err := transformOf(p.Transform, t.Type); err != nil {
			return meta.Answer{}, errs.Because(err, errs.Source, "open sink", "", "partition_by names %q", text)
		}
		p.Source, p.Column = fields[at].ID, fields[at].Name
		req.Partition = append(req.Partition, p)
	}
	return w.t.ask(ctx, req)
}

// splitParts joins what the commas within brackets parted.
func splitParts(list []string) []string {
	var out []string
	depth := 0
	for _, s := range list {
		if depth > 0 {
			out[len(out)-1] += ", " + s
		} else {
			out = append(out, s)
		}
		depth += strings.Count(s, "(") - strings.Count(s, ")")
	}
	return out
}

// fieldsOf are the Iceberg fields of a query's columns, numbered from 1.
func fieldsOf(fields []types.Field) ([]meta.Field, error) {
	last := 0
	number := func() int { last++; return last }
	out := make([]meta.Field, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = fieldOf(f, number); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// evolve adds what the table lacks.
func (w *writer) evolve(ctx context.Context) error {
	fields, err := fieldsOf(w.fields)
	if err != nil {
		return err
	}
	lacks := slices.ContainsFunc(fields, func(f meta.Field) bool {
		at := findField(w.meta.Schema, f.Name)
		return at < 0 || w.meta.Schema[at].Type != f.Type
	})
	if !lacks {
		return nil
	}
	for i := range fields { // as the table spells them
		if at := findField(w.meta.Schema, fields[i].Name); at >= 0 {
			fields[i].Name = w.meta.Schema[at].Name
		}
	}
	a, err := w.t.ask(ctx, meta.Request{Op: "evolve", Schema: fields})
	if err == nil {
		w.meta = a.Table
	}
	return err
}

// Write takes one delta.
func (w *writer) Write(ctx context.Context, d flow.Delta) error {
	if d.Rows() == 0 {
		return nil
	}
	if w.key != nil {
		return w.changes.add(d)
	}
	cols, rows := d.Columns(), d.Rows()
	if w.changelog {
		return w.data.write(ctx, connectors.ChangeColumns(d), rows)
	}
	times, err := connectors.Repeats("the Iceberg sink without the option key", d)
	if err != nil {
		return err
	}
	if cols, rows = connectors.Repeated(cols, rows, times); rows == 0 {
		return nil
	}
	return w.data.write(ctx, cols, rows)
}

// Close drops what no Stage handed over.
func (w *writer) Close() error {
	w.data.drop()
	return nil
}
