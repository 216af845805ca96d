package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/state"
)

// partitions numbers the partitions of a top-N and says when the watermark has settled one. All of it is derived from the rows.
type partitions struct {
	table   *state.Table // key → number
	enc     *keyEncoder
	closing *closing // where a partition column closes; nil: partitions stay
	timers  *timers
	closes  []int64 // by number
	moves   bool    // closing times are the operator's to set, and change

	units *state.Units // nil: rows do not leave memory
	later *state.Due   // the partitions that have left it, where there is a closing
	of    byPartition
}

func newPartitions(by []expr.Expr, c *closing) *partitions {
	p := &partitions{closing: c, timers: newTimers(), table: state.NewTable(state.Decl{Name: "topn_partitions", Version: 1, Key: state.RowKey})}
	p.enc = newKeyEncoder(exprTypes(by)).into(p.table)
	return p
}

// find writes the number of each row's partition, by its columns, and lists the rows that made one.
func (p *partitions) find(cols []arrow.Array, n int, hash []uint64, numbers []uint32) (fresh []int32) {
	fresh = p.table.Upsert(p.enc.encode(cols, n, hash), numbers)
	if p.closing == nil || p.moves || len(fresh) == 0 {
		return fresh
	}
	p.closes = grown(p.closes, p.table.Slots(), never)
	at := closing{0, p.closing.after}.at([]arrow.Array{kernels.Take(cols[p.closing.pos], fresh)})
	for i, r := range fresh {
		p.closes[numbers[r]] = at[i]
		p.timers.add(at[i], numbers[r])
	}
	return fresh
}

// groups are the key groups of rows by the hash of their partitions; valid until the next call.
func (p *partitions) groups(hash []uint64) []uint8 {
	p.enc.grp = groupsOf(hash, p.enc.grp)
	return p.enc.grp
}

// drop forgets partitions; their numbers are given to others.
func (p *partitions) drop(numbers []uint32) {
	if p.closing != nil {
		for _, n := range numbers {
			p.closes[n] = never
		}
	}
	p.units.Forget(numbers)
	p.table.Delete(numbers)
}
