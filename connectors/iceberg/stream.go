package iceberg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// split is the one split of a table: its snapshots follow one another.
const split = "snapshots"

// stream is a snapshot of a table and what was committed since. Each commit is one transaction, except the first snapshot, which may be
// larger than memory.
type stream struct {
	*view    // as it was opened: rows of all snapshots are brought into its columns
	fields   []types.Field
	updating bool
	start    position
	opened   int64  // when the snapshot that it was opened with was made
	end      *int64 // the last snapshot to read, 0: none; nil: there is no last one
	poll     time.Duration
	clock    clock.Clock
}

func newStream(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
	t, err := newTable(req.Settings)
	if err != nil {
		return nil, err
	}
	ref, err := t.refOf(req.Settings)
	if err != nil {
		return nil, err
	}
	a, err := t.ask(ctx, meta.Request{Op: "load", Ref: ref})
	if err != nil {
		return nil, err
	}
	v, err := viewOf(t, a.Table, req.Schema)
	if err != nil {
		return nil, err
	}
	s := &stream{view: v, fields: datafile.Fields(v.columns), updating: !req.Settings.Bool("append_only"), poll: max(req.Settings.Duration("poll_interval"), time.Millisecond), clock: req.Time()}
	for _, snap := range a.Table.Snapshots {
		s.opened = max(s.opened, snap.At)
	}
	switch start := req.Settings.String("start"); {
	case start == "earliest":
		s.start = position{}
	case start == "latest" || a.Table.Snapshot == 0:
		s.start = position{snapshot: a.Table.Snapshot}
	default:
		s.start = position{snapshot: a.Table.Snapshot, whole: true}
	}
	return s, nil
}

func (s *stream) Fields() []types.Field { return s.fields }
func (s *stream) Bounded() bool         { return s.end != nil }
func (s *stream) Updating() bool        { return s.updating }
func (s *stream) Replayable() bool      { return true }

func (s *stream) Splits(context.Context) ([]flow.Split, error) {
	return []flow.Split{{ID: split}}, nil
}

// UntilLatest ends with the snapshot that is the branch's newest now.
func (s *stream) UntilLatest(ctx context.Context) (flow.Stream, error) {
	a, err := s.ask(ctx, meta.Request{Op: "load", Ref: meta.Ref{Branch: s.branch}})
	if err != nil {
		return nil, err
	}
	bounded := *s
	bounded.end = &a.Table.Snapshot
	return &bounded, nil
}

// position is where the next row is: in the files of a snapshot (whole), or in the changes of the one that follows it; 0 is before the first.
// A snapshot's changes are named by the snapshot before them, so that the position holds when they are not there yet.
type position struct {
	snapshot int64
	whole    bool
	item     int   // of the files or changes, in their order
	row      int64 // of the file, those counted that are not in the table
}

func (p position) String() flow.Position {
	kind := 'c'
	if p.whole {
		kind = 's'
	}
	return flow.Position(fmt.Sprintf("%c%d.%d.%d", kind, p.snapshot, p.item, p.row))
}

func parsePosition(text flow.Position) (p position, err error) {
	var kind rune
	_, err = fmt.Sscanf(string(text), "%c%d.%d.%d", &kind, &p.snapshot, &p.item, &p.row)
	p.whole = kind == 's'
	if err != nil || kind != 's' && kind != 'c' || p.item < 0 || p.row < 0 || p.String() != text {
		return p, errs.New(errs.State, "open", "%q is no position in an Iceberg table", string(text))
	}
	return p, nil
}

// Open begins to read at a position.
func (s *stream) Open(_ context.Context, _ flow.Split, from flow.Position) (flow.Reader, error) {
	at := s.start
	if from != "" {
		var err error
		if at, err = parsePosition(from); err != nil {
			return nil, err
		}
	}
	return &reader{s: s, at: at}, nil
}

// item is rows of one file that come or go with a snapshot.
type item struct {
	file   *meta.File
	weight int64
	// than: the rows are those that the file's deletes name and this one's, of the same file, do not. Otherwise those that the file's deletes leave.
	than *meta.File
}

// portion is how many snapshots are asked for at once.
const portion = 16

// reader reads the snapshots one after another.
type reader struct {
	s       *stream
	at      position // what is read next
	next    int64    // the snapshot whose changes are read
	items   []item   // nil: not looked for yet
	changes []meta.Change
	deletes *deletes
	src     *datafile.File // of the item
	picks   datafile.Picks
	unit    *datafile.Unit
	max     int
	held    *flow.Rows // rows that are handed out when it is known whether they are the last of their commit
}

