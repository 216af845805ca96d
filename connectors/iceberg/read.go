package iceberg

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// view is a table as its metadata say, with the columns that are read of it.
type view struct {
	*table
	meta    *meta.Table
	all     []datafile.Column // of the schema
	columns []datafile.Column // that are read
}

// viewOf reads the schema. declared chooses columns of it; nil chooses all.
func viewOf(t *table, m *meta.Table, declared []types.Field) (*view, error) {
	v := &view{table: t, meta: m}
	names, err := mappingOf(m)
	if err != nil {
		return nil, errs.Because(err, errs.Source, "read schema", "", "the Iceberg table %q", t.name)
	}
	if declared == nil {
		v.all, err = columnsOf(m.Schema, names)
		v.columns = v.all
		return v, t.of(err)
	}
	// A column that is not asked for may be of a type that is not read.
	for _, f := range m.Schema {
		c, err := columnOf(f, names)
		if err == nil {
			v.all = append(v.all, c)
		} else if slices.ContainsFunc(declared, func(d types.Field) bool { return strings.EqualFold(d.Name, f.Name) }) {
			return nil, errs.Because(err, errs.Source, "read schema", "", "column %q of the Iceberg table %q", f.Name, t.name)
		}
	}
	v.columns, err = v.declared(declared)
	return v, err
}

// of says of an error which table it is about.
func (t *table) of(err error) error {
	if err == nil {
		return nil
	}
	return errs.Because(err, errs.Source, "read schema", "", "the Iceberg table %q", t.name)
}

// declared are the columns of the table that were declared, in that order. A type may be wider than the table's.
func (v *view) declared(fields []types.Field) ([]datafile.Column, error) {
	names := namesOf(v.all)
	out := make([]datafile.Column, len(fields))
	for i, f := range fields {
		at := find(v.all, f.Name)
		if at < 0 {
			e := errs.New(errs.Schema, "open", "the Iceberg table %q has no column %q", v.name, f.Name)
			if hint := errs.DidYouMean(f.Name, names); hint != "" {
				return nil, e.WithHint("%s", hint)
			}
			return nil, e.WithHint("its columns are %s", strings.Join(names, ", "))
		}
		c := v.all[at]
		same := c.Type.Equal(f.Type) || c.Type.Kind == types.Varchar && f.Type.Kind == types.JSON
		if !same && (c.Type.IsNested() || !files.Widens(c.Type, f.Type)) {
			return nil, errs.New(errs.Schema, "open", "column %q of the Iceberg table %q is %s, not %s", c.Name, v.name, c.Type, f.Type).
				WithHint("declare it as %s, or leave the columns out, and cast in the query", c.Type)
		}
		if c.Default != nil && !same {
			from := types.ArrayOf([]types.Value{c.Default}, c.Type)
			c.Default = types.ValueAt(files.Widen(from, c.Type, f.Type), 0, f.Type)
		}
		c.Field = f
		out[i] = c
	}
	return out, nil
}

// open opens a data file for some columns.
func (v *view) open(ctx context.Context, f *meta.File, columns []datafile.Column) (*datafile.File, error) {
	src, err := v.openFile(ctx, f, columns)
	if err == nil {
		return src, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.Source, "open", "the file %q of the Iceberg table %q is no longer there: its snapshot has expired, or it was deleted by hand", f.Path, v.name).
			WithHint("read a newer snapshot, or keep snapshots longer than a query or a stopped pipeline needs them")
	}
	return nil, errs.Because(err, errs.Source, "open", "restore the file, or read a snapshot without it", "the file %q of the Iceberg table %q", f.Path, v.name)
}

func (v *view) openFile(ctx context.Context, f *meta.File, columns []datafile.Column) (*datafile.File, error) {
	if f.Format != "" && f.Format != "parquet" {
		return nil, errs.New(errs.Unsupported, "open", "it is of the format %s, and Parquet is read", f.Format).WithHint("write the table's files anew as Parquet (write.format.default)")
	}
	ref, err := refTo(ctx, f.Path, f.Bytes)
	if err != nil {
		return nil, err
	}
	constants, err := v.constants(f, columns)
	if err != nil {
		return nil, err
	}
	src, err := datafile.Open(ctx, ref, columns, constants)
	if err != nil {
		return nil, err
	}
	if !src.Numbered() && !slices.ContainsFunc(columns, func(c datafile.Column) bool { return len(c.Names) > 0 }) && len(columns) > 0 {
		return nil, errs.New(errs.Source, "open", "its columns have no field ids, and the table does not say how they are called in such files").
			WithHint("set the table's property schema.name-mapping.default, as its engines do when they take files in that others wrote")
	}
	return src, nil
}

