package exec

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// aggregate groups by hash: each worker keeps its own table and accumulators over its morsels; at the end the
// workers' tables merge into the first's, accumulators as integers, so the result does not depend on the cut. Where that
// would be many groups, or more than there is memory, rows and groups are parted by their keys (aggspill.go).
type aggregate struct {
	node   *plan.Aggregate
	env    *Env
	input  Operator
	schema *arrow.Schema
	prep   *Prepared
	sets   [][]int
	keys   *derivedKeys // nil: all keys tell groups apart
	slices *slicing     // nil: rows come with their windows, or without any
	acct   *account
	loads  []stored    // of a part: groups that were spilled
	tables *partTables // of a part: those of its siblings; nil: none are handed on
	room   int         // of a part: its rows

	ran     once
	workers []aggWorker
	mu      sync.Mutex // for what follows
	held    int64
	spills  []*aggSpill        // per grouping set; nil: none
	seen    map[[2]int]*spread // by grouping set without keys and DISTINCT aggregate
	parts   []*grouper         // what is not parted
	rows    int                // of a batch of them
	next    atomic.Int64
	parted  *parted
}

func newAggregate(n *plan.Aggregate, env *Env, _ int) (Operator, error) {
	slices, err := slicesOf(n)
	if err != nil {
		return nil, err
	}
	from := n.Input
	if slices != nil {
		from = slices.window.Input
	}
	input, err := Build(from, env, env.Workers)
	if err != nil {
		return nil, err
	}
	prep, err := shared(n)
	if err != nil {
		return nil, err
	}
	keys, err := deriveKeys(n)
	if err != nil {
		return nil, err
	}
	a := newAggregateOver(n, env, input, prep, n.Sets, keys, 0)
	a.slices = slices
	return a, nil
}

func newAggregateOver(n *plan.Aggregate, env *Env, input Operator, prep *Prepared, sets [][]int, keys *derivedKeys, level int) *aggregate {
	return &aggregate{node: n, env: env, input: input, schema: schemaOf(n.Columns()), prep: prep, sets: sets, keys: keys,
		acct: env.Memory.account("GROUP BY", level)}
}

// narrow passes a set of a join above on when its keys are among the group's: then whole groups are left out.
func (a *aggregate) narrow(m *membership) {
	fallible := slices.ContainsFunc(a.node.Aggs, func(g plan.AggItem) bool {
		return slices.ContainsFunc(g.Args, expr.Fallible) || g.Filter != nil && expr.Fallible(g.Filter)
	})
	in, ok := a.input.(narrowed)
	if !ok || fallible || a.sets != nil || a.slices != nil || slices.ContainsFunc(a.node.Keys, func(k plan.Item) bool { return expr.Fallible(k.Expr) }) {
		return
	}
	if m, ok := m.through(a.node.Keys); ok {
		in.narrow(m)
	}
}

func newDistinct(n *plan.Distinct, env *Env, workers int) (Operator, error) {
	agg := &plan.Aggregate{Input: n.Input}
	for _, c := range n.Input.Columns() {
		agg.Keys = append(agg.Keys, plan.Item{Expr: c.Ref(), Col: c})
	}
	return newAggregate(agg, env, workers)
}

// Prepared is an aggregate compiled over its input: keys, arguments and filters, evaluated once per batch. Both modes use it.
type Prepared struct {
	keys  *expr.Program
	Keys  []types.Type
	items []plan.AggItem
	calls []call
	// Of aggregates that share state (aggshare.go): what their arguments must be within, and the aggregates as they were written.
	bounds  []bound
	written *Prepared
}

// call says where the arguments of one aggregate stand in the evaluated list.
type call struct {
	args   []int
	filter int // -1: none
	types  []types.Type
	of     int   // the aggregate whose state this one reads; -1: it has its own
	shift  int64 // what its result adds to each value
}

