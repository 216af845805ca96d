package pages

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/state"
)

// TestSpoiledPages: whatever byte of the file changes, what is read is right or an error. Some values were written where they lay.
func TestSpoiledPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := Open(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r := clock.NewRand(1)
	var keys [][]byte
	var pairs []state.Pair
	for i := range 200 {
		k := []byte(fmt.Sprintf("table %04d", i))
		keys = append(keys, k)
		pairs = append(pairs, state.Pair{Key: k, Value: []byte(fmt.Sprint("value ", r.Uint64()))})
	}
	if err := s.Apply(pairs); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(keys); err != nil {
		t.Fatal(err)
	}
	for i := range pairs {
		if i%3 == 0 {
			pairs[i].Value[len(pairs[i].Value)-1] ^= 1
		}
	}
	before := s.space
	if err := s.Apply(pairs); err != nil {
		t.Fatal(err)
	}
	if s.space.end != before.end || len(s.left) > 0 {
		t.Fatalf("%d values were not written where they lie", len(s.left))
	}
	name := filepath.Join(path, "pages")
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for at := range file {
		spoil := func(by byte) {
			if _, err := s.file.WriteAt([]byte{file[at] ^ by}, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		spoil(byte(1 << r.IntN(8)))
		got, err := s.Get(keys)
		switch {
		case err != nil:
			found++
			if !errs.Is(err, errs.State) {
				t.Fatal(err)
			}
		default:
			for i, p := range pairs {
				if !bytes.Equal(got[i], p.Value) {
					t.Fatalf("byte %d: %q has %q, not %q", at, p.Key, got[i], p.Value)
				}
			}
		}
		spoil(0)
	}
	if size := 200 * (len("0000") + len(pairs[0].Value)); found < size {
		t.Fatalf("%d spoiled bytes of at least %d were found", found, size)
	}
}
