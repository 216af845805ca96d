package incremental

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/core/window"
	"github.com/riverbed/riverbed/state"
)

// session gives each row the start and end of its session. It keeps the rows of each key in the order of their times: a row that
// comes may put two sessions together, and one that goes may part its session.
//
//	in:    any weights        out: changes of rows with their edges, those of the sessions touched; closing and at end: the rows, once
//	state: session_rows       row → weight; in the key group of its key
//	time:  sessions that the watermark has settled are dropped by range; a row without a time has no edges and passes through
type session struct {
	when emitWhen
	gap  window.Gap

	part   *expr.Program
	time   *expr.Program
	typ    types.Type
	edge   arrow.DataType
	rowEnc *keyEncoder
	cols   int
	nPart  int

	rows   *state.Table
	vals   []state.Values
	weight *state.Int64s

	// Derived, by row: its time and partition, and what was shown of it.
	timeOf []int64
	partOf []uint32
	start  []int64
	end    []int64
	shown  []int64 // weight; 0: not shown
	walked []uint64

	parts *partitions // closing.after is how far the watermark has to pass an end
	lists             // by partition, by time

	step     uint64
	stamped  []uint64 // by partition
	touched  []uint32 // partitions, in order
	changed  []uint32 // rows whose weight changed
	slots    []uint32
	partSlot []uint32
}

var sessionRows = state.Decl{Name: "session_rows", Version: 1, Key: state.RowKey, About: "row → weight; in the key group of its key"}

func newSession(n *plan.TimeWindow, emit plan.EmitPolicy) (Operator, error) {
	gap, err := exec.SessionGap(n)
	if err != nil {
		return nil, err
	}
	cols := n.Input.Columns()
	ts := columnTypes(cols)
	s := &session{gap: gap, typ: n.Time.Type(), edge: n.Start.Type.Arrow(), rowEnc: newRowEncoder(ts), cols: len(cols), nPart: len(n.Keys), vals: valueColumns(ts), weight: &state.Int64s{}}
	var c *closing
	if s.when, c = sessionTiming(n, emit); c != nil {
		c.pos = -1
	}
	s.parts = newPartitions(n.Keys, c)
	s.parts.moves = true
	if s.part, err = expr.CompileAll(n.Keys, layoutOf(cols)); err != nil {
		return nil, err
	}
	if s.time, err = expr.CompileAll([]expr.Expr{n.Time}, layoutOf(cols)); err != nil {
		return nil, err
	}
	decl := sessionRows
	decl.Values = valueNames(cols, "_weight")
	s.rows = state.NewTable(decl, append(stateColumns(s.vals), s.weight)...)
	s.rows.CopyLate()
	return s, nil
}

// sessionTiming decides when sessions are shown, and how the watermark closes them.
func sessionTiming(n *plan.TimeWindow, emit plan.EmitPolicy) (emitWhen, *closing) {
	var c *closing
	t, ok := plan.SessionEnds(n)
	if ok && (emit == plan.EmitOnWatermark || settled(n.Input)) {
		at := closingOf(t, 0)
		c = &at
	}
	switch {
	case !plan.Live(n):
		return atEnd, nil
	case emit == plan.EmitOnWatermark && c != nil:
		return closed, c
	}
	return changelog, c
}

// Prepare puts the columns of the key and the time behind the row's.
func (s *session) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	in, err := withKeys(s.part, s.time, env, d.Columns(), d.Rows())
	in.W = d.Weights()
	return in, err
}

