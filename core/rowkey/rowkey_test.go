package rowkey_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// compare is the textbook order of two rows of one column, read through arrow-go's own accessors.
func compare(a arrow.Array, t types.Type, i, j int, exact bool) int {
	switch x, y := a.IsNull(i) || t.Kind == types.Null, a.IsNull(j) || t.Kind == types.Null; {
	case x && y:
		return 0
	case x:
		return 1
	case y:
		return -1
	}
	sign := func(less, more bool) int {
		if less {
			return -1
		} else if more {
			return 1
		}
		return 0
	}
	span := func(from, to, from2, to2 int64, child func(p, q int) int) int {
		for k := int64(0); ; k++ {
			switch {
			case from+k == to || from2+k == to2:
				return sign(to-from < to2-from2, to-from > to2-from2)
			}
			if c := child(int(from+k), int(from2+k)); c != 0 {
				return c
			}
		}
	}
	switch v := a.(type) {
	case *array.Boolean:
		return sign(!v.Value(i) && v.Value(j), v.Value(i) && !v.Value(j))
	case *array.Int8:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Int16:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Int32:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Int64:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Uint8:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Uint16:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Uint32:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Uint64:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Float32:
		return compareFloat(float64(v.Value(i)), float64(v.Value(j)), exact)
	case *array.Float64:
		return compareFloat(v.Value(i), v.Value(j), exact)
	case *array.Decimal128:
		x, y := v.Value(i), v.Value(j)
		if t.Kind == types.UHugeInt {
			a, b := uint64(x.HighBits()), uint64(y.HighBits())
			return sign(a < b || a == b && x.LowBits() < y.LowBits(), a > b || a == b && x.LowBits() > y.LowBits())
		}
		return sign(x.Less(y), y.Less(x))
	case *array.String:
		return bytes.Compare([]byte(v.Value(i)), []byte(v.Value(j)))
	case *array.Binary:
		return bytes.Compare(v.Value(i), v.Value(j))
	case *array.Date32:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Time64:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.Timestamp:
		return sign(v.Value(i) < v.Value(j), v.Value(i) > v.Value(j))
	case *array.FixedSizeBinary:
		return bytes.Compare(v.Value(i), v.Value(j))
	case *array.MonthDayNanoInterval:
		x, y := v.Value(i), v.Value(j)
		total := func(v arrow.MonthDayNanoInterval) int64 { // small in these tests
			return (int64(v.Months)*30+int64(v.Days))*86400_000_000 + v.Nanoseconds/1000
		}
		if c := sign(total(x) < total(y), total(x) > total(y)); c != 0 || !exact {
			return c
		}
		if c := sign(x.Months < y.Months, x.Months > y.Months); c != 0 {
			return c
		}
		return sign(x.Days < y.Days, x.Days > y.Days)
	case *array.Map:
		entries := v.ListValues().(*array.Struct)
		f, to := v.ValueOffsets(i)
		f2, to2 := v.ValueOffsets(j)
		return span(f, to, f2, to2, func(p, q int) int {
			if c := compare(entries.Field(0), *t.Key, p, q, exact); c != 0 {
				return c
			}
			return compare(entries.Field(1), *t.Elem, p, q, exact)
		})
	case *array.List:
		f, to := v.ValueOffsets(i)
		f2, to2 := v.ValueOffsets(j)
		return span(f, to, f2, to2, func(p, q int) int { return compare(v.ListValues(), *t.Elem, p, q, exact) })
	case *array.Struct:
		for k, f := range t.Fields {
			if c := compare(v.Field(k), f.Type, i, j, exact); c != 0 {
				return c
			}
		}
		return 0
	}
	panic(fmt.Sprintf("no order of %T", a))
}

