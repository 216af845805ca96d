package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// The collector's pace. Scans allocate much and keep little, so that at Go's pace a third of their time was collection; but
// a heap that may grow to a multiple of what lives in it costs memory, and the cache that is colder for it. So the
// room above what lives is a fixed one and as much again as lives: small heaps are collected seldom, large ones, which
// are mostly buffers without pointers and cheap to mark, at Go's pace. Any GOGC of the host is not read, since it is not ours.
const (
	gcRoom       = 64 << 20
	gcShare      = 100 // percent of what lives
	gcMaxPercent = 400
)

// gcPercent is the percentage that leaves the room above so much that lives.
func gcPercent(live uint64) int64 {
	return min(gcMaxPercent, gcShare+int64(gcRoom*100/(live+1)))
}

// pace is the percentage that is set. A change stops the world for a moment, so small ones are left.
var pace atomic.Int64

func setPace(live uint64) {
	now, want := pace.Load(), gcPercent(live)
	if want < now-now/8 || want > now+now/8 {
		pace.Store(want)
		debug.SetGCPercent(int(want))
	}
}

// atCollection calls f after each collection.
func atCollection(f func()) {
	type mark struct{ _ [32]byte } // of less than 16 bytes it could share a block with what lives on
	runtime.AddCleanup(new(mark), func(f func()) {
		f()
		atCollection(f)
	}, f)
}

func init() {
	setPace(0)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	atCollection(func() {
		metrics.Read(live)
		setPace(live[0].Value.Uint64())
	})
}
