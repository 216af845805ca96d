package riverbed

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// A durable pipeline ends an epoch at a barrier: the end of a step, from which on the loop copies what changed since the last one, a piece of it
// behind each step. One goroutine behind the loop then makes the epoch durable (ADR 27): the sink stages, the copy is uploaded, the manifest is published, the
// sink commits, the sources are told. At most one epoch is on its way.

// backlog is for how many intervals a barrier that is due may wait for the epoch before it. Then the loop waits, so that
// the queues of the sources fill and nothing more is read.
const backlog = 3

// lost is closed when another process has taken the pipeline over.
func (d *durable) lost() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.store.Lost()
}

// durable is the part of a run that survives it. The nil *durable is of a run that does not.
type durable struct {
	r     *runner
	w     *sinkWriter
	store *checkpoint.Store
	leave func()               // gives the pipeline's name in this process back
	sink  connectors.Committer // nil: rows are written at least once
	held  bool                 // the checkpoint keeps the sink's rows
	// updates is how the sink takes rows back; columns says that the checkpoints are of a query with other columns (changed.go).
	updates connectors.Updates
	columns bool

	// Of the loop.
	epoch   flow.Epoch
	steps   flow.Step // of the graph at the last barrier
	due     time.Time
	holds   bool // of EMIT EVERY: changes wait to be shown
	kept    keptSince
	copying *barrier                       // of the epoch that is still being copied
	paused  time.Duration                  // the longest that the steps stood still for it
	flying  chan struct{}                  // closed when the epoch on its way is through; nil: there is none
	tables  map[string][]arrow.RecordBatch // changes of tables that were restored, until the run begins
	ended   string                         // a live stream that had ended when the pipeline was last run
	pending bool                           // of EMIT EVERY: the last epoch held changes that were not shown

	// Of the goroutine of the epoch on its way, or of the loop while there is none.
	last *checkpoint.Manifest // newest published
	err  error                // why the run must end
}

// barrier is what the loop hands over.
type barrier struct {
	manifest *checkpoint.Manifest
	copying  *incremental.Copying // until all rows of the state are copied
	sections []checkpoint.Section
	staged   chan staged
	upTo     []map[string]flow.Position // of each source
	kept     keptMarks                  // of the late and bad rows that it has
}

// afterStep takes a barrier when one is due.
func (d *durable) afterStep() error {
	if d == nil {
		return nil
	}
	if err := d.copyFor(copyTime); err != nil {
		return err
	}
	if err := d.arrived(); err != nil {
		return err
	}
	now := d.r.s.clock.Now()
	pressed := d.r.graph.Pressed() || d.kept.full() // what may not leave memory before a checkpoint has it
	if !d.isDue(now, d.r.graph.Holds()) && !pressed || d.steps == d.r.graph.Steps() || !d.settled() {
		return nil
	}
	if d.onItsWay() {
		if !pressed && now.Sub(d.due) < backlog*d.interval() {
			return nil
		}
		if err := d.land(); err != nil {
			return err
		}
	}
	return d.take()
}

// isDue reports whether a barrier is to be taken behind the step that has just been, and that holds changes back or not.
//
// Of EMIT EVERY it comes right behind the next step that shows: so what is shown is committed at once and not an interval later, and no
// changes wait in the checkpoint to be shown.
func (d *durable) isDue(now time.Time, holds bool) bool {
	shown := d.holds && !holds
	d.holds = holds
	if shown && d.follows() && !now.Before(d.due.Add(-d.r.every/8)) {
		return true
	}
	return !now.Before(d.barrierAt())
}

// barrierAt is when a barrier is due if no step shows anything before.
func (d *durable) barrierAt() time.Time {
	if d.holds && d.follows() {
		return d.due.Add(d.r.every)
	}
	return d.due
}

// follows reports whether barriers follow what is shown, since it is shown as often at least.
func (d *durable) follows() bool { return d.r.every > 0 && d.r.every <= d.interval() }

