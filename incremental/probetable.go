package incremental

import "github.com/riverbed/riverbed/core/kernels"

// probeTable finds rows that look for partners by hash.
type probeTable struct {
	n     int
	cells []int32 // by hash: the number of the first row + 1
	next  []int32 // by row: that of the next of its hash
	shift uint
}

func (t *probeTable) fill(hash []uint64) {
	size := 64
	t.n, t.shift = len(hash), 58
	for size < 4*len(hash) {
		size, t.shift = size*2, t.shift-1
	}
	t.cells, t.next = kernels.Sized(t.cells, size), kernels.Sized(t.next, len(hash))
	clear(t.cells)
	for i, h := range hash {
		at := int(h * hashMix >> t.shift)
		for t.cells[at] != 0 && hash[t.cells[at]-1] != h {
			at = (at + 1) & (size - 1)
		}
		t.next[i], t.cells[at] = t.cells[at], int32(i)+1
	}
}

// search gives the pairs with the rows of a part.
func (t *probeTable) search(p *logPart, ours []uint64, k *joinKeys, enc *keyEncoders, out *pairs) error {
	cells, hash, shift := t.cells, k.mixed, t.shift&63
	mask := len(cells) - 1
	for i, h := range ours {
		at := int(h * hashMix >> shift)
		c := cells[at]
		for c != 0 && hash[c-1] != h {
			at = (at + 1) & mask
			c = cells[at]
		}
		for ; c != 0; c = t.next[c-1] {
			if !p.same(i, k, int(c-1), enc) {
				continue
			}
			if err := out.add(c-1, p.id<<partBits|uint32(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
