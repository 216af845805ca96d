package rowkey_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// TestPackingIsEncode packs rows of random columns, sliced and with NULLs, and asks for the bytes, the words of the bytes and the columns.
func TestPackingIsEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	packs := map[int]int{}
	for range 3000 {
		var ts []types.Type
		for range 1 + r.IntN(5) {
			ts = append(ts, rowkeytest.Types[r.IntN(len(rowkeytest.Types))])
		}
		exact := r.IntN(2) == 0
		p := rowkey.NewPacking(ts, exact)
		if p == nil {
			continue
		}
		packs[len(ts)]++
		keys := make([]rowkey.Key, len(ts))
		for i := range keys {
			keys[i].Exact = exact
		}
		var out rowkey.Packed
		for range 2 { // the second time into the same memory
			n, from := r.IntN(20), r.IntN(5)
			var cols []arrow.Array
			for _, typ := range ts {
				cols = append(cols, array.NewSlice(rowkeytest.Column(r, typ, n+from+2), int64(from), int64(from+n)))
			}
			rows := rowkey.Encode(cols, ts, keys, n)
			p.Pack(cols, n, &out)
			for i := range n {
				var high uint64
				if p.Two() {
					high = out.High[i]
				}
				var nulls uint8
				if out.Nulls != nil {
					nulls = out.Nulls[i]
				}
				var text []byte
				if p.Text() {
					text = out.Text(i)
				}
				if got := p.AppendKey(nil, high, out.Low[i], nulls, text); !bytes.Equal(got, rows.Row(i)) {
					t.Fatalf("%v row %d: bytes %x, not %x", ts, i, got, rows.Row(i))
				}
				if h, l, x, s := p.ParseKey(rows.Row(i)); h != high || l != out.Low[i] || x != nulls || !bytes.Equal(s, text) {
					t.Fatalf("%v row %d: %x %x %x of the bytes, not %x %x %x", ts, i, h, l, x, high, out.Low[i], nulls)
				}
			}
			want := rowkey.Decode(ts, keys, n, rows.Row)
			for c, got := range p.Columns(out, n) {
				if !array.Equal(got, want[c]) && got.String() != want[c].String() { // NaN is not equal to itself
					t.Fatalf("%v: column %d is %v, not %v", ts, c, got, want[c])
				}
			}
		}
	}
	if packs[1] == 0 || packs[2] == 0 || packs[3] == 0 || packs[5] == 0 {
		t.Errorf("columns that were packed: %v", packs)
	}
	for _, ts := range [][]types.Type{nil, {types.String, types.Int8, types.Binary}, {types.ListOf(types.Int8)}, {types.Int64, types.Int64, types.Int8}, {types.Int128, types.Int8}} {
		if rowkey.NewPacking(ts, false) != nil {
			t.Errorf("%v are packed", ts)
		}
	}
}

// TestPackingOfWhatFollows packs the end of windows, which is not held, behind a number and a start.
func TestPackingOfWhatFollows(t *testing.T) {
	ts := []types.Type{types.TsUS, types.Int64, types.TsUS}
	if rowkey.NewPacking(ts, false) != nil {
		t.Fatal("three words are packed")
	}
	p := rowkey.NewPacking(ts, false, rowkey.Follows{Col: 0, From: 2, By: 10})
	r := rand.New(rand.NewPCG(8, 8))
	const n = 50
	start := rowkeytest.Column(r, types.TsUS, n)
	ends := make([]uint64, n)
	var valid []byte
	for i, w := range rowkey.Words(start, types.TsUS, false, nil) {
		if ends[i] = w + 10; start.IsNull(i) {
			ends[i] = 0
		}
	}
	if start.NullN() > 0 {
		valid = start.NullBitmapBytes()
	}
	cols := []arrow.Array{rowkey.FromWords(types.TsUS, ends, valid), rowkeytest.Column(r, types.Int64, n), start}
	rows := rowkey.Encode(cols, ts, nil, n)
	var out rowkey.Packed
	p.Pack(cols, n, &out)
	for i := range n {
		if got := p.AppendKey(nil, out.High[i], out.Low[i], out.Nulls[i], nil); !bytes.Equal(got, rows.Row(i)) {
			t.Fatalf("row %d: bytes %x, not %x", i, got, rows.Row(i))
		}
		if h, l, x, _ := p.ParseKey(rows.Row(i)); h != out.High[i] || l != out.Low[i] || x != out.Nulls[i] {
			t.Fatalf("row %d: other words of the bytes", i)
		}
	}
	for c, got := range p.Columns(out, n) {
		if want := rowkey.Decode(ts, nil, n, rows.Row)[c]; !array.Equal(got, want) {
			t.Fatalf("column %d is %v, not %v", c, got, want)
		}
	}
}
