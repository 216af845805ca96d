package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// join combines two inputs. With L and R as they were before a delta,
//
//	Δ(L ⋈ R) = ΔL ⋈ R + (L + ΔL) ⋈ ΔR
//
// so all of the left's deltas are applied before the right's, and no pair is counted twice or missed. Rows shown for
// themselves (padded by an outer join, kept by a semi or anti join) depend on how many partners they have at the step's end.
//
//	in:    any weights        out: pairs with the product of the weights; rows without (semi: with) partners
//	state: join_left, join_right              row → weight, partners, weight shown
//	       join_left_rows, join_right_rows    instead, rows as they came: where they are only added and only their partners are asked for
//	time:  the lesser watermark; rows that it has settled by a bound between the inputs' times are dropped
type join struct {
	kind     plan.JoinKind
	side     [2]joinSide
	arranged [2]*arrangement // the side, where it is one
	logged   [2]*rowLog      // the side, where it is one
	bagged   [2]*rowBags     // the side, where it is one
	keys     [2]*expr.Program
	keyKind  keyKind
	enc      [2]*keyEncoders
	nullSafe []bool
	alone    bool // the one instance
	weighted bool // some side has rows with weights
	on       *expr.Program
	reads    []bool // of the joined columns: the condition reads it
	late     bool   // the reader drops most rows: it asks for the columns of those that it keeps
	types    [2][]types.Type
	kept     [2]bool // rows of the side are shown for themselves
	bounded  [2]bool // the input ends by itself: its rows are judged at its end, so that none is shown and taken back
	waiting  [2]bool // rows of the side wait for the other's end
	over     [2]bool // the input is bounded and had ended before this step: nothing of the other side waits for it
	pairs    []pair
	held     waitingPairs
}

// joinSide is the rows of one input: where nothing is asked of rows but their partners a rowLog, or rowBags if they come and go; else an
// arrangement.
type joinSide interface {
	// find gives the pairs of a batch's rows with the rows here to use, a chunk at a time; the chunk is used again.
	find(k *joinKeys, chunk []pair, use func([]pair) error) error
	// at gives the columns of some rows.
	at(slots []uint32) func(col int) (arrow.Array, error)
	weightOf(slot uint32) int64
	// expire drops the rows that the watermark has settled: no partner comes or goes any more.
	expire(w flow.Watermark) error
	// forget drops all rows.
	forget() error
	table() state.Stored
	// restored rebuilds what is derived from the table.
	restored(prepare func(cols []arrow.Array, n int) (Batch, error)) error
}

// pair is a row of a batch with a row of the other side.
type pair struct {
	row  int32
	slot uint32
}

// pairs hands on pairs a chunk at a time.
type pairs struct {
	chunk []pair
	use   func([]pair) error
}

func (o *pairs) add(row int32, slot uint32) error {
	if o.chunk = append(o.chunk, pair{row, slot}); len(o.chunk) < cap(o.chunk) {
		return nil
	}
	return o.flush()
}

func (o *pairs) flush() error {
	if len(o.chunk) == 0 {
		return nil
	}
	err := o.use(o.chunk)
	o.chunk = o.chunk[:0]
	return err
}

