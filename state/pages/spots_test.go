package pages

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/state"
)

// TestValuesInPlace: rows that are read and come back, while others come, go and grow, and somebody may look on, are what they would be in memory.
func TestValuesInPlace(t *testing.T) {
	for seed := range uint64(4) {
		r := clock.NewRand(seed)
		s, err := Open(filepath.Join(t.TempDir(), "store"), 1<<(10+r.IntN(8)))
		if err != nil {
			t.Fatal(err)
		}
		model := map[string]string{}
		inPlace := 0
		var view state.View
		for round := range 400 {
			var keys [][]byte
			var pairs []state.Pair
			for k := range 2000 {
				key := []byte(fmt.Sprintf("table %04d", k))
				if r.IntN(20) > 0 {
					continue
				}
				keys = append(keys, key)
				p := state.Pair{Key: key, Value: []byte(fmt.Sprintf("%040d", r.IntN(1000)))}
				switch r.IntN(20) {
				case 0:
					p.Value = nil
				case 1:
					p.Value = []byte{}
				case 2:
					p.Value = bytes.Repeat([]byte("x"), r.IntN(200))
				}
				if r.IntN(4) > 0 {
					pairs = append(pairs, p)
				}
			}
			got, err := s.Get(keys)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range keys {
				if want, ok := model[string(k)]; ok != (got[i] != nil) || want != string(got[i]) {
					t.Fatalf("seed %d, round %d: %s has %q, not %q", seed, round, k, got[i], want)
				}
			}
			switch {
			case round%16 == 3:
				if view, err = s.Snapshot(); err != nil {
					t.Fatal(err)
				}
			case view != nil && round%16 == 5:
				if err := view.Close(); err != nil {
					t.Fatal(err)
				}
				view = nil
			}
			if round%50 == 49 {
				from, to := []byte("table 0500"), []byte("table 0700")
				if err := s.DeleteRange(from, to); err != nil {
					t.Fatal(err)
				}
				for k := range model {
					if k >= string(from) && k < string(to) {
						delete(model, k)
					}
				}
			}
			if err := s.Apply(pairs); err != nil {
				t.Fatal(err)
			}
			inPlace += len(pairs) - len(s.left)
			for _, p := range pairs {
				if p.Value == nil {
					delete(model, string(p.Key))
				} else {
					model[string(p.Key)] = string(p.Value)
				}
			}
		}
		if inPlace < 1000 {
			t.Fatalf("seed %d: %d values were written where they lay", seed, inPlace)
		}
		n := 0
		if err := s.Range(nil, nil, func(p state.Pair) bool {
			n++
			if model[string(p.Key)] != string(p.Value) {
				t.Errorf("%s has %q, not %q", p.Key, p.Value, model[string(p.Key)])
			}
			return true
		}); err != nil || n != len(model) {
			t.Fatalf("%d rows, not %d: %v", n, len(model), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
