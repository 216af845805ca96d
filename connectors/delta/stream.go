package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// split is the one split of a table: its versions follow one another.
const split = "log"

// stream is a version of a table and what was committed since. Each commit is one transaction, except the first version, which may be
// larger than memory.
type stream struct {
	table    *table
	version  int64    // that it was opened with
	columns  []column // of that version; rows of all others are brought into them
	fields   []types.Field
	updating bool
	start    position
	end      int64 // the last version to read; -1: there is none
	poll     time.Duration
	clock    clock.Clock
}

func newStream(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
	snap, err := openSnapshot(ctx, req)
	if err != nil {
		return nil, err
	}
	s := &stream{table: snap.table, version: snap.version, columns: snap.columns, fields: fieldsIn(snap.columns), end: -1, poll: max(req.Settings.Duration("poll_interval"), time.Millisecond), clock: req.Time()}
	s.updating = !req.Settings.Bool("append_only") && !snap.metadata.appendOnly()
	if s.start = (position{version: snap.version, whole: true}); req.Settings.String("start") == "latest" {
		s.start = position{version: snap.version + 1}
	}
	return s, nil
}

func (s *stream) Fields() []types.Field { return s.fields }
func (s *stream) Bounded() bool         { return s.end >= 0 }
func (s *stream) Updating() bool        { return s.updating }
func (s *stream) Replayable() bool      { return true }

func (s *stream) Splits(context.Context) ([]flow.Split, error) {
	return []flow.Split{{ID: split}}, nil
}

// UntilLatest ends with the version that is the newest now.
func (s *stream) UntilLatest(ctx context.Context) (flow.Stream, error) {
	l, err := s.table.list(ctx)
	if err != nil {
		return nil, err
	}
	bounded := *s
	bounded.end = l.last
	return &bounded, nil
}

// position is where the next row is: in the files of a version (whole), or in the changes that made it.
type position struct {
	version int64
	whole   bool
	item    int   // of the version's files or changes, in their order
	row     int64 // of the file, those counted that are not in the table
}

func (p position) String() flow.Position {
	kind := 'c'
	if p.whole {
		kind = 's'
	}
	return flow.Position(fmt.Sprintf("%c%d.%d.%d", kind, p.version, p.item, p.row))
}

func parsePosition(text flow.Position) (p position, err error) {
	var kind rune
	_, err = fmt.Sscanf(string(text), "%c%d.%d.%d", &kind, &p.version, &p.item, &p.row)
	p.whole = kind == 's'
	if err != nil || kind != 's' && kind != 'c' || p.version < 0 || p.item < 0 || p.row < 0 || p.String() != text {
		return p, errs.New(errs.State, "open", "%q is no position in a Delta table", string(text))
	}
	return p, nil
}

// Open reads the table's files as they were before the position, which tells what later commits take away.
func (s *stream) Open(ctx context.Context, _ flow.Split, from flow.Position) (flow.Reader, error) {
	at := s.start
	if from != "" {
		var err error
		if at, err = parsePosition(from); err != nil {
			return nil, err
		}
	}
	r := &reader{s: s, at: at, state: &snapshot{table: s.table, version: -1, files: map[fileKey]*dataFile{}}}
	known := at.version
	if !at.whole {
		known--
	}
	if known < 0 {
		return r, nil
	}
	l, err := s.table.list(ctx)
	if err != nil {
		return nil, err
	}
	if known > l.last {
		return nil, s.replaced(l.last, known)
	}
	if r.state, err = s.table.load(ctx, l, known); err != nil {
		return nil, err
	}
	return r, s.same(r.state.metadata, r.state.protocol, known)
}

func (s *stream) replaced(last, known int64) error {
	return errs.New(errs.Source, "read log", "the newest version of the Delta table %q is %d, and version %d of it was read before: the table was replaced", s.table.path, last, known).
		WithHint("read the table that is there now by a new pipeline")
}

// reader reads the versions one after another.
type reader struct {
	s     *stream
	state *snapshot      // the table before the commit that is read, or as it is first read
	at    position       // what is read next
	items []item         // of the version; nil: not looked for yet
	src   *datafile.File // of the item
	picks datafile.Picks
	unit  *datafile.Unit
	max   int
	held  *flow.Rows // rows that are handed out when it is known whether they are the last of their commit
	polls int        // for a version that is not there
}

// lookAgain is how many polls without a new version come between two looks at the whole log.
const lookAgain = 60

