package incremental

import (
	"bytes"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/state"
)

// rowLog lists the rows of a join input as they came, with their keys, in parts by the time that closes them. It is searched from end to
// end: where many rows come, wait a while for the few of the other side and go together, that is much less work than to put each into an
// index and to take it out again. Where it is not, the arrangement makes an index of it (worn).
type rowLog struct {
	parts    map[int64]*logPart // by closing time
	order    []*logPart         // in the order of their making
	added    int64
	searched int64
	cells    []int32 // scratch
	next     []int32
}

// logPart is the rows of one closing time.
type logPart struct {
	at    int64
	hash  []uint64
	slots []uint32
	ends  []uint32 // of each key in keys
	keys  []byte
}

// A search of a row costs about a nanosecond; to index a row and to take it out again 150. Below so many rows searched nobody counts.
const (
	searchesPerIndexed = 128
	freeSearches       = 1 << 20
)

func newRowLog() *rowLog { return &rowLog{parts: map[int64]*logPart{}} }

// worn reports whether an index would have been the better choice.
func (l *rowLog) worn() bool {
	return l.searched > freeSearches && l.searched > l.added*searchesPerIndexed
}

// add appends rows with their keys and closing times.
func (l *rowLog) add(k state.Keys, slots []uint32, closes []int64) {
	l.added += int64(len(slots))
	for i := 0; i < len(slots); {
		at, j := coarseOrNever(closes[i]), i+1
		for j < len(slots) && coarseOrNever(closes[j]) == at {
			j++
		}
		p := l.parts[at]
		if p == nil {
			p = &logPart{at: at}
			l.parts[at], l.order = p, append(l.order, p)
		}
		p.add(k, slots, i, j)
		i = j
	}
}

func coarseOrNever(t int64) int64 {
	if t == never {
		return never
	}
	return coarse(t)
}

func (p *logPart) add(k state.Keys, slots []uint32, from, to int) {
	p.hash, p.slots = append(p.hash, k.Hash[from:to]...), append(p.slots, slots[from:to]...)
	shift := uint32(len(p.keys)) - k.Offsets[from]
	for _, end := range k.Offsets[from+1 : to+1] {
		p.ends = append(p.ends, end+shift)
	}
	p.keys = append(p.keys, k.Data[k.Offsets[from]:k.Offsets[to]]...)
}

func (p *logPart) key(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = p.ends[i-1]
	}
	return p.keys[from:p.ends[i]]
}

// find gives the pairs of rows with keys k with the rows of the log to use, a chunk at a time; the chunk is used again.
func (l *rowLog) find(k state.Keys, chunk []pair, use func([]pair) error) error {
	shift := l.index(k)
	mask := len(l.cells) - 1
	chunk = chunk[:0]
	for _, p := range l.order {
		l.searched += int64(len(p.hash))
		for i, h := range p.hash {
			at := int(h * hashMix >> shift)
			c := l.cells[at]
			for c != 0 && k.Hash[c-1] != h {
				at = (at + 1) & mask
				c = l.cells[at]
			}
			for ; c != 0; c = l.next[c-1] {
				if !bytes.Equal(k.At(int(c-1)), p.key(i)) {
					continue
				}
				if chunk = append(chunk, pair{c - 1, p.slots[i]}); len(chunk) == cap(chunk) {
					if err := use(chunk); err != nil {
						return err
					}
					chunk = chunk[:0]
				}
			}
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	return use(chunk)
}

const hashMix = 0x9e3779b97f4a7c15

// index makes a small table of the rows that are looked for: by hash the number of the first row + 1, and for each row the next of its hash.
func (l *rowLog) index(k state.Keys) (shift uint) {
	size := 64
	shift = 58
	for size < 4*k.Len() {
		size, shift = size*2, shift-1
	}
	l.cells, l.next = resize(l.cells, size), resize(l.next, k.Len())
	clear(l.cells)
	for i, h := range k.Hash {
		at := int(h * hashMix >> shift)
		for l.cells[at] != 0 && k.Hash[l.cells[at]-1] != h {
			at = (at + 1) & (size - 1)
		}
		l.next[i], l.cells[at] = l.cells[at], int32(i)+1
	}
	return shift
}

// expire takes out the parts that the watermark has closed.
func (l *rowLog) expire(w flow.Watermark) (gone []uint32) {
	if w == flow.NoWatermark {
		return nil
	}
	kept := l.order[:0]
	for _, p := range l.order {
		if p.at > int64(w) {
			kept = append(kept, p)
			continue
		}
		gone = append(gone, p.slots...)
		delete(l.parts, p.at)
	}
	clear(l.order[len(kept):])
	l.order = kept
	return gone
}
