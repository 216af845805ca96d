package pebble_test

import (
	"testing"

	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/pebble"
	"github.com/riverbed/riverbed/state/statetest"
)

func TestPebble(t *testing.T) {
	statetest.RunDisk(t, func(path string) (state.Store, error) {
		s, err := pebble.Open(path, 8<<20)
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

func BenchmarkPebble(b *testing.B) {
	statetest.Bench(b, func(path string, cache int64) (state.Store, error) { return pebble.Open(path, cache) })
}
