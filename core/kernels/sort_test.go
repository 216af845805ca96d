package kernels

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// The order of rows is that of their encoded keys; equal rows keep their order.
func TestSortIndices(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for round := range 300 {
		n := r.IntN(1500)
		switch {
		case round%100 == 0: // more than is sorted in cache
			n = 2*cachedRows + r.IntN(1000)
		case round%3 > 0:
			n = r.IntN(40)
		}
		var cols []arrow.Array
		var ts []types.Type
		var keys []SortKey
		var rk []rowkey.Key
		for range r.IntN(4) {
			typ := rowkeytest.Types[r.IntN(len(rowkeytest.Types))]
			k := SortKey{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, typ}
			cols, ts, keys = append(cols, rowkeytest.Column(r, typ, n)), append(ts, typ), append(keys, k)
			rk = append(rk, rowkey.Key{Desc: k.Desc, NullsFirst: k.NullsFirst, Exact: k.Exact})
		}
		rows := rowkey.Encode(cols, ts, rk, n)
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(a, b int32) int { return bytes.Compare(rows.Row(int(a)), rows.Row(int(b))) })
		if got := SortIndices(cols, keys, n); !slices.Equal(got, want) {
			t.Fatalf("%v by %v:\ngot  %v\nwant %v", ts, keys, got, want)
		}
	}
}

// Texts that share beginnings of whole words, and end in zeros, in either direction.
func TestSortTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{5, 100, 3000, 70000} {
		for _, desc := range []bool{false, true} {
			texts := make([]string, n)
			for i := range texts {
				texts[i] = strings.Repeat("same", r.IntN(6)) + strings.Repeat("\x00", r.IntN(3)) + strings.Repeat(string(rune('a'+r.IntN(2))), r.IntN(10))
			}
			want := make([]int32, n)
			for i := range want {
				want[i] = int32(i)
			}
			slices.SortStableFunc(want, func(a, b int32) int {
				if desc {
					return strings.Compare(texts[b], texts[a])
				}
				return strings.Compare(texts[a], texts[b])
			})
			values := make([]types.Value, n)
			for i, x := range texts {
				values[i] = x
			}
			col := types.ArrayOf(values, types.String)
			if got := SortIndices([]arrow.Array{col}, []SortKey{{Desc: desc}}, n); !slices.Equal(got, want) {
				t.Fatalf("%d texts, descending %t, are out of order", n, desc)
			}
		}
	}
}

func TestTopNKeepsTheFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 50 {
		ts := []types.Type{types.Int8, types.String}
		keys := []SortKey{{Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0}, {}}
		if r.IntN(3) == 0 {
			slices.Reverse(ts)
		}
		limit := r.IntN(6)
		top := NewTopN(ts, keys, limit)
		var kept, all [][]arrow.Array
		for range 5 {
			cols := []arrow.Array{rowkeytest.Column(r, ts[0], 30), rowkeytest.Column(r, ts[1], 30)}
			all = append(all, cols)
			kept = append(kept, TakeBatch(cols, top.Offer(cols, 30)))
		}
		if got, want := firstRows(kept, keys, limit), firstRows(all, keys, limit); !slices.Equal(got, want) {
			t.Fatalf("limit %d: got %v, want %v", limit, got, want)
		}
	}
}

func firstRows(batches [][]arrow.Array, keys []SortKey, limit int) []string {
	var cols []arrow.Array
	for c := range batches[0] {
		var parts []arrow.Array
		for _, b := range batches {
			parts = append(parts, b[c])
		}
		cols = append(cols, Concat(parts))
	}
	var out []string
	for _, i := range SortIndices(cols, keys, cols[0].Len())[:min(limit, cols[0].Len())] {
		out = append(out, fmt.Sprint(show(cols[0], int(i)), show(cols[1], int(i))))
	}
	return out
}

func BenchmarkSort(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 1_000_000
	ints, floats := make([]int64, n), make([]float64, n)
	for i := range ints {
		ints[i], floats[i] = r.Int64N(1000), r.NormFloat64()
	}
	few, wide := NewFixed(arrow.PrimitiveTypes.Int64, ints, nil), NewFixed(arrow.PrimitiveTypes.Float64, floats, nil)
	text := rowkeytest.Column(r, types.String, n)
	for name, cols := range map[string][]arrow.Array{"double": {wide}, "bigint,double": {few, wide}, "varchar": {text}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				SortIndices(cols, make([]SortKey, len(cols)), n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}

func TestSortWords(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{0, 1, 100, 5000} {
		w := make([]uint64, n)
		for i := range w {
			w[i] = r.Uint64() >> r.IntN(64)
		}
		want := slices.Sorted(slices.Values(w))
		if SortWords(w); !slices.Equal(w, want) {
			t.Fatalf("%d words are out of order", n)
		}
	}
}
