package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// DefaultBatchRows is the batch size when the engine has no wish.
const DefaultBatchRows = 16 << 10

// Relation is a set of files as bounded input.
type Relation struct {
	set     *set
	refs    []Ref
	members []*member // all of them for self-describing formats, else opened by the scan
	stats   flow.Stats
}

// NewRelation lists the files that req names and agrees on their columns.
func NewRelation(ctx context.Context, format Format, req connectors.OpenRequest) (flow.Relation, error) {
	s, refs, err := newSet(ctx, format, req)
	if err != nil {
		return nil, err
	}
	if len(refs) == 0 {
		return nil, noFiles(ctx, format, req.Settings.List("path"))
	}
	r := &Relation{set: s, refs: refs, members: make([]*member, len(refs)), stats: flow.Stats{Rows: -1}}
	if !format.SelfDescribing() {
		r.stats.Rows = r.guessRows()
		return r, nil
	}
	for i, ref := range refs {
		if r.members[i], err = s.open(ctx, ref, r.partOf(i)); err != nil {
			return nil, err
		}
	}
	r.stats = r.gatherStats()
	return r, nil
}

func (r *Relation) partOf(file int) []types.Value {
	if len(r.set.parts.fields) == 0 {
		return nil
	}
	return r.set.parts.values[file]
}

// Fields are the columns of the files, then the partition columns.
func (r *Relation) Fields() []types.Field { return r.set.fields }

// Stats come from the files' footers.
func (r *Relation) Stats() flow.Stats { return r.stats }

// Check fails when a file is no longer there or is not the one that was listed.
func (r *Relation) Check(ctx context.Context) error {
	for _, ref := range r.refs {
		f, err := ref.Open(ctx)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return errs.New(errs.Source, "open", "cannot close %q: %w", ref.Name(), err)
		}
	}
	return nil
}

// namedFiles is up to how many files a version names each: it stands in every manifest.
const namedFiles = 16

// Version stands for the files and what they are: rows are in the order of before while it is the same. A few files it names, so that Differences
// can tell which are others.
func (r *Relation) Version() string {
	h := sha256.New()
	var named strings.Builder
	for _, ref := range r.refs {
		at := positionOf(ref.Info)
		h.Write(fmt.Appendf(nil, "%s %s\n", ref.Name(), at.text()))
		fmt.Fprintf(&named, " %q %d@%d", ref.Name(), at.size, at.modified)
	}
	version := hex.EncodeToString(h.Sum(nil)[:8])
	if len(r.refs) <= namedFiles {
		version += named.String()
	}
	return version
}

