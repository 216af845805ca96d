package exec

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// graceJoin is a join whose build side does not fit: both sides are parted by the hash of the keys, and the same join runs
// over each pair of parts, which may part again. A part that is still too large at the last level holds too many rows of
// one key: inner and right joins then take it in blocks and read the other part once for each; the rest fail.
type graceJoin struct {
	env   *Env
	acct  *account
	keys  *expr.Program // of the build side
	build *spread
	probe *spread
	parts *parted
	facts buildFacts
	nulls atomic.Bool
	// over makes the join of one pair of parts. refuses: the join cannot be parted.
	over    func(build, probe *spread, part int) (Operator, error)
	sides   [2]*arrow.Schema // build, probe
	refuses bool
}

// buildFacts is what the parts of a join must know of the whole build side.
type buildFacts struct{ null, rows bool }

// oneKey reports whether IN compares one value and nothing else.
func (j *join) oneKey() bool { return j.on == nil && len(j.node.Keys) == 1 }

func (j *join) grace() *graceJoin {
	g := &graceJoin{env: j.env, acct: j.acct, keys: j.rightKeys, sides: [2]*arrow.Schema{j.right.Schema(), j.left.Schema()}}
	// What IN gives for a row may depend on all build rows when it compares several values.
	g.refuses = len(j.node.Keys) == 0 || j.node.Kind == plan.Mark && !j.oneKey() || j.acct.level >= maxSpillLevel
	g.over = func(build, probe *spread, p int) (Operator, error) {
		b, r := build.parts[p].rows, probe.parts[p].rows
		needsBuild := slices.Contains([]plan.JoinKind{plan.Inner, plan.Semi, plan.Right}, j.node.Kind)
		if b == 0 && needsBuild || r == 0 && !j.keepsBuildRows() {
			return nil, nil
		}
		inBlocks := j.node.Kind == plan.Inner || j.node.Kind == plan.Right
		if j.acct.level+1 >= maxSpillLevel && inBlocks {
			return newBlockJoin(j, build, probe, p), nil
		}
		child, err := newJoinOver(j.node, deeper(j.env), 1, probe.reader(p), build.reader(p), j.acct.level+1)
		if err == nil {
			child.above = buildFacts{null: g.facts.null || j.above.null, rows: true}
		}
		return child, err
	}
	return g
}

func (j *leftBuilt) grace() *graceJoin {
	g := &graceJoin{env: j.env, acct: j.acct, keys: j.leftKeys, sides: [2]*arrow.Schema{j.left.Schema(), j.right.Schema()}}
	g.refuses = len(j.node.Keys) == 0 || j.acct.level >= maxSpillLevel
	g.over = func(build, probe *spread, p int) (Operator, error) {
		if build.parts[p].rows == 0 {
			return nil, nil
		}
		return newLeftBuiltOver(j.node, deeper(j.env), build.reader(p), probe.reader(p), j.acct.level+1)
	}
	return g
}

// overflow takes the build rows that collect has no room for; nil: there is no way but to fail.
func (g *graceJoin) overflow() func(worker int, m *flow.Morsel) error {
	if g.refuses || g.env.Spill == nil {
		return nil
	}
	g.build = newSpread(g.env, g.acct, g.sides[0], g.env.Workers)
	return func(w int, m *flow.Morsel) error {
		cols, n := m.Batch.Columns(), int(m.Batch.NumRows())
		keys, err := g.keys.EvalArrays(g.env.Fn, cols, n)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(keys, func(k arrow.Array) bool { return k.NullN() > 0 }) {
			g.nulls.Store(true)
		}
		return g.build.add(w, cols, keys, n)
	}
}

// run parts the rest of the build side and the probe side.
func (g *graceJoin) run(ctx context.Context, probe Operator, workers int, keys *expr.Program) error {
	if err := g.build.finish(); err != nil {
		return err
	}
	g.facts = buildFacts{null: g.nulls.Load(), rows: true}
	g.probe = newSpread(g.env, g.acct, g.sides[1], workers)
	if err := spreadAll(ctx, probe, workers, keys, g.probe); err != nil {
		return err
	}
	g.parts = newParted(max(workers, g.env.Workers), fan, func(p int) (Operator, error) { return g.over(g.build, g.probe, p) })
	return nil
}

func (g *graceJoin) close() error {
	if g == nil {
		return nil
	}
	err := g.parts.Close()
	for _, s := range []*spread{g.build, g.probe} {
		if e := s.close(); err == nil {
			err = e
		}
	}
	return err
}

// blockJoin joins a part with another in blocks of build rows that fit.
type blockJoin struct {
	of           *join
	build, probe *spread
	part         int
	acct         *account
	chunk        int // the next of the build part
	now          *join
}

func newBlockJoin(of *join, build, probe *spread, part int) *blockJoin {
	return &blockJoin{of: of, build: build, probe: probe, part: part, acct: of.env.Memory.account("join", of.acct.level+1)}
}

func (b *blockJoin) Schema() *arrow.Schema { return b.of.sch }

func (b *blockJoin) Close() error {
	b.acct.close()
	if b.now != nil {
		return b.now.Close()
	}
	return nil
}

func (b *blockJoin) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	for {
		if b.now == nil {
			block, err := b.block()
			if err != nil || block == nil {
				return nil, err
			}
			e := deeper(b.of.env)
			e.Memory = NewBudget(0) // the block is held by the account
			if b.now, err = newJoinOver(b.of.node, e, 1, b.probe.reader(b.part), block, maxSpillLevel); err != nil {
				return nil, err
			}
		}
		m, err := b.now.Next(ctx, worker)
		if m != nil || err != nil {
			return m, err
		}
		if err := b.now.Close(); err != nil {
			return nil, err
		}
		b.now = nil
	}
}

// block reads as many chunks of the build part as fit, at least one.
func (b *blockJoin) block() (Operator, error) {
	out, size := &batches{schema: b.build.schema}, int64(0)
	b.acct.set(0)
	for {
		c, err := b.build.parts[b.part].chunk(b.build.file, b.chunk)
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		size += batchBytes(c) + columnBytes(c, b.of.texts) + rowOverhead*c.NumRows()
		if !b.acct.set(size) && len(out.list) > 0 {
			break
		}
		out.list = append(out.list, c)
		b.chunk++
	}
	if len(out.list) == 0 {
		return nil, nil
	}
	return out, nil
}

// batches hands out batches that are in memory.
type batches struct {
	schema *arrow.Schema
	list   []arrow.RecordBatch
	at     int
}

func (b *batches) Schema() *arrow.Schema { return b.schema }
func (b *batches) Close() error          { return nil }

func (b *batches) Next(context.Context, int) (*flow.Morsel, error) {
	if b.at == len(b.list) {
		return nil, nil
	}
	b.at++
	return &flow.Morsel{Seq: int64(b.at), Batch: b.list[b.at-1]}, nil
}
