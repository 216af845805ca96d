package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

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
	for _, f := range r.list {
		if !r.canMatch(f, req.Filters) {
			continue
		}
		// Without filters the rows are known, so files behind the limit need not be read.
		if req.Limit > 0 && len(req.Filters) == 0 && rows >= req.Limit {
			break
		}
		rows += max(f.rows(), 0)
		s.files = append(s.files, f)
	}
	return s, nil
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

// scan hands the row groups of the files to workers.
type scan struct {
	r       *relation
	req     flow.ScanRequest
	schema  *arrow.Schema
	workers []worker

	mu      sync.Mutex
	opened  *sync.Cond
	files   []*dataFile // not opened yet, of which next comes first
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
	src, err := s.r.table.open(ctx, f, s.r.columns)
	if err != nil {
		return nil, err
	}
	gone, err := f.Vector.load(ctx, s.r.table, src.Rows)
	if err != nil {
		return nil, s.r.table.badVector(f, err)
	}
	var out []task
	for u := range src.Units() {
		if rows, _ := src.Unit(u); rows > 0 && src.CanMatch(u, s.req.Filters) {
			out = append(out, task{src, datafile.Picks{Set: gone}, at, u})
		}
	}
	return out, nil
}

func (t *table) badVector(f *dataFile, err error) error {
	return because(err, "open", "restore it, or read a version without it", "the deletion vector of the file %q of the Delta table %q", f.Path, t.path)
}

func (s *scan) Close() error {
	for i := range s.workers {
		if u := s.workers[i].unit; u != nil {
			u.Close()
		}
	}
	return nil
}
