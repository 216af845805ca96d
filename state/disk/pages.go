//go:build !rocksdb && !pebble

package disk

import (
	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/pages"
)

// Kind names the store.
const Kind = "pages"

// Open makes an empty store in a folder, which is emptied if an earlier process has left one. Stores with a cache of their own give it about as many
// bytes as they are told.
func Open(path string, cache int64) (state.Store, error) {
	s, err := pages.Open(path, cache/4) // the operating system has the pages themselves
	if err != nil {
		return nil, err
	}
	return s, nil
}