// finish takes the last barrier of a run that ends well, and waits until it is through.
func (d *durable) finish() error {
	if d == nil {
		return nil
	}
	if err := d.land(); err != nil {
		return err
	}
	if d.steps != d.r.graph.Steps() && d.settled() {
		if err := d.take(); err != nil {
			return err
		}
		if err := d.land(); err != nil {
			return err
		}
	}
	return d.commitGathered(d.w.ctx, 1)
}

// settled reports whether every split has told where it began, where that may be another place the next time.
//
// AIDEV-NOTE: a checkpoint before that would make the next run look for the beginning of some splits again, or take them for new ones and read them
// whole. Without it nothing of this run is durable, and the next one begins as if this had never been.
func (d *durable) settled() bool {
	for _, in := range d.r.inputs {
		if len(in.unsettled) > 0 {
			return false
		}
	}
	return true
}

func (d *durable) interval() time.Duration {
	return time.Duration(d.r.cfg.checkpointMS) * time.Millisecond
}

// wait is how long the loop may sleep before a barrier is due; false when none will be.
func (d *durable) wait(now time.Time) (time.Duration, bool) {
	switch {
	case d == nil:
		return 0, false
	case d.copying != nil || d.flying != nil || d.steps == d.r.graph.Steps() || !d.settled():
		return 0, false
	}
	return d.barrierAt().Sub(now), true
}

// landed is ready when the epoch on its way is through: a barrier may be due by then. While one is being copied it is ready too, as the loop has
// something to do.
func (d *durable) landed() <-chan struct{} {
	switch {
	case d == nil:
		return nil
	case d.copying != nil:
		return ready
	}
	return d.flying
}

// ready is closed.
var ready = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// arrived notes that the epoch on its way is through, if it is.
func (d *durable) arrived() error {
	if d.flying == nil {
		return nil
	}
	select {
	case <-d.flying:
		d.flying = nil
		return d.err
	default:
		return nil
	}
}

// onItsWay reports whether an epoch is.
func (d *durable) onItsWay() bool { return d.copying != nil || d.flying != nil }

// land copies what is left of the epoch on its way, and waits for it.
func (d *durable) land() error {
	if err := d.copyFor(math.MaxInt64); err != nil {
		return err
	}
	if d.flying == nil {
		return nil
	}
	<-d.flying // it ends with the caller's context
	d.flying = nil
	return d.err
}

// fail ends the epochs of a run that failed: one on its way is waited for. One that is still being copied is left.
//
// AIDEV-NOTE: the rest of it lies in the tables of a graph that may have stopped anywhere. The next run goes on from the epoch before, as after a crash.
func (d *durable) fail() {
	d.copying = nil
	_ = d.land()
}

// copyTime is for how long rows are copied while the steps wait, copyRows at a time.
const (
	copyTime = 6 * time.Millisecond
	copyRows = 1 << 11
)

// take ends the epoch here: what changed is noted, copied from now on, and goes on its way.
func (d *durable) take() error {
	d.epoch++
	checkpoint.Phase(checkpoint.Copying, d.epoch)
	began := d.r.s.clock.Now()
	b, err := d.cut()
	if err != nil {
		return err
	}
	now := d.r.s.clock.Now()
	d.copying, d.paused = b, now.Sub(began)
	d.steps = d.r.graph.Steps()
	d.due = now.Add(d.interval())
	if err := d.w.barrier(d.r.ctx, d.epoch, b.staged); err != nil {
		return err
	}
	return d.copyMore(0, began) // there may be nothing to copy
}

