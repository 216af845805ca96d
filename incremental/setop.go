package incremental

import (
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// setOp is UNION, INTERSECT and EXCEPT, with or without ALL: how often a row stands in the result is a function of how
// often it stands on either side.
//
//	in:    any weights        out: the change of that number, at the step's end
//	state: setop_rows         row → weight on each side, weight shown
//	time:  the lesser watermark
type setOp struct {
	count  func(l, r int64) int64
	hold   [2]bool // bounded inputs: nothing is shown before their end, where the output must not be taken back
	held   bool
	enc    *keyEncoder
	rows   *state.Table
	types  []types.Type
	weight [2]*state.Int64s
	shown  *state.Int64s

	touched []uint32
	slots   []uint32
}

func newSetOp(n *plan.SetOp, emit plan.EmitPolicy) (Operator, error) {
	ts := columnTypes(n.Cols)
	s := &setOp{enc: newKeyEncoder(ts), types: ts, weight: [2]*state.Int64s{{}, {}}, shown: &state.Int64s{}}
	s.count = func(l, r int64) int64 { return exec.SetOpCount(n.Kind, n.All, max(l, 0), max(r, 0)) }
	if n.Kind == plan.Union { // UNION ALL has no state and is another operator
		s.count = func(l, r int64) int64 { return min(max(l+r, 0), 1) }
	}
	if !plan.Updating(n, emit) {
		s.hold = [2]bool{n.Kind == plan.Intersect && n.All && !plan.Live(n.Left), n.Kind != plan.Union && !plan.Live(n.Right)}
	}
	s.rows = state.NewTable(state.Decl{Name: "setop_rows", Version: 1, Key: state.RowKey, Values: []string{"_left", "_right", "_shown"},
		About: "row → weight on each side, weight shown"}, s.weight[0], s.weight[1], s.shown)
	s.rows.CopyLate()
	s.enc.into(s.rows)
	return s, nil
}

func (s *setOp) Prepare(_ *fn.Env, _ int, d flow.Delta) (Batch, error) {
	b := batchOf(d)
	b.Hash = hashOf(b.Cols, b.N)
	return b, nil
}

func (s *setOp) Process(_ *Ctx, port int, in Batch) error {
	s.slots = kernels.Sized(s.slots, in.N)
	k := s.enc.encode(in.Cols, in.N, in.Hash)
	if err := s.rows.Fetch(k); err != nil {
		return err
	}
	s.rows.Upsert(k, s.slots)
	s.rows.Before(s.slots)
	for i, slot := range s.slots {
		s.weight[port].V[slot] += in.weight(i)
	}
	s.touched = append(s.touched, s.slots...)
	return nil
}

func (s *setOp) Advance(ctx *Ctx, _ flow.Watermark) error {
	var negative int64
	if s.hold[0] && ctx.In[0] != flow.EndWatermark || s.hold[1] && ctx.In[1] != flow.EndWatermark {
		s.held = true
		s.rows.Touch(s.touched)
		s.touched = s.touched[:0]
		return nil
	}
	if s.held {
		s.touched, s.held = s.rows.All(), false
		s.rows.Before(s.touched)
	}
	var changed, gone []uint32
	var by []int64
	for _, slot := range s.touched {
		l, r := s.weight[0].V[slot], s.weight[1].V[slot]
		if l < 0 || r < 0 {
			negative++
		}
		if d := s.count(l, r) - s.shown.V[slot]; d != 0 {
			s.shown.V[slot] += d
			changed, by = append(changed, slot), append(by, d)
		}
	}
	if len(changed) > 0 {
		if err := ctx.Emit(keysOf(s.rows, s.types, changed), len(changed), by); err != nil {
			return err
		}
	}
	s.rows.Touch(s.touched)
	for _, slot := range s.touched {
		if s.rows.Live(slot) && s.weight[0].V[slot] == 0 && s.weight[1].V[slot] == 0 {
			gone = append(gone[:0], slot)
			s.rows.Delete(gone)
		}
	}
	s.touched = s.touched[:0]
	if negative > 0 {
		return ctx.missing("set operation", negative)
	}
	return nil
}

func (s *setOp) Tables() []state.Stored { return []state.Stored{s.rows} }

// evictable: what is held back is judged at once, when all of it has to be in memory.
func (s *setOp) evictable() []evicted {
	if s.hold != [2]bool{} {
		return nil
	}
	return []evicted{s.rows}
}

func (s *setOp) Restored(*fn.Env) error {
	s.held = s.rows.Len() > 0 // rows may have been held back; to judge one again changes nothing
	return nil
}
