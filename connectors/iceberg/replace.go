package iceberg

import (
	"context"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Copy-on-write: the data files that hold a row of one of the epoch's keys are written anew without it, in the commit that adds the epoch's rows. So every
// reader reads the table, also one that knows no deletes, and none pays for them.

// stageChanges writes the rows that stand as data files, and the keys that are gone as a file of their own.
func (w *writer) stageChanges(ctx context.Context) ([]stagedFile, error) {
	keys, err := w.keyWriter()
	if err != nil {
		return nil, err
	}
	defer keys.drop()
	err = w.changes.rows(
		func(cols []arrow.Array, rows int) error { return w.data.write(ctx, cols, rows) },
		func(cols []arrow.Array, rows int) error { return keys.write(ctx, cols, rows) },
	)
	if err != nil {
		return nil, err
	}
	gone, err := keys.finishAll()
	if err == nil {
		w.changes.clear()
	}
	return gone, err
}

// keyTable is the table as if it had the columns of the key alone.
func (w *writer) keyTable() (*meta.Table, []types.Field) {
	m := *w.meta
	m.Schema, m.Partition = nil, nil
	var fields []types.Field
	for _, at := range w.key {
		fields = append(fields, w.fields[at])
		m.Schema = append(m.Schema, w.meta.Schema[findField(w.meta.Schema, w.fields[at].Name)])
	}
	return &m, fields
}

func (w *writer) keyWriter() (*dataWriter, error) {
	m, fields := w.keyTable()
	f, err := newForm(w.t, m, fields)
	if err != nil {
		return nil, err
	}
	name := func() string {
		w.part++
		return fileName(w.fileID(), w.number+1, "k", w.part, w.token)
	}
	return &dataWriter{t: w.t, form: f, parts: &partitioner{}, place: w.place, layout: w.layout, name: name}, nil
}

// conflicts is how often other writers may replace what we are replacing before we give up.
const conflicts = 100

// replace commits an epoch by key.
func (w *writer) replace(ctx context.Context, c committable, req meta.Commit) error {
	m, _ := w.keyTable()
	keyView, err := viewOf(w.t, m, nil)
	if err != nil {
		return err
	}
	keys, err := w.keysIn(ctx, keyView, append(c.Files[:len(c.Files):len(c.Files)], c.Gone...))
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		now, written, err := w.replacement(ctx, keys, keyView.columns, c.Number, len(req.Add) > 0)
		if err != nil {
			return err
		}
		attempt := req
		attempt.Add, attempt.Files = slices.Clip(req.Add), slices.Clip(req.Files)
		attempt.Base, attempt.Remove = now.base, now.gone
		add(&attempt, written)
		a, err := w.t.ask(ctx, meta.Request{Op: "commit", Commit: &attempt})
		if err != nil {
			return err
		}
		if !a.Conflict {
			return nil
		}
		// The answer is sure: the branch moved, and what we asked for is not in it and never will be.
		for _, f := range written {
			_ = w.place.store.Delete(ctx, f.Name)
		}
		if n == conflicts {
			return errs.New(errs.Source, "commit", "other writers replaced data files of the Iceberg table %q %d times while we did", w.t.name, n).
				WithHint("let one pipeline write a table by key, and compact it at another time").AsTransient()
		}
		if err := w.clock.Sleep(ctx, min(time.Duration(n)*50*time.Millisecond, 2*time.Second)); err != nil {
			return err
		}
	}
}

// keysOfEpoch are keys, and between what they lie.
type keysOfEpoch struct {
	keys     map[string]bool
	min, max []types.Value // by column
}