func (s *session) Process(ctx *Ctx, _ int, in Batch) error {
	in, err := s.withTimes(ctx, in)
	if err != nil || in.N == 0 {
		return err
	}
	s.partSlot = kernels.Sized(s.partSlot, in.N)
	if err := s.parts.fetch(ctx.Env, in.Cols[s.cols:s.cols+s.nPart], in.N, in.Hash); err != nil {
		return err
	}
	s.begin(s.parts.find(in.Cols[s.cols:s.cols+s.nPart], in.N, in.Hash, s.partSlot), s.partSlot)
	for _, p := range s.partSlot {
		if s.stamped[p] != s.step+1 {
			s.stamped[p] = s.step + 1
			s.touched = append(s.touched, p)
		}
	}
	s.slots = kernels.Sized(s.slots, in.N)
	k := s.rowEnc.encode(in.Cols[:s.cols], in.N, nil)
	k.Group = s.parts.groups(in.Hash)
	fresh := s.rows.Upsert(k, s.slots)
	s.rows.Before(s.slots)
	putFresh(s.vals, in.Cols, fresh, s.slots)
	if err := s.index(in.Cols[s.cols+s.nPart], fresh, s.slots, s.partSlot); err != nil {
		return err
	}
	for i, slot := range s.slots {
		s.weight.V[slot] += in.weight(i)
	}
	s.changed = append(s.changed, s.slots...)
	return nil
}

// withTimes gives on the rows without a time, and returns the others.
func (s *session) withTimes(ctx *Ctx, in Batch) (Batch, error) {
	at := in.Cols[s.cols+s.nPart]
	if at.NullN() == 0 {
		return in, nil
	}
	var with, without []int32
	for i := range in.N {
		if at.IsNull(i) {
			without = append(without, int32(i))
		} else {
			with = append(with, int32(i))
		}
	}
	none := kernels.Nulls(s.edge, len(without))
	cols := append(kernels.TakeBatch(in.Cols[:s.cols], without), none, none)
	if err := ctx.Emit(cols, len(without), pickRows(in.W, without)); err != nil {
		return Batch{}, err
	}
	return in.take(with), nil
}

// begin sets up partitions that are new.
func (s *session) begin(fresh []int32, numbers []uint32) {
	n := s.parts.table.Slots()
	s.lists, s.stamped = grown(s.lists, n, ordered{}), grown(s.stamped, n, 0)
	s.parts.closes = grown(s.parts.closes, n, never)
	for _, i := range fresh {
		s.lists[numbers[i]] = ordered{}
	}
}

// index puts new rows into the order of their partitions, by the times of a batch.
func (s *session) index(at arrow.Array, fresh []int32, slots, parts []uint32) error {
	if len(fresh) == 0 {
		return nil
	}
	times, err := exec.Micros(at, s.typ)
	if err != nil {
		return err
	}
	if err := s.gap.Check(times, nil); err != nil {
		return err
	}
	n := s.rows.Slots()
	s.timeOf, s.partOf, s.walked = grown(s.timeOf, n, 0), grown(s.partOf, n, 0), grown(s.walked, n, 0)
	s.start, s.end, s.shown = grown(s.start, n, 0), grown(s.end, n, 0), grown(s.shown, n, 0)
	for _, r := range fresh {
		slot := slots[r]
		s.timeOf[slot], s.partOf[slot], s.walked[slot], s.shown[slot] = times[r], parts[r], 0, 0
		s.lists[parts[r]].insert(slot, s.precedes(slot))
		s.arm(parts[r], s.gap.End(times[r]))
	}
	return nil
}

// arm makes sure that a partition is looked at once the watermark has settled a session that ends there.
func (s *session) arm(part uint32, end int64) {
	if s.parts.closing == nil {
		return
	}
	if at := addTime(end, s.parts.closing.after); at < s.parts.closes[part] {
		s.parts.closes[part] = at
		s.parts.timers.add(at, part)
	}
}

// precedes orders rows by time, and rows of one time by their bytes.
func (s *session) precedes(slot uint32) func(x uint32) bool {
	t := s.timeOf[slot]
	return func(x uint32) bool {
		return s.timeOf[x] < t || s.timeOf[x] == t && bytes.Compare(s.rows.Key(x), s.rows.Key(slot)) < 0
	}
}

func (s *session) joins(a, b uint32) bool { return s.gap.Joins(s.timeOf[a], s.timeOf[b]) }

