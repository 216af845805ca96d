package kernels

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// packed is random columns in chunks, and how they are ordered.
type packed struct {
	chunks [][]arrow.Array
	ts     []types.Type
	keys   []SortKey
	rows   [][]byte // encoded, of all chunks
}

func randomPacked(r *rand.Rand, sizes []int) packed {
	var p packed
	p.chunks = make([][]arrow.Array, len(sizes))
	var rk []rowkey.Key
	for range 1 + r.IntN(4) {
		typ := rowkeytest.Types[r.IntN(len(rowkeytest.Types))]
		if r.IntN(3) == 0 {
			typ = types.String
		}
		k := SortKey{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, typ}
		p.ts, p.keys = append(p.ts, typ), append(p.keys, k)
		rk = append(rk, rowkey.Key{Desc: k.Desc, NullsFirst: k.NullsFirst, Exact: k.Exact})
		for i, n := range sizes {
			p.chunks[i] = append(p.chunks[i], rowkeytest.Column(r, typ, n))
		}
	}
	for i, n := range sizes {
		rows := rowkey.Encode(p.chunks[i], p.ts, rk, n)
		for row := range n {
			p.rows = append(p.rows, bytes.Clone(rows.Row(row)))
		}
	}
	return p
}

func (p packed) ranges() []KeyRange {
	out := make([]KeyRange, len(p.keys))
	for _, cols := range p.chunks {
		for k, a := range cols {
			var of KeyRange
			of.Add(a, p.keys[k])
			out[k].Merge(&of)
		}
	}
	return out
}

// An entry orders as the keys that it holds whole do, and no two rows are ordered against all of their keys; what is decoded is
// what was there.
func TestKeyPackOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	decoded := 0
	for round := range 2000 {
		sizes := []int{r.IntN(60), r.IntN(60), r.IntN(3)}
		p := randomPacked(r, sizes)
		low := uint(r.IntN(2) * (10 + r.IntN(22)))
		pack := NewKeyPack(p.keys, p.ranges(), low)
		var e []SortEntry
		var s PackScratch
		for i, n := range sizes {
			part := make([]SortEntry, n)
			pack.Fill(p.chunks[i], uint64(len(e)), part, &s)
			e = append(e, part...)
		}
		whole := pack.Whole()
		held := make([][]byte, 0, len(e))
		var rk []rowkey.Key
		for _, k := range p.keys[:whole] {
			rk = append(rk, rowkey.Key{Desc: k.Desc, NullsFirst: k.NullsFirst, Exact: k.Exact})
		}
		for i, n := range sizes {
			rows := rowkey.Encode(p.chunks[i][:whole], p.ts[:whole], rk, n)
			for row := range n {
				held = append(held, bytes.Clone(rows.Row(row)))
			}
		}
		mask := ^uint64(0) << low
		for i := range e {
			for j := range e {
				a, b := SortEntry{e[i].Hi, e[i].Lo & mask}, SortEntry{e[j].Hi, e[j].Lo & mask}
				less := a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo
				if bytes.Compare(held[i], held[j]) < 0 && !less || less && bytes.Compare(p.rows[i], p.rows[j]) >= 0 {
					t.Fatalf("round %d: %v by %v, low %d, %d whole: rows %d and %d: %x %x", round, p.ts, p.keys, low, whole, i, j, a, b)
				}
			}
		}
		for k := range p.keys {
			if !pack.Decodes(k) {
				continue
			}
			decoded++
			got, at := pack.Decode(k, e, &s), 0
			for i, n := range sizes {
				for row := range n {
					if g, w := show(got, at), show(p.chunks[i][k], row); g != w {
						t.Fatalf("%s %v: row %d is %q, want %q", p.ts[k], p.keys[k], at, g, w)
					}
					at++
				}
			}
		}
	}
	if decoded < 50 {
		t.Errorf("only %d columns were decoded", decoded)
	}
}

