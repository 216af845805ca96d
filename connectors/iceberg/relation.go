package iceberg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
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
	if req.BatchRows <= 0 {
		req.BatchRows = files.DefaultBatchRows
	}
	s := &scan{r: r, req: req, workers: make([]worker, max(req.Workers, 1))}
	s.opened = sync.NewCond(&s.mu)
	out := make([]types.Field, len(req.Columns))
	for i, c := range req.Columns {
		out[i] = r.fields[c]
	}
	s.schema = types.ArrowSchema(out)
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
		s.files = append(s.files, f)
	}
	return s, nil
}

// scan hands the row groups of the files to workers.
type scan struct {
	r       *relation
	req     flow.ScanRequest
	schema  *arrow.Schema
	workers []worker

	mu      sync.Mutex
	opened  *sync.Cond
	files   []*meta.File // not opened yet, of which next comes first
	next    int
	opening int    // files that workers are opening
	ready   []task // row groups
}

// task is a row group that is to be read.
type task struct {
	src   *datafile.File
	picks datafile.Picks
	file  int // in scan order
	unit  int
}

type worker struct {
	unit *datafile.Unit
	seq  int64
	_    [64]byte // workers write their entries all the time; keep them on lines of their own
}

// The number of a morsel: its file, its row group, its batch.
const (
	batchBits = 20
	unitBits  = 20
)

func (s *scan) Next(ctx context.Context, number int) (*flow.Morsel, error) {
	w := &s.workers[number]
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if w.unit == nil {
			t, ok, err := s.take(ctx)
			if !ok || err != nil {
				return nil, err
			}
			w.seq = int64(t.file)<<(batchBits+unitBits) | int64(t.unit)<<batchBits
			w.unit, err = t.src.Project(s.req.Columns, s.schema).Open(ctx, datafile.Request{Unit: t.unit, Picks: t.picks, BatchRows: s.req.BatchRows, Narrow: s.req.Narrow, Worker: number, Room: s.req.Room})
			if err != nil {
				w.unit = nil
				return nil, err
			}
		}
		b, records, err := w.unit.Next(ctx)
		if errors.Is(err, io.EOF) {
			w.unit.Close()
			w.unit = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		if b.NumRows() == 0 {
			continue
		}
		m := &flow.Morsel{Seq: w.seq, Batch: b, Narrowed: w.unit.Narrowed}
		if s.req.Places {
			m.Places = w.unit.Places(records)
		}
		w.seq++
		return m, nil
	}
}

// take gives a worker its next row group; ok is false at the end. While files are opened their row groups are waited for, so that
// workers share those of a single file.
func (s *scan) take(ctx context.Context) (t task, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case len(s.ready) > 0:
			t, s.ready = s.ready[0], s.ready[1:]
			return t, true, nil
		case s.next < len(s.files):
			at := s.next
			s.next++
			s.opening++
			s.mu.Unlock()
			tasks, err := s.open(ctx, at)
			s.mu.Lock()
			s.opening--
			s.ready = append(s.ready, tasks...)
			s.opened.Broadcast()
			if err != nil {
				return task{}, false, err
			}
		case s.opening > 0:
			s.opened.Wait()
		default:
			return task{}, false, nil
		}
	}
}

// open makes the tasks of a file.
func (s *scan) open(ctx context.Context, at int) ([]task, error) {
	f := s.files[at]
	src, err := s.r.view.open(ctx, f, s.r.columns)
	if err != nil {
		return nil, err
	}
	gone, err := s.r.deletes.of(ctx, f)
	if err != nil {
		return nil, err
	}
	var out []task
	for u := range src.Units() {
		if rows, _ := src.Unit(u); rows > 0 && src.CanMatch(u, s.req.Filters) {
			out = append(out, task{src, datafile.Picks{Set: gone}, at, u})
		}
	}
	return out, nil
}

func (s *scan) Close() error {
	for i := range s.workers {
		if u := s.workers[i].unit; u != nil {
			u.Close()
		}
	}
	return nil
}
