package exec

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// buildRecords holds columns of a large build side as records: a pair then brings in a line or two of the cache for its build
// row, where the columns would take a line or more each.
type buildRecords struct {
	records *kernels.Records
	at      []int // by column: which of the records it is, or -1
}

// recordPairs is how many pairs are formed at a time: their records stay in cache while column after column is taken.
const recordPairs = 8 << 10

// recordBuild writes the build rows of an inner join to records, when they are worth it.
func (j *join) recordBuild(ctx context.Context, g *gathered) (*buildRecords, error) {
	if j.node.Kind != plan.Inner || j.on != nil || g.rows < int64(recordRows) {
		return nil, nil
	}
	sortBySeq(g.all)
	s := j.right.Schema()
	b := &buildRecords{records: kernels.NewRecords(), at: make([]int, s.NumFields())}
	batches := make([][]arrow.Array, len(g.all))
	starts := make([]uint32, len(g.all))
	at := uint32(0)
	for i, m := range g.all {
		batches[i], starts[i] = m.Batch.Columns(), at
		at += uint32(m.Batch.NumRows())
	}
	lines := 0
	var held []int
	for c := range b.at {
		if b.at[c] = b.records.AddColumn(columnOf(c, batches)); b.at[c] >= 0 {
			held = append(held, c)
			lines++
			if _, fixed := s.Field(c).Type.(arrow.FixedWidthDataType); !fixed {
				lines++
			}
		}
	}
	if lines < recordLines {
		return nil, nil
	}
	b.records.Make(int(g.rows))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	return b, parallel(cancel, j.env.Workers, func(int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(batches) {
				return nil
			}
			if ctx.Err() != nil {
				return errs.New(errs.Cancelled, "run", "the query was cancelled")
			}
			cols := make([]arrow.Array, len(held))
			for k, c := range held {
				cols[k] = batches[i][c]
			}
			b.put(cols, starts[i], int(g.all[i].Batch.NumRows()))
		}
	})
}

// put writes a morsel a few rows at a time: their records stay in cache while column after column is put.
func (b *buildRecords) put(cols []arrow.Array, first uint32, n int) {
	places := make([]uint32, 0, fillRows)
	for from := 0; from < n; from += fillRows {
		to := min(from+fillRows, n)
		places = places[:0]
		for row := from; row < to; row++ {
			places = append(places, first+uint32(row))
		}
		b.records.Put(slice(cols, from, to), first+uint32(from), places)
	}
}

// joined is the columns that are not in records, or that keys are made of, as one batch; the others are nil.
func (b *buildRecords) joined(g *gathered, n *plan.Join) collected {
	keys := plan.ColSet{}
	for _, k := range n.Keys {
		maps.Copy(keys, plan.ExprColumns(k.Right))
	}
	cols := n.Right.Columns()
	d := collected{cols: make([]arrow.Array, len(cols)), rows: int(g.rows)}
	for c := range d.cols {
		if b.at[c] >= 0 && !keys[cols[c].ID] {
			continue
		}
		parts := make([]arrow.Array, len(g.all))
		for i, m := range g.all {
			parts[i] = m.Batch.Column(c)
		}
		d.cols[c] = kernels.Concat(parts)
	}
	g.all = nil
	return d
}

// take gathers the build columns of pairs.
func (b *buildRecords) take(build []arrow.Array, rows []int32) []arrow.Array {
	places := kernels.Unsigned(rows)
	out := make([]arrow.Array, len(b.at))
	for c, at := range b.at {
		if at >= 0 {
			out[c] = b.records.Take(at, places)
		} else {
			out[c] = kernels.Take(build[c], rows)
		}
	}
	return out
}
