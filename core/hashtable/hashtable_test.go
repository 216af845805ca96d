package hashtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// shapes are key types that reach every layout.
var shapes = func() [][]types.Type {
	out := [][]types.Type{
		{}, {types.Int32, types.Int16}, {types.Bool, types.Date32, types.Uint8}, {types.Int64, types.Int32}, {types.Float64, types.Float32},
		{types.Int32, types.Int64, types.Bool}, {types.Int64, types.Int64}, {types.String, types.Int32}, {types.Int8, types.Int8},
		{types.Int128, types.Bool}, {types.String, types.String, types.ListOf(types.Float64)},
	}
	for _, t := range rowkeytest.Types {
		out = append(out, []types.Type{t})
	}
	return out
}()

func columns(r *rand.Rand, ts []types.Type, n int) []arrow.Array {
	out := make([]arrow.Array, len(ts))
	for i, t := range ts {
		out[i] = rowkeytest.Column(r, t, n)
	}
	return out
}

// TestReset compares a table that is used again with a fresh one: the same numbers and keys, whatever it held before.
func TestReset(t *testing.T) {
	for _, ts := range append(shapes, []types.Type{types.String, types.Int64, types.Int32}, []types.Type{types.String, types.String}) {
		r := rand.New(rand.NewPCG(3, 7))
		used := NewTable(ts)
		for round, room := range []int{0, 0, 10, 5000, 100} {
			used.Reset(room)
			fresh := NewTable(ts)
			for range 3 {
				n := r.IntN(2000 >> round)
				cols := columns(r, ts, n)
				got, want := make([]uint32, n), make([]uint32, n)
				used.FindOrAdd(cols, n, got)
				fresh.FindOrAdd(cols, n, want)
				if !slices.Equal(got, want) {
					t.Fatalf("%v, round %d: numbered %v, want %v", ts, round, got, want)
				}
			}
			if used.Len() != fresh.Len() {
				t.Fatalf("%v, round %d: %d keys, want %d", ts, round, used.Len(), fresh.Len())
			}
			n := used.Len()
			got, want := rowkey.Encode(used.Keys(0, n), ts, nil, n), rowkey.Encode(fresh.Keys(0, n), ts, nil, n)
			if !slices.Equal(got.Data, want.Data) {
				t.Fatalf("%v, round %d: other keys", ts, round)
			}
		}
	}
}

// TestGroups compares with a Go map from encoded rows, with keys added, found, freed and read back.
func TestGroups(t *testing.T) {
	for _, ts := range shapes {
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, 5))
			g := NewGroups(ts)
			model := map[string]uint32{}
			for range 12 {
				n := r.IntN(400)
				cols := columns(r, ts, n)
				rows := rowkey.Encode(cols, ts, nil, n)
				ids := make([]uint32, n)
				if r.IntN(3) == 0 {
					g.Find(cols, n, ids)
					for i, id := range ids {
						want, ok := model[string(rows.Row(i))]
						if !ok {
							want = Absent
						}
						if id != want {
							t.Fatalf("%v: found %d, want %d", ts, int32(id), int32(want))
						}
					}
					continue
				}
				next, noFree := uint32(g.Len()), len(g.free) == 0
				g.FindOrAdd(cols, n, ids)
				used := map[uint32]bool{}
				for _, id := range model {
					used[id] = true
				}
				for i, id := range ids {
					key := string(rows.Row(i))
					if want, ok := model[key]; ok {
						if id != want {
							t.Fatalf("%v: row %d got %d, want %d", ts, i, id, want)
						}
						continue
					}
					if used[id] || noFree && id != next {
						t.Fatalf("%v: a new key got %d, next is %d", ts, id, next)
					}
					next++
					model[key], used[id] = id, true
				}
				if g.Live() != len(model) {
					t.Fatalf("%v: %d keys, want %d", ts, g.Live(), len(model))
				}
				if r.IntN(2) == 0 {
					var gone []uint32
					for key, id := range model {
						if r.IntN(3) == 0 {
							gone = append(gone, id)
							delete(model, key)
						}
					}
					g.Free(gone)
				}
				live := make([]uint32, 0, len(model))
				want := make([]string, 0, len(model))
				for key, id := range model {
					live, want = append(live, id), append(want, key)
				}
				back := rowkey.Encode(g.KeysOf(live), ts, nil, len(live))
				for i, key := range want {
					if string(back.Row(i)) != key {
						t.Fatalf("%v: number %d gives key %x, want %x", ts, live[i], back.Row(i), key)
					}
				}
			}
		}
	}
}