// cut is the graph's changes, the positions behind them, and what is said of late and bad rows.
//
// AIDEV-NOTE: positions are those of rows that a step has taken, never of rows that wait in the queue or for the end of their source
// transaction; both the state and the positions are of the same step, since only the loop moves either. The rows of the state are copied later, as
// they are now (incremental.Copying).
func (d *durable) cut() (*barrier, error) {
	r := d.r
	copying, err := r.graph.BeginChanges()
	if err != nil {
		return nil, err
	}
	m := *d.last
	m.Epoch, m.Written = d.epoch, r.s.clock.Now().UTC()
	b := &barrier{manifest: &m, copying: copying, staged: make(chan staged, 1)}
	if b.sections, err = besideState(&m, copying.Begun(), d.pending); err != nil {
		return nil, err
	}
	d.pending = len(copying.Begun().Pending) > 0
	for i, src := range m.Sources {
		upTo := map[string]flow.Position{}
		ended := r.inputs[i].endedSplits(upTo)
		if m.Sources[i].Ended = int64(r.inputs[i].done); len(ended) > 0 {
			b.sections = append(b.sections, checkpoint.Section{Kind: checkpoint.Log, Owner: checkpoint.EndedSplits, Table: src.Name, Rows: ended})
		}
		for id, sp := range r.inputs[i].splits {
			src.Splits[id] = checkpoint.SplitPosition{Position: sp.at, Ended: sp.ended}
			if sp.at != "" {
				upTo[id] = sp.at
			}
		}
		b.upTo = append(b.upTo, upTo)
	}
	b.sections = append(b.sections, d.kept.sections()...)
	d.kept, b.kept = keptSince{}, r.s.keptMarks(r.name)
	return b, nil
}

// copyFor copies rows of the epoch that is being copied, for about so long.
func (d *durable) copyFor(long time.Duration) error {
	began := d.r.s.clock.Now()
	for d.copying != nil {
		if err := d.copyMore(copyRows, began); err != nil {
			return err
		}
		if d.r.s.clock.Now().Sub(began) >= long {
			break
		}
	}
	return nil
}

// copyMore copies about so many rows. When it has all of them, the epoch goes on its way. The steps have stood still since then.
func (d *durable) copyMore(rows int, since time.Time) error {
	b := d.copying
	snap, err := b.copying.More(rows)
	if err != nil {
		return err
	}
	d.paused = max(d.paused, d.r.s.clock.Now().Sub(since))
	if snap == nil {
		return nil
	}
	b.sections = append(b.sections, stateOf(b.manifest, snap)...)
	d.copying, b.copying = nil, nil
	d.r.paused(d.paused)
	checkpoint.Phase(checkpoint.Copied, b.manifest.Epoch)
	d.flying = make(chan struct{})
	go func() {
		defer close(d.flying)
		d.err = guarded(func() error { return d.through(b) })
	}()
	return nil
}

// through makes an epoch durable. It runs behind the loop.
func (d *durable) through(b *barrier) error {
	ctx, m := d.w.ctx, b.manifest
	checkpoint.Phase(checkpoint.Staging, m.Epoch)
	st, err := d.w.awaitStaged(ctx, b.staged)
	if err != nil {
		return err
	}
	checkpoint.Phase(checkpoint.Staged, m.Epoch)
	m.Sinks = []checkpoint.Sink{{Name: sinkName, Done: d.last.Sinks[0].Done, Pending: d.last.Sinks[0].Pending}}
	link, rows := d.link(m, st)
	if d.held && link != nil {
		b.sections = append(b.sections, checkpoint.Section{Kind: checkpoint.Once, Owner: sinkName, Rows: rows})
	}
	again := d.r.newRetry()
	if err := again.within(ctx, func(ctx context.Context) error { return d.consolidate(ctx, b) }); err != nil {
		return checkpointFailed(err)
	}
	checkpoint.Phase(checkpoint.Uploading, m.Epoch)
	if err := again.within(ctx, func(ctx context.Context) error { return d.store.Write(ctx, d.last, m, b.sections) }); err != nil {
		return checkpointFailed(err)
	}
	checkpoint.Phase(checkpoint.Uploaded, m.Epoch)
	checkpoint.Phase(checkpoint.Publishing, m.Epoch)
	if err := again.within(ctx, func(ctx context.Context) error { return d.store.Publish(ctx, m) }); err != nil {
		return checkpointFailed(err)
	}
	checkpoint.Phase(checkpoint.Published, m.Epoch)
	d.last = m
	d.r.s.showKept(d.r.name, b.kept)
	switch k := d.gathers(); {
	case link == nil:
	case k > 1:
		if err := d.commitGathered(ctx, k); err != nil {
			return err
		}
	default:
		if err := d.commit(ctx, *link, rows); err != nil {
			return err
		}
	}
	d.count(m)
	checkpoint.Phase(checkpoint.Acknowledging, m.Epoch)
	for i, in := range d.r.inputs {
		if a, ok := in.stream.(flow.Acknowledger); ok && len(b.upTo[i]) > 0 {
			// A source that is away is told by the next checkpoint, or by the next run: nobody waits for it.
			if err := a.Acknowledge((*clock.Patience)(nil).In(ctx), b.upTo[i]); err != nil && !errs.As(err).Transient {
				return ofSource(in.info.Source.Name, err)
			}
		}
	}
	checkpoint.Phase(checkpoint.Acknowledged, m.Epoch)
	return nil
}

