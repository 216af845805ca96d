package exec

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// join builds a hash table of its right input and streams the left input past it. Without keys every pair is a
// candidate: the table then has one key that all rows share.
//
//	inner, left     pairs that pass On; left rows without one get NULLs
//	right, full     the same, and at the end the build rows that no pair used
//	semi, anti      left rows with, without a pair
//	mark            left rows, and whether IN would be true, false or NULL
//	single          left rows with their one pair; a second one is an error
type join struct {
	node        *plan.Join
	env         *Env
	workers     int // of the probe side
	left, right Operator
	sch         *arrow.Schema
	leftKeys    *expr.Program
	rightKeys   *expr.Program
	on          *pairFilter // nil: always true

	acct    *account
	texts   []int // columns of the build side whose bytes the table copies
	built   once
	table   *hashtable.Join
	build   collected
	records *buildRecords // nil: all of build is there
	keys    []arrow.Array // of the build rows; kept for marks
	spilled *graceJoin    // nil: the build side fits
	above   buildFacts    // of a part: what is true of the whole build side
	probers []*prober
	running atomic.Int64 // workers that still probe
	tail    atomic.Int64 // next unmatched build row
	tailing []bool
}

// prober is one worker's place in its present morsel.
type prober struct {
	p          *hashtable.Prober
	m          *flow.Morsel
	keys       []arrow.Array
	probe, bld []int32
}

// pairRows is how many candidate pairs are formed at a time.
const pairRows = 32 << 10

func newJoin(n *plan.Join, env *Env, workers int) (Operator, error) {
	if n.BuildLeft && (n.Kind == plan.Semi || n.Kind == plan.Anti) {
		return newLeftBuilt(n, env)
	}
	right, err := Build(n.Right, env, env.Workers)
	if err != nil {
		return nil, err
	}
	left, err := Build(n.Left, env, workers)
	if err != nil {
		return nil, err
	}
	return newJoinOver(n, env, workers, left, right, 0)
}

func newJoinOver(n *plan.Join, env *Env, workers int, left, right Operator, level int) (*join, error) {
	c, err := compileJoin(n)
	if err != nil {
		return nil, err
	}
	j := &join{node: n, env: env, workers: workers, left: left, right: right, sch: schemaOf(n.Columns()),
		leftKeys: c.left, rightKeys: c.right, on: c.on, table: c.table, acct: env.Memory.account("join", level),
		texts: keyTexts(n.Right.Columns(), n.Keys, func(k plan.EquiKey) expr.Expr { return k.Right })}
	j.probers = make([]*prober, workers)
	j.tailing = make([]bool, workers)
	j.running.Store(int64(workers))
	return j, nil
}

// keyTexts are the columns without a fixed width that the keys of a side read.
func keyTexts(cols []plan.Column, keys []plan.EquiKey, side func(plan.EquiKey) expr.Expr) []int {
	read := plan.ColSet{}
	for _, k := range keys {
		maps.Copy(read, plan.ExprColumns(side(k)))
	}
	var out []int
	for i, c := range cols {
		if _, fixed := c.Type.Arrow().(arrow.FixedWidthDataType); read[c.ID] && !fixed {
			out = append(out, i)
		}
	}
	return out
}

func (j *join) Schema() *arrow.Schema { return j.sch }

func (j *join) Close() error {
	j.acct.close()
	j.build, j.keys, j.records = collected{}, nil, nil
	err := j.spilled.close()
	if e := closeBoth(j.left, j.right); err == nil {
		err = e
	}
	return err
}

func closeBoth(a, b Operator) error {
	err := a.Close()
	if e := b.Close(); err == nil {
		err = e
	}
	return err
}

func (j *join) keepsBuildRows() bool { return j.node.Kind == plan.Right || j.node.Kind == plan.Full }

