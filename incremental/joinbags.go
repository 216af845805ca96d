package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// rowBags is the rows of a join input that come and go and of which nothing is asked but their partners: those of one key lie
// together. All of it is in the table.
type rowBags struct {
	rows   *state.Bags
	cols   int // columns of the input; key columns follow in a batch
	blocks []uint32
}

func newRowBags(d state.Decl, keys, rows []types.Type, nullSafe []bool) *rowBags {
	nulls := false
	for _, safe := range nullSafe {
		nulls = nulls || safe
	}
	return &rowBags{rows: state.NewBags(d, keys, rows, nulls, 0, 0), cols: len(rows)}
}

func (s *rowBags) find(k *joinKeys, chunk []pair, use func([]pair) error) error {
	if s.rows.Len() == 0 {
		return nil
	}
	if err := s.rows.Fetch(k.hash, k.cols); err != nil {
		return err
	}
	s.blocks = kernels.Sized(s.blocks, k.n)
	s.rows.Find(k.hash, k.cols, s.blocks)
	out := pairs{chunk[:0], use}
	for i, block := range s.blocks {
		for r := s.rows.Rows(block); r.Next(); {
			if err := out.add(int32(i), r.At); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

func (s *rowBags) at(slots []uint32) func(col int) (arrow.Array, error) {
	var found state.Records
	return func(col int) (arrow.Array, error) {
		if found.None() {
			found = s.rows.Records(slots)
		}
		return found.Column(col), nil
	}
}

func (s *rowBags) weightOf(slot uint32) int64 { return s.rows.Weight(slot) }

func (s *rowBags) add(in *Batch) error {
	if err := s.rows.Fetch(in.Hash, in.Cols[s.cols:]); err != nil {
		return err
	}
	s.rows.Add(in.Hash, in.Cols[s.cols:], in.Cols[:s.cols], in.N, in.W)
	return nil
}

// endStep returns how many rows have a negative weight.
func (s *rowBags) endStep() int64 { return s.rows.EndStep() }

func (s *rowBags) expire(flow.Watermark) error { return nil }

func (s *rowBags) forget() error {
	s.rows.Clear()
	return nil
}

func (s *rowBags) table() state.Stored { return s.rows }

func (s *rowBags) restored(prepare func(cols []arrow.Array, n int) (Batch, error)) error {
	return s.rows.Rearrange(func(cols []arrow.Array, n int) ([]uint64, []arrow.Array, error) {
		in, err := prepare(cols, n)
		if err != nil {
			return nil, nil, err
		}
		return in.Hash, in.Cols[s.cols:], nil
	})
}