// Integers go from the array to hashing and back as their range and number change.
func TestGroupsOfIntegerRanges(t *testing.T) {
	for _, keys := range [][]int64{
		series(0, 1, 300_000), series(0, -1, 300_000), series(0, 1000, 100_000), append(series(0, 1000, 100_000), series(0, 1, 2_000_000)...),
		append(series(5, 1, 100), 1<<62, -1<<62, 1<<63-1, -1<<63),
	} {
		g := NewGroups([]types.Type{types.Int64})
		model := map[int64]uint32{}
		for from := 0; from < len(keys); from += 5000 {
			part := keys[from:min(from+5000, len(keys))]
			col := []arrow.Array{kernels.NewFixed(arrow.PrimitiveTypes.Int64, part, nil)}
			ids := make([]uint32, len(part))
			g.FindOrAdd(col, len(part), ids)
			for i, k := range part {
				want, ok := model[k]
				if !ok {
					want = uint32(len(model))
					model[k] = want
				}
				if ids[i] != want {
					t.Fatalf("key %d got %d, want %d", k, ids[i], want)
				}
			}
		}
	}
}

func series(from, step int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = from + int64(i)*step
	}
	return out
}

// TestJoin compares with the nested loop.
func TestJoin(t *testing.T) {
	for _, ts := range shapes {
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, 9))
			nullSafe := make([]bool, len(ts))
			for i := range nullSafe {
				nullSafe[i] = r.IntN(2) == 0
			}
			nb, np := r.IntN(60), r.IntN(60)
			if seed == 0 {
				nb = 1
			}
			build, probe := columns(r, ts, nb), columns(r, ts, np)
			j := NewJoin(ts, nullSafe)
			j.Build(build, nb)
			j.TrackMatches()
			null := func(cols []arrow.Array, i int) bool {
				for c, col := range cols {
					if !nullSafe[c] && (col.IsNull(i) || col.DataType().ID() == arrow.NULL) {
						return true
					}
				}
				return false
			}
			bk, pk := rowkey.Encode(build, ts, nil, nb), rowkey.Encode(probe, ts, nil, np)
			for _, outer := range []bool{false, true} {
				var want, got []string
				matched := map[int32]bool{}
				exists := make([]bool, np)
				for i := range np {
					for k := range nb {
						if !null(probe, i) && !null(build, k) && string(pk.Row(i)) == string(bk.Row(k)) {
							want = append(want, fmt.Sprint(i, k))
							matched[int32(k)], exists[i] = true, true
						}
					}
					if outer && !exists[i] {
						want = append(want, fmt.Sprint(i, -1))
					}
				}
				p := j.Prober()
				p.Outer = outer
				p.Probe(probe, np)
				left, right := make([]int32, 1+r.IntN(9)), make([]int32, 10)
				right = right[:len(left)]
				for n := p.Next(left, right); n > 0; n = p.Next(left, right) {
					for i := range n {
						got = append(got, fmt.Sprint(left[i], right[i]))
					}
					j.Mark(right[:n])
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%v null-safe %v outer %v: got %v, want %v", ts, nullSafe, outer, got, want)
				}
				out := make([]bool, np)
				p.Exists(probe, np, out)
				if !slices.Equal(out, exists) {
					t.Fatalf("%v: exists %v, want %v", ts, out, exists)
				}
				rows, members := make([]int32, np), []int32{}
				for i, e := range exists {
					if e {
						members = append(members, int32(i))
					}
				}
				if k := j.Members().Selector()(probe, np, rows); !slices.Equal(rows[:k], members) {
					t.Fatalf("%v: members %v, want %v", ts, rows[:k], members)
				}
				for c := range ts {
					m := j.MembersOf(c, build[c])
					if m == nil {
						continue
					}
					one, value := ts[c:c+1], map[string]bool{}
					for k, keys := 0, rowkey.Encode(build[c:c+1], one, nil, nb); k < nb; k++ {
						value[string(keys.Row(k))] = !build[c].IsNull(k)
					}
					var want []int32
					for i, keys := 0, rowkey.Encode(probe[c:c+1], one, nil, np); i < np; i++ {
						if value[string(keys.Row(i))] {
							want = append(want, int32(i))
						}
					}
					if k := m.Selector()(probe[c:c+1], np, rows); !slices.Equal(rows[:k], want) {
						t.Fatalf("%v: members of key %d %v, want %v", ts, c, rows[:k], want)
					}
				}
				var missed []int32
				buf := make([]int32, 3)
				for from := 0; from < nb; {
					var n int
					n, from = j.Unmatched(from, buf)
					missed = append(missed, buf[:n]...)
				}
				for k := range int32(nb) {
					if slices.Contains(missed, k) == matched[k] {
						t.Fatalf("%v: build row %d is matched: %v, unmatched list %v", ts, k, matched[k], missed)
					}
				}
			}
		}
	}
}

