package statetest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/state"
)

// killed names the folder of a store to a process that is to be killed over it.
const killed = "RIVERBED_TEST_KILLED_STORE"

// RunDisk tests a store that keeps its files in a folder. It starts the test that calls it anew, as the process that is killed.
func RunDisk(t *testing.T, open func(path string) (state.Store, error)) {
	if path := os.Getenv(killed); path != "" {
		live(t, path, open)
		return
	}
	Run(t, func(t *testing.T) state.Store {
		s, err := open(filepath.Join(t.TempDir(), "store"))
		must(t, err)
		return s
	})
	t.Run("what a killed process leaves is emptied, and a checkpoint fills it", func(t *testing.T) { killAndRestore(t, open) })
	t.Run("a folder is one store's", func(t *testing.T) { oneFolder(t, open) })
	t.Run("files of others are never removed", func(t *testing.T) { othersFiles(t, open) })
	t.Run("closing leaves no data", func(t *testing.T) { leavesNothing(t, open) })
}

// live fills a store, says so, and never ends.
func live(t *testing.T, path string, open func(path string) (state.Store, error)) {
	s, err := open(path)
	must(t, err)
	must(t, s.Apply([]state.Pair{kv("left behind", strings.Repeat("x", 1<<20))}))
	must(t, s.Ingest(feed(kv("loaded", "y"))))
	defer func() { _ = s.Close() }() // never; but a store that nobody has would give its lock back
	fmt.Println("alive")
	select {}
}

func killAndRestore(t *testing.T, open func(path string) (state.Store, error)) {
	path := filepath.Join(t.TempDir(), "store")
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), killed+"="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasSuffix(lines.Text(), "alive") {
	}
	if _, err := open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("opened the folder of a living process: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()

	// The checkpoint is what a view shows; another store, of another kind, may have made it.
	model := state.NewMemory()
	r := clock.NewRand(7)
	for range 20 {
		must(t, model.Apply(batch(r, 500, 300)))
	}
	checkpoint := all(t, model)
	s, err := open(path)
	must(t, err)
	wants(t, dump(t, s, nil, nil), "")
	must(t, s.Restore(feed(checkpoint...)))
	equal(t, all(t, s), checkpoint)
	var keys [][]byte
	for _, p := range checkpoint {
		keys = append(keys, p.Key)
	}
	got, err := s.Get(keys)
	must(t, err)
	for i, p := range checkpoint {
		if !bytes.Equal(got[i], p.Value) {
			t.Fatalf("%q has %q, not %q", p.Key, got[i], p.Value)
		}
	}
	must(t, s.Close())
}

func oneFolder(t *testing.T, open func(path string) (state.Store, error)) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := open(path)
	must(t, err)
	if _, err := open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("two stores share a folder: %v", err)
	}
	must(t, s.Apply([]state.Pair{kv("a", "1")}))
	wants(t, dump(t, s, nil, nil), "a=1 ")
	must(t, s.Close())
	s, err = open(path)
	must(t, err)
	wants(t, dump(t, s, nil, nil), "")
	must(t, s.Close())
}

func othersFiles(t *testing.T, open func(path string) (state.Store, error)) {
	path := t.TempDir()
	mine := filepath.Join(path, "thesis.tex")
	must(t, os.WriteFile(mine, []byte("years of work"), 0o600))
	if _, err := open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("took a folder with files of others: %v", err)
	}
	if b, err := os.ReadFile(mine); err != nil || string(b) != "years of work" {
		t.Fatalf("%q, %v", b, err)
	}
}

func leavesNothing(t *testing.T, open func(path string) (state.Store, error)) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := open(path)
	must(t, err)
	must(t, s.Apply([]state.Pair{kv("a", strings.Repeat("x", 1<<20))}))
	must(t, s.Close())
	size := int64(0)
	must(t, filepath.Walk(path, func(_ string, f os.FileInfo, err error) error {
		if err == nil && !f.IsDir() {
			size += f.Size()
		}
		return err
	}))
	if size != 0 {
		t.Errorf("%d bytes are left", size)
	}
}