func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	for {
		if err := ctx.Err(); err != nil {
			return flow.Rows{}, err
		}
		if r.items == nil {
			if r.s.end >= 0 && r.at.version > r.s.end {
				return flow.Rows{}, io.EOF
			}
			if ok, err := r.begin(ctx); err != nil {
				return flow.Rows{}, err
			} else if !ok {
				return flow.Rows{Next: r.at.String()}, r.s.clock.Sleep(ctx, r.s.poll)
			}
		}
		rows, err := r.next(ctx, max(limit, 1))
		if err != nil {
			return flow.Rows{}, err
		}
		out := r.held
		if r.held = rows; rows == nil { // the end of the version
			r.at, r.items = position{version: r.at.version + 1}, nil
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

// begin finds out what is to be read of a version; ok is false when there is none yet.
func (r *reader) begin(ctx context.Context) (ok bool, err error) {
	if r.at.whole {
		r.items = make([]item, 0, len(r.state.files))
		for _, f := range r.state.sorted() {
			r.items = append(r.items, item{file: f, weight: 1})
		}
		return true, nil
	}
	a, ok, err := r.s.table.commit(ctx, r.at.version)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, r.waiting(ctx)
	}
	r.polls = 0
	if a.protocol != nil {
		if err := a.protocol.check(r.s.table.path); err != nil {
			return false, err
		}
	}
	if a.protocol != nil || a.metadata != nil {
		now := *r.state
		now.apply(&actions{protocol: a.protocol, metadata: a.metadata})
		if now.protocol == nil || now.metadata == nil {
			return false, r.s.table.broken(fmt.Sprintf("%020d.json", r.at.version), errors.New("it does not say both protocol and schema, and no earlier one does"))
		}
		if err := r.s.same(now.metadata, now.protocol, r.at.version); err != nil {
			return false, err
		}
	}
	items := r.state.changes(a)
	if !r.s.updating {
		if err := r.onlyAdds(items); err != nil {
			return false, err
		}
	}
	r.items = items
	r.state.apply(a)
	return true, nil
}

// waiting looks now and then whether the version that is waited for was lost.
func (r *reader) waiting(ctx context.Context) error {
	if r.polls++; r.polls%lookAgain != 0 && r.s.end < 0 {
		return nil
	}
	l, err := r.s.table.list(ctx)
	switch {
	case err != nil:
		return err
	case l.last > r.at.version, r.s.end >= 0:
		if _, ok, err := r.s.table.commit(ctx, r.at.version); ok || err != nil { // it came since we looked, and others behind it
			return err
		}
		return r.s.table.missing(l, r.at.version)
	case l.last < r.at.version-1:
		return r.s.replaced(l.last, r.at.version-1)
	}
	return nil
}

// onlyAdds refuses what takes rows away from a stream that was promised none would go.
func (r *reader) onlyAdds(items []item) error {
	for _, it := range items {
		if it.weight < 0 {
			return errs.New(errs.Source, "read", "version %d of the Delta table %q takes rows away, and the stream is append-only", r.at.version, r.s.table.path).
				WithHint("leave append_only out when rows of the table are changed or deleted")
		}
	}
	return nil
}

// same checks that the rows of a version can be brought into the stream's columns. After the version that the stream was opened with, columns
// may only have come, and are left out. Before it, as a pipeline that goes on may read, they may also be missing.
func (s *stream) same(m *metadata, p *protocol, version int64) error {
	there, err := m.columns(p)
	if err == nil {
		err = sameColumns(s.columns, there, version < s.version)
	}
	if err == nil {
		return nil
	}
	return errs.Because(err, errs.Source, "read", "make the stream anew: it has the columns of the table's newest version, or of the one that version = N names",
		"version %d of the Delta table %q has other columns than the stream", version, s.table.path)
}

func sameColumns(ours, there []column, before bool) error {
	for i := range ours {
		at := slices.IndexFunc(there, func(c column) bool { return c.physical == ours[i].physical })
		if at < 0 && before {
			continue
		}
		if at < 0 {
			return fmt.Errorf("it has no column %q", ours[i].Name)
		}
		if err := ours[i].holds(&there[at], before); err != nil {
			return err
		}
		if there[at].partition != ours[i].partition {
			return fmt.Errorf("the table is partitioned otherwise, as column %q shows", ours[i].Name)
		}
	}
	return nil
}

// holds checks that the values of a column of another version are values of the stream's.
func (c *column) holds(there *column, before bool) error {
	other := fmt.Errorf("column %q is %s, and %s in the stream", c.Name, there.Type, c.Type)
	if !c.Type.IsNested() || c.Type.Kind != there.Type.Kind {
		if !c.Type.IsNested() && files.Widens(there.Type, c.Type) {
			return nil
		}
		return other
	}
	if c.Type.Kind == types.Struct {
		return sameColumns(c.parts, there.parts, before)
	}
	for i := range c.parts { // which have no names
		if c.parts[i].holds(&there.parts[i], before) != nil {
			return other
		}
	}
	return nil
}

// next gives the next rows of the version, or nil at its end.
func (r *reader) next(ctx context.Context, limit int) (*flow.Rows, error) {
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
		if b, err = it.weigh(b, r.s); err != nil {
			return nil, errs.Because(err, errs.Source, "read", "", "the file %q of the Delta table %q", it.file.Path, r.s.table.path)
		}
		rows := &flow.Rows{Batch: b, Places: r.unit.Places(records), Next: r.at.String(), TxnOpen: !r.at.whole}
		if n, bytes := r.src.Unit(r.src.UnitOf(r.at.row - 1)); n > 0 {
			rows.Bytes = bytes * records / n
		}
		return rows, nil
	}
}

// open begins the unit that holds the next row; ok is false at the version's end.
func (r *reader) open(ctx context.Context) (ok bool, err error) {
	for ; r.at.item < len(r.items); r.at.item, r.at.row, r.src = r.at.item+1, 0, nil {
		it := &r.items[r.at.item]
		if r.src == nil {
			if r.src, r.picks, err = it.open(ctx, r.s); err != nil {
				return false, err
			}
		}
		if r.at.row >= r.src.Rows {
			continue
		}
		n := r.src.UnitOf(r.at.row)
		columns := make([]int, len(r.src.Columns))
		for i := range columns {
			columns[i] = i
		}
		picks := r.picks
		if r.at.row > r.src.First(n) {
			picks.From = r.at.row
		}
		r.unit, err = r.src.Project(columns, types.ArrowSchema(datafile.Fields(r.src.Columns))).Open(ctx, datafile.Request{Unit: n, Picks: picks, BatchRows: r.max})
		if err != nil {
			r.unit = nil
		}
		return err == nil, err
	}
	return false, nil
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