// refTo finds a file, which has so many bytes; 0: unknown.
func refTo(ctx context.Context, path string, size int64) (files.Ref, error) {
	store, name, err := locate(path)
	if err != nil {
		return files.Ref{}, err
	}
	info, err := store.Stat(ctx, name)
	if err != nil {
		return files.Ref{}, err
	}
	if size != 0 && info.Size != size {
		return files.Ref{}, errs.New(errs.Source, "open", "it has %d bytes, and the table's metadata say %d", info.Size, size)
	}
	return files.Ref{Store: store, Info: info}, nil
}

// constants are the values of identity parts of the file's partition, which writers may leave out of the file.
func (v *view) constants(f *meta.File, columns []datafile.Column) (map[int]types.Value, error) {
	out := map[int]types.Value{}
	for i, c := range columns {
		if value, ok, err := v.partitionValue(f, &c); err != nil {
			return nil, err
		} else if ok {
			out[i] = value
		}
	}
	return out, nil
}

// partitionValue is the value of a column in all rows of a file whose partition has it as it is.
func (v *view) partitionValue(f *meta.File, c *datafile.Column) (value types.Value, ok bool, err error) {
	for _, p := range v.meta.Specs[f.Spec] {
		if p.Source != c.ID || p.Transform != "identity" {
			continue
		}
		text, given := f.Partition[p.Name]
		if !given {
			return nil, true, nil
		}
		value, err := parseValue(text, c.Type)
		if err != nil {
			return nil, false, errs.New(errs.Source, "open", "the metadata give the value %s of its partition %q, which is no %s", text, p.Name, c.Type)
		}
		return value, true, nil
	}
	return nil, false, nil
}

// stats are what the metadata know of a column of a file.
func (v *view) stats(f *meta.File, c *datafile.Column) (flow.ColumnStats, bool) {
	if value, ok, err := v.partitionValue(f, c); err == nil && ok {
		if value == nil {
			return flow.ColumnStats{Nulls: f.Rows}, true
		}
		return flow.ColumnStats{Min: value, Max: value}, true
	}
	out := flow.ColumnStats{Nulls: -1}
	nulls, ok := f.Nulls[c.ID]
	if ok {
		out.Nulls = nulls
	}
	lower, below := f.Lower[c.ID]
	upper, above := f.Upper[c.ID]
	if !below || !above || c.Type.IsNested() {
		return out, ok
	}
	var err1, err2 error
	out.Min, err1 = parseValue(lower, c.Type)
	out.Max, err2 = parseValue(upper, c.Type)
	if err1 != nil || err2 != nil || out.Min == nil || out.Max == nil { // a bound of a type that the column no longer has
		out.Min, out.Max = nil, nil
	}
	return out, ok || out.Min != nil
}

// canMatch looks at what the metadata say of a file.
func (v *view) canMatch(f *meta.File, filters []flow.Predicate) bool {
	if f.Rows == 0 {
		return false
	}
	for _, p := range filters {
		c := &v.columns[p.Column]
		if s, ok := v.stats(f, c); ok && !p.CanMatch(c.Type, s, f.Rows) {
			return false
		}
	}
	return true
}

// snapshot is a view of one snapshot with its files, in scan order: the older ones first, so that rows come about as they were written,
// whose event times watermarks follow.
type snapshot struct {
	*view
	files []meta.File
}

// openSnapshot reads the snapshot that the options ask for.
func openSnapshot(ctx context.Context, req connectors.OpenRequest) (*snapshot, error) {
	t, err := newTable(req.Settings)
	if err != nil {
		return nil, err
	}
	ref, err := t.refOf(req.Settings)
	if err != nil {
		return nil, err
	}
	return t.snapshot(ctx, ref, req.Schema)
}

func (t *table) snapshot(ctx context.Context, ref meta.Ref, declared []types.Field) (*snapshot, error) {
	a, err := t.ask(ctx, meta.Request{Op: "files", Ref: ref})
	if err != nil {
		return nil, err
	}
	v, err := viewOf(t, a.Table, declared)
	if err != nil {
		return nil, err
	}
	sortFiles(a.Files)
	return &snapshot{v, a.Files}, nil
}

func sortFiles(list []meta.File) {
	slices.SortFunc(list, func(a, b meta.File) int { return order(&a, &b) })
}

func order(a, b *meta.File) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), strings.Compare(a.Path, b.Path))
}
