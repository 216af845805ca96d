package iceberg

import (
	"context"
	"fmt"
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
	start    datafile.Position // of which a snapshot's changes are named by the snapshot before them, 0 for none: so it holds when they are not there yet
	opened   int64             // when the snapshot that it was opened with was made
	end      *int64            // the last snapshot to read, 0: none; nil: there is no last one
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
		s.start = datafile.Position{}
	case start == "latest" || a.Table.Snapshot == 0:
		s.start = datafile.Position{Version: a.Table.Snapshot}
	default:
		s.start = datafile.Position{Version: a.Table.Snapshot, Whole: true}
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

// Open begins to read at a position.
func (s *stream) Open(_ context.Context, _ flow.Split, from flow.Position) (flow.Reader, error) {
	at := s.start
	if from != "" {
		var err error
		if at, err = datafile.ParsePosition(from, "an Iceberg table"); err != nil {
			return nil, err
		}
	}
	return &datafile.Stream{Versions: &reader{s: s}, At: at, Poll: s.poll, Clock: s.clock}, nil
}

// item is rows of one file that come or go with a snapshot.
type item struct {
	r      *reader
	file   *meta.File
	weight int64
	// than: the rows are those that the file's deletes name and this one's, of the same file, do not. Otherwise those that the file's deletes leave.
	than *meta.File
}

// portion is how many snapshots are asked for at once.
const portion = 16

// reader finds what the snapshots do, one after another.
type reader struct {
	s       *stream
	changes []meta.Change
	deletes *deletes // of the snapshot that is read
}

// Ended reports whether the last snapshot to read was read.
func (r *reader) Ended(at datafile.Position) bool {
	return r.s.end != nil && !at.Whole && at.Version == *r.s.end
}

// Begin finds out what is to be read; ok is false when there is nothing yet.
func (r *reader) Begin(ctx context.Context, at datafile.Position) (out []datafile.Item, next datafile.Position, ok bool, err error) {
	r.deletes = newDeletes(r.s.view)
	if at.Whole {
		a, err := r.s.ask(ctx, meta.Request{Op: "files", Ref: meta.Ref{Snapshot: at.Version}})
		if err != nil {
			return nil, next, false, expired(err, at)
		}
		r.adopt(a.Table)
		sortFiles(a.Files)
		for i := range a.Files {
			out = append(out, &item{r: r, file: &a.Files[i], weight: 1})
		}
		return out, datafile.Position{Version: at.Version}, true, nil
	}
	if len(r.changes) == 0 {
		a, err := r.s.ask(ctx, meta.Request{Op: "changes", Ref: meta.Ref{Branch: r.s.branch}, After: at.Version, Most: portion})
		if err != nil {
			return nil, next, false, expired(err, at)
		}
		r.adopt(a.Table)
		r.changes = a.Changes
	}
	if len(r.changes) == 0 {
		if r.s.end != nil {
			return nil, next, false, errs.New(errs.Source, "read", "the branch %q of the Iceberg table %q no longer leads from the snapshot %d to %d: it was rolled back", r.s.branch, r.s.name, at.Version, *r.s.end).
				WithHint("read the table that is there now by a new pipeline")
		}
		return nil, next, false, nil
	}
	c := &r.changes[0]
	if err := r.s.same(c); err != nil {
		return nil, next, false, err
	}
	if err := r.s.onlyAdds(c); err != nil {
		return nil, next, false, err
	}
	r.changes = r.changes[1:]
	return r.itemsOf(c), datafile.Position{Version: c.Snapshot.ID}, true, nil
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
func expired(err error, at datafile.Position) error {
	if kindOf(err) != "expired" {
		return err
	}
	return errs.Because(err, errs.Source, "read", "keep snapshots for longer than a pipeline may stand still (history.expire.max-snapshot-age-ms), and read the table that is there now by a new pipeline",
		"the changes behind the snapshot %d cannot be read", at.Version)
}

// itemsOf are what a snapshot does to the rows of the table: first what goes. One that only writes them anew (replace) does nothing.
func (r *reader) itemsOf(c *meta.Change) (out []datafile.Item) {
	if c.Snapshot.Operation == "replace" {
		return nil
	}
	sortFiles(c.Removed)
	sortFiles(c.Added)
	slices.SortFunc(c.Deleted, func(a, b meta.Pair) int { return order(&a.After, &b.After) })
	for i := range c.Removed {
		out = append(out, &item{r: r, file: &c.Removed[i], weight: -1})
	}
	for i := range c.Deleted {
		p := &c.Deleted[i]
		out = append(out, &item{r: r, file: &p.After, weight: -1, than: &p.Before}, &item{r: r, file: &p.Before, weight: 1, than: &p.After})
	}
	for i := range c.Added {
		out = append(out, &item{r: r, file: &c.Added[i], weight: 1})
	}
	return out
}

// onlyAdds refuses what takes rows away from a stream that was promised none would go.
func (s *stream) onlyAdds(c *meta.Change) error {
	if s.updating || c.Snapshot.Operation == "replace" || len(c.Removed) == 0 && len(c.Deleted) == 0 {
		return nil
	}
	return errs.New(errs.Source, "read", "the snapshot %d of the Iceberg table %q takes rows away, and the stream is append-only", c.Snapshot.ID, s.name).
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

// Weigh gives rows their weight, where the stream has any.
func (it *item) Weigh(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	s := it.r.s
	if !s.updating {
		return b, nil
	}
	weights := make([]int64, b.NumRows())
	for i := range weights {
		weights[i] = it.weight
	}
	cols := append(b.Columns()[:b.NumCols():b.NumCols()], kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil))
	return array.NewRecordBatch(flow.WithWeights(types.ArrowSchema(s.fields)), cols, b.NumRows()), nil
}

// Open opens the item's file and finds which of its rows are meant.
func (it *item) Open(ctx context.Context) (*datafile.File, datafile.Picks, error) {
	picks := datafile.Picks{}
	src, err := it.r.deletes.v.open(ctx, it.file, it.r.s.columns)
	if err != nil {
		return nil, picks, err
	}
	if picks.Set, err = it.r.deletes.of(ctx, it.file); err != nil {
		return nil, picks, err
	}
	if it.than != nil {
		other, err := it.r.deletes.of(ctx, it.than)
		if err != nil {
			return nil, picks, err
		}
		picks.Set, picks.Within = picks.Set.Minus(other), true
	}
	return src, picks, nil
}