// PrepareAggregate compiles the expressions of an aggregate.
func PrepareAggregate(n *plan.Aggregate) (*Prepared, error) {
	p := &Prepared{items: n.Aggs}
	var es []expr.Expr
	add := func(e expr.Expr) int {
		es = append(es, e)
		return len(es) - 1
	}
	for _, k := range n.Keys {
		add(k.Expr)
		p.Keys = append(p.Keys, k.Expr.Type())
	}
	byID := map[expr.ColID]plan.Column{}
	for _, c := range n.Input.Columns() {
		byID[c.ID] = c
	}
	for _, a := range n.Aggs {
		c := call{filter: -1, of: -1}
		arg := func(e expr.Expr) {
			c.args = append(c.args, add(e))
			c.types = append(c.types, e.Type())
		}
		for _, e := range a.Args {
			arg(e)
		}
		if a.Fn.Ordering {
			for _, o := range a.Order {
				arg(o.Expr)
			}
			for _, id := range a.Tie {
				arg(byID[id].Ref())
			}
		}
		if a.Filter != nil {
			c.filter = add(a.Filter)
		}
		p.calls = append(p.calls, c)
	}
	var err error
	p.keys, err = expr.CompileAll(es, layoutOf(n.Input.Columns()))
	return p, err
}

// Config is what aggregate i's accumulator is made for.
func (p *Prepared) Config(i int) fn.AggConfig {
	a := &p.items[i]
	c := fn.AggConfig{Args: a.Sig.Args, Ret: a.Sig.Returns, Data: a.Sig.Data, Shift: p.calls[i].shift}
	if a.Fn.Ordering {
		c.Args = p.calls[i].types
		c.Plain = len(a.Args)
		for _, o := range a.Order {
			c.Order = append(c.Order, o.Key)
		}
	}
	return c
}

// Eval computes all expressions over a batch: the keys first.
func (p *Prepared) Eval(env *fn.Env, cols []arrow.Array, n int) ([]arrow.Array, error) {
	out, err := p.keys.EvalArrays(env, cols, n)
	for _, b := range p.bounds {
		if err != nil || !b.within(out[b.at]) {
			return nil, p.evalAsWritten(env, cols, n)
		}
	}
	return out, err
}

// Inputs narrows aggregate i's rows to those that count: FILTER is true and, unless the function keeps NULLs, no argument
// is NULL. It returns the group and the argument values of each kept row and the rows' positions (nil: all).
func (p *Prepared) Inputs(i int, evaluated []arrow.Array, groups []uint32) ([]uint32, []fn.Arg, []int32) {
	c := p.calls[i]
	var mask *array.Boolean
	if c.filter >= 0 {
		mask = evaluated[c.filter].(*array.Boolean)
	}
	args := make([]fn.Arg, len(c.args))
	var sel []int32
	if !p.items[i].Fn.KeepNulls {
		plain := c.args[:min(len(p.items[i].Args), len(c.args))]
		for _, at := range plain {
			if evaluated[at].NullN() > 0 {
				sel = selectValid(evaluated[at], sel)
			}
		}
	}
	if mask != nil {
		sel = selectTrue(mask, sel)
	}
	if sel == nil {
		for k, at := range c.args {
			args[k] = fn.Arg{Array: evaluated[at]}
		}
		return groups, args, nil
	}
	kept := make([]uint32, len(sel))
	for k, row := range sel {
		kept[k] = groups[row]
	}
	for k, at := range c.args {
		args[k] = fn.Arg{Array: kernels.Take(evaluated[at], sel)}
	}
	return kept, args, sel
}

// grouper is one worker's table of one grouping set.
type grouper struct {
	prep     *Prepared
	set      []int // positions of Keys in this set; nil: all
	keyTypes []types.Type
	table    hashtable.Table // nil without keys
	accs     []fn.Accumulator
	distinct []hashtable.Table // per aggregate with DISTINCT: (group, arguments) seen
	pairs    [][]pairSource    // or pairs to be told apart in the end (aggpairs.go), the first of them this worker's
	pairBits uint
	words    []uint64
	ids      []uint32
	n        int
}