func (s *session) Advance(ctx *Ctx, w flow.Watermark) error {
	var err error
	switch {
	case s.when == changelog:
		err = s.emitChanges(ctx)
	case s.when == atEnd && w == flow.EndWatermark:
		err = s.parts.all(ctx.Env, func(parts []uint32) error { return s.close(ctx, parts, w) })
	}
	if err != nil {
		return err
	}
	negative := s.endStep()
	if err := s.parts.settle(ctx.Env, w, func(parts []uint32) error { return s.close(ctx, parts, w) }); err != nil {
		return err
	}
	if negative > 0 {
		return ctx.missing("session window", negative)
	}
	return nil
}

// emitChanges shows the sessions with a changed row as they are now. What lies together with rows that are about to go is what has lain
// together with them, so that a walk from a changed row finds the sessions that it was in and those that it is in.
func (s *session) emitChanges(ctx *Ctx) error {
	var out edgedRows
	var run []uint32
	for _, slot := range s.changed {
		if s.walked[slot] == s.step+1 || !s.rows.Live(slot) {
			continue
		}
		run = s.lists[s.partOf[slot]].around(slot, s.precedes(slot), s.joins, run[:0])
		for _, x := range run {
			s.walked[x] = s.step + 1
		}
		s.sessions(run, func(of []uint32, start, end int64) {
			for _, x := range of {
				w := max(s.weight.V[x], 0)
				switch {
				case s.shown[x] != 0 && (w == 0 || s.start[x] != start || s.end[x] != end):
					out.add(x, s.start[x], s.end[x], -s.shown[x])
					s.shown[x] = 0
				}
				if w != s.shown[x] {
					out.add(x, start, end, w-s.shown[x])
				}
				s.start[x], s.end[x], s.shown[x] = start, end, w
			}
		})
	}
	return s.emit(ctx, &out)
}

// edgedRows are rows with edges and weights.
type edgedRows struct {
	slots                 []uint32
	starts, ends, weights []int64
}

func (r *edgedRows) add(slot uint32, start, end, weight int64) {
	r.slots, r.starts, r.ends, r.weights = append(r.slots, slot), append(r.starts, start), append(r.ends, end), append(r.weights, weight)
}

func (s *session) emit(ctx *Ctx, r *edgedRows) error {
	if len(r.slots) == 0 {
		return nil
	}
	cols, err := gather(s.vals, r.slots)
	if err != nil {
		return err
	}
	cols = append(cols, kernels.NewFixed(s.edge, r.starts, nil), kernels.NewFixed(s.edge, r.ends, nil))
	return ctx.Emit(cols, len(r.slots), r.weights)
}

// sessions visits the sessions of rows in the order of their times. Rows without weight are in none: they are visited with the session before.
func (s *session) sessions(rows []uint32, visit func(of []uint32, start, end int64)) {
	for from := 0; from < len(rows); {
		first, last, to := -1, -1, from
		for ; to < len(rows); to++ {
			x := rows[to]
			if s.weight.V[x] <= 0 {
				continue
			}
			if last >= 0 && !s.joins(rows[last], x) {
				break
			}
			if last = to; first < 0 {
				first = to
			}
		}
		var start, end int64
		if first >= 0 {
			start, end = s.timeOf[rows[first]], s.gap.End(s.timeOf[rows[last]])
		}
		visit(rows[from:to], start, end)
		from = to
	}
}

// endStep drops rows of weight zero.
func (s *session) endStep() (negative int64) {
	s.rows.Touch(s.changed)
	for _, slot := range s.changed {
		switch {
		case !s.rows.Live(slot):
		case s.weight.V[slot] < 0:
			negative++
		case s.weight.V[slot] == 0:
			s.lists[s.partOf[slot]].remove(slot, s.precedes(slot))
			s.rows.Delete([]uint32{slot})
		}
	}
	s.parts.units.Changed(s.touched)
	var empty []uint32
	for _, p := range s.touched {
		if s.parts.table.Live(p) && len(s.lists[p].chunks) == 0 {
			empty = append(empty, p)
		}
	}
	s.parts.drop(empty)
	s.changed, s.touched = s.changed[:0], s.touched[:0]
	s.step++
	return negative
}

