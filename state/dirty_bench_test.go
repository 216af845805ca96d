package state

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

// BenchmarkDirty is what a barrier does of a table while the steps wait: 100,000 rows here and there among a million are copied.
func BenchmarkDirty(b *testing.B) {
	const rows, dirty = 1_000_000, 100_000
	weight := &Int64s{}
	t := NewTable(Decl{Name: "bench_rows", Version: 1, Key: RowKey, Values: []string{"weight", "a", "b"}}, weight, NewValues(types.Int64), NewValues(types.Int64))
	t.Track()
	for from := 0; from < rows; from += 10_000 {
		k := Keys{Offsets: []uint32{0}}
		for i := range 10_000 {
			k.Data = fmt.Appendf(k.Data, "%08d", from+i)
			k.Offsets = append(k.Offsets, uint32(len(k.Data)))
			h := uint64(from+i) * hashMix
			k.Hash, k.Group = append(k.Hash, h), append(k.Group, uint8(h))
		}
		t.Upsert(k, make([]uint32, 10_000))
	}
	t.Forget(t.Cut())
	slots := make([]uint32, dirty)
	for i, s := range rand.New(rand.NewPCG(1, 1)).Perm(rows)[:dirty] {
		slots[i] = uint32(s)
	}
	for b.Loop() {
		t.Touch(slots)
		p, err := t.Dirty(0)
		if err != nil || p.Rows.NumRows() != dirty {
			b.Fatal(p.Rows, err)
		}
		t.Forget(t.Cut())
	}
}
