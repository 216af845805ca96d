package sim

import (
	"math/rand/v2"
	"testing"
)

// TestDisk looks at what a loss of power leaves of a file that was made, written and renamed, with some of its syncs.
func TestDisk(t *testing.T) {
	for _, c := range []struct {
		name                    string
		file, folder, behind    bool // synced: the file; the folder, before the rename; and behind it
		fails                   bool // the first sync of the file does
		kind                    loss
		first, second, contents string // who has the first name and the second, and what is in it
	}{
		{name: "nothing is synced", kind: nothing},
		{name: "all is written meanwhile", kind: everything, second: "there", contents: "bytes"},
		{name: "a file without its name", file: true, kind: nothing},
		{name: "a name without its bytes", folder: true, kind: nothing, first: "there"},
		{name: "a rename is lost", file: true, folder: true, kind: nothing, first: "there", contents: "bytes"},
		{name: "a rename without the bytes", folder: true, behind: true, kind: nothing, second: "there"},
		{name: "all is synced", file: true, behind: true, kind: nothing, second: "there", contents: "bytes"},
		{name: "a sync that failed is not made good", file: true, fails: true, behind: true, kind: nothing, second: "there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(newWorld(1))
			n := d.file()
			d.root.change(change{{"first", n}})
			n.data, n.broken = []byte("bytes"), c.fails
			if c.file {
				n.sync()
			}
			if c.folder {
				d.root.sync()
			}
			d.root.change(change{{"first", nil}, {"second", n}})
			if c.behind {
				d.root.sync()
			}
			d.lose(c.kind, rand.New(rand.NewPCG(1, 1)))
			for name, want := range map[string]string{"/first": c.first, "/second": c.second} {
				switch got := d.find(name); {
				case (got != nil) != (want != ""):
					t.Errorf("%s is there: %t", name, got != nil)
				case got != nil && string(got.data) != c.contents:
					t.Errorf("%s has %q", name, got.data)
				}
			}
		})
	}
}

// TestDiskTears looks at what may be left: each part of what was not synced, and never less than what was.
func TestDiskTears(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		d := newDisk(newWorld(1))
		n := d.file()
		d.root.change(change{{"a", n}})
		n.data = []byte("synced")
		n.sync()
		n.data = append(n.data, "rest"...)
		d.root.change(change{{"b", n}})
		d.lose(some, rand.New(rand.NewPCG(seed, 1)))
		left := ""
		for _, name := range sorted(d.root.names) {
			left += name
		}
		if len(n.data) < 6 || string(n.data[:6]) != "synced" {
			t.Fatalf("synced bytes are lost: %q", n.data)
		}
		seen[left+":"+string(n.data[6:])] = true
	}
	for _, want := range []string{":rest", "a:rest", "b:rest", "ab:rest", "b:\x00\x00\x00\x00"} {
		if !seen[want] {
			t.Errorf("%q is never left, of %v", want, seen)
		}
	}
}
