package state

import "slices"

// heap keeps a byte string per slot in chunks without pointers, so that the collector has nothing to follow and growing
// copies nothing. A slot that is used again keeps its place where the new string fits.
type heap struct {
	at     []span
	chunks [][]byte
	held   int // bytes of chunks
	size   int // bytes given to slots
	live   int // bytes of strings
}

type span struct {
	chunk, off uint32
	len, cap   uint32
}

const chunkSize = 1 << 18

func (h *heap) resize(n int) { h.at = grown(h.at, n) }

func (h *heap) get(slot uint32) []byte {
	s := &h.at[slot]
	if s.len == 0 {
		return nil
	}
	return h.chunks[s.chunk][s.off : s.off+s.len]
}

func (h *heap) set(slot uint32, b []byte) {
	s := &h.at[slot]
	h.live += len(b) - int(s.len)
	if len(b) > int(s.cap) {
		*s = h.room(len(b))
	}
	s.len = uint32(len(b))
	if len(b) > 0 {
		copy(h.chunks[s.chunk][s.off:], b)
	}
}

// room gives a place for n bytes.
func (h *heap) room(n int) span {
	last := len(h.chunks) - 1
	if last < 0 || cap(h.chunks[last])-len(h.chunks[last]) < n {
		// The first chunks are small: most tables are.
		c := make([]byte, 0, max(n, min(chunkSize, max(512, h.size))))
		h.chunks, h.held = append(h.chunks, c), h.held+cap(c)
		last++
	}
	c := &h.chunks[last]
	off := len(*c)
	*c = (*c)[:off+n]
	h.size += n
	return span{uint32(last), uint32(off), uint32(n), uint32(n)}
}

func (h *heap) free(slot uint32) {
	h.live -= int(h.at[slot].len)
	h.at[slot].len = 0
	if dead := h.size - h.live; dead > h.size/2 && dead > 1<<16 {
		h.compact()
	}
}

// compact rewrites the chunks; slots keep their numbers.
func (h *heap) compact() {
	old := h.chunks
	h.chunks, h.held, h.size = nil, 0, 0
	for i, s := range h.at {
		if s.len == 0 {
			h.at[i] = span{}
			continue
		}
		to := h.room(int(s.len))
		copy(h.chunks[to.chunk][to.off:], old[s.chunk][s.off:s.off+s.len])
		h.at[i] = to
	}
}

func (h *heap) bytes() int64 { return int64(h.held + 16*cap(h.at)) }

// grown makes s at least n long; what is new is zero. It doubles: the columns of a table grow by every row.
func grown[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	if n > cap(s) {
		s = slices.Grow(s, max(n, 2*cap(s))-len(s))
	}
	return s[:n]
}