// keysIn reads the keys of files that we wrote.
func (w *writer) keysIn(ctx context.Context, v *view, list []stagedFile) (*keysOfEpoch, error) {
	out := &keysOfEpoch{keys: map[string]bool{}, min: make([]types.Value, len(v.columns)), max: make([]types.Value, len(v.columns))}
	for _, f := range list {
		src, err := v.open(ctx, &meta.File{Path: f.Address, Bytes: f.Size, Rows: f.Rows}, v.columns)
		if err != nil {
			return nil, err
		}
		var key []byte
		err = src.Each(ctx, allOf(v.columns), datafile.Picks{}, func(b arrow.RecordBatch, _ int64, _ []int32) error {
			of := keysOf(b.Columns())
			for i := range int(b.NumRows()) {
				key = of.of(key[:0], i)
				out.keys[string(key)] = true
			}
			for c := range v.columns {
				out.bound(c, b.Column(c), v.columns[c].Type)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (k *keysOfEpoch) bound(column int, a arrow.Array, t types.Type) {
	for i := range a.Len() {
		v := types.ValueAt(a, i, t)
		if k.min[column] == nil {
			k.min[column], k.max[column] = v, v
			continue
		}
		if o, ok := flow.CompareBounds(v, k.min[column]); ok && o < 0 {
			k.min[column] = v
		}
		if o, ok := flow.CompareBounds(v, k.max[column]); ok && o > 0 {
			k.max[column] = v
		}
	}
}

// filters say which files may hold one of the keys.
func (k *keysOfEpoch) filters() []flow.Predicate {
	var out []flow.Predicate
	for c := range k.min {
		if k.min[c] != nil {
			out = append(out, flow.Predicate{Column: c, Op: flow.CmpGe, Values: []types.Value{k.min[c]}}, flow.Predicate{Column: c, Op: flow.CmpLe, Values: []types.Value{k.max[c]}})
		}
	}
	return out
}

// replaced is what goes of a snapshot.
type replaced struct {
	base int64
	gone []string
}

// replacement writes the rows of the files that hold one of the keys, without those of the keys. The files are visible and in no table.
func (w *writer) replacement(ctx context.Context, keys *keysOfEpoch, columns []datafile.Column, number int64, adds bool) (now replaced, written []stagedFile, err error) {
	a, err := w.t.ask(ctx, meta.Request{Op: "files", Ref: meta.Ref{Branch: w.t.branch}})
	if kindOf(err) == "absent" { // the commit makes the branch
		a, err = w.t.ask(ctx, meta.Request{Op: "files"})
	}
	if err != nil {
		return now, nil, err
	}
	now.base = a.Table.Snapshot
	whole, err := viewOf(w.t, a.Table, nil)
	if err != nil {
		return now, nil, err
	}
	byKey := &view{table: w.t, meta: a.Table, all: whole.all, columns: columns}
	// The names rise over all attempts: what one that ended half-way has left is of other rows.
	out, err := w.writerFor(a.Table, datafile.Fields(whole.columns), "r", func() int64 { return number }, &w.replaced)
	if err != nil {
		return now, nil, err
	}
	defer out.drop()
	gone := newDeletes(whole)
	filters := keys.filters()
	sortFiles(a.Files)
	for i := range a.Files {
		f := &a.Files[i]
		if !byKey.canMatch(f, filters) {
			continue
		}
		src, err := byKey.open(ctx, f, columns)
		if err != nil {
			return now, nil, err
		}
		hit, err := matching(ctx, src, keys.keys)
		if err != nil {
			return now, nil, err
		}
		if hit.All() == 0 {
			continue
		}
		dead, err := gone.of(ctx, f)
		if err != nil {
			return now, nil, err
		}
		if hit.Minus(dead).All() == 0 { // the rows of our keys were deleted already
			continue
		}
		now.gone = append(now.gone, f.Path)
		if src, err = whole.open(ctx, f, whole.columns); err != nil {
			return now, nil, err
		}
		err = src.Each(ctx, allOf(whole.columns), datafile.Picks{Set: hit.Or(dead)}, func(b arrow.RecordBatch, _ int64, _ []int32) error {
			return out.write(ctx, b.Columns(), int(b.NumRows()))
		})
		if err != nil {
			return now, nil, err
		}
	}
	if written, err = out.finishAll(); err != nil {
		return now, nil, err
	}
	if len(now.gone) == 0 && !adds {
		// AIDEV-NOTE: keys went that were not there. The marker must move nevertheless, and only a snapshot that moves the branch keeps a late answer of
		// an earlier commit from taking it back: so there is a file without rows.
		if written, err = out.empty(ctx); err != nil {
			return now, nil, err
		}
	}
	for _, f := range written {
		if err := w.show(ctx, f, number); err != nil {
			return now, nil, err
		}
	}
	return now, written, nil
}