// Texts with long common beginnings, of one length and of several, with zeros and without anything.
func TestKeyPackTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	texts := map[string]func() string{
		"one length":  func() string { return fmt.Sprintf("id%010d", r.IntN(100000)) },
		"all alike":   func() string { return "same" },
		"empty":       func() string { return "" },
		"zeros":       func() string { return "ab" + strings.Repeat("\x00", r.IntN(4)) },
		"two words":   func() string { return fmt.Sprintf("x%d%s", r.IntN(50), strings.Repeat("y", r.IntN(11))) },
		"long":        func() string { return strings.Repeat("long", 10) + fmt.Sprint(r.IntN(50)) },
		"beyond room": func() string { return fmt.Sprint(r.IntN(50)) + strings.Repeat("z", r.IntN(30)) },
	}
	for name, text := range texts {
		for _, desc := range []bool{false, true} {
			v := make([]string, 300)
			for i := range v {
				v[i] = text()
			}
			a := Slice(textArray(append([]string{"zzzz"}, v...)), 1, len(v)+1)
			keys := []SortKey{{Desc: desc, Type: types.String}}
			ranges := make([]KeyRange, 1)
			ranges[0].Add(a, keys[0])
			pack := NewKeyPack(keys, ranges, 20)
			e, tmp := make([]SortEntry, len(v)), make([]SortEntry, len(v))
			var s PackScratch
			pack.Fill([]arrow.Array{a}, 0, e, &s)
			NewEntrySorter(20).Sort(e, tmp)
			if name == "beyond room" {
				if pack.Whole() != 0 {
					t.Errorf("%s: whole", name)
				}
				continue
			}
			if !pack.Decodes(0) {
				t.Errorf("%s: not decoded", name)
				continue
			}
			slices.Sort(v)
			if desc {
				slices.Reverse(v)
			}
			got := pack.Decode(0, e, &s)
			for i, w := range v {
				if got.ValueStr(i) != w {
					t.Fatalf("%s, descending %v: row %d is %q, want %q", name, desc, i, got.ValueStr(i), w)
				}
			}
		}
	}
}

func textArray(v []string) arrow.Array {
	offs, data := []int32{0}, []byte{}
	for _, s := range v {
		data = append(data, s...)
		offs = append(offs, int32(len(data)))
	}
	return NewBytes(arrow.BinaryTypes.String, offs, data, nil)
}

// Words of floats forget the sign of zero and the kind of a NaN; then nothing is decoded.
func TestKeyRangeLossy(t *testing.T) {
	key := SortKey{Type: types.Float64}
	for _, c := range []struct {
		v    []float64
		want bool
	}{
		{[]float64{0, 1, -1, math.Inf(1), math.Inf(-1)}, false},
		{[]float64{math.Copysign(0, -1)}, true},
		{[]float64{math.Float64frombits(0x7FF8 << 48)}, false},
		{[]float64{math.Float64frombits(0xFFF8 << 48)}, true},
		{[]float64{math.Float64frombits(0x7FF8<<48 | 1)}, true},
	} {
		var r KeyRange
		r.Add(NewFixed(arrow.PrimitiveTypes.Float64, c.v, nil), key)
		if r.Lossy != c.want {
			t.Errorf("%v: lossy is %v", c.v, r.Lossy)
		}
	}
	for _, x := range []float32{float32(math.Copysign(0, -1)), math.Float32frombits(0xFFC << 20)} {
		var r KeyRange
		r.Add(NewFixed(arrow.PrimitiveTypes.Float32, []float32{x}, nil), SortKey{Type: types.Float32})
		if !r.Lossy {
			t.Errorf("%v is not lossy", x)
		}
	}
	var r KeyRange
	r.Add(NewFixed(arrow.PrimitiveTypes.Float32, []float32{math.Float32frombits(0x7FC << 20), 1, float32(math.Inf(-1))}, nil), SortKey{Type: types.Float32})
	if r.Lossy {
		t.Error("the one NaN is lossy")
	}
}

// Whatever bits differ, entries are sorted by them, parted or not.
func TestEntrySorter(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	less := func(low uint) func(a, b SortEntry) int {
		return func(a, b SortEntry) int {
			if a.Hi != b.Hi {
				return cmp.Compare(a.Hi, b.Hi)
			}
			return cmp.Compare(a.Lo>>low, b.Lo>>low)
		}
	}
	for _, n := range []int{0, 1, 5, 30, 300, 3000, 9000, cachedEntries + 500} {
		for round := range 12 {
			low := uint(r.IntN(3) * 16)
			at, width := uint(r.IntN(128)), uint(1+r.IntN(70))
			e := make([]SortEntry, n)
			for i := range e {
				x := r.Uint64() >> (64 - min(width, 64))
				if round%3 == 0 {
					x &= 7 << (width / 2)
				}
				if at >= 64 {
					e[i] = SortEntry{x << (at - 64), 12345}
				} else {
					e[i] = SortEntry{x >> 1 >> (63 - at), x << at}
				}
			}
			want := slices.Clone(e)
			slices.SortStableFunc(want, less(low))
			got := slices.Clone(e)
			NewEntrySorter(low).Sort(got, make([]SortEntry, n))
			for i := range want {
				if less(low)(got[i], want[i]) != 0 {
					t.Fatalf("%d entries, bits from %d, %d wide, low %d: entry %d is %x, want %x", n, at, width, low, i, got[i], want[i])
				}
			}
			together := [...]uint{0, uint(r.IntN(40)), 64}[r.IntN(3)]
			cuts := NewEntryCuts(slices.Clone(e[:n/3]), 1+r.IntN(20), together)
			parts := NewEntryParts(cuts, n, 2)
			parts.Writer(0).Add(e[:n/4])
			parts.Writer(1).Add(e[n/4:])
			got = got[:0]
			for p := range cuts.Parts {
				part := parts.Part(p, make([]SortEntry, parts.Rows(p)))
				if len(part) != parts.Rows(p) {
					t.Fatalf("part %d has %d entries, not %d", p, len(part), parts.Rows(p))
				}
				if len(got) > 0 && len(part) > 0 && (got[len(got)-1].Hi^part[0].Hi)>>(64-together) == 0 {
					t.Fatalf("entries that belong together are parted")
				}
				NewEntrySorter(low).Sort(part, make([]SortEntry, len(part)))
				got = append(got, part...)
			}
			for i := range want {
				if less(low)(got[i], want[i]) != 0 {
					t.Fatalf("%d entries in %d parts: entry %d is %x, want %x", n, cuts.Parts, i, got[i], want[i])
				}
			}
		}
	}
}