func newJoin(n *plan.Join, emit plan.EmitPolicy) (Operator, error) {
	j := &join{kind: n.Kind}
	inputs := [2]plan.Node{n.Left, n.Right}
	var exprs [2][]expr.Expr
	for _, k := range n.Keys {
		exprs[0], exprs[1] = append(exprs[0], k.Left), append(exprs[1], k.Right)
		j.nullSafe = append(j.nullSafe, k.NullSafe)
		if !k.Left.Type().Equal(k.Right.Type()) {
			return nil, errs.Bug("plan", "a join compares %s with %s", k.Left.Type(), k.Right.Type())
		}
	}
	keyTypes := exprTypes(exprs[0])
	j.keyKind = newKeyKind(keyTypes, j.nullSafe)
	switch n.Kind {
	case plan.Inner, plan.Left, plan.Right, plan.Full, plan.Semi, plan.Anti:
	default:
		return nil, errs.New(errs.Unsupported, "plan", "a %s join is not supported in incremental mode", n.Kind)
	}
	closing := joinClosing(n)
	for s, in := range inputs {
		cols := in.Columns()
		var err error
		if j.keys[s], err = expr.CompileAll(exprs[s], layoutOf(cols)); err != nil {
			return nil, err
		}
		j.types[s], j.bounded[s] = columnTypes(cols), !plan.Live(in)
		j.enc[s] = &keyEncoders{table: newKeyEncoder(keyTypes), bytes: newKeyEncoder(keyTypes)}
		name, updating := [...]string{"join_left", "join_right"}[s], plan.Updating(in, emit)
		j.weighted = j.weighted || updating
		var watched bool
		j.kept[s], watched = plan.JoinAsks(n, s)
		if updating && !j.kept[s] && !watched && closing[s] == nil {
			j.bagged[s] = newRowBags(joinTable(name, cols, state.RowKey), keyTypes, j.types[s], j.nullSafe)
			j.side[s] = j.bagged[s]
			continue
		}
		if !plan.KeepsRows(n, s, emit) {
			j.arranged[s] = newArrangement(name, cols, j.enc[s], updating, judged{kept: j.kept[s], counted: n.On != nil, watched: watched}, closing[s])
			j.side[s] = j.arranged[s]
			continue
		}
		rows := state.NewLog(joinTable(name+"_rows", cols, state.Sequence), j.types[s], 1, 0, 0)
		j.logged[s] = newRowLog(rows, j.keyKind, j.enc[s], closing[s])
		j.side[s] = j.logged[s]
	}
	if n.On != nil {
		var err error
		both := append(append([]plan.Column{}, n.Left.Columns()...), n.Right.Columns()...)
		if j.on, err = expr.Compile(n.On, layoutOf(both)); err != nil {
			return nil, err
		}
		read := map[expr.ColID]bool{}
		expr.Columns(n.On, read)
		for _, c := range both {
			j.reads = append(j.reads, read[c.ID])
		}
	}
	return j, nil
}

// joinClosing says when rows of the sides can be dropped: left − right lies between Low and High, so a left row at t meets right rows up to
// t − Low, and a right row at t meets left rows up to t + High.
func joinClosing(n *plan.Join) (out [2]*closing) {
	b, ok := plan.JoinBounds(n)
	if !ok || !settled(n.Left) || !settled(n.Right) {
		return out
	}
	lt, rt := plan.TimeColumns(n.Left)[b.Left], plan.TimeColumns(n.Right)[b.Right]
	if b.Low != nil {
		c := closingOf(rt, layoutOf(n.Left.Columns())[b.Left])
		c.after = addTime(c.after, -*b.Low)
		out[0] = &c
	}
	if b.High != nil {
		c := closingOf(lt, layoutOf(n.Right.Columns())[b.Right])
		c.after = addTime(c.after, *b.High)
		out[1] = &c
	}
	return out
}

// Prepare puts the key columns behind the row's.
func (j *join) Prepare(env *fn.Env, port int, d flow.Delta) (Batch, error) {
	in, err := j.prepare(env, port, d.Columns(), d.Rows())
	in.W = d.Weights()
	return in, err
}

func (j *join) prepare(env *fn.Env, port int, cols []arrow.Array, n int) (Batch, error) {
	keys, err := j.keys[port].EvalArrays(env, cols, n)
	if err != nil {
		return Batch{}, err
	}
	all := append(append(make([]arrow.Array, 0, len(cols)+len(keys)), cols...), keys...)
	in := Batch{Cols: all, N: n}
	if j.hashed() {
		in.Hash = hashOf(keys, n)
	}
	return in, nil
}

// own tells the instance that it is one of several.
func (j *join) own(_, of int) { j.alone = of == 1 }

// hashed reports whether rows need the hash that key groups go by: logs with keys that are words do without.
func (j *join) hashed() bool {
	return !j.alone || !j.keyKind.words || j.logged[0] == nil || j.logged[1] == nil
}

