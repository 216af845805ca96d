package eo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// journal remembers the rounds of a path that were finished, so that a run which was broken off goes on. Rounds of another program, that is
// of other code, do not count. The nil *journal remembers nothing.
type journal struct {
	t    *testing.T
	path string
	done []report
}

// openJournal finds what was done of a path.
func openJournal(t *testing.T, name string, kills int, seed uint64) *journal {
	folder := os.Getenv("RIVERBED_EO_JOURNAL")
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf("%s-%d-%d-%s.jsonl", strings.ReplaceAll(name, " ", "-"), kills, seed, program(t))
	j := &journal{t: t, path: filepath.Join(folder, file)}
	text, err := os.ReadFile(j.path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var r report
		if json.Unmarshal(s.Bytes(), &r) != nil {
			break // it was cut off while it was written
		}
		j.done = append(j.done, r)
	}
	return j
}

// program is a hash of the program that runs.
func program(t *testing.T) string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

func (j *journal) round(n int) (report, bool) {
	if j == nil || n >= len(j.done) {
		return report{}, false
	}
	return j.done[n], true
}

// finished writes all rounds anew: a line that was cut off must not stay in between.
func (j *journal) finished(r report) {
	if j == nil {
		return
	}
	j.done = append(j.done, r)
	var b bytes.Buffer
	for _, r := range j.done {
		line, err := json.Marshal(r)
		if err != nil {
			j.t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(j.path, b.Bytes(), 0o600); err != nil {
		j.t.Fatal(err)
	}
}

// close forgets a path that was run to its end.
func (j *journal) close(failed bool) {
	if j != nil && !failed {
		_ = os.Remove(j.path)
	}
}
