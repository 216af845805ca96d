package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

func hashes(cols ...arrow.Array) []uint64 {
	out := make([]uint64, cols[0].Len())
	HashColumns(cols, len(out), out)
	return out
}

// The hash places rows of stored state. When this test fails, the function has changed: it must not.
func TestHashIsFrozen(t *testing.T) {
	if HashVersion != 1 || KeyGroups != 256 {
		t.Fatal("another version or number of key groups needs a migration of stored state")
	}
	total := uint64(0)
	r := rand.New(rand.NewPCG(9, 9))
	for _, typ := range rowkeytest.Types {
		for _, h := range hashes(rowkeytest.Column(r, typ, 64)) {
			total = total*31 + h
		}
	}
	ints := NewFixed(arrow.PrimitiveTypes.Int64, []int64{0, 1, -1, math.MaxInt64}, nil)
	got := append(hashes(ints), total)
	want := []uint64{0xe1848576aa24b332, 0x4fcdfcac8597569d, 0xee367141aa6146d5, 0xd152b41cd5e2407d, 0x8828ab2e0f896add}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("hash %d is %#x, was %#x", i, got[i], want[i])
		}
	}
}

func TestHashFollowsEquality(t *testing.T) {
	negZero := math.Copysign(0, -1)
	f := hashes(NewFixed(arrow.PrimitiveTypes.Float64, []float64{0, negZero, math.NaN(), math.Float64frombits(0xFFF8000000000001)}, nil))
	if f[0] != f[1] || f[2] != f[3] {
		t.Error("-0.0 is not 0.0, or a NaN is not NaN")
	}
	wide, narrow := hashes(NewFixed(arrow.PrimitiveTypes.Int64, []int64{-5}, nil)), hashes(NewFixed(arrow.PrimitiveTypes.Int8, []int8{-5}, nil))
	if wide[0] != narrow[0] {
		t.Error("-5 hashes differently in BIGINT and TINYINT")
	}
	spans := hashes(NewFixed(arrow.FixedWidthTypes.MonthDayNanoInterval, []arrow.MonthDayNanoInterval{{Months: 1}, {Days: 30}, {Days: 29, Nanoseconds: 86400e9}}, nil))
	if spans[0] != spans[1] || spans[1] != spans[2] {
		t.Error("'1 month' is not '30 days'")
	}
	// Rows that rowkey calls equal hash alike, others do not; slices change nothing.
	r := rand.New(rand.NewPCG(1, 1))
	for _, typ := range rowkeytest.Types {
		col := rowkeytest.Column(r, typ, 100)
		h := hashes(col)
		rows := rowkey.Encode([]arrow.Array{col}, []types.Type{typ}, nil, 100)
		byRow := map[string]uint64{}
		byHash := map[uint64]string{}
		for i := range 100 {
			k := string(rows.Row(i))
			if old, ok := byRow[k]; ok && old != h[i] {
				t.Fatalf("%s: equal rows hash differently: %s", typ, show(col, i))
			}
			if old, ok := byHash[h[i]]; ok && old != k {
				t.Fatalf("%s: two values share a hash: %s", typ, show(col, i))
			}
			byRow[k], byHash[h[i]] = h[i], k
		}
	}
}

func TestHashSpreadsKeyGroups(t *testing.T) {
	const n = 1 << 16
	for name, value := range map[string]func(i int) int64{
		"counting": func(i int) int64 { return int64(i) }, "by 256": func(i int) int64 { return int64(i) << 8 },
		"high": func(i int) int64 { return int64(i) << 44 }, "floats": func(i int) int64 { return int64(math.Float64bits(float64(i))) },
	} {
		v := make([]int64, n)
		for i := range v {
			v[i] = value(i)
		}
		counts := make([]int, KeyGroups)
		for _, h := range hashes(NewFixed(arrow.PrimitiveTypes.Int64, v, nil)) {
			counts[KeyGroup(h)]++
		}
		for g, c := range counts {
			if c < n/KeyGroups/2 || c > n/KeyGroups*2 {
				t.Errorf("%s: key group %d has %d of %d rows", name, g, c, n)
			}
		}
	}
}

func TestHashOfNothing(t *testing.T) {
	out := []uint64{1, 2}
	HashColumns(nil, 2, out)
	if out[0] != out[1] {
		t.Error("rows of no columns differ")
	}
	HashColumns([]arrow.Array{array.NewSlice(rowkeytest.Column(rand.New(rand.NewPCG(1, 1)), types.ListOf(types.Int32), 3), 3, 3)}, 0, nil)
	HashColumns([]arrow.Array{array.MakeArrayOfNull(memory.DefaultAllocator, arrow.BinaryTypes.String, 2)}, 2, out)
}

func BenchmarkHash(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range []types.Type{types.Int64, types.Float64, types.String} {
		col := array.NewSlice(rowkeytest.Column(r, typ, 1<<14), 0, 1<<14)
		out := make([]uint64, col.Len())
		b.Run(typ.String(), func(b *testing.B) {
			for b.Loop() {
				HashColumns([]arrow.Array{col}, len(out), out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(out)), "ns/row")
		})
	}
}