func (j *join) run(ctx context.Context) (err error) {
	grace := j.grace()
	g, spilled, err := collect(ctx, j.right, j.env, j.acct, j.texts, grace.overflow())
	if spilled {
		j.spilled = grace
		if err != nil {
			return err
		}
		return grace.run(ctx, j.left, j.workers, j.leftKeys)
	}
	if err != nil {
		return err
	}
	if j.records, err = j.recordBuild(ctx, g); err != nil {
		return err
	}
	if j.records != nil {
		j.build = j.records.joined(g, j.node)
	} else {
		j.build = g.joined(j.right.Schema())
	}
	if j.keys, err = j.rightKeys.EvalArrays(j.env.Fn, j.build.cols, j.build.rows); err != nil {
		return err
	}
	j.table.Build(j.keys, j.build.rows)
	j.acct.force(max(g.size, j.table.Bytes()+g.size-g.twice-rowOverhead*g.rows))
	if j.keepsBuildRows() {
		j.table.TrackMatches()
	}
	switch j.node.Kind {
	case plan.Inner, plan.Semi, plan.Right: // a left row without match comes to nothing
		offerKeys(j.left, j.table, j.keys, j.node.Keys, func(k plan.EquiKey) expr.Expr { return k.Left })
	}
	return nil
}

// narrow passes a set of a join above on, where dropping rows of the left input drops just their results.
func (j *join) narrow(m *membership) {
	switch j.node.Kind {
	case plan.Inner, plan.Left, plan.Semi, plan.Anti, plan.Mark:
		narrowInput(j.left, j.node, m)
	}
}

func (j *join) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := j.built.do(func() error { return j.run(ctx) }); err != nil {
		return nil, err
	}
	if j.spilled != nil {
		return j.spilled.parts.Next(ctx, worker)
	}
	p := j.probers[worker]
	if p == nil {
		n := pairRows
		if j.records != nil {
			n = recordPairs
		}
		p = &prober{p: j.table.Prober(), probe: make([]int32, n), bld: make([]int32, n)}
		p.p.Outer = j.on == nil && (j.node.Kind == plan.Left || j.node.Kind == plan.Full || j.node.Kind == plan.Single)
		j.probers[worker] = p
	}
	for !j.tailing[worker] {
		if p.m != nil { // pairs of the present morsel are left
			out, err := j.pairs(p)
			if err != nil || out != nil {
				return out, err
			}
		}
		m, err := j.nextProbe(ctx, worker)
		if err != nil {
			return nil, err
		}
		if m == nil {
			j.tailing[worker] = true
			// AIDEV-NOTE: only the worker that finishes last may look at unmatched build rows: until then another
			// worker's probe may still match them.
			if j.running.Add(-1) != 0 || !j.keepsBuildRows() {
				return nil, nil
			}
			break
		}
		n := int(m.Batch.NumRows())
		if n == 0 {
			return emptyMorsel(j.sch, m.Seq), nil
		}
		if p.keys, err = j.leftKeys.EvalArrays(j.env.Fn, m.Batch.Columns(), n); err != nil {
			return nil, err
		}
		switch j.node.Kind {
		case plan.Semi, plan.Anti, plan.Mark:
			return j.membership(p, m)
		}
		if j.node.Kind == plan.Single || j.on != nil && j.node.Kind != plan.Inner && j.node.Kind != plan.Right {
			return j.whole(p, m)
		}
		p.p.Probe(p.keys, n)
		p.m = m
	}
	return j.unmatched()
}

// nextProbe pulls the probe side; an inner join with an empty build side need not read it, unless its bad rows are told.
func (j *join) nextProbe(ctx context.Context, worker int) (*flow.Morsel, error) {
	if j.build.rows == 0 && j.env.Bad == nil {
		switch j.node.Kind {
		case plan.Inner, plan.Semi, plan.Right:
			return nil, nil
		}
	}
	return j.left.Next(ctx, worker)
}

