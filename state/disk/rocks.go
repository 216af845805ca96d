//go:build rocksdb

package disk

import (
	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/rocks"
)

// Kind names the store.
const Kind = "rocksdb"

// Open makes an empty store in a folder, which is emptied if an earlier process has left one. Stores with a cache of their own give it about as many
// bytes as they are told.
func Open(path string, cache int64) (state.Store, error) {
	s, err := rocks.Open(path, cache)
	if err != nil {
		return nil, err
	}
	return s, nil
}
