package hashtable

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
)

// shortTexts remembers the numbers of texts of up to 8 bytes: where a column has few of them, a row costs one comparison of
// words and is neither packed nor hashed. What it does not know goes to the table, and it is given up when that is much.
type shortTexts struct {
	slots   [1 << shortBits]shortSlot
	missed  []int32
	ids     []uint32
	primed  bool
	useless bool
}

// shortSlot is one text; size is its length + 1, and 0 in an empty slot.
type shortSlot struct {
	word uint64
	size uint32
	id   uint32
}

const (
	shortBits = 8
	shortRows = 1 << 10 // batches of less are not worth it
)

// shortWord is the text from from to to as a word; ok is false for one that is long, or lies too near the end of the data.
func shortWord(data []byte, from, to int32) (w uint64, size uint32, ok bool) {
	n := uint32(to - from)
	if n > 8 || int(from)+8 > len(data) {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(data[from:]) & (1<<(8*n) - 1), n + 1, true
}

func (s *shortTexts) slot(w uint64, size uint32) *shortSlot {
	return &s.slots[hashWord(w+uint64(size))>>(64-shortBits)]
}

// find sets the ids of the texts that are known, and lists the other rows.
func (s *shortTexts) find(offs []int32, data []byte, ids []uint32) (missed []int32) {
	missed = s.missed[:0]
	offs = offs[:len(ids)+1]
	from := offs[0]
	for i := range ids {
		to := offs[i+1]
		w, size, ok := shortWord(data, from, to)
		from = to
		if slot := s.slot(w, size); ok && slot.word == w && slot.size == size {
			ids[i] = slot.id
			continue
		}
		missed = append(missed, int32(i))
	}
	s.missed = missed
	return missed
}

func (s *shortTexts) learn(offs []int32, data []byte, row int32, id uint32) {
	if w, size, ok := shortWord(data, offs[row], offs[row+1]); ok {
		*s.slot(w, size) = shortSlot{w, size, id}
	}
}

// addShort is findOrAdd for a column of texts without NULLs by way of g.short; false: do it in full.
//
// AIDEV-NOTE: rows that are known have numbers already, so the others, in their order, are numbered as they would be among all.
func (g *Groups) addShort(col arrow.Array, ids []uint32) bool {
	if len(ids) < shortRows || g.freed || kernels.Valid(col) != nil {
		return false
	}
	if g.short == nil {
		g.short = &shortTexts{}
	}
	s := g.short
	if s.useless {
		return false
	}
	offs, data := kernels.Spans(col)
	if !s.primed {
		s.primed = true
		g.index.findOrAdd(g.load.load([]arrow.Array{col}, len(ids)), nil, ids, g.take)
		for i, id := range ids {
			s.learn(offs, data, int32(i), id)
		}
		return true
	}
	missed := s.find(offs, data, ids)
	if len(missed) == 0 {
		return true
	}
	if s.useless = len(missed) > len(ids)/4; s.useless {
		return false
	}
	s.ids = kernels.Sized(s.ids, len(missed))
	some := kernels.Take(col, missed)
	g.index.findOrAdd(g.load.load([]arrow.Array{some}, len(missed)), nil, s.ids, g.take)
	for k, row := range missed {
		ids[row] = s.ids[k]
		s.learn(offs, data, row, s.ids[k])
	}
	return true
}
