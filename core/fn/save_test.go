package fn

import "testing"

// The first group may be much longer than all others: what is saved takes room for what there is.
func TestSavedGroupsTakeTheirRoom(t *testing.T) {
	const long, groups = 1 << 20, 8192
	which := make([]uint32, groups)
	for i := range which {
		which[i] = uint32(i)
	}
	saved := saveBytes(which, func(dst []byte, g uint32) []byte {
		if g == 0 {
			return append(dst, make([]byte, long)...)
		}
		return append(dst, byte(g))
	})
	if room := saved.Data().Buffers()[2].Cap(); room > 4*long {
		t.Errorf("%d bytes for %d", room, long+groups)
	}
}
