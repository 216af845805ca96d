package riverbed

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/incremental"
)

// cut is the input of one step, as the loop gathers it.
type cut struct {
	in     incremental.Input
	rows   int
	tick   bool   // a step is due even without input
	failed error  // ends the run behind the step
	done   func() // tells statements that their change was stepped
}

// gather waits until there is something to step on and then takes what has come, up to the row budget of a step. It
// returns nil when the run is to end without another step.
func (r *runner) gather() (*cut, error) {
	c := &cut{done: func() {}}
	if r.allEnded() { // a query of constants alone: one step says it all
		return c, nil
	}
	if r.held != nil {
		f := *r.held
		r.held = nil
		r.take(f, c)
		return r.fill(c, false)
	}
	var timer <-chan time.Time
	if len(r.feed) == 0 { // otherwise nothing is waited for
		timer = r.timer()
	}
	// When rows wait too, a lost lease and a stop are not left to chance.
	select {
	case <-r.durable.lost():
		return nil, r.takenOver()
	default:
	}
	select {
	case drain := <-r.stopping:
		return r.stopped(c, drain), nil
	default:
	}
	drained := false
	select {
	case f := <-r.feed:
		r.take(f, c)
	case <-r.tables.wake:
	case <-r.durable.landed():
	case <-r.durable.lost():
		return nil, r.takenOver()
	case <-timer:
		c.tick = r.every > 0 || r.graph.Clocked()
	case drain := <-r.stopping:
		return r.stopped(c, drain), nil
	case <-r.drained:
		drained = true
	case <-r.ctx.Done():
		return nil, cancelled(r.ctx)
	}
	return r.fill(c, drained)
}

// takenOver is why a run ends whose lease another process has.
func (r *runner) takenOver() error {
	return errs.New(errs.Checkpoint, "run", "another process has taken over the pipeline %q", r.name).WithHint("one process at a time runs a pipeline; give the other one another id, or stop it")
}

// stopped is what a stop makes of a cut: nothing, or with drain a step after which the readers' end is waited for.
func (r *runner) stopped(c *cut, drain bool) *cut {
	r.setState("stopping")
	if !drain {
		return nil
	}
	r.stopReading()
	go func() {
		r.readers.Wait()
		close(r.drained)
	}()
	return c
}

// fill takes what else is there.
func (r *runner) fill(c *cut, drained bool) (*cut, error) {
	r.takeQueued(c, drained)
	var changes []tableDelta
	budget := r.cfg.stepRows - c.rows
	if drained {
		budget = math.MaxInt
	}
	var err error
	if changes, c.done, err = r.tables.take(budget); err != nil {
		c.failed = err
		_ = keepLent(c.in.Pushes, nil)
		c.in.Pushes, c.in.Ticks = nil, nil // a step without the tables' part of it would show what never was
		return c, nil                      //nolint:nilerr // the cut carries it, and ends what waits for it
	}
	r.durable.took(changes)
	for i, in := range r.inputs {
		for _, p := range tablePushes(i, in.info, changesOf(changes, in.info)) {
			c.in.Pushes = append(c.in.Pushes, p)
			c.rows += int(p.Batch.NumRows())
			r.countTold(in, p.Batch.NumRows())
		}
		if in.once && !r.tables.waits() {
			in.once, in.ended = false, true
			c.in.Ticks = append(c.in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
		}
	}
	if drained {
		r.endAll(c)
	}
	r.idle(c)
	return c, nil
}

// takeQueued takes what waits in the queue: all of it, or until the step is full. Without state, rows that come in one read and are a step
// by themselves are left to the next one: a step's output is one batch, so that to join them would copy them.
func (r *runner) takeQueued(c *cut, all bool) {
	full, stateless := r.stepRows, r.graph.Stateless()
	if stateless {
		full = min(full, statelessRows)
	}
	for c.failed == nil && (all || c.rows < full) {
		select {
		case f := <-r.feed:
			if b := f.rows.Batch; stateless && !all && c.rows > 0 && b != nil && int(b.NumRows()) >= full {
				r.held = &f
				return
			}
			r.take(f, c)
		default:
			return
		}
	}
}

// endAll ends every source. A source transaction that is still open never was; its rows go.
func (r *runner) endAll(c *cut) {
	for i, src := range r.inputs {
		if !src.ended {
			src.ended = true
			c.in.Ticks = append(c.in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
		}
	}
}

// pushRows is up to how many rows the changes of a table are put together: each push has a price of its own. A larger change,
// such as the rows of a table that a view begins with, is not worth a copy.
const pushRows = 8 << 10

// tablePushes are changes of one table as pushes: the columns that the graph reads, and the weights.
func tablePushes(source int, info incremental.SourceInfo, changes []tableDelta) []incremental.Push {
	var out []incremental.Push
	for len(changes) > 0 {
		n, rows := 1, changes[0].rows.NumRows()
		for n < len(changes) && rows+changes[n].rows.NumRows() <= pushRows {
			rows += changes[n].rows.NumRows()
			n++
		}
		out = append(out, tablePush(source, info, changes[:n]))
		changes = changes[n:]
	}
	return out
}

func tablePush(source int, info incremental.SourceInfo, changes []tableDelta) incremental.Push {
	rows := 0
	for _, d := range changes {
		rows += int(d.rows.NumRows())
	}
	weights, places := make([]int64, 0, rows), rowPlaces(nil)
	for _, d := range changes {
		for _, id := range rowIDs(d.rows) {
			places.Add(len(weights), id)
			weights = append(weights, d.sign)
		}
	}
	schema := changes[0].rows.Schema()
	cols, fields := make([]arrow.Array, len(info.Columns)+1), make([]arrow.Field, len(info.Columns)+1)
	parts := make([]arrow.Array, len(changes))
	for i, c := range info.Columns {
		for k, d := range changes {
			parts[k] = d.rows.Column(c)
		}
		cols[i], fields[i] = parts[0], schema.Field(c)
		if len(parts) > 1 {
			cols[i] = kernels.Concat(parts)
		}
	}
	last := len(info.Columns)
	cols[last], fields[last] = kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil), flow.WeightField
	return incremental.Push{Source: source, Batch: array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(rows)), Places: places}
}

