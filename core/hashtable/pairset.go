package hashtable

import (
	"math/bits"
)

// Pair is a word of a group.
type Pair struct {
	Word  uint64
	Group uint32
}

// PairSet gathers pairs, parted by the hash of their words, of which each is wanted once in the end: that is asked part by part
// (Distinct), over the sets of several goroutines together. Until then it looks for repetitions only where that pays: among the
// last pairs, and in a part of which too many rows have come, as long as it finds them.
type PairSet struct {
	parts  []pairPart
	bits   uint
	recent []Pair // by hash, the group plus one; nil: not worth it
	asked  int    // rows since recent was judged
	missed int
}

type pairPart struct {
	rows  []Pair // the block that is being filled
	full  [][]Pair
	spare [][]Pair // empty blocks
	known pairSlots
	limit int // of rows, before repetitions are taken out
}

const (
	pairBlock   = 1 << 10 // rows
	leastBlock  = 1 << 5
	pairLimit   = 4 << 10 // rows of a part before repetitions are taken out
	moreLimit   = 32      // how many times more when that does not pay
	recentBits  = 10
	judgeRecent = 32 << 10
)

// NewPairSet makes an empty set of 1 << bits parts.
func NewPairSet(bits uint) *PairSet {
	s := &PairSet{parts: make([]pairPart, 1<<bits), bits: bits, recent: make([]Pair, 1<<recentBits)}
	for p := range s.parts {
		s.parts[p].limit = pairLimit
	}
	return s
}

// Parts is their number.
func (s *PairSet) Parts() int { return len(s.parts) }

// Held is the number of pairs of a part, repetitions among them.
func (s *PairSet) Held(part int) int {
	t := &s.parts[part]
	return len(t.rows) + pairBlock*len(t.full) + t.known.count
}

// Bytes is the memory held.
func (s *PairSet) Bytes() int64 {
	n := cap(s.recent)
	for p := range s.parts {
		t := &s.parts[p]
		n += cap(t.rows) + pairBlock*(len(t.full)+len(t.spare)) + len(t.known.slots)
	}
	return int64(16 * n)
}

// Add takes rows: words of groups.
func (s *PairSet) Add(groups []uint32, words []uint64) {
	if s.recent != nil {
		s.addSome(groups, words)
		return
	}
	parts, shift := s.parts, 64-s.bits
	groups = groups[:len(words)]
	for i, w := range words {
		parts[hashWord(w)>>shift].add(Pair{w, groups[i]})
	}
}

// addSome leaves out what was among the last.
func (s *PairSet) addSome(groups []uint32, words []uint64) {
	shift, recent := 64-s.bits, s.recent
	groups = groups[:len(words)]
	for i, w := range words {
		h := hashWord(w)
		g := groups[i]
		r := &recent[(h^uint64(g)*tableMul>>32)&(1<<recentBits-1)]
		if r.Word == w && r.Group == g+1 {
			continue
		}
		*r = Pair{w, g + 1}
		s.missed++
		s.parts[h>>shift].add(Pair{w, g})
	}
	if s.asked += len(words); s.asked >= judgeRecent {
		if 8*s.missed > 7*s.asked {
			s.recent = nil
		}
		s.asked, s.missed = 0, 0
	}
}

func (t *pairPart) add(p Pair) {
	if len(t.rows) == cap(t.rows) {
		t.grow()
	}
	t.rows = append(t.rows, p)
}

// grow makes room for a row: first in a block that grows, then in one block after the other.
func (t *pairPart) grow() {
	if n := len(t.rows); n < pairBlock {
		t.rows = append(make([]Pair, 0, max(leastBlock, 2*n)), t.rows...)
		return
	}
	t.full = append(t.full, t.rows)
	if rows := pairBlock * len(t.full); rows >= t.limit {
		if t.known.slots == nil {
			t.known.reset(rows)
		}
		before := t.known.count
		for _, b := range t.full {
			t.known.addAll(b)
		}
		t.full, t.spare = t.full[:0], append(t.spare, t.full...)
		if 2*(t.known.count-before) > rows {
			t.limit *= moreLimit
		}
	}
	if n := len(t.spare); n > 0 {
		t.rows, t.spare = t.spare[n-1][:0], t.spare[:n-1]
		return
	}
	t.rows = make([]Pair, 0, pairBlock)
}

