package state

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestChunkedKeepsWhatItHolds(t *testing.T) {
	var c Chunked[int]
	set := 0
	for _, n := range []int{0, 1, 7, slotMask, slotMask + 1, slotMask + 2, 3 * (slotMask + 1), 2, 4*(slotMask+1) + 5} {
		c.Resize(n)
		for ; set < n; set++ {
			if at := c.At(uint32(set)); *at != 0 {
				t.Fatalf("slot %d of %d is not empty", set, n)
			}
			*c.At(uint32(set)) = set + 1
		}
		for i := range set {
			if *c.At(uint32(i)) != i+1 {
				t.Fatalf("slot %d holds %d after growing to %d", i, *c.At(uint32(i)), n)
			}
		}
	}
	if c.Len() != set {
		t.Errorf("%d slots, not %d", c.Len(), set)
	}
}

// TestHeapHoldsStringsOfAnyLength sets, replaces and frees short and long strings and compares with a map.
func TestHeapHoldsStringsOfAnyLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h heap
	h.resize(500)
	want := map[uint32][]byte{}
	for range 50_000 {
		slot := uint32(r.IntN(500))
		if r.IntN(3) == 0 {
			h.free(slot)
			delete(want, slot)
		} else {
			b := bytes.Repeat([]byte{byte(r.IntN(256))}, []int{0, 1, int(inline), int(inline) + 1, 300, 5000}[r.IntN(6)])
			h.set(slot, b)
			want[slot] = b
		}
		if at := uint32(r.IntN(500)); !bytes.Equal(h.get(at), want[at]) || h.len(at) != len(want[at]) {
			t.Fatalf("slot %d holds %d bytes, not %d", at, h.len(at), len(want[at]))
		}
	}
	live := 0
	for slot, b := range want {
		if !bytes.Equal(h.get(slot), b) {
			t.Fatalf("slot %d has changed", slot)
		}
		live += len(b)
	}
	if h.held > 4*live+chunkSize {
		t.Errorf("%d bytes are held for %d", h.held, live)
	}
}