// take books one item into the step's input.
func (r *runner) take(f fed, c *cut) {
	if f.err != nil {
		c.failed = f.err
		return
	}
	src := r.inputs[f.source]
	if f.first != nil {
		src.unsettled = map[string]bool{}
		for _, id := range f.first {
			src.unsettled[id] = true
		}
	}
	if f.rows.Next != "" || f.ended {
		delete(src.unsettled, f.split)
	}
	sp := r.splitOf(f, c)
	if f.read {
		sp.gate.took()
	}
	if b := f.rows.Batch; b != nil || len(f.rows.Bad) > 0 || f.rows.Watermark != nil || f.rows.Idle || f.ended {
		p := incremental.Push{Source: f.source, Split: f.split, Bad: r.provenance(f), Watermark: f.rows.Watermark, Idle: f.rows.Idle, End: f.ended}
		if b != nil && b.NumRows() > 0 {
			p.Batch, p.Lent = r.borrow(f)
			p.Places = f.rows.Places
			sp.last, sp.idle = r.s.clock.Now(), false
		}
		sp.idle = sp.idle || f.rows.Idle
		r.add(p, sp, f.rows.TxnOpen && !f.ended, c)
	}
	sp.moved(f.rows.Next)
	if f.ended && !sp.ended {
		sp.ended = true
		src.open--
	}
	src.all = src.all || f.noMore
	if src.all && src.open == 0 && !src.ended {
		src.ended = true
		c.in.Ticks = append(c.in.Ticks, incremental.Tick{Source: f.source, Kind: incremental.SourceEnded})
	}
	r.countRead(f)
}

// provenance completes what a decoder told of rows that are bad: it need not know the stream's name, nor what time it is.
func (r *runner) provenance(f fed) []flow.BadRow {
	for i := range f.rows.Bad {
		b := &f.rows.Bad[i]
		if b.Source == "" {
			b.Source = r.inputs[f.source].info.Source.Name
		}
		if b.Split == "" {
			b.Split = f.split
		}
		if b.Time.IsZero() {
			b.Time = r.s.clock.Now()
		}
	}
	return f.rows.Bad
}

// moved notes where the split's reader is, and where the rows end that a step takes: not within a source transaction.
func (sp *splitFeed) moved(to flow.Position) {
	if sp == nil || to == "" { // the nil one is of the news that a source has no further splits
		return
	}
	sp.read = to
	if len(sp.txn) == 0 {
		sp.at = sp.read
	}
}

