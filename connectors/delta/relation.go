package delta

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// relation is one version of a table as bounded input.
type relation struct {
	*snapshot
	fields []types.Field
	list   []*dataFile
	stats  flow.Stats
}

func newRelation(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
	s, err := openSnapshot(ctx, req)
	if err != nil {
		return nil, err
	}
	r := &relation{snapshot: s, fields: fieldsIn(s.columns), list: s.sorted()}
	r.stats = tableStats(s.columns, r.list)
	return r, nil
}

// openSnapshot reads the version that the options ask for.
func openSnapshot(ctx context.Context, req connectors.OpenRequest) (*snapshot, error) {
	t, err := newTable(req.Settings.String("path"))
	if err != nil {
		return nil, err
	}
	version, when, err := whichVersion(req)
	if err != nil {
		return nil, err
	}
	l, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case when != nil:
		if version, err = t.at(ctx, l, *when); err != nil {
			return nil, err
		}
	case version < 0:
		version = l.last
	}
	s, err := t.load(ctx, l, version)
	if err == nil && req.Schema != nil {
		s.columns, err = s.declared(req.Schema)
	}
	return s, err
}

// declared are the columns of the table that were declared, in that order. A type may be wider than the table's.
func (s *snapshot) declared(fields []types.Field) ([]column, error) {
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = c.Name
	}
	out := make([]column, len(fields))
	for i, f := range fields {
		at := slices.IndexFunc(s.columns, func(c column) bool { return strings.EqualFold(c.Name, f.Name) })
		if at < 0 {
			e := errs.New(errs.Schema, "open", "the Delta table %q has no column %q", s.table.path, f.Name)
			if hint := errs.DidYouMean(f.Name, names); hint != "" {
				return nil, e.WithHint("%s", hint)
			}
			return nil, e.WithHint("its columns are %s", strings.Join(names, ", "))
		}
		c := s.columns[at]
		if !c.Type.Equal(f.Type) && (c.Type.IsNested() || !files.Widens(c.Type, f.Type)) {
			return nil, errs.New(errs.Schema, "open", "column %q of the Delta table %q is %s, not %s", c.Name, s.table.path, c.Type, f.Type).
				WithHint("declare it as %s, or leave the columns out, and cast in the query", c.Type)
		}
		c.Field = f
		out[i] = c
	}
	return out, nil
}

func (r *relation) Fields() []types.Field { return r.fields }

// Stats come from the log.
func (r *relation) Stats() flow.Stats { return r.stats }

// Check has nothing to look at: a version of a table is what the log says, and does not change.
func (r *relation) Check(context.Context) error { return nil }

// Version stands for the table and its version: rows are in the order of before while it is the same. A pipeline that goes on says by it that
// the table has moved on, instead of reading on in the middle of other rows.
func (r *relation) Version() string {
	return fmt.Sprintf("%s@%d", r.metadata.ID, r.version)
}

// Files lists the paths, for EXPLAIN.
func (r *relation) Files() []string {
	out := make([]string, len(r.list))
	for i, f := range r.list {
		out[i] = f.Path
	}
	return out
}

// Scan hands out row groups. A file is opened when its turn comes; those that cannot match by the log are left out.
func (r *relation) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	var list []*dataFile
	var rows int64
	for _, f := range r.list {
		if !r.canMatch(f, req.Filters) {
			continue
		}
		// Without filters the rows are known, so files behind the limit need not be read.
		if req.Limit > 0 && len(req.Filters) == 0 && rows >= req.Limit {
			break
		}
		rows += max(f.rows(), 0)
		list = append(list, f)
	}
	return datafile.NewScan(req, r.fields, len(list), func(ctx context.Context, at int) (*datafile.File, datafile.Picks, error) {
		f := list[at]
		src, err := r.table.open(ctx, f, r.columns)
		if err != nil {
			return nil, datafile.Picks{}, err
		}
		gone, err := f.Vector.load(ctx, r.table, src.Rows)
		if err != nil {
			return nil, datafile.Picks{}, r.table.badVector(f, err)
		}
		return src, datafile.Picks{Set: gone}, nil
	}), nil
}

// canMatch looks at what the log says of a file.
func (r *relation) canMatch(f *dataFile, filters []flow.Predicate) bool {
	if f.rows() == 0 {
		return false
	}
	for _, p := range filters {
		c := &r.columns[p.Column]
		if s, ok := f.stats(c); ok && !p.CanMatch(c.Type, s, f.rows()) {
			return false
		}
	}
	return true
}

func (t *table) badVector(f *dataFile, err error) error {
	return errs.Because(err, errs.Source, "open", "restore it, or read a version without it", "the deletion vector of the file %q of the Delta table %q", f.Path, t.path)
}
