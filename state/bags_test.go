package state

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

var (
	bagDecl = Decl{Name: "bag_rows", Version: 1, Key: RowKey, Values: []string{"k", "t", "d", "f", "s", "weight", "zero"}}
	bagKeys = []types.Type{types.Int64}
	bagRows = []types.Type{types.Int64, types.String, types.Dec(10, 2), types.Float64, types.Int16}
)

// bagModel is rows as text, each with its weight, by key.
type bagModel map[string]int64

type bagTest struct {
	t     *testing.T
	bags  *Bags
	want  bagModel
	hash  func(cols []arrow.Array, n int) []uint64
	r     *rand.Rand
	keys  int64
	apart int64 // between two keys
	odd   bool  // NULLs, wide decimals, odd floats
}

func bagHash(cols []arrow.Array, n int) []uint64 {
	out := make([]uint64, n)
	kernels.HashColumns(cols, n, out)
	return out
}

func newBagTest(t *testing.T, seed uint64, keys int64) *bagTest {
	return &bagTest{t: t, bags: NewBags(bagDecl, bagKeys, bagRows, false, Same(0)), want: bagModel{}, hash: bagHash,
		r: rand.New(rand.NewPCG(seed, 1)), keys: keys, apart: 1}
}

// rows makes n rows.
func (x *bagTest) rows(n int) []arrow.Array {
	mem := memory.DefaultAllocator
	k, t := array.NewInt64Builder(mem), array.NewStringBuilder(mem)
	d, f := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 10, Scale: 2}), array.NewFloat64Builder(mem)
	s := array.NewInt16Builder(mem)
	for range n {
		k.Append((x.r.Int64N(x.keys) - x.keys/2) * x.apart)
		t.Append([]string{"", "a", "bb", strings.Repeat("long ", 10)}[x.r.IntN(4)])
		d.Append(decimal128.FromI64(x.r.Int64N(5) - 2))
		f.Append([]float64{0, 1, -1.5}[x.r.IntN(3)])
		if x.odd && x.r.IntN(4) == 0 {
			s.AppendNull()
		} else {
			s.Append(int16(x.r.IntN(3)) - 1)
		}
	}
	cols := []arrow.Array{k.NewArray(), t.NewArray(), d.NewArray(), f.NewArray(), s.NewArray()}
	if x.odd { // a slice, and values that need another layout
		b := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: 10, Scale: 2})
		g := array.NewFloat64Builder(mem)
		for range n + 3 {
			b.Append(decimal128.New(x.r.Int64N(3)-1, uint64(x.r.IntN(2))))
			g.Append([]float64{math.NaN(), math.Copysign(0, -1), 0, math.Inf(1)}[x.r.IntN(4)])
		}
		cols[2] = array.NewSlice(b.NewArray(), 2, int64(n)+2)
		cols[3] = array.NewSlice(g.NewArray(), 3, int64(n)+3)
	}
	return cols
}

func bagText(cols []arrow.Array, i int) string {
	var out []string
	for _, c := range cols {
		v := c.ValueStr(i)
		if f, ok := c.(*array.Float64); ok && math.Signbit(f.Value(i)) && f.Value(i) == 0 {
			v = "-0"
		}
		if d, ok := c.(*array.Decimal128); ok {
			v = fmt.Sprint(d.Value(i).HighBits(), d.Value(i).LowBits())
		}
		out = append(out, v)
	}
	return strings.Join(out, "|")
}

func (x *bagTest) add(cols []arrow.Array, w []int64) {
	n := cols[0].Len()
	x.bags.Add(x.hash(cols[:1], n), cols[:1], cols, n, w)
	for i := range n {
		by := int64(1)
		if w != nil {
			by = w[i]
		}
		name := bagText(cols, i)
		if x.want[name] += by; x.want[name] == 0 {
			delete(x.want, name)
		}
	}
}