func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	for {
		if err := ctx.Err(); err != nil {
			return flow.Rows{}, err
		}
		if r.items == nil {
			if r.s.end != nil && !r.at.whole && r.at.snapshot == *r.s.end {
				return flow.Rows{}, io.EOF
			}
			if ok, err := r.begin(ctx); err != nil {
				return flow.Rows{}, err
			} else if !ok {
				return flow.Rows{Next: r.at.String()}, r.s.clock.Sleep(ctx, r.s.poll)
			}
		}
		rows, err := r.more(ctx, max(limit, 1))
		if err != nil {
			return flow.Rows{}, err
		}
		out := r.held
		if r.held = rows; rows == nil { // the end of the snapshot
			r.at, r.items = position{snapshot: r.next}, nil
		}
		if out == nil {
			continue
		}
		if out.TxnOpen = out.TxnOpen && rows != nil; rows == nil {
			out.Next = r.at.String()
		}
		return *out, nil
	}
}

// begin finds out what is to be read; ok is false when there is nothing yet.
func (r *reader) begin(ctx context.Context) (ok bool, err error) {
	r.items = []item{}
	r.deletes = newDeletes(r.s.view)
	if r.at.whole {
		a, err := r.s.ask(ctx, meta.Request{Op: "files", Ref: meta.Ref{Snapshot: r.at.snapshot}})
		if err != nil {
			r.items = nil
			return false, r.expired(err)
		}
		r.adopt(a.Table)
		sortFiles(a.Files)
		for i := range a.Files {
			r.items = append(r.items, item{file: &a.Files[i], weight: 1})
		}
		r.next = r.at.snapshot
		return true, nil
	}
	if len(r.changes) == 0 {
		a, err := r.s.ask(ctx, meta.Request{Op: "changes", Ref: meta.Ref{Branch: r.s.branch}, After: r.at.snapshot, Most: portion})
		if err != nil {
			r.items = nil
			return false, r.expired(err)
		}
		r.adopt(a.Table)
		r.changes = a.Changes
	}
	if len(r.changes) == 0 {
		r.items = nil
		if r.s.end != nil {
			return false, errs.New(errs.Source, "read", "the branch %q of the Iceberg table %q no longer leads from the snapshot %d to %d: it was rolled back", r.s.branch, r.s.name, r.at.snapshot, *r.s.end).
				WithHint("read the table that is there now by a new pipeline")
		}
		return false, nil
	}
	c := &r.changes[0]
	r.changes = r.changes[1:]
	r.next = c.Snapshot.ID
	if err := r.s.same(c); err != nil {
		return false, err
	}
	r.items = itemsOf(c)
	return true, r.onlyAdds(c)
}

// adopt takes the partition specs of newer metadata: files name theirs by number.
func (r *reader) adopt(m *meta.Table) {
	if m == nil {
		return
	}
	v := *r.s.view
	now := *v.meta
	now.Specs, now.UUID = m.Specs, m.UUID
	v.meta = &now
	r.deletes.v = &v
}

// expired says what to do when the snapshot that is needed is gone.
func (r *reader) expired(err error) error {
	if kindOf(err) != "expired" {
		return err
	}
	return errs.Because(err, errs.Source, "read", "keep snapshots for longer than a pipeline may stand still (history.expire.max-snapshot-age-ms), and read the table that is there now by a new pipeline",
		"the changes behind the snapshot %d cannot be read", r.at.snapshot)
}

// itemsOf are what a snapshot does to the rows of the table: first what goes. One that only writes them anew (replace) does nothing.
func itemsOf(c *meta.Change) []item {
	out := []item{}
	if c.Snapshot.Operation == "replace" {
		return out
	}
	sortFiles(c.Removed)
	sortFiles(c.Added)
	slices.SortFunc(c.Deleted, func(a, b meta.Pair) int { return order(&a.After, &b.After) })
	for i := range c.Removed {
		out = append(out, item{file: &c.Removed[i], weight: -1})
	}
	for i := range c.Deleted {
		p := &c.Deleted[i]
		out = append(out, item{file: &p.After, weight: -1, than: &p.Before}, item{file: &p.Before, weight: 1, than: &p.After})
	}
	for i := range c.Added {
		out = append(out, item{file: &c.Added[i], weight: 1})
	}
	return out
}

// onlyAdds refuses what takes rows away from a stream that was promised none would go.
func (r *reader) onlyAdds(c *meta.Change) error {
	if r.s.updating || c.Snapshot.Operation == "replace" || len(c.Removed) == 0 && len(c.Deleted) == 0 {
		return nil
	}
	r.items = nil
	return errs.New(errs.Source, "read", "the snapshot %d of the Iceberg table %q takes rows away, and the stream is append-only", c.Snapshot.ID, r.s.name).
		WithHint("leave append_only out when rows of the table are changed or deleted")
}

// same checks that the rows of a snapshot can be brought into the stream's columns. Columns may have come since, and are left out; in snapshots that are
// older than the one that the stream was opened with they may also be missing yet.
func (s *stream) same(c *meta.Change) error {
	if len(c.Schema) == 0 {
		return nil
	}
	if err := holds(s.columns, c.Schema, c.Snapshot.At < s.opened); err != nil {
		return errs.Because(err, errs.Source, "read", "make the stream anew: it then has the columns that the table has now", "the snapshot %d of the Iceberg table %q has other columns than the stream", c.Snapshot.ID, s.name)
	}
	return nil
}

