package riverbed

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/incremental"
)

// borrow takes the rows of a read into a step: as they are where the run borrows, otherwise as a copy if they lie in lent memory.
func (r *runner) borrow(f fed) (arrow.RecordBatch, flow.Lent) {
	b, lent := f.rows.Batch, f.rows.Lent
	if lent == nil || r.borrows {
		return b, lent
	}
	read := r.inputs[f.source].info.Columns
	cols, fields := make([]arrow.Array, len(read)), make([]arrow.Field, len(read))
	for i, at := range read {
		cols[i], fields[i] = kernels.Copy(b.Column(at)), b.Schema().Field(at)
	}
	lent.Release()
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows()), nil
}

// keepLent gives back the lent memory of a step, except what its output lies in.
func keepLent(pushes []incremental.Push, shown arrow.RecordBatch) (kept []flow.Lent) {
	for _, p := range pushes {
		switch {
		case p.Lent == nil:
		case flow.LiesIn(shown, p.Lent):
			kept = append(kept, p.Lent)
		default:
			p.Lent.Release()
		}
	}
	return kept
}

// giveBack is for rows that nobody will step.
func giveBack(rows flow.Rows) {
	if rows.Lent != nil {
		rows.Lent.Release()
	}
}

// releaseLent is for a delta that nobody will read.
func releaseLent(d flow.Delta) {
	for _, l := range d.Lent {
		l.Release()
	}
}
