package hashtable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/types"
)

// Texts in large batches are numbered in order of appearance, whether their numbers are remembered or not, and after keys left.
func TestShortTexts(t *testing.T) {
	few := []string{"", "\x00", "\x00\x00", "a", "a\x00", "A", "N", "R", "abcdefg", "abcdefg\x00", "abcdefgh", "abcdefghi", strings.Repeat("x", 40)}
	for _, c := range []struct {
		name    string
		text    func(r *rand.Rand, batch int) string
		useless bool
	}{
		{"few", func(r *rand.Rand, _ int) string { return few[r.IntN(len(few)-2)] }, false},
		{"long ones among them", func(r *rand.Rand, _ int) string { return few[r.IntN(len(few))] }, false},
		{"more in each batch", func(r *rand.Rand, batch int) string { return fmt.Sprint(r.IntN(40 + batch)) }, false},
		{"many", func(r *rand.Rand, _ int) string { return fmt.Sprint(r.IntN(1 << 20)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			g, want := NewGroups([]types.Type{types.String}), map[string]uint32{}
			add := func(batch, rows int) {
				b := array.NewStringBuilder(memory.DefaultAllocator)
				for range rows + 3 {
					b.Append(c.text(r, batch))
				}
				col := array.NewSlice(b.NewArray(), 3, int64(rows+3)).(*array.String)
				ids := make([]uint32, rows)
				g.FindOrAdd([]arrow.Array{col}, rows, ids)
				for i, id := range ids {
					s := col.Value(i)
					if _, ok := want[s]; !ok {
						want[s] = uint32(len(want))
					}
					if id != want[s] {
						t.Fatalf("batch %d: row %d, %q, is number %d, not %d", batch, i, s, id, want[s])
					}
				}
			}
			for batch := range 12 {
				add(batch, shortRows+r.IntN(2000))
				add(batch, 5) // too few rows
			}
			if g.short.useless != c.useless {
				t.Errorf("given up: %t, not %t", g.short.useless, c.useless)
			}
			all := g.Keys(0, g.Len())[0].(*array.String)
			for i := range all.Len() {
				if want[all.Value(i)] != uint32(i) {
					t.Errorf("key %d is %q", i, all.Value(i))
				}
			}
			// A key that left and comes back has a number of its own again, the last one that was freed.
			g.Free([]uint32{0, 1})
			first, second := all.Value(0), all.Value(1)
			want[second], want[first] = 1, 0
			b := array.NewStringBuilder(memory.DefaultAllocator)
			for range shortRows {
				b.Append(second)
				b.Append(first)
			}
			ids := make([]uint32, 2*shortRows)
			g.FindOrAdd([]arrow.Array{b.NewArray()}, len(ids), ids)
			if ids[0] != 1 || ids[1] != 0 || g.Live() != len(want) {
				t.Errorf("after a return: %d, %d; %d keys, not %d", ids[0], ids[1], g.Live(), len(want))
			}
		})
	}
}
