package delta

import (
	"context"
	"errors"
	"fmt"
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
	start    datafile.Position // of which a version's changes are those that made it
	end      int64             // the last version to read; -1: there is none
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
	if s.start = (datafile.Position{Version: snap.version, Whole: true}); req.Settings.String("start") == "latest" {
		s.start = datafile.Position{Version: snap.version + 1}
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

// Open reads the table's files as they were before the position, which tells what later commits take away.
func (s *stream) Open(ctx context.Context, _ flow.Split, from flow.Position) (flow.Reader, error) {
	at := s.start
	if from != "" {
		var err error
		if at, err = datafile.ParsePosition(from, "a Delta table"); err != nil {
			return nil, err
		}
		if at.Version < 0 {
			return nil, errs.New(errs.State, "open", "%q is no position in a Delta table", string(from))
		}
	}
	r := &reader{s: s, state: &snapshot{table: s.table, version: -1, files: map[fileKey]*dataFile{}}}
	out := &datafile.Stream{Versions: r, At: at, Poll: s.poll, Clock: s.clock}
	known := at.Version
	if !at.Whole {
		known--
	}
	if known < 0 {
		return out, nil
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
	return out, s.same(r.state.metadata, r.state.protocol, known)
}

func (s *stream) replaced(last, known int64) error {
	return errs.New(errs.Source, "read log", "the newest version of the Delta table %q is %d, and version %d of it was read before: the table was replaced", s.table.path, last, known).
		WithHint("read the table that is there now by a new pipeline")
}

// reader finds what the versions do, one after another.
type reader struct {
	s     *stream
	state *snapshot // the table before the commit that is read, or as it is first read
	polls int       // for a version that is not there
}

// lookAgain is how many polls without a new version come between two looks at the whole log.
const lookAgain = 60

// Ended reports whether the version is behind the last one to read.
func (r *reader) Ended(at datafile.Position) bool { return r.s.end >= 0 && at.Version > r.s.end }

// Begin finds out what is to be read of a version; ok is false when there is none yet.
func (r *reader) Begin(ctx context.Context, at datafile.Position) (out []datafile.Item, next datafile.Position, ok bool, err error) {
	next = datafile.Position{Version: at.Version + 1}
	var items []item
	if at.Whole {
		for _, f := range r.state.sorted() {
			items = append(items, item{s: r.s, file: f, weight: 1})
		}
	} else if items, ok, err = r.changes(ctx, at.Version); err != nil || !ok {
		return nil, next, false, err
	}
	for i := range items {
		out = append(out, &items[i])
	}
	return out, next, true, nil
}

// changes are what a commit does to the rows.
func (r *reader) changes(ctx context.Context, version int64) (items []item, ok bool, err error) {
	a, ok, err := r.s.table.commit(ctx, version)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		return nil, false, r.waiting(ctx, version)
	}
	r.polls = 0
	if a.protocol != nil {
		if err := a.protocol.check(r.s.table.path); err != nil {
			return nil, false, err
		}
	}
	if a.protocol != nil || a.metadata != nil {
		now := *r.state
		now.apply(&actions{protocol: a.protocol, metadata: a.metadata})
		if now.protocol == nil || now.metadata == nil {
			return nil, false, r.s.table.broken(fmt.Sprintf("%020d.json", version), errors.New("it does not say both protocol and schema, and no earlier one does"))
		}
		if err := r.s.same(now.metadata, now.protocol, version); err != nil {
			return nil, false, err
		}
	}
	items = r.state.changes(a)
	for i := range items {
		if items[i].s = r.s; !r.s.updating && items[i].weight < 0 {
			return nil, false, errs.New(errs.Source, "read", "version %d of the Delta table %q takes rows away, and the stream is append-only", version, r.s.table.path).
				WithHint("leave append_only out when rows of the table are changed or deleted")
		}
	}
	r.state.apply(a)
	return items, true, nil
}

// waiting looks now and then whether the version that is waited for was lost.
func (r *reader) waiting(ctx context.Context, version int64) error {
	if r.polls++; r.polls%lookAgain != 0 && r.s.end < 0 {
		return nil
	}
	l, err := r.s.table.list(ctx)
	switch {
	case err != nil:
		return err
	case l.last > version, r.s.end >= 0:
		if _, ok, err := r.s.table.commit(ctx, version); ok || err != nil { // it came since we looked, and others behind it
			return err
		}
		return r.s.table.missing(l, version)
	case l.last < version-1:
		return r.s.replaced(l.last, version-1)
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
