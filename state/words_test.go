package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// TestWordsAreKeys does the same to a table that holds bytes and to one that holds words: slots, fresh rows, snapshots and what is
// dirty are the same, and each restores what the other wrote.
func TestWordsAreKeys(t *testing.T) {
	for _, ts := range [][]types.Type{
		{types.Int64}, {types.Int32, types.Int16}, {types.TsUS, types.Int64}, {types.Int128}, {types.Bool}, {types.Int64, types.Int32, types.Float32},
		{types.String}, {types.Int64, types.String, types.TsUS},
	} {
		for _, bits := range []uint64{^uint64(0), 3, 0} { // of the hash: all collide when none is left
			t.Run(fmt.Sprint(ts, bits&7), func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, bits))
				pack := rowkey.NewPacking(ts, false)
				enc := rowkey.NewEncoder(ts, nil)
				decl := Decl{Name: "test_words", Version: 1, Key: RowKey, Values: []string{"n"}}
				make1 := func(packed bool) (*Table, *Int64s) {
					c := &Int64s{}
					tab := NewTable(decl, c)
					if packed {
						tab.Pack(pack)
					}
					return tab, c
				}
				plain, pn := make1(false)
				packed, wn := make1(true)
				plain.Track()
				packed.Track()
				// A few rows that come again and again; NULLs only from the tenth round on.
				var pool, poolNull []arrow.Array
				for _, typ := range ts {
					c := rowkeytest.Column(r, typ, 40)
					poolNull = append(poolNull, c)
					pool = append(pool, withoutNulls(r, typ))
				}
				var epoch uint64
				for round := range 60 {
					from, n := r.IntN(20), r.IntN(21)
					cols := make([]arrow.Array, len(ts))
					for i := range cols {
						src := pool[i]
						if round >= 10 {
							src = poolNull[i]
						}
						cols[i] = array.NewSlice(src, int64(from), int64(from+n))
					}
					rows := enc.Encode(cols, n)
					byBytes, byWords := Keys{Offsets: []uint32{0}}, Keys{}
					for i := range n {
						byBytes.Data = append(byBytes.Data, rows.Row(i)...)
						byBytes.Offsets = append(byBytes.Offsets, uint32(len(byBytes.Data)))
						h := goodHash(string(rows.Row(i)))
						byBytes.Hash, byBytes.Group = append(byBytes.Hash, h&bits<<32|h&255), append(byBytes.Group, uint8(h))
					}
					byWords.Hash, byWords.Group = byBytes.Hash, byBytes.Group
					if round%5 == 4 {
						byWords.Data, byWords.Offsets = byBytes.Data, byBytes.Offsets // a table of words takes bytes too
					} else {
						pack.Pack(cols, n, &byWords.Words)
					}
					a, b := make([]uint32, n), make([]uint32, n)
					plain.Find(byBytes, a)
					packed.Find(byWords, b)
					if !slices.Equal(a, b) {
						t.Fatalf("round %d: found %v, not %v", round, b, a)
					}
					fa, fb := plain.Upsert(byBytes, a), packed.Upsert(byWords, b)
					if !slices.Equal(a, b) || !slices.Equal(fa, fb) {
						t.Fatalf("round %d: slots %v fresh %v, not %v %v", round, b, fb, a, fa)
					}
					for _, s := range a {
						pn.V[s]++
						wn.V[s]++
						if string(plain.Key(s)) != string(packed.Key(s)) || plain.Hash(s) != packed.Hash(s) || plain.Group(s) != packed.Group(s) {
							t.Fatalf("round %d: slot %d has key %x, not %x", round, s, packed.Key(s), plain.Key(s))
						}
					}
					if back := packed.KeyColumns(b); n > 0 {
						want := rowkey.Decode(ts, nil, n, func(i int) []byte { return plain.Key(a[i]) })
						for c := range back {
							if back[c].String() != want[c].String() {
								t.Fatalf("round %d: columns %v, not %v", round, back[c], want[c])
							}
						}
					}
					plain.Touch(a)
					packed.Touch(b)
					if round%3 == 0 {
						all := plain.All()
						drop := all[:len(all)/3]
						plain.Delete(drop)
						packed.Delete(drop)
					}
					da, _ := plain.Dirty(epoch)
					db, _ := packed.Dirty(epoch)
					sa, _ := plain.Snapshot()
					sb, _ := packed.Snapshot()
					if !array.RecordEqual(da.Rows, db.Rows) || !array.RecordEqual(sa.Rows, sb.Rows) {
						t.Fatalf("round %d: snapshots differ:\n%v\n%v", round, sb.Rows, sa.Rows)
					}
					if round%7 == 0 { // each takes what the other wrote
						plain2, pn2 := make1(false)
						packed2, wn2 := make1(true)
						for _, x := range []struct {
							to *Table
							p  Part
						}{{plain2, sb}, {packed2, sa}} {
							if err := x.to.Restore(x.p, func(uint8) bool { return true }); err != nil {
								t.Fatal(err)
							}
							x.to.Track()
						}
						plain, pn, packed, wn = plain2, pn2, packed2, wn2
					}
					epoch = plain.Cut()
					packed.Cut()
				}
			})
		}
	}
}

