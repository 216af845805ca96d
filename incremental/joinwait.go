package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
)

// waitingPairs are pairs of the rows of some batches of one port, which are emitted together: a step may have many batches that meet few
// rows each, and what it shows is put together into one batch in the end.
type waitingPairs struct {
	port    int
	batches []*Batch
	rows    []uint32 // the number of the batch and the row there
	slots   []uint32 // of the other side, which does not change while pairs wait
}

// A batch of more rows is not waited with, and no more pairs than so many.
const (
	waitBits = 16
	mostWait = 64 << 10
)

// wait takes pairs of an insert with an insert. in is the same as long as the batch is.
func (j *join) wait(ctx *Ctx, port int, in *Batch, pairs []pair) error {
	w := &j.held
	if w.port != port || len(w.rows)+len(pairs) > mostWait || len(w.batches) == 1<<waitBits {
		if err := j.emitWaiting(ctx); err != nil {
			return err
		}
	}
	w.port = port
	if n := len(w.batches); n == 0 || w.batches[n-1] != in {
		w.batches = append(w.batches, in)
	}
	batch := uint32(len(w.batches)-1) << waitBits
	for _, p := range pairs {
		w.rows, w.slots = append(w.rows, batch|uint32(p.row)), append(w.slots, p.slot)
	}
	return nil
}

// emitWaiting emits the pairs that wait.
func (j *join) emitWaiting(ctx *Ctx) error {
	w := &j.held
	if len(w.rows) == 0 {
		return nil
	}
	ours := j.ofBatches(w)
	theirs := j.side[1-w.port].at(w.slots)
	left := len(j.types[0])
	cols := make([]arrow.Array, left+len(j.types[1]))
	for i := range cols {
		side, at := 0, i
		if i >= left {
			side, at = 1, i-left
		}
		if side == w.port {
			cols[i] = ours(at)
			continue
		}
		var err error
		if cols[i], err = theirs(at); err != nil {
			return err
		}
	}
	n := len(w.rows)
	clear(w.batches)
	w.batches, w.rows, w.slots = w.batches[:0], w.rows[:0], w.slots[:0]
	return ctx.Emit(cols, n, nil)
}

// ofBatches gives the columns of the rows that wait.
func (j *join) ofBatches(w *waitingPairs) func(col int) arrow.Array {
	if len(w.batches) == 1 {
		rows := make([]int32, len(w.rows))
		for i, r := range w.rows {
			rows[i] = int32(r)
		}
		return func(col int) arrow.Array { return takeRows(w.batches[0].Cols[col], rows) }
	}
	return func(col int) arrow.Array {
		chunks := make([]arrow.Array, len(w.batches))
		for i, b := range w.batches {
			chunks[i] = b.Cols[col]
		}
		return kernels.NewChunked(chunks, waitBits).Take(w.rows)
	}
}