// splitOf finds the split of an item, announcing it when it is new.
func (r *runner) splitOf(f fed, c *cut) *splitFeed {
	src := r.inputs[f.source]
	if f.gate != nil && !src.listed { // splits that a checkpoint knows are asked from now on
		src.listed = true
		for _, sp := range src.splits {
			sp.last = r.s.clock.Now()
		}
	}
	sp := src.splits[f.split]
	if sp != nil && sp.resumed && !(f.noMore && src.stream != nil) { // the graph knows it
		sp.resumed, sp.gate = false, f.gate
		src.open++
	}
	if sp == nil && !(f.noMore && src.stream != nil) {
		sp = &splitFeed{last: r.s.clock.Now(), gate: f.gate}
		src.splits[f.split] = sp
		src.open++
		if src.stream != nil {
			c.in.Ticks = append(c.in.Ticks, incremental.Tick{Source: f.source, Split: f.split, Kind: incremental.SplitOpened})
		}
	}
	return sp
}

// add gives a push to the step. Rows of one source transaction belong to one step: they wait until it ends.
func (r *runner) add(p incremental.Push, sp *splitFeed, txnOpen bool, c *cut) {
	if txnOpen {
		sp.txn = append(sp.txn, p)
		if p.Batch != nil {
			c.failed = r.holdTxn(sp, p)
		}
		return
	}
	r.releaseTxn(sp)
	for _, p := range append(sp.txn, p) {
		c.in.Pushes = append(c.in.Pushes, p)
		if p.Batch != nil {
			c.rows += int(p.Batch.NumRows())
		}
	}
	sp.txn = nil
}

// holdTxn books the rows of an open transaction of a source, which wait in memory: a step takes them whole. All that a
// session's runs hold this way is within memory_limit.
func (r *runner) holdTxn(sp *splitFeed, p incremental.Push) error {
	n := batchBytes(p.Batch)
	sp.txnBytes += n
	held, limit := r.s.openTxns.Add(n), r.s.memory.Limit()
	if limit <= 0 || held <= limit {
		return nil
	}
	return errs.New(errs.Source, "read", "a transaction of the source %q does not end: its rows are one step and wait for it in memory, %d MB by now, and memory_limit is %d MB",
		r.inputs[p.Source].info.Source.Name, held/1_000_000, limit/1_000_000).WithHint("raise memory_limit, or make the source's transactions smaller")
}

// releaseTxn gives back what an open transaction of the source held.
func (r *runner) releaseTxn(sp *splitFeed) {
	r.s.openTxns.Add(-sp.txnBytes)
	sp.txnBytes = 0
}

// canIdle reports whether silence of the source's splits matters.
func (in *input) canIdle() bool {
	return in.listed && in.info.IdleTimeout > 0 && in.stream != nil && in.info.Source.Watermark != nil && !in.ended
}

// waiting reports whether the split's silence counts: one that we hold back is not silent.
func (sp *splitFeed) waiting() bool { return !sp.idle && !sp.ended && !sp.gate.held() }

// idle tells the step, behind all its rows, which splits have been silent for their timeout: as an input, so that a replay
// sees the same.
func (r *runner) idle(c *cut) {
	now := r.s.clock.Now()
	for i, src := range r.inputs {
		if !src.canIdle() {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(src.splits)) {
			sp := src.splits[id]
			if silent, _ := sp.gate.silence(sp.last, now); sp.waiting() && silent >= src.info.IdleTimeout {
				sp.idle = true
				c.in.Pushes = append(c.in.Pushes, incremental.Push{Source: i, Split: id, Idle: true})
			}
		}
	}
}

// clockTick is how often a run with rows that come and go as time passes makes a step for them, when nothing else does.
const clockTick = time.Second

// timer is ready at the next emission or when the next split turns idle; it is nil when nothing depends on time.
func (r *runner) timer() <-chan time.Time {
	const never = time.Duration(1<<63 - 1)
	wait := never
	now := r.s.clock.Now()
	if r.every > 0 {
		wait = r.every - time.Duration(now.UnixMicro()%r.every.Microseconds())*time.Microsecond
	}
	if r.graph.Clocked() {
		wait = min(wait, clockTick)
	}
	for _, src := range r.inputs {
		if !src.canIdle() {
			continue
		}
		for _, sp := range src.splits {
			if sp.waiting() {
				silent, still := sp.gate.silence(sp.last, now)
				left := src.info.IdleTimeout - silent
				if still { // it goes on when the source answers, which nobody tells
					left = max(left, idleTick)
				}
				wait = min(wait, left)
			}
		}
	}
	if d, ok := r.durable.wait(now); ok {
		wait = min(wait, d)
	}
	if wait == never {
		return nil
	}
	return r.s.clock.After(max(wait, shortestTick))
}