// withoutNulls makes forty values.
func withoutNulls(r *rand.Rand, typ types.Type) arrow.Array {
	for {
		c := rowkeytest.Column(r, typ, 400)
		var parts []arrow.Array
		for i := range 400 {
			if c.IsValid(i) && len(parts) < 40 {
				parts = append(parts, array.NewSlice(c, int64(i), int64(i)+1))
			}
		}
		if len(parts) == 40 {
			out, err := array.Concatenate(parts, memory.DefaultAllocator)
			if err == nil {
				return out
			}
		}
	}
}

// BenchmarkUpsertWords looks up keys of a number and a time, in a table that fits in cache and one that does not.
func BenchmarkUpsertWords(b *testing.B) {
	ts := []types.Type{types.Int64, types.TsUS}
	for _, rows := range []int{5_000, 2_000_000} {
		for _, packed := range []bool{false, true} {
			b.Run(fmt.Sprintf("rows=%d/words=%v", rows, packed), func(b *testing.B) {
				tab := NewTable(Decl{Name: "test_words", Version: 1, Key: RowKey, Values: []string{"n"}}, &Int64s{})
				pack, enc := rowkey.NewPacking(ts, false), rowkey.NewEncoder(ts, nil)
				if packed {
					tab.Pack(pack)
				}
				const n = 10_000
				r := rand.New(rand.NewPCG(1, 2))
				slots := make([]uint32, n)
				batch := func(first int) []arrow.Array {
					high, low := make([]uint64, n), make([]uint64, n)
					for i := range high {
						k := first + i
						if first < 0 {
							k = r.IntN(rows)
						}
						high[i], low[i] = uint64(k), uint64(k/100)
					}
					return []arrow.Array{rowkey.FromWords(ts[0], high, nil), rowkey.FromWords(ts[1], low, nil)}
				}
				var k Keys
				upsert := func(cols []arrow.Array) {
					words := cols[0].(*array.Int64).Int64Values()
					k.Hash, k.Group = kernels.Sized(k.Hash, n), kernels.Sized(k.Group, n)
					for i, w := range words {
						k.Hash[i] = uint64(w) * hashMix
						k.Hash[i] ^= k.Hash[i] >> 29
						k.Group[i] = uint8(k.Hash[i])
					}
					if packed {
						pack.Pack(cols, n, &k.Words)
					} else {
						enc := enc.Encode(cols, n)
						k.Data, k.Offsets = enc.Data, kernels.Sized(k.Offsets, n+1)
						for i, o := range enc.Offs {
							k.Offsets[i] = uint32(o)
						}
					}
					tab.Upsert(k, slots)
				}
				for first := 0; first < rows; first += n {
					upsert(batch(first))
				}
				batches := make([][]arrow.Array, 50)
				for i := range batches {
					batches[i] = batch(-1)
				}
				i := 0
				for b.Loop() {
					upsert(batches[i%len(batches)])
					i++
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
			})
		}
	}
}
