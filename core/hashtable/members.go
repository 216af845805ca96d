package hashtable

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
)

// Members tells which rows have a key in a built join, for filters far below it that drop most rows. Where the keys are
// words whose range is not too wide it is a bitmap, which stays in cache where the table does not.
type Members struct {
	j    *Join
	once sync.Once
	base uint64
	bits []uint64 // nil: the table is asked
}

// Members is made when the join is built, and may be shared by goroutines.
func (j *Join) Members() *Members { return &Members{j: j} }

// widestSpan is the range that a bitmap is worth for this many keys: it takes no more than the slots, or stays in the second
// cache, and a look into it costs a fraction of one into them.
func widestSpan(keys int) uint64 { return uint64(max(8<<20, 256*keys)) }

func (m *Members) build() {
	t, ok := m.j.groups.index.(*wordTable)
	if !ok || m.j.groups.nullID != 0 || t.count == 0 || t.max-t.min >= widestSpan(t.count) {
		return
	}
	m.base = t.min
	m.bits = make([]uint64, (t.max-t.min)>>6+1)
	set := func(key uint64) { m.bits[(key-m.base)>>6] |= 1 << ((key - m.base) & 63) }
	for i := range t.slots {
		if t.slots[i].id != 0 {
			set(t.slots[i].key)
		}
	}
	for i, id := range t.dense {
		if id != 0 {
			set(t.base + uint64(i))
		}
	}
}

// Selector returns a goroutine's test: it writes the rows whose key is a member to rows, which has room for n, and returns
// their number.
func (m *Members) Selector() func(cols []arrow.Array, n int, rows []int32) int {
	m.once.Do(m.build)
	if m.bits == nil {
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
	load := newLoader(m.j.groups.types, m.j.groups.lay)
	return func(cols []arrow.Array, n int, rows []int32) int {
		k := load.load(cols, n)
		words, base, set := k.words, m.base, m.bits
		mask := kernels.AndBits(m.j.mask(cols), k.valid) // no member is NULL
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
