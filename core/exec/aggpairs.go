package exec

import (
	"context"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// A DISTINCT of one argument that fits a word is not looked up row by row: each worker gathers the pairs of group and value in
// parts (hashtable.PairSet), and when all rows have come, the workers share the parts: each pair is added once, to
// accumulators of the worker's own, which are merged. Other DISTINCTs look each row up in a table (firstSeen).

// pairParts are the bits of the parts of a worker's pairs; an aggregate over a part has fewer, of about so many rows.
const (
	pairParts    = 6
	pairPartRows = 16 << 10
)

// pairSource is the pairs of one aggregate that a worker has gathered, and what their groups are called here (nil: the same).
type pairSource struct {
	set  *hashtable.PairSet
	into []uint32
}

// pairedType is the type of aggregate i's argument when its DISTINCT is one of pairs.
func (p *Prepared) pairedType(i int) (t types.Type, ok bool) {
	a := &p.items[i]
	if !a.Distinct || a.Fn.Ordering || a.Fn.KeepNulls || len(p.calls[i].types) != 1 {
		return t, false
	}
	t = p.calls[i].types[0]
	w := rowkey.Width(t)
	return t, w > 0 && w <= 8 && t.Alike()
}

// gather adds rows to the pairs of aggregate i.
func (g *grouper) gather(i int, groups []uint32, args []fn.Arg) {
	g.words = rowkey.Words(args[0].Array, g.prep.calls[i].types[0], true, g.words[:0])
	g.pairs[i][0].set.Add(groups, g.words)
}

// addDistinct adds rows to aggregate i, each value of a group once.
func (g *grouper) addDistinct(i int, groups []uint32, args []fn.Arg) error {
	if len(g.pairs[i]) > 0 {
		g.gather(i, groups, args)
		return nil
	}
	if groups, args = g.firstSeen(i, groups, args); len(groups) == 0 {
		return nil
	}
	return g.accs[i].Add(groups, args, nil)
}

// addPairs adds the distinct pairs of all workers to the accumulators. g has taken the others' groups; booked is what the account
// holds for all of that. Where accumulators of each worker's own have no room one worker does it.
func (a *aggregate) addPairs(ctx context.Context, g *grouper, booked int64) error {
	for i, from := range g.pairs {
		if len(from) == 0 {
			continue
		}
		sets, into := make([]*hashtable.PairSet, len(from)), make([][]uint32, len(from))
		held := 0
		for k, s := range from {
			sets[k], into[k] = s.set, s.into
			for p := range s.set.Parts() {
				held += s.set.Held(p)
			}
		}
		workers := a.env.Workers
		if held < sampleRows {
			workers = 1
		}
		union, own := hashtable.UnionBytes(sets), g.accs[i].Bytes()
		if workers > 1 && !a.acct.set(booked+int64(workers)*union+int64(workers-1)*own) {
			workers = 1
		}
		if workers == 1 {
			if err := a.acct.must(booked + union); err != nil {
				return err
			}
		}
		accs := make([]fn.Accumulator, workers)
		for w := range accs {
			accs[w] = g.accs[i]
			if w > 0 {
				accs[w] = g.prep.fresh(i)
				accs[w].Resize(g.n)
			}
		}
		var next atomic.Int64
		t := g.prep.calls[i].types[0]
		ctx, cancel := context.WithCancel(ctx)
		err := parallel(cancel, workers, func(w int) error {
			var union hashtable.Union
			for {
				p := int(next.Add(1)) - 1
				if err := ctx.Err(); err != nil || p >= sets[0].Parts() {
					return err
				}
				err := union.Part(sets, into, p, func(groups []uint32, words []uint64) error {
					return accs[w].Add(groups, []fn.Arg{{Array: rowkey.FromWords(t, words, nil)}}, nil)
				})
				if err != nil {
					return err
				}
			}
		})
		cancel()
		if err != nil {
			return err
		}
		for _, acc := range accs[1:] {
			if err := g.accs[i].Merge(acc, numbers(0, g.n)); err != nil {
				return err
			}
		}
		g.pairs[i] = nil
		a.acct.force(booked)
	}
	return nil
}

// eachPair hands out the groups and the arguments that the DISTINCT of aggregate i has seen, some of them perhaps more than once.
func (g *grouper) eachPair(i int, emit func(groups []uint32, args []arrow.Array) error) error {
	if len(g.pairs[i]) > 0 {
		t := g.prep.calls[i].types[0]
		return g.pairs[i][0].set.Each(func(groups []uint32, words []uint64) error {
			return emit(groups, []arrow.Array{rowkey.FromWords(t, words, nil)})
		})
	}
	d := g.distinct[i]
	for from := 0; d != nil && from < d.Len(); from += ChunkRows {
		ids := numbers(from, min(from+ChunkRows, d.Len()))
		cols := d.KeysOf(ids)
		groups := make([]uint32, len(ids)) // of the only one
		if g.table != nil {
			groups = kernels.Values[uint32](cols[0])
			cols = cols[1:]
		}
		if err := emit(groups, cols); err != nil {
			return err
		}
	}
	return nil
}
