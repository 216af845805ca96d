//go:build rocksdb

package rocks_test

import (
	"testing"

	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/rocks"
	"github.com/riverbed/riverbed/state/statetest"
)

func TestRocks(t *testing.T) {
	statetest.RunDisk(t, func(path string) (state.Store, error) {
		s, err := rocks.Open(path, 8<<20)
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

func BenchmarkRocks(b *testing.B) {
	statetest.Bench(b, func(path string, cache int64) (state.Store, error) { return rocks.Open(path, cache) })
}