// found are the rows that Find gives for all keys.
func (x *bagTest) found(b *Bags) bagModel {
	keys := array.NewInt64Builder(memory.DefaultAllocator)
	for k := range x.keys + 2 {
		keys.Append((k - x.keys/2 - 1) * x.apart)
	}
	ks := []arrow.Array{keys.NewArray()}
	blocks := make([]uint32, ks[0].Len())
	b.Find(x.hash(ks, len(blocks)), ks, blocks)
	got := bagModel{}
	for i, block := range blocks {
		var at []uint32
		for r := b.Rows(block); r.Next(); {
			at = append(at, r.At)
		}
		if len(at) == 0 {
			continue
		}
		recs := b.Records(at)
		var cols []arrow.Array
		for c := range bagRows {
			cols = append(cols, recs.Column(c))
		}
		for j := range at {
			if k := cols[0].(*array.Int64).Value(j); k != ks[0].(*array.Int64).Value(i) {
				x.t.Fatalf("key %d gave a row of key %d", ks[0].(*array.Int64).Value(i), k)
			}
			if got[bagText(cols, j)] != 0 {
				x.t.Fatalf("the row %s is there twice", bagText(cols, j))
			}
			got[bagText(cols, j)] = recs.Weight(j)
		}
	}
	return got
}

func (x *bagTest) check() {
	x.t.Helper()
	if got := x.found(x.bags); !equalModels(got, x.want) {
		x.t.Fatalf("got %v\nwant %v", got, x.want)
	}
	if x.bags.Len() != len(x.want) {
		x.t.Fatalf("%d rows, want %d", x.bags.Len(), len(x.want))
	}
}

func equalModels(a, b bagModel) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// TestBags compares them with a map under random changes: few keys with many rows, many with few, hashes that collide, texts, NULLs and
// decimals that come late and need another layout.
func TestBags(t *testing.T) {
	for _, keys := range []int64{1, 3, 300} {
		for mode := range 3 {
			bad := mode == 1
			t.Run(fmt.Sprintf("%d keys/%d", keys, mode), func(t *testing.T) {
				x := newBagTest(t, uint64(keys), keys)
				if mode > 0 {
					x.apart = math.MaxInt64 / 1000
				}
				if bad {
					x.hash = func(cols []arrow.Array, n int) []uint64 {
						out := bagHash(cols, n)
						for i := range out {
							out[i] &= 3 << 32
						}
						return out
					}
				}
				var held [][]arrow.Array
				for step := range 120 {
					x.odd = step > 60
					if cols := x.rows(1 + x.r.IntN(40)); x.r.IntN(2) == 0 || len(held) == 0 {
						x.add(cols, nil)
						held = append(held, cols)
					} else {
						i := x.r.IntN(len(held))
						gone := held[i]
						w := make([]int64, gone[0].Len())
						for j := range w {
							w[j] = -1
						}
						x.add(gone, w)
						held = slices.Delete(held, i, i+1)
					}
					if x.bags.EndStep() != 0 {
						t.Fatal("a weight is negative")
					}
					x.check()
				}
				for _, cols := range held {
					w := make([]int64, cols[0].Len())
					for j := range w {
						w[j] = -1
					}
					x.add(cols, w)
				}
				x.check()
				if n := x.bags.row.texts.table.Len(); n != 0 {
					t.Fatalf("%d texts are left of no rows", n)
				}
			})
		}
	}
}

// TestBagsNumbers lets the range of numeric keys wander, jump and spread, and keys go behind it.
func TestBagsNumbers(t *testing.T) {
	x := newBagTest(t, 5, 1)
	mem := memory.DefaultAllocator
	forms := map[bool]int{}
	live := map[int64]bool{}
	step := func(sign int64, ks ...int64) {
		w := make([]int64, len(ks))
		for i, v := range ks {
			w[i] = sign
			if live[v] = true; sign < 0 {
				delete(live, v)
			}
		}
		cols := x.rowsOfKey(ks)
		x.bags.Add(x.hash(cols[:1], len(ks)), cols[:1], cols, len(ks), w)
		forms[x.bags.blocks.dense != nil]++
		all := array.NewInt64Builder(mem)
		for v := range live {
			all.Append(v)
		}
		found := []arrow.Array{all.NewArray()}
		blocks := make([]uint32, len(live))
		x.bags.Find(x.hash(found, len(live)), found, blocks)
		for i, b := range blocks {
			if b == 0 {
				t.Fatalf("key %s is lost", found[0].ValueStr(i))
			}
		}
		if x.bags.blocks.n != len(live) || x.bags.Len() != len(live) {
			t.Fatalf("%d keys of %d", x.bags.blocks.n, len(live))
		}
	}
	span := func(from, n int64) (out []int64) {
		for i := range n {
			out = append(out, from+i)
		}
		return out
	}
	for i := range int64(60) { // wanders up, then down
		step(1, span(i*500, 500)...)
		if i > 2 {
			step(-1, span((i-3)*500, 500)...)
		}
	}
	step(-1, span(57*500, 3*500)...)
	for i := range int64(30) {
		step(1, span(-i*400, 300)...)
	}
	if forms[false] > 0 {
		t.Fatal("keys that lie close are looked up by hash")
	}
	step(1, math.MaxInt64, math.MinInt64, 1<<40)
	if x.bags.blocks.dense != nil {
		t.Fatal("keys that lie apart are looked up by number")
	}
	step(-1, math.MaxInt64, math.MinInt64, 1<<40)
	for i := range int64(5) {
		step(1, span(math.MaxInt64-(i+1)*2000, 1500)...)
	}
}