// link adds an epoch that has something to commit to the sink's chain.
func (d *durable) link(m *checkpoint.Manifest, st staged) (*checkpoint.Link, []arrow.RecordBatch) {
	if d.sink == nil || st.committable == nil && len(st.rows) == 0 {
		return nil, nil
	}
	s := &m.Sinks[0]
	l := checkpoint.Link{Epoch: m.Epoch, Marker: markerOf(m.Run, m.Epoch), Previous: s.Done, Committable: st.committable, Held: d.held}
	if n := len(s.Pending); n > 0 {
		l.Previous = s.Pending[n-1].Marker
	}
	s.Pending = append(s.Pending[:len(s.Pending):len(s.Pending)], l)
	return &l, st.rows
}

func markerOf(run string, epoch flow.Epoch) string { return fmt.Sprintf("%s:%d", run, epoch) }

// commit makes one link visible and notes it for the next manifest.
//
// AIDEV-NOTE: the mark is in memory until the next manifest. When we end before it is published, the sink's own marker tells that the
// link was committed.
func (d *durable) commit(ctx context.Context, l checkpoint.Link, rows []arrow.RecordBatch) error {
	return d.deliver(ctx, connectors.StagedEpoch{Epoch: l.Epoch, Marker: connectors.Marker(l.Marker), Previous: connectors.Marker(l.Previous), Committable: l.Committable, Rows: rows})
}

// deliver makes an epoch visible, with those that are gathered in it.
func (d *durable) deliver(ctx context.Context, e connectors.StagedEpoch) error {
	checkpoint.Phase(checkpoint.Committing, e.Epoch)
	err := d.r.newRetry().within(ctx, func(ctx context.Context) error { return d.sink.Commit(ctx, e) })
	if err != nil {
		return err
	}
	checkpoint.Phase(checkpoint.Committed, e.Epoch)
	d.done(string(e.Marker))
	checkpoint.Phase(checkpoint.Marked, e.Epoch)
	return nil
}

// done drops the links up to a marker. The manifest that was published keeps its own.
func (d *durable) done(marker string) {
	m := *d.last
	s := m.Sinks[0]
	for i, l := range s.Pending {
		if l.Marker == marker {
			s.Pending = s.Pending[i+1:]
			break
		}
	}
	s.Done = marker
	m.Sinks = []checkpoint.Sink{s}
	d.last = &m
}

func (d *durable) count(m *checkpoint.Manifest) {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	d.r.stats.Epoch = int64(m.Epoch)
	d.r.stats.CheckpointMS = d.r.s.clock.Now().Sub(m.Written).Milliseconds()
	if n := len(m.Objects); n > 0 && m.Objects[n-1].Epochs[1] == m.Epoch {
		d.r.stats.CheckpointBytes = m.Objects[n-1].Size
	}
}

// paused books how long the loop stood still for a copy.
func (r *runner) paused(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.CheckpointPauseUS = d.Microseconds()
}

// warned books what went wrong behind, and does not end the run.
func (r *runner) warned(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.CheckpointWarning = errs.As(err).Error()
}

// close gives the lease back.
func (d *durable) close() error {
	if d == nil || d.store == nil {
		return nil
	}
	defer d.leave()
	return d.store.Close()
}

func checkpointFailed(err error) error {
	e := *errs.As(err)
	if e.Kind == errs.Source || e.Kind == errs.Internal {
		e.Kind = errs.Checkpoint
	}
	if e.Hint == "" {
		e.Hint = "the last checkpoint is whole: start the pipeline again when the store works"
	}
	return &e
}