func (j *join) Process(ctx *Ctx, port int, in Batch) error {
	if j.held.port != port { // this port's side is to change
		if err := j.emitWaiting(ctx); err != nil {
			return err
		}
	}
	in, lonely := j.split(port, in)
	if lonely.N > 0 && j.kept[port] && j.kind != plan.Semi {
		if err := j.emitAlone(ctx, port, lonely.Cols[:len(j.types[port])], lonely.N, lonely.W); err != nil {
			return err
		}
	}
	if in.N == 0 {
		return nil
	}
	cols := in.Cols[len(j.types[port]):]
	keys := &joinKeys{cols: cols, n: in.N, hash: in.Hash, words: j.keyKind.wordsOf(cols), enc: j.enc[port]}
	for _, a := range j.arranged { // what rows are shown for themselves is decided by both
		if a != nil {
			if err := a.fetch(keys); err != nil {
				return err
			}
		}
	}
	var partners []int64 // of each row of the batch, where a condition beyond the keys decides
	if j.emitsPairs() || j.on != nil {
		if j.on != nil {
			partners = make([]int64, in.N)
		}
		if j.pairs == nil {
			j.pairs = make([]pair, 0, pairChunk)
		}
		err := j.side[1-port].find(keys, j.pairs, func(some []pair) error { return j.pair(ctx, port, &in, some, partners) })
		if err != nil {
			return err
		}
	}
	if j.over[1-port] && j.forgets(port) {
		return nil
	}
	if log := j.logged[port]; log != nil {
		return log.add(&in, keys, ctx.lent)
	}
	if bags := j.bagged[port]; bags != nil {
		return bags.add(&in)
	}
	own := j.arranged[port]
	slots, fresh := own.add(&in, keys)
	if j.on != nil && j.kept[port] {
		for _, i := range fresh {
			own.matches.V[slots[i]] += partners[i]
		}
	}
	return nil
}

// forgets reports whether a side is of no use once the other has ended: its rows only wait for partners.
func (j *join) forgets(side int) bool { return j.kind == plan.Inner && j.logged[side] != nil }

// passes reports whether rows go through and leave nothing behind: what they are joined with has ended.
func (j *join) passes() bool {
	return j.over[0] && j.forgets(1) || j.over[1] && j.forgets(0)
}

func (j *join) emitsPairs() bool { return j.kind != plan.Semi && j.kind != plan.Anti }

// split takes out the rows that meet nobody because a key is NULL.
func (j *join) split(port int, in Batch) (meeting, lonely Batch) {
	keys := in.Cols[len(j.types[port]):]
	var null []int32
	for k, safe := range j.nullSafe {
		a := keys[k]
		if safe || a.NullN() == 0 {
			continue
		}
		if null == nil {
			null = make([]int32, 0, in.N)
			for i := range in.N {
				if j.anyNull(keys, i) {
					null = append(null, int32(i))
				}
			}
		}
	}
	if len(null) == 0 {
		return in, Batch{}
	}
	return in.take(without(in.N, null)), in.take(null)
}

func (j *join) anyNull(keys []arrow.Array, row int) bool {
	for k, safe := range j.nullSafe {
		if !safe && keys[k].IsNull(row) {
			return true
		}
	}
	return false
}

// pairChunk bounds how many pairs are materialized at once.
const pairChunk = 16 << 10

// pair judges and emits pairs of a batch with the other side, and counts partners.
func (j *join) pair(ctx *Ctx, port int, in *Batch, pairs []pair, partners []int64) error {
	other := j.side[1-port]
	cols := make([]arrow.Array, len(j.types[0])+len(j.types[1]))
	if j.on != nil {
		if err := j.columns(port, in, pairs, cols, j.reads); err != nil {
			return err
		}
		sel, all, err := j.on.EvalFilter(ctx.Env, cols, len(pairs))
		if err != nil {
			return err
		}
		if !all {
			pairs = pickRows(pairs, sel)
			for i, c := range cols {
				if c != nil && j.emitsPairs() && !j.lateFor(port) {
					cols[i] = kernels.Take(c, sel)
				}
			}
		}
		for _, p := range pairs {
			partners[p.row] += other.weightOf(p.slot)
		}
		if j.kept[1-port] {
			other := j.arranged[1-port]
			for _, p := range pairs {
				other.matches.V[p.slot] += in.weight(int(p.row))
				other.touched = append(other.touched, p.slot)
			}
		}
	}
	if !j.emitsPairs() || len(pairs) == 0 {
		return nil
	}
	if j.lateFor(port) {
		return ctx.emitLate(len(pairs), j.gatherer(port, in, pairs))
	}
	if j.on == nil && !j.weighted && in.N <= 1<<waitBits {
		return j.wait(ctx, port, in, pairs)
	}
	if err := j.columns(port, in, pairs, cols, nil); err != nil {
		return err
	}
	return ctx.Emit(cols, len(pairs), j.weights(in, other, pairs))
}

