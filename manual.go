package riverbed

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rules"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/state"
)

// ManualOptions configures a manual run.
type ManualOptions struct {
	NowUS       int64 `json:"now_us,omitempty"`      // where the clock starts; 0 is 1970
	Parallelism int   `json:"parallelism,omitempty"` // 0 is the session's
	Strict      bool  `json:"strict,omitempty"`      // a watermark set back, or a retraction of a row that was never there, is an error
	Checkpoints bool  `json:"checkpoints,omitempty"` // Crash restores from checkpoints, an epoch a step, instead of a copy in memory
	// OpenStore, where it is given, makes the store to which the rows go that StateLimit bytes of memory have no room for.
	OpenStore  func() (state.Store, error) `json:"-"`
	StateLimit int64                       `json:"-"`
}

// Manual is an incremental run in virtual time: nothing moves unless told. Sources are not opened; their rows are pushed.
// What the query itself spells out, range(…), belongs to the first step.
// It is used by one goroutine.
type Manual struct {
	s       *Session
	q       *Query
	query   *plan.Query
	opts    incremental.Options
	graph   *incremental.Graph
	infos   []incremental.SourceInfo
	clock   *clock.Fake
	saved   *incremental.Snapshot // without checkpoints
	store   *checkpoint.Store
	last    *checkpoint.Manifest
	copying *incremental.Copying // of the last step, whose rows are copied behind the next one
	next    incremental.Input
	late    *keptRows
	bad     *keptRows
	ended   map[int]bool // with what is not yet stepped
	kept    map[int]bool // the same, as of saved
}

// Manual makes a manual run of the query.
func (q *Query) Manual(o ManualOptions) (*Manual, error) {
	if err := q.runnable("manual run"); err != nil {
		return nil, err
	}
	opt, _, err := rules.Optimize(q.live, rules.Incremental, q.ruleOptions())
	if err != nil {
		return nil, errs.As(err).WithSQL(q.text)
	}
	m := &Manual{s: q.s, q: q, query: opt, opts: q.s.graphOptions(), clock: clock.NewFake(time.UnixMicro(o.NowUS).UTC()),
		late: newKeptRows(flow.LateRelation, lateFields), bad: newKeptRows(flow.BadRelation, badFields), ended: map[int]bool{}, kept: map[int]bool{}}
	m.opts.TrackChanges, m.opts.OpenStore, m.opts.StateLimit = o.Checkpoints, o.OpenStore, o.StateLimit
	if o.Parallelism > 0 {
		m.opts.Parallelism = o.Parallelism
	}
	m.opts.StrictRetractions = m.opts.StrictRetractions || o.Strict
	m.opts.StrictWatermarks = o.Strict
	if err := m.build(); err != nil {
		return nil, errs.As(err).WithSQL(q.text)
	}
	if o.Checkpoints {
		m.store, err = checkpoint.Open(context.Background(), checkpoint.Options{Pipeline: "manual", Objects: objstore.NewDouble(), Dir: "/checkpoints", Clock: m.clock, Rand: q.s.rand, Version: Version, Inline: true})
		if err != nil {
			return nil, err
		}
		m.last = &checkpoint.Manifest{Pipeline: "manual"}
		return m, m.store.Publish(context.Background(), m.last)
	}
	m.saved, err = m.graph.Snapshot()
	return m, err
}

// save keeps what the graph remembers behind a step.
func (m *Manual) save() (err error) {
	if m.store == nil {
		m.saved, err = m.graph.Snapshot()
		return err
	}
	if err := m.settle(); err != nil {
		return err
	}
	m.copying, err = m.graph.BeginChanges()
	return err
}

// settle writes the checkpoint that is on its way.
func (m *Manual) settle() error {
	if m.copying == nil {
		return nil
	}
	snap, err := m.copying.Rest()
	if err != nil {
		return err // as any further attempt: these changes cannot be told again
	}
	m.copying = nil
	next := *m.last
	next.Epoch++
	sections, err := besideState(&next, snap, true)
	if err != nil {
		return err
	}
	sections = append(sections, stateOf(&next, snap)...)
	ctx := context.Background()
	if err := m.store.Write(ctx, m.last, &next, sections); err != nil {
		return err
	}
	m.last = &next
	return m.store.Publish(ctx, &next)
}