func compareFloat(x, y float64, exact bool) int {
	switch {
	case x != x && y != y:
		return 0
	case x != x || x > y:
		return 1
	case y != y || x < y:
		return -1
	case exact && x == 0:
		return bool2int(1/x > 0) - bool2int(1/y > 0)
	}
	return 0
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

func check(t *testing.T, r *rand.Rand, n int) {
	t.Helper()
	var cols []arrow.Array
	var ts []types.Type
	var keys []rowkey.Key
	for range r.IntN(4) {
		typ := rowkeytest.Types[r.IntN(len(rowkeytest.Types))]
		cols, ts = append(cols, rowkeytest.Column(r, typ, n)), append(ts, typ)
		keys = append(keys, rowkey.Key{Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0, Exact: r.IntN(2) == 0})
	}
	rows := rowkey.Encode(cols, ts, keys, n)
	for range 3 * n {
		i, j := r.IntN(n), r.IntN(n)
		want := 0
		for c, col := range cols {
			if want = compare(col, ts[c], i, j, keys[c].Exact); want == 0 {
				continue
			}
			null := col.IsNull(i) || col.IsNull(j)
			if null && keys[c].NullsFirst || !null && keys[c].Desc {
				want = -want
			}
			break
		}
		if got := bytes.Compare(rows.Row(i), rows.Row(j)); got != want {
			t.Fatalf("%v by %+v: rows %d and %d compare as %d, want %d\n%x\n%x\n%v", ts, keys, i, j, got, want, rows.Row(i), rows.Row(j), cols)
		}
	}
	// Decoded rows are equal rows, and alike in exact columns; encoding them again gives the same bytes.
	back := rowkey.Decode(ts, keys, n, rows.Row)
	again := rowkey.Encode(back, ts, keys, n)
	for i := range n {
		if !bytes.Equal(rows.Row(i), again.Row(i)) {
			t.Fatalf("%v by %+v: row %d changed in a round trip\n%v\n%v", ts, keys, i, cols, back)
		}
	}
	for c := range cols {
		for i := range n {
			if keys[c].Exact && cols[c].ValueStr(i) != back[c].ValueStr(i) {
				t.Fatalf("%s: %s came back as %s", ts[c], cols[c].ValueStr(i), back[c].ValueStr(i))
			}
		}
		from := rowkey.DecodeFrom(ts, keys, c, n, rows.Row)
		if len(from) != len(cols)-c || n > 0 && fmt.Sprint(from[0]) != fmt.Sprint(back[c]) {
			t.Fatalf("%v: decoding from column %d gives %v, want %v", ts, c, from, back[c])
		}
	}
}

func TestOrderAndRoundTrip(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		check(t, r, 1+r.IntN(20))
	}
}

func FuzzOrderAndRoundTrip(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		check(t, r, 1+r.IntN(20))
	})
}

func TestWords(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, typ := range rowkeytest.Types {
		col := rowkeytest.Column(r, typ, 50)
		var back arrow.Array
		switch w := rowkey.Width(typ); {
		case w == 0 || typ.Kind == types.Interval:
			continue
		case w <= 8:
			back = rowkey.FromWords(typ, rowkey.Words(col, typ, true, nil), nil)
		default:
			back = rowkey.FromWide(typ, rowkey.Wide(col, typ, nil), nil)
		}
		for i := range 50 {
			if col.IsValid(i) && col.ValueStr(i) != back.ValueStr(i) {
				t.Fatalf("%s: %s came back as %s", typ, col.ValueStr(i), back.ValueStr(i))
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	rows := rowkey.Encode(nil, nil, nil, 3)
	if rows.Len() != 3 || len(rows.Row(2)) != 0 {
		t.Errorf("three rows of no columns are %v", rows)
	}
	for _, typ := range rowkeytest.Types {
		b := rowkeytest.Column(rand.New(rand.NewPCG(1, 1)), typ, 0)
		if rows := rowkey.Encode([]arrow.Array{b}, []types.Type{typ}, nil, 0); rows.Len() != 0 {
			t.Errorf("%s: no rows are %v", typ, rows)
		}
		if back := rowkey.Decode([]types.Type{typ}, nil, 0, nil); back[0].Len() != 0 {
			t.Errorf("%s: no rows decode to %v", typ, back)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 1 << 14
	ts := []types.Type{types.Int64, types.String}
	cols := []arrow.Array{rowkeytest.Column(r, ts[0], n), rowkeytest.Column(r, ts[1], n)}
	enc := rowkey.NewEncoder(ts, nil)
	for b.Loop() {
		enc.Encode(cols, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
}
