package statetest

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/state"
)

// The rows of the benchmark: as many as ten times the cache of the store, keys as tables have them, values of 100 bytes.
const (
	benchKeys  = 2_000_000
	benchBatch = 10_000
	benchCache = 24 << 20
)

// Bench measures batches of 10,000 sorted keys against a store that holds ten times its cache: processor time a key, background
// work in it, and keys a second of wall time.
func Bench(b *testing.B, open func(path string, cache int64) (state.Store, error)) {
	s, err := open(filepath.Join(b.TempDir(), "store"), benchCache)
	if err != nil {
		b.Fatal(err)
	}
	r := clock.NewRand(1)
	value := func(n uint64) []byte {
		v := make([]byte, 100)
		for i := 0; i < len(v); i += 8 {
			n = n*0x9e3779b97f4a7c15 + 1
			copy(v[i:], binary.LittleEndian.AppendUint64(nil, n>>uint(i%32)))
		}
		return v
	}
	key := func(n int) []byte { // group by hash, then eight bytes of key
		h := uint64(n) * 0x9e3779b97f4a7c15
		return state.StoreKey("3.1", "aggregate_groups", uint8(h>>56), binary.BigEndian.AppendUint64([]byte{1}, uint64(n)))
	}
	batch := func(at func() int) []state.Pair {
		out := make([]state.Pair, benchBatch)
		for i := range out {
			n := at()
			out[i] = state.Pair{Key: key(n), Value: value(uint64(n))}
		}
		slices.SortFunc(out, func(a, b state.Pair) int { return bytes.Compare(a.Key, b.Key) })
		return slices.CompactFunc(out, func(a, b state.Pair) bool { return bytes.Equal(a.Key, b.Key) })
	}
	next := 0
	// Even numbers are there, odd ones are not.
	fill := func() int { next++; return 2 * (next * 7919 % benchKeys) }
	uniform := func() int { return 2 * r.IntN(benchKeys) }
	skewed := func() int {
		if r.IntN(10) > 0 {
			return 2 * r.IntN(benchKeys/10)
		}
		return uniform()
	}
	absent := func() int { return 2*r.IntN(benchKeys) + 1 }
	cases := []struct {
		name     string
		at       func() int
		get, put bool
	}{
		{"put uniform", uniform, false, true},
		{"get uniform", uniform, true, false},
		{"get skewed", skewed, true, false},
		{"get absent", absent, true, false},
		{"read, modify, write uniform", uniform, true, true},
		{"read, modify, write skewed", skewed, true, true},
	}
	work := func(p []state.Pair, get, put bool) {
		if get {
			keys := make([][]byte, len(p))
			for i := range p {
				keys[i] = p[i].Key
			}
			got, err := s.Get(keys)
			if err != nil {
				b.Fatal(err)
			}
			for i, v := range got {
				if put && len(v) != 100 {
					b.Fatalf("key %x has %d bytes", keys[i], len(v))
				}
			}
		}
		if put {
			if err := s.Apply(p); err != nil {
				b.Fatal(err)
			}
		}
	}
	for next < benchKeys {
		work(batch(fill), false, true)
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			var keys int
			var cpu, wall time.Duration
			for b.Loop() {
				p := batch(c.at)
				from, at := spent(), time.Now()
				work(p, c.get, c.put)
				cpu, wall, keys = cpu+spent()-from, wall+time.Since(at), keys+len(p)
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(keys), "cpu-ns/key")
			b.ReportMetric(float64(keys)/wall.Seconds(), "keys/s")
		})
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// spent is the processor time of the process.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
