package incremental

import (
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// aggregate keeps the accumulators of all groups. A group is there while it has rows; without keys there is one group
// from the start.
//
//	in:    any weights
//	out:   changelog: −1 the old row, +1 the new row of each group that changed in the step
//	       closing:   +1 each group once, when the watermark has settled it
//	       at end:    +1 each group once, when the input has ended (bounded inputs)
//	state: aggregate_groups     group key → row count, accumulators
//	       aggregate_distinct   group key, arguments → weight, for DISTINCT
//	time:  groups that the watermark has settled are dropped by range
type aggregate struct {
	node     *plan.Aggregate
	when     emitWhen
	prep     *exec.Prepared
	enc      *keyEncoder
	keyTypes []types.Type
	count    *state.Int64s
	accs     []fn.Accumulator
	table    *state.Table

	distinct []*distinctArgs // per aggregate; nil without DISTINCT

	closing *closing
	timers  *timers
	closes  []int64    // by slot, where there is a closing
	later   *state.Due // the groups that have left memory, where there is a closing

	global bool // no keys: one group, always there
	owner  bool // this instance has that group
	begun  bool

	step    uint64
	seen    []uint64 // by slot: the last step that touched it
	touched []uint32 // in this step, in order
	before  []oldRows
	shape   func(cols []arrow.Array, n int) []arrow.Array // makes what is shown of keys and results; nil: they are
	slots   []uint32
}

// emitWhen is when an operator's groups are shown.
type emitWhen uint8

const (
	changelog emitWhen = iota // their changes, each step
	closed                    // once, when the watermark has settled them
	atEnd                     // once, when a bounded input has ended
)

// oldRows are the rows that some groups had before this step.
type oldRows struct {
	slots []uint32
	cols  []arrow.Array
}

// emitOf decides when a grouping node emits, and by which closing time it drops its groups.
func emitOf(n plan.Node, input plan.Node, emit plan.EmitPolicy) (emitWhen, *closing) {
	var c *closing
	col, ok := plan.ClosingColumn(n)
	if ok && (emit == plan.EmitOnWatermark || settled(input)) {
		at := closingOf(plan.TimeColumns(input)[col.ID], layoutOf(input.Columns())[col.ID])
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

func aggregateDecl(values []string) state.Decl {
	return state.Decl{Name: "aggregate_groups", Version: 1, Key: state.RowKey, Values: values, About: "group key → row count, accumulators"}
}

func newAggregate(n *plan.Aggregate, emit plan.EmitPolicy) (Operator, error) {
	if n.Sets != nil {
		return newGroupingSets(n, emit)
	}
	return newAggregateOf(n, emit, "")
}

// newAggregateOf makes an aggregate whose tables have a suffix.
func newAggregateOf(n *plan.Aggregate, emit plan.EmitPolicy, suffix string) (*aggregate, error) {
	prep, err := exec.PrepareAggregate(n)
	if err != nil {
		return nil, err
	}
	a := &aggregate{node: n, prep: prep, count: &state.Int64s{}, timers: newTimers(), global: len(n.Keys) == 0}
	var keyTypes []types.Type
	for _, k := range n.Keys {
		keyTypes = append(keyTypes, k.Expr.Type())
	}
	a.enc, a.keyTypes = newKeyEncoder(keyTypes), keyTypes
	if a.when, a.closing, err = a.timing(emit); err != nil {
		return nil, err
	}
	cols, names := []state.Column{a.count}, []string{"_rows"}
	updating := plan.Updating(n.Input, emit)
	for i := range n.Aggs {
		item := &n.Aggs[i]
		acc, err := newAccumulator(prep, i, item, updating)
		if err != nil {
			return nil, err
		}
		a.accs = append(a.accs, acc)
		cols, names = append(cols, acc), append(names, item.Col.Name)
		var d *distinctArgs
		if item.Distinct {
			d = newDistinctArgs(suffix+tableSuffix(i), keyTypes, prep.Config(i).Args, windowEnds(n), updating, a.closing != nil)
		}
		a.distinct = append(a.distinct, d)
	}
	decl := aggregateDecl(names)
	decl.Name += suffix
	a.table = state.NewTable(decl, cols...)
	copyLate(a.table, a.accs)
	a.enc.into(a.table, windowEnds(n)...)
	for _, d := range a.distinct {
		if d != nil {
			d.groups = a.table
		}
	}
	return a, nil
}

// windowEnds lists the keys that follow from another one: the end of a window of one length from its start.
func windowEnds(n *plan.Aggregate) (out []rowkey.Follows) {
	at := func(c plan.Column) int {
		return slices.IndexFunc(n.Keys, func(k plan.Item) bool { return refers(k.Expr, c.ID) })
	}
	plan.Walk(n.Input, func(m plan.Node) bool {
		if w, ok := m.(*plan.TimeWindow); ok && w.Size.Months == 0 && (w.Kind == plan.Tumble || w.Kind == plan.Hop) {
			if start, end := at(w.Start), at(w.End); start >= 0 && end >= 0 {
				out = append(out, rowkey.Follows{Col: end, From: start, By: int64(w.Size.Days)*86_400_000_000 + w.Size.Micros})
			}
		}
		return true
	})
	return out
}

// timing finds the key column that closes groups.
func (a *aggregate) timing(emit plan.EmitPolicy) (emitWhen, *closing, error) {
	when, c := emitOf(a.node, a.node.Input, emit)
	if c == nil {
		return when, nil, nil
	}
	// The evaluated keys stand first, so the position is that among the keys.
	col, _ := plan.ClosingColumn(a.node)
	for i, k := range a.node.Keys {
		if refers(k.Expr, col.ID) {
			c.pos = i
			return when, c, nil
		}
	}
	return 0, nil, errs.Bug("plan", "the closing column %s is no group key", col.Name)
}

func newAccumulator(prep *exec.Prepared, i int, item *plan.AggItem, updating bool) (fn.Accumulator, error) {
	cfg := prep.Config(i)
	switch {
	case item.Fn.Algebra == fn.BatchOnly:
		return nil, errs.E(errs.Unsupported, "plan", item.Pos, "%s() is not supported in incremental mode: %s", item.Fn.Name, item.Fn.Why)
	case updating && item.Overload.NewRetract != nil:
		return item.Overload.NewRetract(cfg), nil
	}
	return item.Overload.New(cfg), nil
}

// own tells the instance which key groups it has.
func (a *aggregate) own(instance, of int) {
	a.owner = a.global && owner(kernels.KeyGroup(globalHash()), of) == instance
}

// tableSuffix tells the DISTINCT tables of one node apart.
func tableSuffix(i int) string {
	if i == 0 {
		return ""
	}
	return "_" + strconv.Itoa(i)
}

// refers reports whether e is the column.
func refers(e expr.Expr, id expr.ColID) bool {
	c, ok := e.(*expr.Col)
	return ok && c.ID == id
}

// globalHash is the hash of the key without columns.
func globalHash() uint64 { return hashOf(nil, 1)[0] }

func (a *aggregate) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	n := d.Rows()
	cols, err := a.prep.Eval(env, d.Columns(), n)
	if err != nil {
		return Batch{}, err
	}
	return Batch{Cols: cols, N: n, W: d.Weights(), Hash: hashOf(cols[:len(a.node.Keys)], n)}, nil
}

func (a *aggregate) Process(ctx *Ctx, _ int, in Batch) error {
	if err := a.begin(); err != nil {
		return err
	}
	slots, err := a.find(&in, nil)
	if err != nil {
		return err
	}
	if in.W == nil {
		for _, s := range slots {
			a.count.V[s]++
		}
	} else {
		for i, s := range slots {
			a.count.V[s] += in.W[i]
		}
	}
	for i, acc := range a.accs {
		groups, args, sel := a.prep.Inputs(i, in.Cols, slots)
		if len(groups) == 0 {
			continue
		}
		w := in.W
		if w != nil && sel != nil {
			w = pickRows(w, sel)
		}
		if d := a.distinct[i]; d != nil {
			if groups, args, w, err = d.changes(&in, sel, groups, args, w); err != nil {
				return err
			}
			if len(groups) == 0 {
				continue
			}
		}
		if err := acc.Add(groups, args, w); err != nil {
			return a.located(i, err)
		}
	}
	return nil
}

func (a *aggregate) located(i int, err error) error {
	if e := errs.As(err); !e.Pos.Valid() {
		e.Pos = a.node.Aggs[i].Pos
	}
	return err
}

// begin makes the group of a global aggregate, before any row.
func (a *aggregate) begin() error {
	if !a.owner || a.begun {
		return nil
	}
	a.begun = true
	if a.table.Len() == 0 {
		h := globalHash()
		a.table.Upsert(state.Keys{Offsets: []uint32{0, 0}, Hash: []uint64{h}, Group: []uint8{uint8(kernels.KeyGroup(h))}}, make([]uint32, 1))
		a.grow()
	}
	return a.touch(a.table.All())
}

func (a *aggregate) grow() {
	n := a.table.Slots()
	a.seen = grown(a.seen, n, 0)
	if a.closing != nil {
		a.closes = grown(a.closes, n, never)
	}
}

// find returns the group of each row, new ones made, and notes which of them this step touches. The key group of a row is
// that of its hash unless it is given.
func (a *aggregate) find(in *Batch, group []uint8) ([]uint32, error) {
	a.slots = kernels.Sized(a.slots, in.N)
	slots := a.slots
	if a.global {
		all := a.table.All()
		for i := range slots {
			slots[i] = all[0]
		}
		return slots, a.touch(all)
	}
	nk := len(a.node.Keys)
	k := a.enc.encode(in.Cols[:nk], in.N, in.Hash)
	if group != nil {
		k.Group = group
	}
	if err := a.table.Fetch(k); err != nil {
		return nil, err
	}
	fresh := a.table.Upsert(k, slots)
	a.grow()
	if a.closing != nil && len(fresh) > 0 {
		a.setTimers(in.Cols, fresh, slots)
	}
	return slots, a.touch(slots)
}

func (a *aggregate) setTimers(cols []arrow.Array, fresh []int32, slots []uint32) {
	at := closing{0, a.closing.after}.at([]arrow.Array{kernels.Take(cols[a.closing.pos], fresh)})
	for i, r := range fresh {
		s := slots[r]
		a.closes[s] = at[i]
		a.timers.add(at[i], s)
	}
}

// touch notes the groups that change in this step and remembers the rows that they have shown.
func (a *aggregate) touch(slots []uint32) error {
	first := len(a.touched)
	for _, s := range slots {
		if a.seen[s] != a.step+1 {
			a.seen[s] = a.step + 1
			a.touched = append(a.touched, s)
		}
	}
	a.table.Before(a.touched[first:])
	if a.when != changelog {
		return nil
	}
	var shown []uint32
	for _, s := range a.touched[first:] {
		if a.count.V[s] > 0 || a.global && a.step > 0 {
			shown = append(shown, s)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	cols, err := a.results(shown)
	a.before = append(a.before, oldRows{shown, cols})
	return err
}

// results are the output rows of groups.
func (a *aggregate) results(slots []uint32) ([]arrow.Array, error) {
	cols := keysOf(a.table, a.keyTypes, slots)
	for i, acc := range a.accs {
		r, err := acc.Result(slots)
		if err != nil {
			return nil, a.located(i, err)
		}
		cols = append(cols, r)
	}
	return cols, nil
}

// copyLate lets groups be copied behind a barrier, unless an accumulator has them saved together.
func copyLate(groups *state.Table, accs []fn.Accumulator) {
	for _, acc := range accs {
		if _, ok := acc.(fn.Together); ok {
			return
		}
	}
	groups.CopyLate()
}

func (a *aggregate) Advance(ctx *Ctx, w flow.Watermark) error {
	if err := a.begin(); err != nil {
		return err
	}
	var err error
	switch {
	case a.when == changelog:
		err = a.emitChanges(ctx)
	case a.when == atEnd && w == flow.EndWatermark:
		err = a.emitAll(ctx)
		a.owner = false // the one group was shown
	}
	if err != nil {
		return err
	}
	negative, err := a.endStep()
	if err != nil {
		return err
	}
	if a.closing != nil {
		if err := a.close(ctx, w); err != nil {
			return err
		}
	}
	if negative > 0 {
		return ctx.missing("aggregate", negative)
	}
	return nil
}

// endStep drops the groups that have no rows left.
func (a *aggregate) endStep() (negative int64, err error) {
	var gone []uint32
	for _, s := range a.touched {
		switch {
		case a.count.V[s] > 0, !a.table.Live(s):
		case a.count.V[s] < 0:
			negative++
		case a.count.V[s] == 0 && !a.global:
			gone = append(gone, s)
		}
	}
	a.table.Touch(a.touched)
	err = a.drop(gone)
	for _, d := range a.distinct {
		if d != nil {
			negative += d.endStep()
		}
	}
	a.touched, a.before = a.touched[:0], a.before[:0]
	a.step++
	return negative, err
}

// close ends the groups that the watermark has settled. They are shown now, or were all along.
func (a *aggregate) close(ctx *Ctx, w flow.Watermark) error {
	end := func(due []uint32) error {
		if a.when == closed {
			if show := a.present(due); len(show) > 0 {
				if err := a.emit(ctx, show); err != nil {
					return err
				}
			}
		}
		return a.drop(due)
	}
	if err := end(a.timers.take(w, a.closes, a.table.Live)); err != nil {
		return err
	}
	return endOut(a.later, a.table, w, func(due []uint32) error {
		a.grow()
		return end(due)
	})
}

func (a *aggregate) emit(ctx *Ctx, slots []uint32) error {
	cols, err := a.results(slots)
	if err != nil {
		return err
	}
	return a.give(ctx, cols, len(slots), nil)
}

// give emits rows of groups.
func (a *aggregate) give(ctx *Ctx, cols []arrow.Array, n int, w []int64) error {
	if a.shape != nil && n > 0 {
		cols = a.shape(cols, n)
	}
	return ctx.Emit(cols, n, w)
}

// emitAll shows all groups and drops them, those that have left memory too.
func (a *aggregate) emitAll(ctx *Ctx) error {
	for more := true; more; {
		all := a.table.All()
		if show := a.present(all); len(show) > 0 {
			if err := a.emit(ctx, show); err != nil {
				return err
			}
		}
		if err := a.drop(all); err != nil {
			return err
		}
		var err error
		if more, err = a.table.More(); err != nil {
			return err
		}
	}
	return nil
}

// present keeps the groups that have rows.
func (a *aggregate) present(slots []uint32) []uint32 {
	out := make([]uint32, 0, len(slots))
	for _, s := range slots {
		if a.count.V[s] > 0 || a.global {
			out = append(out, s)
		}
	}
	return out
}

// emitChanges retracts the rows that touched groups had and shows those that they have, where the two differ.
func (a *aggregate) emitChanges(ctx *Ctx) error {
	now := a.present(a.touched)
	var after []arrow.Array
	if len(now) > 0 {
		var err error
		if after, err = a.results(now); err != nil {
			return err
		}
	}
	unchanged := make([]bool, len(now))
	same, touched, next := 0, a.touched, 0 // touched groups not walked over yet, and the place in now of the first of them
	for _, old := range a.before {
		at := make([]int32, len(old.slots))
		for i, s := range old.slots { // in the order in which they were touched, as now is
			for ; touched[0] != s; touched = touched[1:] {
				if next < len(now) && now[next] == touched[0] {
					next++
				}
			}
			if at[i] = -1; next < len(now) && now[next] == s {
				at[i] = int32(next)
			}
		}
		rows := make([]int32, 0, len(old.slots))
		for i, eq := range sameRows(old.cols, after, at) {
			if eq {
				unchanged[at[i]] = true
				same++
			} else {
				rows = append(rows, int32(i))
			}
		}
		cols := old.cols
		if len(rows) < len(old.slots) {
			cols = kernels.TakeBatch(cols, rows)
		}
		if err := a.give(ctx, cols, len(rows), filled(len(rows), -1)); err != nil {
			return err
		}
	}
	if same == 0 {
		return a.give(ctx, after, len(now), nil)
	}
	rows := make([]int32, 0, len(now)-same)
	for i := range now {
		if !unchanged[i] {
			rows = append(rows, int32(i))
		}
	}
	return a.give(ctx, kernels.TakeBatch(after, rows), len(rows), nil)
}

func filled(n int, v int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func (a *aggregate) drop(slots []uint32) error {
	if a.closing != nil {
		for _, s := range slots {
			a.closes[s] = never
		}
	}
	for _, d := range a.distinct {
		if d != nil {
			if err := d.drop(slots); err != nil {
				return err
			}
		}
	}
	a.table.Delete(slots)
	return nil
}

func (a *aggregate) Tables() []state.Stored {
	out := []state.Stored{a.table}
	for _, d := range a.distinct {
		if d != nil {
			out = append(out, d.table)
		}
	}
	return out
}

// evictable: the one group of all rows is always needed.
func (a *aggregate) evictable() []evicted {
	var tables together
	if !a.global {
		tables = append(tables, coldTable{a.table, a.limited, a.leave})
	}
	for _, d := range a.distinct {
		if d != nil {
			tables = append(tables, coldTable{d.table, nil, func(slots []uint32) error { d.unlink(slots); return nil }})
		}
	}
	if len(tables) == 0 {
		return nil
	}
	return []evicted{tables}
}

func (a *aggregate) limited(in *state.Cold) {
	if a.closing != nil {
		a.later = state.NewDue(in)
	}
}

// leave forgets what is derived of groups that are about to leave memory.
func (a *aggregate) leave(slots []uint32) error {
	for _, d := range a.distinct {
		if d != nil {
			if err := d.leave(slots); err != nil {
				return err
			}
		}
	}
	if a.closing == nil {
		return nil
	}
	a.timers.leftSlots(a.closes, slots)
	return putOff(a.later, a.table, slots, a.closingTimes)
}

// closingTimes are those of groups, by their keys.
func (a *aggregate) closingTimes(slots []uint32) []int64 {
	return a.closing.at(keysOf(a.table, a.keyTypes, slots))
}

func (a *aggregate) Restored(*fn.Env) error {
	a.grow()
	all := a.table.All()
	if a.table.Len() > 0 {
		a.step, a.begun = 1, a.global
	}
	for _, d := range a.distinct {
		if d != nil {
			if err := d.restored(a.table); err != nil {
				return err
			}
		}
	}
	if a.closing == nil || len(all) == 0 {
		return nil
	}
	rows := make([]int32, len(all))
	for i := range rows {
		rows[i] = int32(i)
	}
	a.setTimers(keysOf(a.table, a.keyTypes, all), rows, all)
	return nil
}
