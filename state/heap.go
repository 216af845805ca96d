package state

import "encoding/binary"

// heap keeps a byte string per slot without pointers, so that the collector has nothing to follow. A short string, as most keys
// are, lies in the slot's own place, one look away; a longer one lies in a chunk, so that growing copies none of them. A slot that
// was given room in a chunk keeps it, and uses it again where the next string fits.
type heap struct {
	places Chunked[place]
	chunks [][]byte
	held   int // bytes of chunks
	size   int // bytes of chunks given to slots
	live   int // bytes of strings in chunks
}

// A place begins with the length of the string. Behind it is the string, or, where the length has the bit inChunk, the chunk, the
// offset there and how much room that is.
type place [32]byte

const (
	inline    = uint32(len(place{}) - 4)
	inChunk   = 1 << 31
	chunkSize = 1 << 18
)

func (h *heap) resize(n int) { h.places.Resize(n) }

func (h *heap) place(slot uint32) []byte { return h.places.At(slot)[:] }

// spot is where a place says that its string lies in a chunk.
type spot struct{ chunk, off, room uint32 }

func spotOf(place []byte) spot {
	return spot{binary.LittleEndian.Uint32(place[4:]), binary.LittleEndian.Uint32(place[8:]), binary.LittleEndian.Uint32(place[12:])}
}

func (s spot) write(place []byte) {
	binary.LittleEndian.PutUint32(place[4:], s.chunk)
	binary.LittleEndian.PutUint32(place[8:], s.off)
	binary.LittleEndian.PutUint32(place[12:], s.room)
}

func (h *heap) get(slot uint32) []byte {
	p := h.place(slot)
	n := binary.LittleEndian.Uint32(p)
	if n <= inline {
		return p[4 : 4+n]
	}
	s := spotOf(p)
	return h.chunks[s.chunk][s.off : s.off+n&^inChunk]
}

func (h *heap) len(slot uint32) int {
	return int(binary.LittleEndian.Uint32(h.place(slot)) &^ inChunk)
}

func (h *heap) set(slot uint32, b []byte) {
	p := h.place(slot)
	n := binary.LittleEndian.Uint32(p)
	var s spot
	if n&inChunk != 0 {
		h.live -= int(n &^ inChunk)
		s = spotOf(p)
	} else if len(b) <= int(inline) {
		binary.LittleEndian.PutUint32(p, uint32(len(b)))
		copy(p[4:], b)
		return
	}
	if len(b) > int(s.room) {
		s = h.room(len(b))
		s.write(p)
	}
	binary.LittleEndian.PutUint32(p, uint32(len(b))|inChunk)
	h.live += len(b)
	copy(h.chunks[s.chunk][s.off:], b)
}

// room gives a spot for n bytes.
func (h *heap) room(n int) spot {
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
	return spot{uint32(last), uint32(off), uint32(n)}
}

func (h *heap) free(slot uint32) {
	p := h.place(slot)
	n := binary.LittleEndian.Uint32(p)
	binary.LittleEndian.PutUint32(p, n&inChunk)
	if n&inChunk == 0 {
		return
	}
	h.live -= int(n &^ inChunk)
	if dead := h.size - h.live; dead > h.size/2 && dead > 1<<16 {
		h.compact()
	}
}

// compact rewrites the chunks; slots keep their numbers.
func (h *heap) compact() {
	old := h.chunks
	h.chunks, h.held, h.size = nil, 0, 0
	for slot := range h.places.Len() {
		p := h.place(uint32(slot))
		n := binary.LittleEndian.Uint32(p)
		if n&inChunk == 0 {
			continue
		}
		n &^= inChunk
		from := spotOf(p)
		b := old[from.chunk][from.off : from.off+n]
		if n <= inline {
			binary.LittleEndian.PutUint32(p, n)
			copy(p[4:], b)
			continue
		}
		to := h.room(int(n))
		to.write(p)
		copy(h.chunks[to.chunk][to.off:], b)
	}
}

func (h *heap) bytes() int64 { return int64(h.held + h.places.held()*len(place{})) }
