package parity

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/disk"
	"github.com/riverbed/riverbed/state/pages"
	"github.com/riverbed/riverbed/state/pebble"
)

var (
	opened   atomic.Int64 // stores
	storeDir string       // of those on disk
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "parity")
	if err != nil {
		panic(err)
	}
	storeDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// opener makes the stores of a run: a graph that is restored has another one than that which wrote the checkpoint.
func opener(kind string) func() (state.Store, error) {
	if kind == "" {
		return nil
	}
	return func() (state.Store, error) {
		n := opened.Add(1)
		if kind == "each" {
			dir := filepath.Join(storeDir, "each")
			switch n % 4 {
			case 1:
				return open(pages.Open(filepath.Join(dir, "pages"), 1<<16))
			case 2:
				return open(pebble.Open(filepath.Join(dir, "pebble"), 1<<20))
			case 3:
				return disk.Open(filepath.Join(dir, "built"), 1<<20)
			}
		}
		return state.NewMemory(), nil
	}
}

func open[S state.Store](s S, err error) (state.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
