package disk_test

import (
	"path/filepath"
	"testing"

	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/disk"
)

func TestOpen(t *testing.T) {
	s, err := disk.Open(filepath.Join(t.TempDir(), "store"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply([]state.Pair{{Key: []byte("k"), Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get([][]byte{[]byte("k")}); err != nil || string(got[0]) != "v" {
		t.Fatalf("%s has %q: %v", disk.Kind, got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := disk.Open("/dev/null/store", 1<<20); err == nil || s != nil {
		t.Fatalf("opened %v in a file", s)
	}
}

func TestOpenInSharesNoFolder(t *testing.T) {
	dir := t.TempDir()
	var all []state.Store
	for range 3 {
		s, err := disk.OpenIn(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := disk.OpenIn(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) != 3 {
		t.Fatalf("a fourth folder was made: %q", found)
	}
	if _, err := disk.OpenIn("/dev/null", 1<<20); err == nil {
		t.Fatal("opened in a file")
	}
}