func TestChunkedTake(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, typ := range rowkeytest.Types {
		for range 8 {
			chunks := []arrow.Array{rowkeytest.Column(r, typ, 1+r.IntN(60)), rowkeytest.Column(r, typ, 1+r.IntN(60)), rowkeytest.Column(r, typ, 1)}
			c := NewChunked(chunks, 6)
			rows, want := []uint32{}, []string{}
			for range r.IntN(200) {
				k := r.IntN(len(chunks))
				i := r.IntN(chunks[k].Len())
				rows, want = append(rows, uint32(k<<6|i)), append(want, show(chunks[k], i))
			}
			got := c.Take(rows)
			if got.Len() != len(rows) || !arrow.TypeEqual(got.DataType(), typ.Arrow()) {
				t.Fatalf("%s: %d rows of %s, want %d", typ, got.Len(), got.DataType(), len(rows))
			}
			for i, w := range want {
				if g := show(got, i); g != w {
					t.Fatalf("%s: row %d is %s, want %s", typ, i, g, w)
				}
			}
		}
	}
}

// What is written to records is read back, in whatever order; columns that do not fit are refused.
func TestRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	held := map[types.Kind]bool{}
	for _, typ := range rowkeytest.Types {
		for range 10 {
			sizes := []int{1 + r.IntN(40), 1 + r.IntN(40)}
			n := sizes[0] + sizes[1]
			rec := NewRecords()
			cols := make([][]arrow.Array, 2)
			var want [2][]string
			for k, of := range []types.Type{typ, types.String} {
				for _, size := range sizes {
					a := rowkeytest.Column(r, of, size)
					cols[k] = append(cols[k], a)
					for i := range size {
						want[k] = append(want[k], show(a, i))
					}
				}
				if at := rec.AddColumn(cols[k]); at < 0 {
					cols[k] = nil
				} else {
					held[of.Kind] = true
				}
			}
			rec.Make(n)
			places := make([]uint32, n)
			for i, p := range r.Perm(n) {
				places[i] = uint32(p)
			}
			for i, first := range []int{0, sizes[0]} {
				var batch []arrow.Array
				for _, c := range cols {
					if c != nil {
						batch = append(batch, c[i])
					}
				}
				rec.Put(batch, uint32(first), places[first:first+sizes[i]])
			}
			order := r.Perm(n)
			read := make([]uint32, n)
			for i, row := range order {
				read[i] = places[row]
			}
			for i, row := range rec.Rows(read, nil) {
				if row != uint32(order[i]) {
					t.Fatalf("row %d is %d", order[i], row)
				}
			}
			at := 0
			for k, c := range cols {
				if c == nil {
					continue
				}
				got := rec.Take(at, read)
				at++
				for i, row := range order {
					if g := show(got, i); g != want[k][row] {
						t.Fatalf("%s: row %d is %s, want %s", got.DataType(), row, g, want[k][row])
					}
				}
			}
		}
	}
	for _, k := range []types.Kind{types.BigInt, types.Decimal, types.Varchar, types.Interval, types.SmallInt, types.TinyInt, types.Date, types.UUID} {
		if !held[k] {
			t.Errorf("no column of %v was held", k)
		}
	}
	if held[types.List] || held[types.Boolean] {
		t.Error("lists or bits were held")
	}
	if NewRecords().AddColumn([]arrow.Array{textArray([]string{strings.Repeat("x", maxRecordText+1)})}) >= 0 {
		t.Error("a long text was held")
	}
}