func TestJoinFacts(t *testing.T) {
	ints := func(valid []byte, v ...int64) []arrow.Array {
		return []arrow.Array{kernels.NewFixed(arrow.PrimitiveTypes.Int64, v, valid)}
	}
	for _, c := range []struct {
		cols            []arrow.Array
		n               int
		unique, hasNull bool
	}{
		{ints(nil, 1, 2, 3), 3, true, false}, {ints(nil, 1, 2, 1), 3, false, false},
		{ints([]byte{0b101}, 1, 2, 3), 3, true, true}, {ints(nil), 0, true, false},
	} {
		j := NewJoin([]types.Type{types.Int64}, nil)
		j.Build(c.cols, c.n)
		if j.Unique() != c.unique || j.HasNull() != c.hasNull {
			t.Errorf("%v: unique %v, has NULL %v", c.cols, j.Unique(), j.HasNull())
		}
	}
}

// The build side is taken in chunks of 65,536 rows, each with its part of the mask of NULLs. Rows far apart find the same key.
func TestJoinOfManyRowsWithNulls(t *testing.T) {
	const n = 70_001
	for _, ts := range shapes {
		if len(ts) == 0 {
			continue
		}
		r := rand.New(rand.NewPCG(3, uint64(len(ts))))
		few := columns(r, ts, 50)
		idx := make([]int32, n)
		for i := range idx {
			idx[i] = int32(i % 50)
		}
		j := NewJoin(ts, nil)
		j.Build(kernels.TakeBatch(few, idx), n)
		want := 0
		for row := range 50 {
			if !slices.ContainsFunc(few, func(c arrow.Array) bool { return c.IsNull(row) || c.DataType().ID() == arrow.NULL }) {
				want += (n - row + 49) / 50
			}
		}
		if got := len(j.rowOf); got != want {
			t.Errorf("%v: %d rows have a partner, want %d", ts, got, want)
		}
		if j.HasNull() != (want < n) {
			t.Errorf("%v: has NULL %v", ts, j.HasNull())
		}
	}
}