// columns makes the columns of the joined rows, left columns first: those that some ask for and that are not made yet, nil for all.
func (j *join) columns(port int, in *Batch, pairs []pair, cols []arrow.Array, some []bool) (err error) {
	rows, slots := make([]int32, len(pairs)), make([]uint32, len(pairs))
	for i, p := range pairs {
		rows[i], slots[i] = p.row, p.slot
	}
	left := len(j.types[0])
	theirs := j.side[1-port].at(slots)
	for i := range cols {
		if cols[i] != nil || some != nil && !some[i] {
			continue
		}
		side, at := 0, i
		if i >= left {
			side, at = 1, i-left
		}
		if side == port {
			cols[i] = takeRows(in.Cols[at], rows)
		} else if cols[i], err = theirs(at); err != nil {
			return err
		}
	}
	return nil
}

// takeRows gathers rows; where they follow one another, as those that have the one partner each, they are a slice.
func takeRows(c arrow.Array, rows []int32) arrow.Array {
	for i, r := range rows {
		if r != rows[0]+int32(i) {
			return kernels.Take(c, rows)
		}
	}
	return array.NewSlice(c, int64(rows[0]), int64(rows[0])+int64(len(rows)))
}

// lateFor reports whether the columns of joined rows are left to the reader: of a log they stay as they are.
func (j *join) lateFor(port int) bool { return j.late && !j.weighted && j.logged[1-port] != nil }

// gatherer makes the columns of joined rows, left columns first.
func (j *join) gatherer(port int, in *Batch, pairs []pair) gatherer {
	own, slots := make([]int32, len(pairs)), make([]uint32, len(pairs))
	for i, p := range pairs {
		own[i], slots[i] = p.row, p.slot
	}
	left, mine, theirs := len(j.types[0]), in.Cols, j.logged[1-port].gatherer(slots)
	return func(col int, rows []int32) arrow.Array {
		side, at := 0, col
		if col >= left {
			side, at = 1, col-left
		}
		switch {
		case side != port:
			return theirs(at, rows)
		case rows != nil:
			return kernels.Take(mine[at], pickRows(own, rows))
		}
		return kernels.Take(mine[at], own)
	}
}

// weights multiplies; nil while both sides are append-only.
func (j *join) weights(in *Batch, other joinSide, pairs []pair) []int64 {
	if in.W == nil && !j.weighted {
		return nil
	}
	w := make([]int64, len(pairs))
	for i, p := range pairs {
		w[i] = in.weight(int(p.row)) * other.weightOf(p.slot)
	}
	return w
}

// emitAlone emits rows of one side without a partner: padded, or as they are where only left rows are shown.
func (j *join) emitAlone(ctx *Ctx, side int, cols []arrow.Array, n int, w []int64) error {
	switch {
	case !j.emitsPairs():
		return ctx.Emit(cols, n, w)
	case side == 0:
		return ctx.Emit(append(append([]arrow.Array{}, cols...), nulls(j.types[1], n)...), n, w)
	}
	return ctx.Emit(append(nulls(j.types[0], n), cols...), n, w)
}

