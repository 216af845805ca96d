package hashtable

import (
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
)

// Members tells which rows have a key in a built join, for filters far below it that drop most rows. Where the keys are
// words whose range is not too wide it is a bitmap, which stays in cache where the table does not. One that is large for its
// keys is not made before as many rows were asked about as pay for it; until then the table is asked.
type Members struct {
	j      *Join // nil: the bitmap is there
	loader func() loader
	asked  atomic.Int64 // rows
	once   sync.Once    // builds
	base   uint64
	bits   []uint64 // nil: the table is asked
}

// Members is made when the join is built, and may be shared by goroutines.
func (j *Join) Members() *Members { return &Members{j: j, loader: j.loader} }

// MembersOf tells which rows may have a key in a built join by one of several key columns, given as it was built; nil where that
// would tell too little: it is worth a look only as a bitmap that leaves out many values of the range.
func (j *Join) MembersOf(key int, built arrow.Array) *Members {
	ts := j.groups.types[key : key+1]
	if lay := layoutOf(ts, nil); lay != layWord || j.nullSafe[key] || built.Len() == 0 {
		return nil
	}
	m := &Members{loader: func() loader { return newLoader(ts, nil, layWord) }}
	load := m.loader()
	k := load.load([]arrow.Array{built}, built.Len())
	lo, hi := span(k.words, k.valid, ^uint64(0), 0)
	if lo > hi || hi-lo >= widestSpan(built.Len()) {
		return nil
	}
	if !small(hi-lo, built.Len()) {
		one := NewJoin(ts, nil)
		one.Build([]arrow.Array{built}, built.Len())
		return one.Members()
	}
	m.begin(lo, hi)
	count := 0
	for i, w := range k.words {
		if at := w - lo; bit(k.valid, i) && m.bits[at>>6]>>(at&63)&1 == 0 {
			m.set(w)
			count++
		}
	}
	if uint64(count) > (hi-lo+1)/2 {
		return nil
	}
	return m
}

// widestSpan is the range that a bitmap is worth for this many keys: it takes no more than the slots, or stays in the second
// cache, and a look into it costs a fraction of one into them.
func widestSpan(keys int) uint64 { return uint64(max(8<<20, 256*keys)) }

// small reports whether a bitmap of a range costs no more than the keys have cost already, at a word each nanosecond.
func small(span uint64, keys int) bool { return span>>6 <= uint64(max(1<<10, 32*keys)) }

// askedWords is how many words of a bitmap a row pays for that is looked up in it and not in the table.
const askedWords = 4

func (m *Members) begin(lo, hi uint64) { m.base, m.bits = lo, make([]uint64, (hi-lo)>>6+1) }

func (m *Members) set(key uint64) { m.bits[(key-m.base)>>6] |= 1 << ((key - m.base) & 63) }

// pays reports, before n more rows are asked about, whether it is time for build.
func (m *Members) pays(n int) bool {
	if m.j == nil {
		return true
	}
	rows := m.asked.Add(int64(n))
	t, ok := m.j.groups.index.(*wordTable)
	return !ok || small(t.max-t.min, t.count) || uint64(rows)*askedWords >= (t.max-t.min)>>6
}

// build makes the bitmap if it is worth one at all.
func (m *Members) build() {
	if m.j == nil {
		return
	}
	t, ok := m.j.groups.index.(*wordTable)
	if !ok || m.j.groups.nullID != 0 || t.count == 0 || t.max-t.min >= widestSpan(t.count) {
		return
	}
	m.begin(t.min, t.max)
	for i := range t.slots {
		if t.slots[i].id != 0 {
			m.set(t.slots[i].key)
		}
	}
	for i, id := range t.dense {
		if id != 0 {
			m.set(t.base + uint64(i))
		}
	}
}

// Selector returns a goroutine's test: it writes the rows whose key is a member to rows, which has room for n, and returns
// their number.
func (m *Members) Selector() func(cols []arrow.Array, n int, rows []int32) int {
	var table, test func(cols []arrow.Array, n int, rows []int32) int
	return func(cols []arrow.Array, n int, rows []int32) int {
		if test == nil && m.pays(n) {
			if m.once.Do(m.build); m.bits != nil {
				test = m.inBitmap()
			}
		}
		if test == nil {
			if table == nil {
				table = m.inTable()
			}
			return table(cols, n, rows)
		}
		return test(cols, n, rows)
	}
}

func (m *Members) inTable() func(cols []arrow.Array, n int, rows []int32) int {
	p, found := m.j.Prober(), []bool(nil)
	return func(cols []arrow.Array, n int, rows []int32) int {
		if cap(found) < n {
			found = make([]bool, n)
		}
		p.Exists(cols, n, found[:n])
		k := 0
		for i, f := range found[:n] {
			rows[k] = int32(i)
			if f {
				k++
			}
		}
		return k
	}
}

func (m *Members) inBitmap() func(cols []arrow.Array, n int, rows []int32) int {
	load := m.loader()
	return func(cols []arrow.Array, n int, rows []int32) int {
		k := load.load(cols, n)
		words, base, set := k.words, m.base, m.bits
		mask := k.valid // no member is NULL
		if m.j != nil {
			mask = kernels.AndBits(m.j.mask(cols), mask)
		}
		span := uint64(len(set)) << 6
		rows = rows[:len(words)]
		found := 0
		for i, w := range words {
			rows[found] = int32(i)
			if off := w - base; off < span {
				found += int(set[off>>6] >> (off & 63) & 1)
			}
		}
		if mask == nil {
			return found
		}
		valid := rows[:0]
		for _, r := range rows[:found] {
			if kernels.Bit(mask, int(r)) {
				valid = append(valid, r)
			}
		}
		return len(valid)
	}
}