// load brings a new graph to what save kept last.
func (m *Manual) load() error {
	if m.store == nil {
		if m.saved == nil {
			return nil
		}
		return m.graph.Restore(m.saved)
	}
	if err := m.settle(); err != nil {
		return err
	}
	ctx := context.Background()
	newest, err := m.store.Newest(ctx)
	if err != nil {
		return err
	}
	m.last = newest
	if newest.Epoch == 0 {
		return nil
	}
	if err := m.store.Verify(ctx, newest); err != nil {
		return err
	}
	_, err = restoreGraph(ctx, m.store, newest, m.graph, func(checkpoint.Section) error { return nil })
	return err
}

func (m *Manual) build() (err error) {
	if m.graph, err = incremental.Build(m.query, m.opts); err != nil {
		return err
	}
	m.infos = m.graph.Sources()
	return nil
}

// find returns the position of a source by name.
func (m *Manual) find(name string) (int, error) {
	var names []string
	for i, info := range m.infos {
		if strings.EqualFold(info.Source.Name, name) {
			return i, nil
		}
		names = append(names, info.Source.Name)
	}
	hint := errs.DidYouMean(name, names)
	if hint == "" {
		hint = "it reads " + strings.Join(names, ", ")
	}
	return 0, errs.New(errs.Usage, "manual run", "the query does not read %q", name).WithHint("%s", hint)
}

// Fields are the columns of a source that Push takes.
func (m *Manual) Fields(source string) ([]types.Field, error) {
	i, err := m.find(source)
	if err != nil {
		return nil, err
	}
	f := m.infos[i].Source.Fields
	if m.infos[i].Source.Table {
		f = f[:len(f)-1]
	}
	return f, nil
}

// Push queues rows of one split for the next step. weights nil is +1 each.
func (m *Manual) Push(source, split string, rows arrow.RecordBatch, weights []int64) error {
	i, err := m.find(source)
	if err != nil {
		return err
	}
	if m.ended[i] {
		return errs.New(errs.Usage, "manual run", "%q has ended", source).WithHint("push before its end()")
	}
	want, _ := m.Fields(source)
	if int(rows.NumCols()) != len(want) {
		return errs.New(errs.Usage, "manual run", "%q has %d columns, but the rows have %d", source, len(want), rows.NumCols())
	}
	for k, f := range want {
		if !arrow.TypeEqual(rows.Column(k).DataType(), f.Type.Arrow()) {
			return errs.New(errs.Usage, "manual run", "column %q of %q is %s, but the rows have %s there", f.Name, source, f.Type, rows.Column(k).DataType())
		}
	}
	n := int(rows.NumRows())
	if weights != nil && len(weights) != n {
		return errs.New(errs.Usage, "manual run", "%d weights for %d rows", len(weights), n)
	}
	info := m.infos[i]
	if key := info.Source.Upsert; key != nil {
		if err := connectors.CheckUpserts(source, want, key, rows.Columns(), weights); err != nil {
			return err
		}
	}
	cols := make([]arrow.Array, 0, len(info.Columns)+1)
	var fields []arrow.Field
	for _, c := range info.Columns {
		if c >= len(want) { // rowid: not known here
			cols = append(cols, kernels.Nulls(arrow.PrimitiveTypes.Int64, n))
		} else {
			cols = append(cols, rows.Column(c))
		}
		fields = append(fields, info.Source.Fields[c].Type.ArrowField(info.Source.Fields[c].Name))
	}
	if weights != nil {
		cols, fields = append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil)), append(fields, flow.WeightField)
	}
	push := incremental.Push{Source: i, Split: split, Batch: array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(n))}
	if l, ok := rows.(flow.LentBatch); ok { // who lends them here asks Borrows when they may be taken away
		push.Lent = l.Lent
	}
	m.next.Pushes = append(m.next.Pushes, push)
	return nil
}

// Watermark sets a stream's watermark by hand, behind the rows pushed so far.
func (m *Manual) Watermark(source string, at flow.Watermark) error {
	i, err := m.find(source)
	if err != nil {
		return err
	}
	m.next.Pushes = append(m.next.Pushes, incremental.Push{Source: i, Watermark: &at})
	return nil
}