// keptSince is what became late or bad since the last barrier, and what came of tables.
//
// AIDEV-NOTE: it has all rows, unlike what the session keeps of them: the rows of the log are numbered by where they stand. What bounds it is that
// a barrier is taken when it is full.
type keptSince struct {
	late, bad []keptRow
	tables    []tableDelta
}

// full reports whether the epoch should end for the sake of late and bad rows.
func (k *keptSince) full() bool { return len(k.late)+len(k.bad) >= keptLimit }

// keep notes a step's late and bad rows for the epoch.
func (d *durable) keep(k keptOfStep) {
	if d == nil {
		return
	}
	for _, row := range k.late {
		d.kept.late = append(d.kept.late, keptRow{values: row})
	}
	for _, row := range k.bad {
		d.kept.bad = append(d.kept.bad, keptRow{values: row})
	}
}

func (k *keptSince) sections() []checkpoint.Section {
	out := tableSections(k.tables)
	for _, of := range []struct {
		name   string
		fields []types.Field
		rows   []keptRow
	}{{flow.LateRelation, lateFields, k.late}, {flow.BadRelation, badFields, k.bad}} {
		if len(of.rows) > 0 {
			out = append(out, checkpoint.Section{Kind: checkpoint.Log, Owner: of.name, Rows: []arrow.RecordBatch{keptBatch(of.fields, of.rows)}})
		}
	}
	return out
}

// sinkName owns the rows that are held for the sink.
const sinkName = "sink"

// restore brings a run that has not begun to where a manifest stands.
func (d *durable) restore(ctx context.Context, m *checkpoint.Manifest) error {
	r := d.r
	late, bad := keptTail{fields: lateFields}, keptTail{fields: badFields}
	past := map[string]map[string]flow.Position{}                                          // by source
	snap, err := restoreGraph(ctx, d.store, m, r.graph, func(s checkpoint.Section) error { // it looks whether the sources are the same
		switch s.Owner {
		case tableOwner:
			return d.knew(s)
		case checkpoint.EndedSplits:
			if past[s.Table] == nil {
				past[s.Table] = map[string]flow.Position{}
			}
			splitsOf(s, past[s.Table])
		case flow.LateRelation, flow.BadRelation:
			tail := &late
			if s.Owner == flow.BadRelation {
				tail = &bad
			}
			for _, b := range s.Rows {
				tail.take(b, m.Rows(checkpoint.Log, s.Owner, ""))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.pending = len(snap.Pending) > 0
	for i, src := range m.Sources {
		r.inputs[i].resume(src, past[src.Name], snap.Sources[i], r.s.clock.Now())
		if st := r.inputs[i].info.Source.Stream; st != nil && snap.Sources[i].Ended && !st.Bounded() {
			d.ended = src.Name
		}
	}
	for _, in := range r.inputs { // also of what was read whole: what the state has of it must be what is there
		if in.stream == nil && !in.info.Source.Table {
			if _, _, err := in.since(in.resumed()[""].Position); err != nil {
				return err
			}
		}
	}
	r.s.late.replace(r.name, late)
	r.s.bad.replace(r.name, bad)
	d.steps = r.graph.Steps()
	return nil
}

// resume lets an input go on where a manifest says.
func (in *input) resume(src checkpoint.Source, past map[string]flow.Position, st incremental.SourceState, now time.Time) {
	in.ended, in.past, in.done = st.Ended, past, len(past)
	idle := map[string]bool{}
	for _, sp := range st.Splits {
		idle[sp.ID] = sp.Idle
	}
	for id, p := range src.Splits {
		in.splits[id] = &splitFeed{last: now, at: p.Position, ended: p.Ended, idle: idle[id], resumed: !p.Ended}
	}
}

// resumed are the splits of a resumed input, as its readers find them: where they go on, and whether they have ended.
func (in *input) resumed() map[string]checkpoint.SplitPosition {
	out := map[string]checkpoint.SplitPosition{}
	for id, sp := range in.splits {
		out[id] = checkpoint.SplitPosition{Position: sp.at, Ended: sp.ended}
	}
	for id, at := range in.past {
		out[id] = checkpoint.SplitPosition{Position: at, Ended: true}
	}
	return out
}
