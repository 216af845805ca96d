// Package disk opens the state.Store that this build keeps on disk: pages, or Pebble or RocksDB with the tag of that name.
//
// Invariant: they are told apart here and nowhere else; all pass the suite of state/statetest.
package disk

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/riverbed/riverbed/state"
)

// OpenIn makes an empty store in a folder below dir that no other store has, of this process or another. So what a killed process has left there is
// used again, and goes, before another is made.
func OpenIn(dir string, cache int64) (state.Store, error) {
	for n := 1; ; n++ {
		s, err := Open(filepath.Join(dir, fmt.Sprintf("store-%d", n)), cache)
		if !errors.Is(err, state.ErrInUse) {
			return s, err
		}
	}
}