// pairs emits the next pairs of the present morsel, or nil when there are none left.
func (j *join) pairs(p *prober) (*flow.Morsel, error) {
	for {
		k := p.p.Next(p.probe, p.bld)
		if k == 0 {
			p.m = nil
			return nil, nil
		}
		left, probe, bld := p.m.Batch.Columns(), p.probe[:k], p.bld[:k]
		if j.on != nil {
			var err error
			if probe, bld, err = j.on.keep(j.env.Fn, left, j.build.cols, probe, bld); err != nil {
				return nil, err
			}
			if len(probe) == 0 {
				continue
			}
		}
		if j.keepsBuildRows() {
			j.table.Mark(bld)
		}
		return morsel(j.sch, p.m.Seq, j.pairColumns(left, probe, bld, int(p.m.Batch.NumRows())), len(probe)), nil
	}
}

// pairColumns gathers the columns of both sides; a build row of -1 gives NULLs.
func (j *join) pairColumns(left []arrow.Array, probe, bld []int32, n int) []arrow.Array {
	cols := make([]arrow.Array, 0, len(left)+len(j.build.cols))
	if isIdentity(probe, n) {
		cols = append(cols, left...)
	} else {
		cols = append(cols, kernels.TakeBatch(left, probe)...)
	}
	if j.records != nil {
		return append(cols, j.records.take(j.build.cols, bld)...)
	}
	return append(cols, kernels.TakeBatch(j.build.cols, bld)...)
}

func isIdentity(rows []int32, n int) bool {
	if len(rows) != n {
		return false
	}
	for i, r := range rows {
		if r != int32(i) {
			return false
		}
	}
	return true
}

// accepted visits the pairs of a whole morsel that pass On.
func (j *join) accepted(p *prober, m *flow.Morsel, visit func(probe, bld []int32) error) error {
	n := int(m.Batch.NumRows())
	outer := p.p.Outer
	p.p.Outer = false
	defer func() { p.p.Outer = outer }()
	p.p.Probe(p.keys, n)
	for {
		k := p.p.Next(p.probe, p.bld)
		if k == 0 {
			return nil
		}
		probe, bld := p.probe[:k], p.bld[:k]
		if j.on != nil {
			var err error
			if probe, bld, err = j.on.keep(j.env.Fn, m.Batch.Columns(), j.build.cols, probe, bld); err != nil {
				return err
			}
		}
		if err := visit(probe, bld); err != nil {
			return err
		}
	}
}