// Single keys of a join are told by themselves only as a bitmap that leaves out much.
func TestMembersOf(t *testing.T) {
	ts := []types.Type{types.Int64, types.Int64}
	longs := func(n int, of func(i int) int64) arrow.Array {
		v := make([]int64, n)
		for i := range v {
			v[i] = of(i)
		}
		return kernels.NewFixed(arrow.PrimitiveTypes.Int64, v, nil)
	}
	j := NewJoin(ts, []bool{false, true})
	for _, c := range []struct {
		name  string
		key   int
		built arrow.Array
		want  bool
	}{
		{"every third", 0, longs(1000, func(i int) int64 { return int64(3*i - 500) }), true},
		{"every second but one", 0, longs(1000, func(i int) int64 { return int64(i - i%4) }), true},
		{"all", 0, longs(1000, func(i int) int64 { return int64(i % 10) }), false},
		{"too wide", 0, longs(1000, func(i int) int64 { return int64(i) << 40 }), false},
		{"the ends of the range", 0, longs(2, func(i int) int64 { return -1<<63 + int64(i)*(1<<63-1)*2 }), false},
		{"NULL matches NULL", 1, longs(1000, func(i int) int64 { return int64(3 * i) }), false},
		{"no row", 0, longs(0, nil), false},
		{"all NULL", 0, kernels.Nulls(arrow.PrimitiveTypes.Int64, 10), false},
		{"a slice", 0, array.NewSlice(longs(1000, func(i int) int64 { return int64(5 * i) }), 10, 900), true},
	} {
		if m := j.MembersOf(c.key, c.built); (m != nil) != c.want {
			t.Errorf("%s: told %v", c.name, m != nil)
		} else if m != nil {
			rows := make([]int32, c.built.Len())
			if k := m.Selector()([]arrow.Array{c.built}, c.built.Len(), rows); k != len(rows) {
				t.Errorf("%s: %d of %d", c.name, k, len(rows))
			}
		}
	}
	if NewJoin([]types.Type{types.String}, nil).MembersOf(0, kernels.Nulls(arrow.BinaryTypes.String, 3)) != nil {
		t.Error("texts are told")
	}
}

// A bitmap that is large for its keys waits for the rows that pay for it; what is told is the same before and after.
func TestMembersOfFewKeys(t *testing.T) {
	ts := []types.Type{types.Int64}
	longs := func(n int, step int64) arrow.Array {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(i) * step
		}
		return kernels.NewFixed(arrow.PrimitiveTypes.Int64, v, nil)
	}
	for _, c := range []struct {
		name       string
		keys       int
		step       int64
		now, later bool
	}{
		{"few in a wide range", 5, 1 << 20, false, true},
		{"few in a small range", 5, 1000, true, true},
		{"many in a wide range", 20000, 300, true, true},
		{"few in a range that is too wide", 5, 1 << 40, false, false},
	} {
		built := longs(c.keys, c.step)
		j, two := NewJoin(ts, nil), NewJoin([]types.Type{types.Int64, types.Int64}, nil)
		j.Build([]arrow.Array{built}, c.keys)
		two.Build([]arrow.Array{built, built}, c.keys)
		for _, m := range []*Members{j.Members(), two.MembersOf(1, built)} {
			if m == nil {
				if c.later {
					t.Errorf("%s: no members", c.name)
				}
				continue
			}
			find, probe := m.Selector(), longs(64, c.step/2)
			for i := range 1000 {
				rows := make([]int32, probe.Len())
				k := find([]arrow.Array{probe}, len(rows), rows)
				if k != min(c.keys, 32) || rows[k-1] != int32(2*k-2) {
					t.Fatalf("%s: after %d batches %v", c.name, i, rows[:k])
				}
				if i == 0 && (m.bits != nil) != c.now {
					t.Errorf("%s: a bitmap at once: %v", c.name, m.bits != nil)
				}
			}
			if (m.bits != nil) != c.later {
				t.Errorf("%s: a bitmap in the end: %v", c.name, m.bits != nil)
			}
		}
	}
}
