package main

import (
	"runtime"
	"testing"
)

func TestPace(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int64
	}{{0, 400}, {1 << 20, 400}, {32 << 20, 299}, {64 << 20, 199}, {640 << 20, 109}, {64 << 30, 100}} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("%d MB live: %d percent, want %d", c.live>>20, got, c.want)
		}
	}
}

// The pace follows what lives, there and back.
func TestPaceFollows(t *testing.T) {
	follow := func(ok func(percent int64) bool) {
		for !ok(pace.Load()) {
			runtime.GC()
			runtime.Gosched() // the cleanup runs beside us
		}
	}
	func() {
		held := make([]byte, 256<<20)
		follow(func(p int64) bool { return p < 150 })
		runtime.KeepAlive(held)
	}()
	follow(func(p int64) bool { return p > 300 })
}