// Each hands out all pairs of all parts, some of them perhaps more than once, some at a time.
func (s *PairSet) Each(emit func(groups []uint32, words []uint64) error) error {
	out := pairBatch{emit: emit}
	for i := range s.parts {
		t := &s.parts[i]
		for _, p := range t.known.slots {
			if p.Group != 0 {
				if err := out.add(Pair{p.Word, p.Group - 1}); err != nil {
					return err
				}
			}
		}
		for _, b := range append(t.full[:len(t.full):len(t.full)], t.rows) {
			for _, p := range b {
				if err := out.add(p); err != nil {
					return err
				}
			}
		}
	}
	return out.flush()
}

// Union hands out the pairs of one part of several sets, each once. It keeps its memory from call to call.
type Union struct {
	seen pairSlots
	out  pairBatch
}

// UnionBytes is the memory that a Union of these sets takes: of their largest part.
func UnionBytes(sets []*PairSet) int64 {
	most := 0
	for p := range sets[0].parts {
		rows := 0
		for _, s := range sets {
			rows += s.Held(p)
		}
		most = max(most, rows)
	}
	if most == 0 {
		return 0
	}
	return int64(16 * slotsFor(most))
}

// Part goes through a part. into says what the groups of a set are called in all (nil: the same).
func (u *Union) Part(sets []*PairSet, into [][]uint32, part int, emit func(groups []uint32, words []uint64) error) error {
	rows := 0
	for _, s := range sets {
		rows += s.Held(part)
	}
	if rows == 0 {
		return nil
	}
	u.seen.reset(rows)
	u.out.emit = emit
	for k, s := range sets {
		t, names := &s.parts[part], into[k]
		for _, p := range t.known.slots {
			if p.Group != 0 {
				p.Group--
				if err := u.take([]Pair{p}, names); err != nil {
					return err
				}
			}
		}
		for _, b := range t.full {
			if err := u.take(b, names); err != nil {
				return err
			}
		}
		if err := u.take(t.rows, names); err != nil {
			return err
		}
	}
	return u.out.flush()
}

func (u *Union) take(ps []Pair, names []uint32) error {
	for _, p := range ps {
		if names != nil {
			p.Group = names[p.Group]
		}
		if u.seen.add(p) {
			if err := u.out.add(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// pairBatch hands pairs out by columns.
type pairBatch struct {
	groups []uint32
	words  []uint64
	emit   func(groups []uint32, words []uint64) error
}

const pairBatchRows = 4 << 10

func (b *pairBatch) add(p Pair) error {
	b.groups, b.words = append(b.groups, p.Group), append(b.words, p.Word)
	if len(b.groups) < pairBatchRows {
		return nil
	}
	return b.flush()
}

func (b *pairBatch) flush() error {
	if len(b.groups) == 0 {
		return nil
	}
	err := b.emit(b.groups, b.words)
	b.groups, b.words = b.groups[:0], b.words[:0]
	return err
}

// pairSlots is a set by open addressing with linear probing. A slot's group is the pair's plus one, and 0 when it is empty.
type pairSlots struct {
	slots []Pair
	shift uint
	count int
}

// reset empties the slots and makes room for so many pairs.
func (t *pairSlots) reset(pairs int) {
	size := slotsFor(pairs)
	if t.count = 0; size > cap(t.slots) {
		t.slots = make([]Pair, size)
	} else {
		clear(t.slots) // the others are clear
		t.slots = t.slots[:size]
	}
	t.shift = uint(64 - bits.Len(uint(size-1)))
}

// home is where a pair is looked for. The pairs of a part have the highest bits of their words' hashes in common, which are
// left out here.
func (t *pairSlots) home(w uint64, group uint32) uint64 {
	return hashWord(w^uint64(group)*pairMul) << pairShift >> t.shift
}

const (
	pairMul   = 0x9E3779B97F4A7C15
	pairShift = 8
)

func (t *pairSlots) addAll(ps []Pair) {
	for i := range ps {
		t.add(ps[i])
	}
}

// add reports whether a pair is new.
func (t *pairSlots) add(p Pair) bool {
	if 8*t.count >= 5*len(t.slots) {
		t.rehash()
	}
	last := uint64(len(t.slots) - 1)
	for i := t.home(p.Word, p.Group); ; i++ {
		s := &t.slots[i&last]
		if s.Group == 0 {
			*s = Pair{p.Word, p.Group + 1}
			t.count++
			return true
		}
		if s.Word == p.Word && s.Group == p.Group+1 {
			return false
		}
	}
}

func (t *pairSlots) rehash() {
	old, n := t.slots, t.count
	t.slots = nil
	t.reset(max(2*n, 1))
	last := uint64(len(t.slots) - 1)
	for _, p := range old {
		if p.Group == 0 {
			continue
		}
		i := t.home(p.Word, p.Group-1)
		for t.slots[i&last].Group != 0 {
			i++
		}
		t.slots[i&last] = p
	}
	t.count = n
}
