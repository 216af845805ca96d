package state

import "testing"

func TestSeen(t *testing.T) {
	var s seen
	const n = 200_000
	for i := range uint64(n) {
		s.add(stir(i)&^0xff | 7) // of one key group
	}
	wrong := 0
	for i := range uint64(n) {
		if !s.has(stir(i)&^0xff | 7) {
			t.Fatalf("%d is not there", i)
		}
		if s.has(stir(i+n)&^0xff | 7) {
			wrong++
		}
	}
	if wrong > n/4 || s.bytes() > n*3 {
		t.Fatalf("%d of %d that are not there seem to be, in %d bytes", wrong, n, s.bytes())
	}
}
