package incremental

import (
	"math"
	"slices"

	"github.com/riverbed/riverbed/core/kernels"
)

// logIndex finds rows of indexed parts by hash. Rows of parts that are gone stay in it until they are half of all.
type logIndex struct {
	cells []uint64 // the upper half of the hash, slot of the last row of it + 1; 0: empty
	keys  int      // cells that are not empty
	rows  int
	gone  int
	spans []span
	words [][]uint64 // where keys are one word: these, by the number of the part
	last  []uint32   // scratch
}

func (x *logIndex) home(h uint64) int { return int((h >> 32) * hashMix >> 32 & uint64(len(x.cells)-1)) }

// put indexes a part.
func (x *logIndex) put(l *rowLog, p *logPart) {
	x.rest(l)
	x.reserve(l, p.Len())
	p.indexed, p.next = true, make([]uint32, p.Len())
	for i, h := range l.mix(p) {
		at := x.home(h)
		for {
			c := x.cells[at]
			if c == 0 {
				x.keys++
				break
			}
			if c>>32 == h>>32 && l.hashAt(uint32(c)-1) == h {
				p.next[i] = uint32(c)
				break
			}
			at = (at + 1) & (len(x.cells) - 1)
		}
		x.cells[at] = h&^math.MaxUint32 | uint64(p.id<<partBits|uint32(i)+1)
	}
	if len(p.words) == 1 {
		x.words = grown(x.words, int(p.id)+1, nil)
		x.words[p.id] = p.words[0]
	}
	x.rows += p.Len()
	if x.spans == nil {
		x.spans = slices.Clone(p.span())
	}
	for i, s := range p.span() {
		x.spans[i] = span{min(x.spans[i].lo, s.lo), max(x.spans[i].hi, s.hi)}
	}
}

func (l *rowLog) hashAt(slot uint32) (h uint64) {
	p := l.named[slot>>partBits]
	if p.words == nil {
		return p.hash[slot&partMask]
	}
	for _, w := range p.words {
		h = mixWord(h, w[slot&partMask])
	}
	return h
}

func (x *logIndex) reserve(l *rowLog, more int) {
	need := 2 * (x.keys + more)
	if need <= len(x.cells) {
		return
	}
	size := max(64, len(x.cells))
	for size < need {
		size *= 2
	}
	old := x.cells
	x.cells = make([]uint64, size)
	for _, c := range old {
		if c == 0 {
			continue
		}
		at := x.home(c)
		for x.cells[at] != 0 {
			at = (at + 1) & (size - 1)
		}
		x.cells[at] = c
	}
}

// rest makes the index anew when half of its rows are gone.
func (x *logIndex) rest(l *rowLog) {
	if x.gone <= x.rows/2 {
		return
	}
	for id, p := range l.named {
		if p != nil && p.gone {
			l.named[id] = nil
			l.free = append(l.free, uint32(id))
		}
	}
	*x = logIndex{last: x.last}
	for _, p := range l.parts {
		if p.indexed {
			x.put(l, p)
		}
	}
}

// find gives the pairs with the rows of the index.
func (x *logIndex) find(l *rowLog, k *joinKeys, out *pairs) error {
	if x.rows == x.gone || k.words != nil && apart(x.spans, k.span()) {
		return nil
	}
	x.last = kernels.Sized(x.last, k.n)
	hash := k.mix(&l.asked)
	for i, h := range hash { // a pass of its own: reads of cells do not wait for one another
		at := x.home(h)
		c := x.cells[at]
		for c != 0 && c>>32 != h>>32 {
			at = (at + 1) & (len(x.cells) - 1)
			c = x.cells[at]
		}
		x.last[i] = uint32(c)
	}
	one := len(k.words) == 1 // a word is the only one of its hash
	for i, s := range x.last {
		if s == 0 {
			continue
		}
		if one && x.words[(s-1)>>partBits][(s-1)&partMask] != k.words[0][i] || !one && l.hashAt(s-1) != hash[i] {
			s = x.chain(l, hash[i]) // another hash with the same upper half
		}
		for s != 0 {
			p, row := l.named[(s-1)>>partBits], int((s-1)&partMask)
			if !p.gone && (one || p.same(row, k, i, l.enc)) {
				if err := out.add(int32(i), s-1); err != nil {
					return err
				}
			}
			s = p.next[row]
		}
	}
	return nil
}

// chain is the slot of the last row of a hash + 1, or 0.
func (x *logIndex) chain(l *rowLog, h uint64) uint32 {
	for at := x.home(h); x.cells[at] != 0; at = (at + 1) & (len(x.cells) - 1) {
		if c := x.cells[at]; c>>32 == h>>32 && l.hashAt(uint32(c)-1) == h {
			return uint32(c)
		}
	}
	return 0
}