// close ends the sessions of some partitions that the watermark has settled, and shows them where they were not shown all along.
func (s *session) close(ctx *Ctx, parts []uint32, w flow.Watermark) error {
	var out edgedRows
	var gone, empty []uint32
	for _, p := range parts {
		var ended []uint32
		var next int64 // end of the first session that stays
		open := false
		s.eachSession(p, func(of []uint32, start, end int64) bool {
			if s.after(end) > int64(w) {
				next, open = end, true
				return false
			}
			if s.when != changelog {
				for _, x := range of {
					if wt := s.weight.V[x]; wt > 0 {
						out.add(x, start, end, wt)
					}
				}
			}
			ended = append(ended, of...)
			return true
		})
		s.lists[p].behead(len(ended))
		gone = append(gone, ended...)
		s.parts.closes[p] = never
		switch {
		case open:
			s.arm(p, next)
		case len(s.lists[p].chunks) == 0:
			empty = append(empty, p)
		}
		if len(ended) > 0 {
			s.parts.units.Changed([]uint32{p})
		}
	}
	if err := s.emit(ctx, &out); err != nil {
		return err
	}
	s.rows.Delete(gone)
	s.parts.drop(empty)
	return nil
}

// after is the watermark that settles a session.
func (s *session) after(end int64) int64 {
	if s.parts.closing == nil {
		return end
	}
	return addTime(end, s.parts.closing.after)
}

// eachSession visits the sessions of a partition in the order of their times until visit returns false; a row without weight comes with
// those before it.
func (s *session) eachSession(part uint32, visit func(of []uint32, start, end int64) bool) {
	var of []uint32
	start, last, any, more := int64(0), int64(0), false, true
	s.lists[part].each(func(x uint32) bool {
		if t := s.timeOf[x]; s.weight.V[x] > 0 {
			if any && !s.gap.Joins(last, t) {
				if more = visit(of, start, s.gap.End(last)); !more {
					return false
				}
				of, any = of[:0], false
			}
			if !any {
				start, any = t, true
			}
			last = t
		}
		of = append(of, x)
		return true
	})
	if more && any {
		visit(of, start, s.gap.End(last))
	}
}

func (s *session) Tables() []state.Stored { return []state.Stored{s.rows} }

func (s *session) evictable() []evicted { return s.parts.evictableBy(s, s.rows, s.nPart) }

func (s *session) leave(parts []uint32) {
	for _, p := range parts {
		s.lists[p] = ordered{}
	}
}

func (s *session) arrange(env *fn.Env, slots, parts []uint32) error {
	at, err := orderOfStored(s.time, s.vals, env, slots)
	if err != nil || len(slots) == 0 {
		return err
	}
	if err := s.index(at[0], allRows(len(slots)), slots, parts); err != nil {
		return err
	}
	s.settle(parts)
	return nil
}

// settle says of the rows of partitions that they are shown as they are.
func (s *session) settle(parts []uint32) {
	for i, p := range parts {
		if i > 0 && parts[i-1] == p {
			continue
		}
		s.sessions(s.rowsOf(p, nil), func(of []uint32, start, end int64) {
			for _, x := range of {
				s.start[x], s.end[x], s.shown[x] = start, end, s.weight.V[x]
			}
		})
	}
}

func (s *session) Restored(env *fn.Env) error {
	in, slots, err := storedRows(s.rows, s.vals, s.part, s.time, env)
	if err != nil || in.N == 0 {
		return err
	}
	if err := s.parts.fetch(env, in.Cols[s.cols:s.cols+s.nPart], in.N, in.Hash); err != nil { // those with rows that left while others came
		return err
	}
	parts := make([]uint32, in.N)
	s.begin(s.parts.find(in.Cols[s.cols:s.cols+s.nPart], in.N, in.Hash, parts), parts)
	s.parts.units.Changed(parts)
	if err := s.index(in.Cols[s.cols+s.nPart], allRows(in.N), slots, parts); err != nil {
		return err
	}
	s.settle(s.parts.table.All())
	return nil
}