// What is unusual in the first rows makes another layout before there is an index: it says nothing of how keys are looked up.
func TestBagsNumbersBesideNulls(t *testing.T) {
	x := newBagTest(t, 5, 1000)
	x.odd = true
	for range 3 {
		x.add(x.rows(200), nil)
		if x.bags.row.nulls < 0 || x.bags.blocks.dense == nil {
			t.Fatal("keys that lie close are looked up by hash")
		}
		x.check()
	}
}

// rowsOfKey is one row a key, the same whenever it is asked for.
func (x *bagTest) rowsOfKey(ks []int64) []arrow.Array {
	k := array.NewInt64Builder(memory.DefaultAllocator)
	for _, v := range ks {
		k.Append(v)
	}
	at := make([]int32, len(ks))
	one := newBagTest(x.t, 11, 1).rows(1)
	cols := []arrow.Array{k.NewArray()}
	for c := 1; c < len(one); c++ {
		cols = append(cols, kernels.Take(one[c], at))
	}
	return cols
}

func TestBagsNegative(t *testing.T) {
	x := newBagTest(t, 1, 3)
	cols := x.rows(1)
	x.add(cols, []int64{-2})
	if n := x.bags.EndStep(); n != 1 {
		t.Fatalf("%d rows are negative", n)
	}
	x.check()
	if n := x.bags.EndStep(); n != 0 {
		t.Fatalf("%d rows are negative in a step that changed none", n)
	}
	x.add(cols, []int64{1})
	x.add(cols, []int64{1})
	if n := x.bags.EndStep(); n != 0 || x.bags.Len() != 0 {
		t.Fatalf("%d rows are negative, %d left", n, x.bags.Len())
	}
}

