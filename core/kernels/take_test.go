package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// show prints a row as arrow-go sees it: the oracle that knows nothing of our offsets.
func show(a arrow.Array, i int) string {
	if i < 0 || a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return "NULL"
	}
	if m, ok := a.(*array.MonthDayNanoInterval); ok {
		return fmt.Sprint(m.Value(i))
	}
	return a.ValueStr(i)
}

func TestTakeOfEveryType(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range rowkeytest.Types {
		for range 20 {
			n := r.IntN(50) + 1
			col := rowkeytest.Column(r, typ, n)
			idx := make([]int32, r.IntN(100))
			low := r.IntN(2) - 1
			for i := range idx {
				idx[i] = int32(r.IntN(n-low) + low)
			}
			got := Take(col, idx)
			if got.Len() != len(idx) || !arrow.TypeEqual(got.DataType(), typ.Arrow()) {
				t.Fatalf("%s: %d rows of %s, want %d", typ, got.Len(), got.DataType(), len(idx))
			}
			for i, x := range idx {
				if g, w := show(got, i), show(col, int(x)); g != w {
					t.Fatalf("%s: row %d is %s, want %s", typ, i, g, w)
				}
			}
		}
	}
}

func TestConcatOfEveryType(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, typ := range rowkeytest.Types {
		for range 20 {
			var parts []arrow.Array
			var want []string
			for range 1 + r.IntN(4) {
				p := rowkeytest.Column(r, typ, r.IntN(30))
				parts = append(parts, p)
				for i := range p.Len() {
					want = append(want, show(p, i))
				}
			}
			got := Concat(parts)
			if got.Len() != len(want) {
				t.Fatalf("%s: %d rows, want %d", typ, got.Len(), len(want))
			}
			nulls := 0
			for i, w := range want {
				if g := show(got, i); g != w {
					t.Fatalf("%s: row %d is %s, want %s", typ, i, g, w)
				}
				if w == "NULL" {
					nulls++
				}
			}
			if typ.Kind != types.Null && got.NullN() != nulls {
				t.Fatalf("%s: %d NULLs counted, want %d", typ, got.NullN(), nulls)
			}
		}
	}
}

func TestMergePickScatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range rowkeytest.Types {
		n := 40
		which, counts := make([]int32, n), make([]int, 3)
		for i := range which {
			if which[i] = int32(r.IntN(4) - 1); which[i] >= 0 {
				counts[which[i]]++
			}
		}
		var short, full []arrow.Array
		for _, c := range counts {
			short = append(short, rowkeytest.Column(r, typ, c))
			full = append(full, rowkeytest.Column(r, typ, n))
		}
		merged, picked := Merge(typ.Arrow(), short, which), Pick(typ.Arrow(), full, which)
		seen := make([]int, 3)
		for i, k := range which {
			wantMerge, wantPick := "NULL", "NULL"
			if k >= 0 {
				wantMerge, wantPick = show(short[k], seen[k]), show(full[k], i)
				seen[k]++
			}
			if show(merged, i) != wantMerge || show(picked, i) != wantPick {
				t.Fatalf("%s: row %d is %s and %s, want %s and %s", typ, i, show(merged, i), show(picked, i), wantMerge, wantPick)
			}
		}
		at := []int32{5, 1, 3}
		src := rowkeytest.Column(r, typ, 3)
		got := Scatter(src, at, 7)
		for i, want := range []string{"NULL", show(src, 1), "NULL", show(src, 2), "NULL", show(src, 0), "NULL"} {
			if show(got, i) != want {
				t.Fatalf("%s: scattered row %d is %s, want %s", typ, i, show(got, i), want)
			}
		}
	}
}

func TestSelectTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		n := r.IntN(200)
		m := rowkeytest.Column(r, types.Bool, n).(*array.Boolean)
		sel, all := SelectTrue(m)
		if all {
			if sel != nil {
				t.Fatal("all rows, and a list of them")
			}
			sel = Select(nil, Ones(n), n)
		}
		k := 0
		for i := range n {
			if m.IsValid(i) && m.Value(i) {
				if k >= len(sel) || sel[k] != int32(i) {
					t.Fatalf("row %d of %v is missing in %v", i, m, sel)
				}
				k++
			}
		}
		if k != len(sel) {
			t.Fatalf("%v selects too many of %v", sel, m)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range []types.Type{types.Int64, types.String} {
		col := rowkeytest.Column(r, typ, 1<<16)
		idx := make([]int32, 1<<15)
		for i := range idx {
			idx[i] = int32(2*i) + int32(r.IntN(2))
		}
		b.Run(typ.String(), func(b *testing.B) {
			for b.Loop() {
				Take(col, idx)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(idx)), "ns/row")
		})
	}
}