// Differences says which files are others than those of a version; nothing when that names none.
func (r *Relation) Differences(version string) string {
	before := map[string]position{}
	_, rest, _ := strings.Cut(version, " ")
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return ""
		}
		name, _ := strconv.Unquote(quoted)
		var at string
		at, rest, _ = strings.Cut(strings.TrimPrefix(rest[len(quoted):], " "), " ")
		var p position
		if _, err := fmt.Sscanf(at, "%d@%d", &p.size, &p.modified); err != nil {
			return ""
		}
		before[name] = p
	}
	if len(before) == 0 {
		return ""
	}
	var out []string
	for _, ref := range r.refs {
		now := positionOf(ref.Info)
		was, known := before[ref.Name()]
		delete(before, ref.Name())
		switch {
		case !known:
			out = append(out, ref.Name()+" is new")
		case was != now:
			out = append(out, fmt.Sprintf("%s had %s and has %s", ref.Name(), was.told(), now.told()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		out = append(out, name+" is gone")
	}
	const shown = 4
	if more := len(out) - shown; more > 0 {
		out = append(out[:shown], fmt.Sprintf("%d more are others", more))
	}
	return strings.Join(out, "; ")
}

func (p position) told() string {
	return fmt.Sprintf("%d bytes of %s", p.size, time.Unix(0, p.modified).UTC().Format("2006-01-02 15:04:05.999999999Z"))
}

// Files lists the paths, for EXPLAIN.
func (r *Relation) Files() []string { return names(r.refs) }

func (r *Relation) gatherStats() flow.Stats {
	out := flow.Stats{Exact: true, Columns: map[int]flow.ColumnStats{}}
	for _, m := range r.members {
		for _, u := range m.file.Units() {
			if u.Rows < 0 {
				return flow.Stats{Rows: r.guessRows()}
			}
			out.Rows += u.Rows
		}
	}
	for c := range r.set.fields {
		if s, ok := r.columnStats(c); ok {
			out.Columns[c] = s
		}
	}
	return out
}

// guessRows estimates rows from bytes, for the order of joins alone: some eight bytes a value.
func (r *Relation) guessRows() int64 {
	bytes := int64(0)
	for _, ref := range r.refs {
		bytes += ref.Info.Size
	}
	return bytes/int64(8*len(r.set.fields)+1) + 1
}

// columnStats merges the statistics of one column over all units; ok is false when one does not know.
func (r *Relation) columnStats(c int) (flow.ColumnStats, bool) {
	var out flow.ColumnStats
	first := true
	for _, m := range r.members {
		for u, unit := range m.file.Units() {
			if unit.Rows == 0 {
				continue
			}
			s, ok := m.unitStats(u, c)
			if !ok {
				return flow.ColumnStats{}, false
			}
			if first {
				out, first = s, false
				continue
			}
			out = mergeStats(out, s)
		}
	}
	return out, !first
}

func mergeStats(a, b flow.ColumnStats) flow.ColumnStats {
	if a.Nulls < 0 || b.Nulls < 0 {
		a.Nulls = -1
	} else {
		a.Nulls += b.Nulls
	}
	a.Distinct = max(a.Distinct, b.Distinct)
	a.Tight = a.Tight && b.Tight
	if a.Min == nil || b.Min == nil || a.Max == nil || b.Max == nil {
		a.Min, a.Max, a.Tight = nil, nil, false
		return a
	}
	if o, ok := flow.CompareBounds(b.Min, a.Min); ok && o < 0 {
		a.Min = b.Min
	}
	if o, ok := flow.CompareBounds(b.Max, a.Max); ok && o > 0 {
		a.Max = b.Max
	}
	return a
}

// unitStats are the statistics of a column of the set in one unit. Partition columns are constants.
func (m *member) unitStats(unit, column int) (flow.ColumnStats, bool) {
	u := m.file.Units()[unit]
	if column >= m.set.data {
		v := m.consts[column-m.set.data]
		if v == nil {
			return flow.ColumnStats{Nulls: u.Rows}, true
		}
		return flow.ColumnStats{Min: v, Max: v, Distinct: 1, Tight: true}, true
	}
	if m.from[column] < 0 {
		return flow.ColumnStats{Nulls: u.Rows}, true
	}
	// The statistics of a column that is widened are values of another type.
	if u.Stats == nil || !m.types[column].Equal(m.set.fields[column].Type) {
		return flow.ColumnStats{}, false
	}
	return u.Stats(m.from[column])
}

// morselUnit is one unit to be read.
type morselUnit struct{ file, unit int }

// Scan hands whole units to workers in scan order.
func (r *Relation) Scan(ctx context.Context, req flow.ScanRequest) (flow.Scan, error) {
	s := &scan{r: r, req: req, workers: make([]worker, max(req.Workers, 1))}
	if s.req.BatchRows <= 0 {
		s.req.BatchRows = DefaultBatchRows
	}
	out := make([]types.Field, len(req.Columns))
	for i, c := range req.Columns {
		out[i] = r.set.fields[c]
	}
	s.schema = types.ArrowSchema(out)
	var rows int64
	for f := range r.refs {
		if !r.fileCanMatch(f, req.Filters) {
			continue
		}
		m := r.members[f]
		if m == nil {
			s.units = append(s.units, morselUnit{f, -1}) // opened by its worker
			continue
		}
		for u, unit := range m.file.Units() {
			if unit.Rows == 0 || !m.unitCanMatch(u, req.Filters) {
				continue
			}
			// Without filters the rows are known, so units behind the limit need not be read.
			if req.Limit > 0 && len(req.Filters) == 0 && unit.Rows > 0 && rows >= req.Limit {
				break
			}
			rows += unit.Rows
			s.units = append(s.units, morselUnit{f, u})
		}
	}
	return s, nil
}

// fileCanMatch looks at partition values alone.
func (r *Relation) fileCanMatch(file int, filters []flow.Predicate) bool {
	for _, p := range filters {
		if p.Column < r.set.data {
			continue
		}
		v := r.set.parts.values[file][p.Column-r.set.data]
		s := flow.ColumnStats{Min: v, Max: v}
		rows := int64(1)
		if v == nil {
			s.Nulls = 1
		}
		if !p.CanMatch(r.set.fields[p.Column].Type, s, rows) {
			return false
		}
	}
	return true
}

func (m *member) unitCanMatch(unit int, filters []flow.Predicate) bool {
	for _, p := range filters {
		if s, ok := m.unitStats(unit, p.Column); ok && !p.CanMatch(m.set.fields[p.Column].Type, s, m.file.Units()[unit].Rows) {
			return false
		}
	}
	return true
}

type scan struct {
	r       *Relation
	req     flow.ScanRequest
	schema  *arrow.Schema
	units   []morselUnit
	next    atomic.Int64
	workers []worker
}

// worker is what one worker reads at present.
type worker struct {
	batches Batches
	project *projection
	seq     int64
	row     int64   // of the file, behind what was read; with ScanRequest.Places
	member  *member // of a file without known units: its next unit follows
	unit    int
	_       [64]byte // workers write their entries all the time; keep them on lines of their own
}

// seqShift leaves room for the batches of one unit below its number.
const seqShift = 32

func (s *scan) Next(ctx context.Context, worker int) (m *flow.Morsel, err error) {
	w := &s.workers[worker]
	defer func() {
		// AIDEV-NOTE: a decoder may panic on corrupt bytes that its checks let through; that is the file's fault, not ours.
		if r := recover(); r != nil {
			name := "?"
			if w.project != nil {
				name = w.project.m.ref.Name()
			}
			m, err = nil, Corrupt(s.r.set.format, name, fmt.Errorf("%v", r))
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if w.batches == nil {
			ok, err := s.open(ctx, w, worker)
			if !ok || err != nil {
				return nil, err
			}
		}
		b, err := w.batches.Next(ctx)
		if err == io.EOF {
			w.close()
			continue
		}
		if err != nil {
			return nil, err
		}
		w.row += b.Records
		if b.Rows == nil || b.Rows.NumRows() == 0 {
			continue
		}
		m := &flow.Morsel{Seq: w.seq, Batch: w.project.apply(b.Rows), Narrowed: b.Narrowed}
		if s.req.Places {
			m.Places = placesOf(w.project.m.ref.Name(), w.row+1-b.Records, b)
		}
		w.seq++
		return m, nil
	}
}

// open takes the next unit; ok is false at the end.
func (s *scan) open(ctx context.Context, w *worker, worker int) (ok bool, err error) {
	if w.member != nil && w.unit+1 < len(w.member.file.Units()) {
		w.unit++
		w.batches, err = w.project.open(ctx, w.unit, s.req.BatchRows, worker)
		return err == nil, err
	}
	w.member = nil
	i := int(s.next.Add(1)) - 1
	if i >= len(s.units) {
		return false, nil
	}
	u := s.units[i]
	m := s.r.members[u.file]
	if m == nil {
		if m, err = s.r.set.open(ctx, s.r.refs[u.file], s.r.partOf(u.file)); err != nil {
			return false, err
		}
		w.member, w.unit, u.unit = m, 0, 0
		if len(m.file.Units()) == 0 {
			return s.open(ctx, w, worker)
		}
	}
	w.seq, w.row = int64(i)<<seqShift, m.before(u.unit)
	w.project = m.project(s.req.Columns, s.schema)
	w.project.narrow, w.project.room = w.project.narrowing(s.req.Narrow), s.req.Room
	w.batches, err = w.project.open(ctx, u.unit, s.req.BatchRows, worker)
	return err == nil, err
}

// before is the number of the file's rows before a unit. The units of a file are read from the first on where it is not known.
func (m *member) before(unit int) (rows int64) {
	for _, u := range m.file.Units()[:unit] {
		rows += u.Rows
	}
	return rows
}

// open starts a unit. When no column of the file is asked for, the rows of a unit that knows their number are
// counted, not read.
func (p *projection) open(ctx context.Context, unit, batchRows, worker int) (Batches, error) {
	if u := p.m.file.Units()[unit]; len(p.read) == 0 && u.Rows >= 0 {
		return &counted{left: u.Rows, batch: int64(batchRows)}, nil
	}
	return p.m.file.Read(ctx, ReadRequest{Unit: unit, Columns: p.read, BatchRows: batchRows, Narrow: p.narrow, Worker: worker, Room: p.room})
}

func (w *worker) close() {
	if w.batches != nil {
		_ = w.batches.Close()
		w.batches = nil
	}
}

func (s *scan) Close() error {
	for i := range s.workers {
		s.workers[i].close()
	}
	return nil
}

// counted is the batches of a unit of which only the number of rows is needed.
type counted struct{ left, batch int64 }

var noColumns = arrow.NewSchema(nil, nil)

func (c *counted) Next(context.Context) (Batch, error) {
	if c.left == 0 {
		return Batch{}, io.EOF
	}
	n := min(c.left, c.batch)
	c.left -= n
	return Batch{Rows: array.NewRecordBatch(noColumns, nil, n), Records: n}, nil
}

func (c *counted) Close() error { return nil }

// Corrupt says that a file is not what its format asks for, or, when the cause is that it is not supported, just that.
func Corrupt(f Format, name string, cause error) error {
	if errs.Is(cause, errs.Unsupported) {
		e := errs.As(cause)
		return errs.New(errs.Unsupported, "read", "the %s file %q cannot be read: %s", f.Name(), name, e.Msg).WithHint("%s", e.Hint)
	}
	return errs.New(errs.Source, "read", "the %s file %q cannot be read: %w", f.Name(), name, cause).
		WithHint("it may be truncated or still being written; write it again, or leave it out of the path")
}
