package pages_test

import (
	"testing"

	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/pages"
	"github.com/riverbed/riverbed/state/statetest"
)

func TestPages(t *testing.T) {
	statetest.RunDisk(t, func(path string) (state.Store, error) {
		s, err := pages.Open(path, 1<<16)
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

func BenchmarkPages(b *testing.B) {
	statetest.Bench(b, func(path string, cache int64) (state.Store, error) { return pages.Open(path, cache/4) })
}