// whole handles a morsel at once where a row's fate depends on all of its candidates: outer joins with On, and single.
func (j *join) whole(p *prober, m *flow.Morsel) (*flow.Morsel, error) {
	n := int(m.Batch.NumRows())
	var probe, bld []int32
	seen := make([]bool, n)
	err := j.accepted(p, m, func(a, b []int32) error {
		for i, row := range a {
			if j.node.Kind == plan.Single && seen[row] {
				return errs.New(errs.Data, "run", "a subquery used as a value returned more than one row").
					WithHint("add LIMIT 1 with an ORDER BY, or an aggregate such as max()")
			}
			seen[row] = true
			probe, bld = append(probe, row), append(bld, b[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if j.keepsBuildRows() {
		j.table.Mark(bld)
	}
	for row, s := range seen {
		if !s {
			probe, bld = append(probe, int32(row)), append(bld, -1)
		}
	}
	return morsel(j.sch, m.Seq, j.pairColumns(m.Batch.Columns(), probe, bld, n), len(probe)), nil
}

// membership is semi, anti and mark.
func (j *join) membership(p *prober, m *flow.Morsel) (*flow.Morsel, error) {
	n := int(m.Batch.NumRows())
	found := make([]bool, n)
	if j.on == nil {
		p.p.Exists(p.keys, n, found)
	} else if err := j.accepted(p, m, func(a, _ []int32) error {
		for _, row := range a {
			found[row] = true
		}
		return nil
	}); err != nil {
		return nil, err
	}
	cols := m.Batch.Columns()
	if j.node.Kind == plan.Mark {
		mark, err := j.mark(p, m, found)
		if err != nil {
			return nil, err
		}
		return morsel(j.sch, m.Seq, append(append([]arrow.Array{}, cols...), mark), n), nil
	}
	want := j.node.Kind == plan.Semi
	sel := make([]int32, 0, n)
	for row, f := range found {
		if f == want {
			sel = append(sel, int32(row))
		}
	}
	if len(sel) == n {
		return morsel(j.sch, m.Seq, cols, n), nil
	}
	return morsel(j.sch, m.Seq, kernels.TakeBatch(cols, sel), len(sel)), nil
}

// mark gives IN's answer: true with a match; otherwise NULL when some candidate compares as NULL; otherwise false.
// The candidates of a row are the build rows that pass On and the null-safe keys, which stand for correlation.
func (j *join) mark(p *prober, m *flow.Morsel, found []bool) (arrow.Array, error) {
	n := len(found)
	vals, valid := make([]byte, kernels.BitBytes(n)), kernels.Ones(n)
	for row, f := range found {
		if f {
			kernels.SetBit(vals, row)
			continue
		}
		null, err := j.unknown(p, m, row)
		if err != nil {
			return nil, err
		}
		if null {
			kernels.ClearBit(valid, row)
		}
	}
	return kernels.NewBools(n, vals, valid), nil
}

// unknown reports whether the comparison of a left row with some candidate is NULL: neither a match nor a mismatch.
func (j *join) unknown(p *prober, m *flow.Morsel, row int) (bool, error) {
	leftNull := false
	for k, key := range j.node.Keys {
		leftNull = leftNull || !key.NullSafe && p.keys[k].IsNull(row)
	}
	hasNull := j.table.HasNull() || j.above.null
	if !leftNull && !hasNull || j.build.rows == 0 && !j.above.rows {
		return false, nil
	}
	if j.oneKey() {
		return leftNull || hasNull, nil
	}
	// The general case, rare: look at every build row. A row value compares as NULL with a candidate when no part differs
	// and some part is NULL on either side.
	var cand []int32
	for b := 0; b < j.build.rows; b++ {
		null, differs := false, false
		for k, key := range j.node.Keys {
			l, r := p.keys[k].IsNull(row), j.keys[k].IsNull(b)
			switch {
			case l && r && key.NullSafe:
			case l || r:
				if key.NullSafe {
					differs = true
				}
				null = true
			default:
				t := key.Left.Type()
				differs = differs || types.Compare(types.ValueAt(p.keys[k], row, t), types.ValueAt(j.keys[k], b, t), t) != 0
			}
		}
		if null && !differs {
			cand = append(cand, int32(b))
		}
	}
	if len(cand) == 0 || j.on == nil {
		return len(cand) > 0, nil
	}
	probe := make([]int32, len(cand))
	for i := range probe {
		probe[i] = int32(row)
	}
	kept, _, err := j.on.keep(j.env.Fn, m.Batch.Columns(), j.build.cols, probe, cand)
	return len(kept) > 0, err
}

// unmatched emits the build rows that no pair used, with NULLs on the left.
func (j *join) unmatched() (*flow.Morsel, error) {
	if !j.keepsBuildRows() || j.running.Load() != 0 {
		return nil, nil
	}
	from := j.tail.Load()
	if from >= int64(j.build.rows) {
		return nil, nil
	}
	rows := make([]int32, ChunkRows)
	k, next := j.table.Unmatched(int(from), rows)
	j.tail.Store(int64(next))
	if k == 0 {
		return nil, nil
	}
	left := make([]arrow.Array, 0, j.sch.NumFields())
	for _, c := range j.node.Left.Columns() {
		left = append(left, kernels.Nulls(c.Type.Arrow(), k))
	}
	return morsel(j.sch, rightSeq+from, append(left, kernels.TakeBatch(j.build.cols, rows[:k])...), k), nil
}