func (p *Prepared) newGrouper(set []int, all bool, pairBits uint) *grouper {
	g := &grouper{prep: p, distinct: make([]hashtable.Table, len(p.items)), pairs: make([][]pairSource, len(p.items)), pairBits: pairBits}
	if all {
		for i := range p.Keys {
			g.set = append(g.set, i)
		}
	} else {
		g.set = set
	}
	for _, k := range g.set {
		g.keyTypes = append(g.keyTypes, p.Keys[k])
	}
	if len(g.set) > 0 {
		g.table = hashtable.NewTable(g.keyTypes)
	}
	for i := range p.items {
		acc := p.fresh(i)
		if of := p.calls[i].of; of >= 0 {
			acc = fn.Reader(acc.(fn.Shared), g.accs[of])
		}
		g.accs = append(g.accs, acc)
		if p.items[i].Distinct {
			g.freshDistinct(i)
		}
	}
	if g.table == nil { // one group, also for no rows
		g.resize(1)
	}
	return g
}

func (g *grouper) resize(n int) {
	g.n = n
	g.reserve(n)
}

// reserve makes room for n groups in the accumulators.
func (g *grouper) reserve(n int) {
	for _, a := range g.accs {
		a.Resize(n)
	}
}

func (g *grouper) add(evaluated []arrow.Array, rows int) error {
	if cap(g.ids) < rows {
		g.ids = make([]uint32, rows)
	}
	ids := g.ids[:rows]
	if g.table != nil {
		keys := make([]arrow.Array, len(g.set))
		for i, k := range g.set {
			keys[i] = evaluated[k]
		}
		g.table.FindOrAdd(keys, rows, ids)
		if n := g.table.Len(); n > g.n {
			g.resize(n)
		}
	}
	for i, acc := range g.accs {
		if g.prep.calls[i].of >= 0 {
			continue
		}
		groups, args, _ := g.prep.Inputs(i, evaluated, ids)
		if len(groups) == 0 {
			continue
		}
		if len(g.pairs[i]) > 0 {
			g.gather(i, groups, args)
			continue
		}
		if g.distinct[i] != nil {
			groups, args = g.firstSeen(i, groups, args)
		}
		if err := acc.Add(groups, args, nil); err != nil {
			return err
		}
	}
	return nil
}

// groupType is the type of the group's number among the columns of a DISTINCT: none where there is but one group.
func (g *grouper) groupType() []types.Type {
	if g.table == nil {
		return nil
	}
	return []types.Type{types.Uint32}
}

// firstSeen keeps the rows whose group and arguments appear for the first time to aggregate i.
func (g *grouper) firstSeen(i int, groups []uint32, args []fn.Arg) ([]uint32, []fn.Arg) {
	n, seen := len(groups), g.distinct[i]
	cols := make([]arrow.Array, 0, len(args)+1)
	if g.table != nil {
		cols = append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Uint32, groups, nil))
	}
	for _, a := range args {
		cols = append(cols, a.Array)
	}
	ids := make([]uint32, n)
	next := uint32(seen.Len())
	seen.FindOrAdd(cols, n, ids)
	var sel []int32
	for i, id := range ids {
		if id == next { // new entries are numbered in order of appearance
			sel = append(sel, int32(i))
			next++
		}
	}
	kept := make([]uint32, len(sel))
	for k, i := range sel {
		kept[k] = groups[i]
	}
	out := make([]fn.Arg, len(args))
	for k, a := range args {
		out[k] = fn.Arg{Array: kernels.Take(a.Array, sel)}
	}
	return kept, out
}

// merge adds another worker's groups.
func (g *grouper) merge(o *grouper) error {
	into := make([]uint32, o.n)
	if g.table != nil && o.n > 0 {
		g.table.FindOrAdd(o.table.Keys(0, o.n), o.n, into)
		if n := g.table.Len(); n > g.n {
			g.resize(n)
		}
	}
	for i, acc := range g.accs {
		if len(o.pairs[i]) > 0 {
			g.pairs[i] = append(g.pairs[i], pairSource{o.pairs[i][0].set, into})
			continue
		}
		if d := o.distinct[i]; d != nil {
			// The partial accumulators counted values that both workers saw twice: add only the pairs that are new here.
			if err := g.mergeDistinct(i, d, into); err != nil {
				return err
			}
			continue
		}
		if err := acc.Merge(o.accs[i], into); err != nil {
			return err
		}
	}
	return nil
}