// holds checks that a schema has columns, with values of their types.
func holds(columns []datafile.Column, schema []meta.Field, before bool) error {
	for i := range columns {
		c := &columns[i]
		at := slices.IndexFunc(schema, func(f meta.Field) bool { return f.ID == c.ID })
		if at < 0 {
			if before {
				continue
			}
			return fmt.Errorf("it has no column %q", c.Name)
		}
		there, err := columnOf(schema[at], nil)
		if err != nil {
			return err
		}
		if err := holdsColumn(c, &there, schema[at], before); err != nil {
			return err
		}
	}
	return nil
}

func holdsColumn(c, there *datafile.Column, f meta.Field, before bool) error {
	if !c.Type.IsNested() || !there.Type.IsNested() {
		same := c.Type.Equal(there.Type) || c.Type.Kind == types.JSON && there.Type.Kind == types.Varchar
		if same || !c.Type.IsNested() && !there.Type.IsNested() && files.Widens(there.Type, c.Type) {
			return nil
		}
		return fmt.Errorf("column %q is %s, and %s in the stream", c.Name, there.Type, c.Type)
	}
	if c.Type.Kind != there.Type.Kind {
		return fmt.Errorf("column %q is %s, and %s in the stream", c.Name, there.Type, c.Type)
	}
	return holds(c.Parts, f.Fields, before)
}

// more gives the next rows of the snapshot, or nil at its end.
func (r *reader) more(ctx context.Context, limit int) (*flow.Rows, error) {
	if r.max != limit {
		r.closeUnit() // it goes on at the same row
		r.max = limit
	}
	for {
		if r.unit == nil {
			if ok, err := r.open(ctx); err != nil || !ok {
				return nil, err
			}
		}
		it := &r.items[r.at.item]
		b, records, err := r.unit.Next(ctx)
		if errors.Is(err, io.EOF) {
			r.at.row = r.unit.End
			r.closeUnit()
			continue
		}
		if err != nil {
			r.closeUnit()
			return nil, err
		}
		r.at.row = r.unit.Row
		if b.NumRows() == 0 {
			continue
		}
		rows := &flow.Rows{Batch: r.s.weigh(b, it.weight), Places: r.unit.Places(records), Next: r.at.String(), TxnOpen: !r.at.whole}
		if n, bytes := r.src.Unit(r.src.UnitOf(r.at.row - 1)); n > 0 {
			rows.Bytes = bytes * records / n
		}
		return rows, nil
	}
}

// weigh gives rows their weight, where the stream has any.
func (s *stream) weigh(b arrow.RecordBatch, weight int64) arrow.RecordBatch {
	if !s.updating {
		return b
	}
	weights := make([]int64, b.NumRows())
	for i := range weights {
		weights[i] = weight
	}
	cols := append(b.Columns()[:b.NumCols():b.NumCols()], kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil))
	return array.NewRecordBatch(flow.WithWeights(types.ArrowSchema(s.fields)), cols, b.NumRows())
}

// open begins the unit that holds the next row; ok is false at the snapshot's end.
func (r *reader) open(ctx context.Context) (ok bool, err error) {
	for ; r.at.item < len(r.items); r.at.item, r.at.row, r.src = r.at.item+1, 0, nil {
		it := &r.items[r.at.item]
		if r.src == nil {
			if err := r.openItem(ctx, it); err != nil {
				return false, err
			}
		}
		if r.at.row >= r.src.Rows || r.picks.Within && r.picks.Set.All() == 0 {
			continue
		}
		n := r.src.UnitOf(r.at.row)
		picks := r.picks
		if r.at.row > r.src.First(n) {
			picks.From = r.at.row
		}
		r.unit, err = r.src.Project(allOf(r.src.Columns), types.ArrowSchema(r.s.fields)).Open(ctx, datafile.Request{Unit: n, Picks: picks, BatchRows: r.max})
		if err != nil {
			r.unit = nil
		}
		return err == nil, err
	}
	return false, nil
}

// openItem opens the item's file and finds which of its rows are meant.
func (r *reader) openItem(ctx context.Context, it *item) error {
	src, err := r.deletes.v.open(ctx, it.file, r.s.columns)
	if err != nil {
		return err
	}
	picks := datafile.Picks{}
	if picks.Set, err = r.deletes.of(ctx, it.file); err != nil {
		return err
	}
	if it.than != nil {
		other, err := r.deletes.of(ctx, it.than)
		if err != nil {
			return err
		}
		picks.Set, picks.Within = picks.Set.Minus(other), true
	}
	r.src, r.picks = src, picks
	return nil
}

func (r *reader) closeUnit() {
	if r.unit != nil {
		r.unit.Close()
		r.unit = nil
	}
}

func (r *reader) Close() error {
	r.closeUnit()
	return nil
}