// Open announces a split, which holds the watermark back until its first row.
func (m *Manual) Open(source, split string) error {
	return m.tick(source, split, incremental.SplitOpened)
}

// Idle marks a split idle behind the rows pushed so far, until its next row.
func (m *Manual) Idle(source, split string) error {
	i, err := m.find(source)
	if err != nil {
		return err
	}
	m.next.Pushes = append(m.next.Pushes, incremental.Push{Source: i, Split: split, Idle: true})
	return nil
}

// End ends a source: its watermark becomes +∞.
func (m *Manual) End(source string) error {
	if i, err := m.find(source); err == nil {
		m.ended[i] = true
	}
	return m.tick(source, "", incremental.SourceEnded)
}

// EndAll ends every source that has not ended.
func (m *Manual) EndAll() {
	for i := range m.infos {
		if !m.ended[i] && !m.constant(i) {
			m.ended[i] = true
			m.next.Ticks = append(m.next.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
		}
	}
}

func (m *Manual) tick(source, split string, kind incremental.TickKind) error {
	i, err := m.find(source)
	if err != nil {
		return err
	}
	m.next.Ticks = append(m.next.Ticks, incremental.Tick{Source: i, Split: split, Kind: kind})
	return nil
}

// AdvanceClock moves now().
func (m *Manual) AdvanceClock(d time.Duration) { m.clock.Advance(d) }

// Step runs one step on what was pushed and returns its consolidated changes. A snapshot is taken behind it.
func (m *Manual) Step() (flow.Delta, error) {
	in := m.next
	m.next = incremental.Input{}
	in.Now = m.clock.Now()
	if err := m.spellOut(&in); err != nil {
		return flow.Delta{}, err
	}
	out, err := m.graph.Step(in)
	if err != nil {
		return flow.Delta{}, errs.As(m.q.failedStep(m.graph, in, err)).WithSQL(m.query.SQL)
	}
	kept := m.q.kept("manual", out)
	m.late.add("manual", kept.late)
	m.bad.add("manual", kept.bad)
	if err := m.save(); err != nil {
		return flow.Delta{}, err
	}
	m.kept = maps.Clone(m.ended)
	return m.q.shown(out.Delta), nil
}

// constant reports whether a source is rows that the query spells out.
func (m *Manual) constant(source int) bool {
	_, ok := m.infos[source].Source.Relation.(*series)
	return ok
}

// spellOut gives a step the rows of constant sources, once.
func (m *Manual) spellOut(in *incremental.Input) error {
	for i, info := range m.infos {
		if m.ended[i] || !m.constant(i) {
			continue
		}
		err := scanAll(context.Background(), info, func(rows flow.Rows) bool {
			in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: rows.Batch})
			return true
		})
		if err != nil {
			return err
		}
		m.ended[i] = true
		in.Ticks = append(in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
	}
	return nil
}

// Crash forgets everything in memory and restores the snapshot behind the last step; pushes not yet stepped are lost.
func (m *Manual) Crash() error { return m.Restart(m.opts.Parallelism) }

// Close gives back what the run has on disk, where ManualOptions name a store.
func (m *Manual) Close() error { return m.graph.Close() }

// Restart is Crash into another parallelism.
func (m *Manual) Restart(parallelism int) error {
	m.next = incremental.Input{}
	m.ended = maps.Clone(m.kept)
	m.opts.Parallelism = parallelism
	if err := m.Close(); err != nil {
		return err
	}
	if err := m.build(); err != nil {
		return err
	}
	return m.load()
}

// Late and Bad are what those relations got so far.
func (m *Manual) Late() arrow.RecordBatch { return m.late.batches()[0] }
func (m *Manual) Bad() arrow.RecordBatch  { return m.bad.batches()[0] }

// Sources names what the query reads, sorted.
func (m *Manual) Sources() []string {
	set := map[string]bool{}
	for _, info := range m.infos {
		set[info.Source.Name] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Stats tells what the run holds.
func (m *Manual) Stats() incremental.Stats { return m.graph.Stats() }

// Borrows reports whether memory that was pushed may be used for something else when the step's changes were read.
func (m *Manual) Borrows() bool { return m.graph.Borrows() }

// Updating reports whether the changes carry weights.
func (m *Manual) Updating() bool { return flow.HasWeights(m.graph.Schema()) }