func (g *grouper) mergeDistinct(i int, o hashtable.Table, into []uint32) error {
	n := o.Len()
	if n == 0 {
		return nil
	}
	cols := o.Keys(0, n)
	groups := make([]uint32, n) // the only one, or theirs as ours
	if g.table != nil {
		for k, x := range cols[0].(*array.Uint32).Uint32Values() {
			groups[k] = into[x]
		}
		cols = cols[1:]
	}
	args := make([]fn.Arg, len(cols))
	for k, c := range cols {
		args[k] = fn.Arg{Array: c}
	}
	groups, args = g.firstSeen(i, groups, args)
	return g.accs[i].Add(groups, args, nil)
}

func (g *grouper) memory() int64 {
	var n int64
	if g.table != nil {
		n += g.table.Bytes()
	}
	for _, a := range g.accs {
		n += a.Bytes()
	}
	return n + g.seenBytes()
}

// setsOrAll is the grouping sets; one set of all keys that count when there are none.
func (a *aggregate) setsOrAll() ([][]int, bool) {
	if a.keys != nil {
		return [][]int{a.keys.told}, false
	}
	if a.sets == nil {
		return [][]int{nil}, true
	}
	return a.sets, false
}

// aggWorker is what one worker holds.
type aggWorker struct {
	groupers []*grouper // per grouping set
	size     int64
	rows     int            // since the groupers were empty
	kept     []*flow.Morsel // the first rows, until it is known whether grouping them here makes few of many
	decided  bool
	byRow    bool // rows are parted, not grouped

	slices        *grouper // of time, with their keys
	sliced        int      // rows in them
	first         []*flow.Morsel
	judged, whole bool // rows go to each of their windows at once
}

// memory is what the groups of a worker take.
func (l *aggWorker) memory() (n int64) {
	for _, g := range l.groupers {
		n += g.memory()
	}
	if l.slices != nil {
		n += l.slices.memory()
	}
	return n
}

func (a *aggregate) fresh(w *aggWorker) {
	sets, all := a.setsOrAll()
	w.groupers, w.rows = w.groupers[:0], 0
	pairBits := uint(pairParts)
	if a.acct.level > 0 {
		pairBits = min(pairBits, uint(bits.Len(uint(a.room/pairPartRows))))
	}
	for _, s := range sets {
		w.groupers = append(w.groupers, a.prep.newGrouper(s, all, pairBits))
	}
	if a.tables != nil {
		a.tables.take(w.groupers[0], a.room)
	}
}

func (a *aggregate) run(ctx context.Context) error {
	sets, _ := a.setsOrAll()
	a.workers, a.spills = make([]aggWorker, a.env.Workers), make([]*aggSpill, len(sets))
	for w := range a.workers {
		a.fresh(&a.workers[w])
	}
	consume := a.consume
	if a.slices != nil {
		consume = a.consumeSlices
	}
	if err := drain(ctx, a.input, len(a.workers), consume); err != nil {
		return err
	}
	for w := range a.workers {
		if err := a.mergeSlices(w); err != nil {
			return err
		}
	}
	for _, l := range a.loads {
		if err := a.load(ctx, l); err != nil {
			return err
		}
	}
	if err := a.partRest(ctx); err != nil {
		return err
	}
	for w := range a.workers {
		for s, g := range a.workers[w].groupers {
			if a.spilledDistinct(s) {
				if err := a.flushDistinct(w, s, g); err != nil {
					return err
				}
			}
		}
	}
	most := 0
	for s, g := range a.workers[0].groupers {
		if a.spills[s] != nil {
			continue
		}
		for w := 1; w < len(a.workers); w++ {
			if err := g.merge(a.workers[w].groupers[s]); err != nil {
				return err
			}
		}
		if err := a.addPairs(ctx, g, a.held); err != nil {
			return err
		}
		if err := a.foldDistinct(ctx, s, g); err != nil {
			return err
		}
		for _, acc := range g.accs {
			if f, ok := acc.(fn.Finisher); ok {
				f.Finish()
			}
		}
		a.parts = append(a.parts, g)
		most = max(most, g.n)
	}
	a.rows = min(ChunkRows, max(most/(4*a.env.Workers), leastChunk))
	a.workers = nil
	return nil
}

