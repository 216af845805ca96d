package state

import "github.com/riverbed/riverbed/core/kernels"

// Chunked is a column by slot that grows without being copied: a step that meets the end of a large column would stand still for
// as long as that takes.
type Chunked[T any] struct {
	chunks [][]T
	n      int
}

const (
	slotBits = 14
	slotMask = 1<<slotBits - 1
)

// Resize makes room for n slots; new ones are zero. It never shrinks.
func (c *Chunked[T]) Resize(n int) {
	if n <= c.n {
		return
	}
	c.n = n
	if n <= 1<<slotBits { // the first chunk doubles: most tables are small
		if len(c.chunks) == 0 {
			c.chunks = append(c.chunks, nil)
		}
		c.chunks[0] = kernels.Grown(c.chunks[0], n)
		return
	}
	for len(c.chunks)<<slotBits < n || len(c.chunks[0]) <= slotMask {
		if len(c.chunks) > 0 && len(c.chunks[0]) <= slotMask {
			c.chunks[0] = append(make([]T, 0, 1<<slotBits), c.chunks[0]...)[:1<<slotBits]
			continue
		}
		c.add((n+slotMask)>>slotBits - len(c.chunks))
	}
}

// slabs are how many chunks are made at once where there are many: pieces of one stretch of memory, so that the system may give it large pages.
const slabs = 32

// add adds chunks, at most so many.
func (c *Chunked[T]) add(most int) {
	n := max(1, min(slabs, len(c.chunks)/4, most))
	if len(c.chunks) >= 2*slabs {
		n = slabs
	}
	all := kernels.Large(make([]T, n<<slotBits))
	for ; n > 0; n-- {
		c.chunks = append(c.chunks, all[:1<<slotBits:1<<slotBits])
		all = all[1<<slotBits:]
	}
}

// At is the place of a slot; valid until the next Resize.
func (c *Chunked[T]) At(slot uint32) *T { return &c.chunks[slot>>slotBits][slot&slotMask] }

// fill sets the slots from the first on.
func (c *Chunked[T]) fill(first uint32, v []T) {
	if len(v) == 1 {
		*c.At(first) = v[0]
		return
	}
	for len(v) > 0 {
		n := copy(c.chunks[first>>slotBits][first&slotMask:], v)
		first, v = first+uint32(n), v[n:]
	}
}

// Len is the number of slots.
func (c *Chunked[T]) Len() int { return c.n }

// held is the number of slots that there is memory for.
func (c *Chunked[T]) held() int {
	n := 0
	for _, x := range c.chunks {
		n += cap(x)
	}
	return n
}
