package state

// heap keeps a byte string per slot in one arena without pointers, so that the collector has nothing to follow.
type heap struct {
	off  []uint64
	len  []uint32
	data []byte
	dead int // bytes of the arena that no slot uses
}

func (h *heap) resize(n int) {
	for len(h.off) < n {
		h.off = append(h.off, 0)
		h.len = append(h.len, 0)
	}
}

func (h *heap) get(slot uint32) []byte {
	o := h.off[slot]
	return h.data[o : o+uint64(h.len[slot])]
}

func (h *heap) set(slot uint32, b []byte) {
	h.dead += int(h.len[slot])
	h.off[slot], h.len[slot] = uint64(len(h.data)), uint32(len(b))
	h.data = append(h.data, b...)
}

func (h *heap) free(slot uint32) {
	h.dead += int(h.len[slot])
	h.len[slot] = 0
	if h.dead > len(h.data)/2 && h.dead > 1<<16 {
		h.compact()
	}
}

// compact rewrites the arena; slots keep their numbers.
func (h *heap) compact() {
	live := make([]byte, 0, (len(h.data)-h.dead)*5/4)
	for s := range h.off {
		if n := h.len[s]; n > 0 {
			o := h.off[s]
			h.off[s] = uint64(len(live))
			live = append(live, h.data[o:o+uint64(n)]...)
		}
	}
	h.data, h.dead = live, 0
}

func (h *heap) bytes() int64 { return int64(cap(h.data) + 12*cap(h.off)) }