func (j *join) Advance(ctx *Ctx, w flow.Watermark) error {
	if err := j.emitWaiting(ctx); err != nil {
		return err
	}
	for side := range j.side {
		if j.kept[side] {
			if err := j.settle(ctx, side); err != nil {
				return err
			}
		}
	}
	var negative int64
	for _, a := range j.arranged {
		if a != nil {
			negative += a.endStep()
		}
	}
	for _, b := range j.bagged {
		if b != nil {
			negative += b.endStep()
		}
	}
	for s, side := range j.side {
		if err := side.expire(w); err != nil {
			return err
		}
		if ended := j.bounded[1-s] && ctx.In[1-s] == flow.EndWatermark; ended && !j.over[1-s] {
			j.over[1-s] = true
			if j.forgets(s) {
				if err := side.forget(); err != nil {
					return err
				}
			}
		}
	}
	if negative > 0 {
		return ctx.missing("join", negative)
	}
	return nil
}

// settle shows the rows of a side for themselves as their number of partners now asks.
func (j *join) settle(ctx *Ctx, side int) error {
	own, other := j.arranged[side], j.arranged[1-side]
	if j.bounded[1-side] && ctx.In[1-side] != flow.EndWatermark {
		j.waiting[side] = true
		return nil
	}
	slots := own.touched
	if j.waiting[side] {
		slots, j.waiting[side] = own.rows.All(), false
	}
	if j.on == nil {
		slots = append(slots, j.crossed(own, other)...)
	}
	var changed []uint32
	var by []int64
	for _, s := range slots {
		if !own.rows.Live(s) {
			continue
		}
		want := own.weightOf(s)
		if (j.partners(own, other, s) != 0) != (j.kind == plan.Semi) {
			want = 0
		}
		if d := want - own.shown.V[s]; d != 0 {
			own.shown.V[s] = want
			changed, by = append(changed, s), append(by, d)
		}
	}
	own.touched = slots
	if len(changed) == 0 {
		return nil
	}
	cols, err := gather(own.vals, changed)
	if err != nil {
		return err
	}
	return j.emitAlone(ctx, side, cols, len(changed), by)
}

// partners is how many rows of the other side a row meets.
func (j *join) partners(own, other *arrangement, slot uint32) int64 {
	if j.on != nil {
		return own.matches.V[slot]
	}
	key := own.keyOf[slot]
	k := state.Keys{Data: own.keys.Key(key), Hash: []uint64{own.keys.Hash(key)}}
	k.Offsets = []uint32{0, uint32(len(k.Data))}
	at := []uint32{0}
	if other.keys.Find(k, at); at[0] == state.NoSlot {
		return 0
	}
	return other.total.V[at[0]]
}

// crossed lists the rows of own whose key gained its first partner or lost its last in this step.
func (j *join) crossed(own, other *arrangement) []uint32 {
	var keys []uint32
	for _, k := range other.keysWere {
		if (k.total != 0) != (other.total.V[k.key] != 0) {
			keys = append(keys, k.key)
		}
	}
	var out []uint32
	for _, key := range keys {
		k := state.Keys{Data: other.keys.Key(key), Hash: []uint64{other.keys.Hash(key)}}
		k.Offsets = []uint32{0, uint32(len(k.Data))}
		at := []uint32{0}
		if own.keys.Find(k, at); at[0] == state.NoSlot {
			continue
		}
		for s := own.head[at[0]]; s != state.NoSlot; s = *own.next.At(s) {
			out = append(out, s)
		}
	}
	return out
}

func (j *join) evictable() (out []evicted) {
	for _, b := range j.bagged {
		if b != nil {
			out = append(out, b.rows)
		}
	}
	for s, a := range j.arranged {
		if a != nil && j.bounded == [2]bool{} {
			out = append(out, coldArrangement{a.rows, a, j, s})
		}
	}
	for s, l := range j.logged {
		if l != nil {
			out = append(out, coldLog{l.rows, l, j, s})
		}
	}
	return out
}

func (j *join) Tables() []state.Stored { return []state.Stored{j.side[0].table(), j.side[1].table()} }

func (j *join) Restored(env *fn.Env) error {
	for s := range j.side {
		if err := j.restored(env, s); err != nil {
			return err
		}
		j.waiting[s] = true // rows may have waited when the snapshot was taken; to judge one twice changes nothing
	}
	return nil
}

// restored rebuilds what is derived from rows of a side that were restored.
func (j *join) restored(env *fn.Env, side int) error {
	return j.side[side].restored(func(cols []arrow.Array, n int) (Batch, error) { return j.prepare(env, side, cols, n) })
}