// TestBagsCheckpoint restores from a snapshot and the changes behind it.
func TestBagsCheckpoint(t *testing.T) {
	x := newBagTest(t, 7, 20)
	x.bags.Track()
	x.add(x.rows(300), nil)
	first, err := x.bags.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	x.bags.Forget(x.bags.Cut())
	parts := []Part{first}
	var held [][]arrow.Array
	for step := range 6 {
		x.odd = step > 2
		cols := x.rows(50)
		x.add(cols, nil)
		if held = append(held, cols); step%2 == 1 {
			w := make([]int64, 50)
			for i := range w {
				w[i] = -1
			}
			x.add(held[0], w)
			held = held[1:]
		}
		p, err := x.bags.Dirty(0)
		if err != nil {
			t.Fatal(err)
		}
		x.bags.Forget(x.bags.Cut())
		if parts = append(parts, p); step%2 == 0 && p.Rows.NumRows() > 50 {
			t.Fatalf("a change of 50 rows wrote %d", p.Rows.NumRows())
		}
	}
	back := NewBags(bagDecl, bagKeys, bagRows, false, Same(0))
	for _, p := range parts {
		for half := range 2 {
			if err := back.Restore(p, func(g uint8) bool { return int(g)%2 == half }); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = back.Rearrange(func(cols []arrow.Array, n int) ([]uint64, []arrow.Array, error) {
		return x.hash(cols[:1], n), cols[:1], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := x.found(back); !equalModels(got, x.want) || back.Len() != len(x.want) {
		t.Fatalf("got %v\nwant %v", got, x.want)
	}
	n := x.bags.Len()
	if x.bags.Clear(); x.bags.Len() != 0 || len(x.found(x.bags)) != 0 {
		t.Fatal("rows are left")
	}
	if p, err := x.bags.Dirty(0); err != nil || int(p.Rows.NumRows()) != n {
		t.Fatalf("%d of %d rows are told deleted, %v", p.Rows.NumRows(), n, err)
	}
	again, err := back.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(bagDecl, NewValues(bagRows[0]), NewValues(bagRows[1]), NewValues(bagRows[2]), NewValues(bagRows[3]), NewValues(bagRows[4]), &Int64s{}, Same(0))
	if err := table.Restore(again, func(uint8) bool { return true }); err != nil || table.Len() != len(x.want) {
		t.Fatalf("%d rows as a Table, %v", table.Len(), err)
	}
}

// A big block takes a chunk of addresses and more, and when there are no more it is an error that says so.
func TestArenaAddresses(t *testing.T) {
	var a arena
	one, two, three := a.take(bigClass), a.take(bigClass), a.take(classOf(chunkMask+2))
	if next := a.chunk(1); two-one != 1<<chunkBits || three-two != 1<<chunkBits || next-three != 2<<chunkBits {
		t.Errorf("addresses %x, %x, %x, %x", one, two, three, next)
	}
	for len(a.chunks) < 1<<(32-chunkBits) {
		a.chunk(1)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errs.Is(err, errs.State) || errs.As(err).Hint == "" {
			t.Errorf("without addresses: %v", err)
		}
	}()
	a.take(bigClass)
}

func TestArenaClasses(t *testing.T) {
	for words := 1; words < 1<<20; words += 1 + words/100 {
		c := classOf(words)
		if classWords(c) < words || c > 0 && classWords(c-1) >= words {
			t.Fatalf("%d words are of class %d, which has %d", words, c, classWords(c))
		}
	}
	var a arena
	taken := map[uint32]uint8{}
	for i := range 2000 {
		c := classOf(1 + i*i%70_000)
		at := a.take(c)
		for j, w := 0, a.at(at); j < classWords(c); j += 7 {
			w[j] = uint64(at)
		}
		if taken[at] = c; i%3 == 0 {
			for at, c := range taken {
				a.give(at, c)
				delete(taken, at)
				break
			}
		}
	}
	for at, c := range taken {
		for j, w := 0, a.at(at); j < classWords(c); j += 7 {
			if w[j] != uint64(at) {
				t.Fatalf("a block of class %d was written over", c)
			}
		}
	}
}

// TestNullKeysMeet: a NULL key is one key, whatever the bytes below it are, and no number.
func TestNullKeysMeet(t *testing.T) {
	d := Decl{Name: "bag_rows", Version: 1, Key: RowKey, Values: []string{"v", "weight"}}
	key := func(below int64, valid bool) []arrow.Array {
		a := array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, 1,
			[]*memory.Buffer{memory.NewBufferBytes([]byte{map[bool]byte{true: 1}[valid]}), memory.NewBufferBytes(arrow.Int64Traits.CastToBytes([]int64{below}))}, nil, map[bool]int{false: 1}[valid], 0))
		return []arrow.Array{a}
	}
	value := key(1, true)
	hash := []uint64{7} // of all: the keys decide
	b := NewBags(d, []types.Type{types.Int64}, []types.Type{types.Int64}, true)
	b.Add(hash, key(7, false), value, 1, nil)
	b.Add(hash, key(8, false), value, 1, nil)
	b.Add(hash, key(0, true), value, 1, nil)
	for _, c := range []struct {
		keys []arrow.Array
		want int64
	}{{key(9, false), 2}, {key(0, true), 1}, {key(9, true), 0}} {
		at := make([]uint32, 1)
		b.Find(hash, c.keys, at)
		got := int64(0)
		for r := b.Rows(at[0]); r.Next(); {
			got += b.Weight(r.At)
		}
		if got != c.want {
			t.Errorf("key %v has %d rows, want %d", c.keys[0], got, c.want)
		}
	}
}