func (a *aggregate) consume(w int, m *flow.Morsel) error {
	l := &a.workers[w]
	if l.byRow {
		return a.spills[0].addRows(w, m)
	}
	rows := int(m.Batch.NumRows())
	evaluated, err := a.prep.Eval(a.env.Fn, m.Batch.Columns(), rows)
	if err != nil {
		return err
	}
	for _, g := range l.groupers {
		if err := g.add(evaluated, rows); err != nil {
			return err
		}
	}
	l.rows += rows
	if !l.decided {
		if err := a.decide(w, m); err != nil || l.byRow {
			return err
		}
	}
	return a.grown(w)
}

func (a *aggregate) Schema() *arrow.Schema { return a.schema }

func (a *aggregate) Close() error {
	a.acct.close()
	if a.tables != nil && len(a.parts) == 1 {
		a.tables.give(a.parts[0], a.room)
	}
	a.parts, a.workers = nil, nil
	err := a.parted.Close()
	for _, s := range a.spills {
		if e := s.close(); err == nil {
			err = e
		}
	}
	for _, s := range a.seen {
		if e := s.close(); err == nil {
			err = e
		}
	}
	if e := a.input.Close(); err == nil {
		err = e
	}
	return err
}

func (a *aggregate) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := a.ran.do(func() error { return a.run(ctx) }); err != nil {
		return nil, err
	}
	from := int(a.next.Add(int64(a.rows))) - a.rows
	seq := int64(from / a.rows)
	for _, g := range a.parts {
		chunks := (g.n + a.rows - 1) / a.rows * a.rows
		if from < chunks {
			return a.chunk(g, from, min(from+a.rows, g.n), seq)
		}
		from -= chunks
	}
	if a.parted == nil {
		return nil, nil
	}
	m, err := a.parted.Next(ctx, worker)
	if m != nil {
		m.Seq += partedSeq
	}
	return m, err
}

// leastChunk is the least batch of groups, where batches are made small so that all workers make results.
const leastChunk = 1 << 10

// partedSeq puts what comes of the parts behind the rest.
const partedSeq = 1 << 32

func (a *aggregate) chunk(g *grouper, from, to int, seq int64) (*flow.Morsel, error) {
	n := to - from
	cols := make([]arrow.Array, 0, a.schema.NumFields())
	for _, k := range a.prep.Keys {
		cols = append(cols, kernels.Nulls(k.Arrow(), 0)) // replaced below or made NULL
	}
	if g.table != nil {
		for i, k := range g.table.Keys(from, to) {
			cols[g.set[i]] = k
		}
	}
	mask := int64(0)
	in := make([]bool, len(a.prep.Keys))
	for _, k := range g.set {
		in[k] = true
	}
	for k, present := range in {
		if !present {
			cols[k] = kernels.Nulls(a.prep.Keys[k].Arrow(), n)
			mask |= 1 << (len(in) - 1 - k)
		}
	}
	if a.keys != nil {
		if err := a.keys.fill(a.env.Fn, cols, n); err != nil {
			return nil, err
		}
	}
	groups := make([]uint32, n)
	for i := range groups {
		groups[i] = uint32(from + i)
	}
	for i, acc := range g.accs {
		r, err := acc.Result(groups)
		if err != nil {
			if e := errs.As(err); !e.Pos.Valid() {
				e.Pos = a.node.Aggs[i].Pos
			}
			return nil, err
		}
		cols = append(cols, r)
	}
	if a.node.GroupingID != nil {
		ids := make([]types.Value, n)
		for i := range ids {
			ids[i] = mask
		}
		cols = append(cols, types.ArrayOf(ids, types.Int64))
	}
	return morsel(a.schema, seq, cols, n), nil
}
