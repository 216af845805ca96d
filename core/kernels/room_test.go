package kernels

import (
	"runtime"
	"testing"
)

// What Room returns is memory of its own that the collector keeps while it is held, and no longer.
func TestRoom(t *testing.T) {
	Poison = true
	defer func() { Poison = false }()
	var held [][]uint64
	for i := range 200 {
		v := Room[uint64](100 * i)
		if len(v) != 100*i {
			t.Fatalf("%d values, want %d", len(v), 100*i)
		}
		if 8*len(v) >= clearedRoom && (v[0] != 0xA5A5A5A5A5A5A5A5 || v[len(v)-1] != v[0]) {
			t.Fatal("memory is not poisoned from end to end")
		}
		for k := range v {
			v[k] = uint64(i)
		}
		held = append(held, v)
		if i%50 == 0 {
			runtime.GC()
		}
	}
	for i, v := range held {
		for _, x := range v {
			if x != uint64(i) {
				t.Fatalf("value %d in the room of %d", x, i)
			}
		}
	}
}
