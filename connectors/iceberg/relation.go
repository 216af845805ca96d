package iceberg

import (
	"context"
	"fmt"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// relation is one snapshot of a table as bounded input.
type relation struct {
	*snapshot
	fields  []types.Field
	stats   flow.Stats
	deletes *deletes
}

func newRelation(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
	s, err := openSnapshot(ctx, req)
	if err != nil {
		return nil, err
	}
	r := &relation{snapshot: s, fields: datafile.Fields(s.columns), deletes: newDeletes(s.view)}
	r.stats = r.gather()
	return r, nil
}

// gather are the statistics of the table from those of its files. What is deleted is still within the bounds.
func (r *relation) gather() flow.Stats {
	out := flow.Stats{Exact: true, Columns: map[int]flow.ColumnStats{}}
	for i := range r.files {
		f := &r.files[i]
		out.Rows += f.Rows
		for _, d := range f.Deletes {
			out.Exact = false
			if d.Kind == "vector" {
				out.Rows -= d.Rows
			}
		}
	}
	for c := range r.columns {
		if s, ok := r.columnStats(c); ok {
			out.Columns[c] = s
		}
	}
	return out
}

// columnStats are those of a column in all files; ok is false when one does not know.
func (r *relation) columnStats(column int) (out flow.ColumnStats, ok bool) {
	for i := range r.files {
		s, known := r.view.stats(&r.files[i], &r.columns[column])
		if !known {
			return flow.ColumnStats{}, false
		}
		if len(r.files[i].Deletes) > 0 {
			s.Nulls = -1
		}
		if i == 0 {
			out = s
			continue
		}
		out.Nulls = sumKnown(out.Nulls, s.Nulls)
		if out.Min == nil || s.Min == nil {
			out.Min, out.Max = nil, nil
			continue
		}
		if o, ok := flow.CompareBounds(s.Min, out.Min); ok && o < 0 {
			out.Min = s.Min
		}
		if o, ok := flow.CompareBounds(s.Max, out.Max); ok && o > 0 {
			out.Max = s.Max
		}
	}
	return out, len(r.files) > 0
}

func sumKnown(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

func (r *relation) Fields() []types.Field { return r.fields }

// Stats come from the manifests.
func (r *relation) Stats() flow.Stats { return r.stats }

// Check has nothing to look at: a snapshot is what its manifests say, and does not change.
func (r *relation) Check(context.Context) error { return nil }

// Version stands for the table and its snapshot: rows are in the order of before while it is the same. A pipeline that goes on says by it that
// the table has moved on, instead of reading on in the middle of other rows.
func (r *relation) Version() string { return fmt.Sprintf("%s@%d", r.meta.UUID, r.meta.Snapshot) }

// Files lists the paths, for EXPLAIN.
func (r *relation) Files() []string {
	out := make([]string, len(r.files))
	for i, f := range r.files {
		out[i] = f.Path
	}
	return out
}

// Scan hands out row groups. A file is opened when its turn comes; those that cannot match by the metadata are left out.
func (r *relation) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	var list []*meta.File
	var rows int64
	for i := range r.files {
		f := &r.files[i]
		if !r.canMatch(f, req.Filters) {
			continue
		}
		// Without filters the rows are known, so files behind the limit need not be read.
		if req.Limit > 0 && len(req.Filters) == 0 && rows >= req.Limit {
			break
		}
		if len(f.Deletes) == 0 {
			rows += f.Rows
		}
		list = append(list, f)
	}
	return datafile.NewScan(req, r.fields, len(list), func(ctx context.Context, at int) (*datafile.File, datafile.Picks, error) {
		src, err := r.view.open(ctx, list[at], r.columns)
		if err != nil {
			return nil, datafile.Picks{}, err
		}
		gone, err := r.deletes.of(ctx, list[at])
		return src, datafile.Picks{Set: gone}, err
	}), nil
}
