// Package eo kills pipelines: a child process runs one between real services and is ended with SIGKILL in every phase of its epochs and at
// any moment; what an independent client then reads of the sink is what one undisturbed run would have written.
package eo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/clock"
)

// phases in which a child is killed.
var phases = []string{
	checkpoint.Copying, checkpoint.Copied, checkpoint.Staging, checkpoint.Staged, checkpoint.Uploading, checkpoint.Uploaded, checkpoint.Publishing,
	checkpoint.Published, checkpoint.Committing, checkpoint.Committed, checkpoint.Marked, checkpoint.Acknowledging, checkpoint.Acknowledged,
}

// path is a pipeline between two services.
type path struct {
	name string
	// open makes what the pipeline reads and writes and gives its statements.
	open func(t *testing.T) *plumbing
}

// plumbing is one opened path.
type plumbing struct {
	statements []string
	settings   map[string]string
	// feed adds so many rows to the source; it is called while the pipeline runs.
	feed func(n int) error
	// read gives the rows of the sink as an independent client sees them, how often each.
	read func() (map[string]int, error)
	// want gives the rows that one undisturbed run would have written.
	want func() (map[string]int, error)
	// disturb ends and restarts a service; nil: there is none.
	disturb func() error
	until   string
}

// report counts what a run of a path did.
type report struct {
	Path              string
	Kills             map[string]int
	Epochs, Fed       int
	Rows, Lost, Twice int
}

func (r report) String() string {
	var kills []string
	total := 0
	for _, phase := range slices.Sorted(maps.Keys(r.Kills)) {
		kills = append(kills, fmt.Sprintf("%s %d", phase, r.Kills[phase]))
		total += r.Kills[phase]
	}
	return fmt.Sprintf("%s: %d kills (%s), %d epochs, %d rows fed, %d rows in the sink, %d lost, %d doubled", r.Path, total, strings.Join(kills, ", "), r.Epochs, r.Fed, r.Rows, r.Lost, r.Twice)
}

// chunk is how many rows are fed each time a child ends an epoch.
const chunk = 200

// kill runs a path with so many kills and compares what the sink holds.
func (p path) kill(t *testing.T, kills int, seed uint64, markers bool) report {
	t.Helper()
	pl := p.open(t)
	r := report{Path: p.name, Kills: map[string]int{}}
	rand := clock.NewRand(seed)
	feed := func(n int) {
		if err := pl.feed(n); err != nil {
			t.Fatal(err)
		}
		r.Fed += n
	}
	feed(chunk)
	j := job{Settings: pl.settings, Statements: pl.statements, Markers: markers}
	for n := range kills {
		target := phases[n%len(phases)]
		random := n%5 == 4 // at any moment
		if pl.disturb != nil && n%20 == 10 {
			if err := pl.disturb(); err != nil {
				t.Fatal(err)
			}
		}
		c := start(t, j)
		began := time.Now()
		var moment time.Duration
		if random {
			moment = time.Duration(rand.IntN(1500)) * time.Millisecond
			target = "any moment"
		}
		epochs := 0
		for {
			if epochs > 30 { // the phase does not come: without markers nothing is committed
				target = "any moment"
				break
			}
			line, timeout := c.line(moment, began)
			if timeout {
				break
			}
			word, rest, _ := strings.Cut(line, " ")
			if word != "phase" {
				t.Fatalf("%s: kill %d, in %s after %d epochs: the pipeline says %s", p.name, n, target, epochs, line)
			}
			phase, _, _ := strings.Cut(rest, " ")
			if phase == checkpoint.Copied {
				epochs++
				r.Epochs++
				feed(chunk)
			}
			if !random && phase == target && epochs >= 3+rand.IntN(3) {
				break
			}
			c.goOn()
		}
		c.kill()
		r.Kills[target]++
	}
	j.Until = pl.until
	c := start(t, j)
	for {
		line, _ := c.line(0, time.Time{})
		if line == "ended" {
			break
		}
		if !strings.HasPrefix(line, "phase ") {
			t.Fatalf("%s: the last run says %s", p.name, line)
		}
		c.goOn()
	}
	c.wait()
	got, err := pl.read()
	if err != nil {
		t.Fatal(err)
	}
	want, err := pl.want()
	if err != nil {
		t.Fatal(err)
	}
	for row, n := range want {
		if got[row] < n {
			r.Lost++
			if r.Lost < 5 {
				t.Logf("lost: %s, there %d times instead of %d", row, got[row], n)
			}
		}
	}
	for row, n := range got {
		r.Rows += n
		if n > want[row] {
			r.Twice++
			if r.Twice < 5 {
				t.Logf("doubled: %s, there %d times instead of %d", row, n, want[row])
			}
		}
	}
	if r.Fed < chunk*kills || len(want) == 0 {
		t.Fatalf("the test is not one: %s", r)
	}
	return r
}

// running is a child.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func start(t *testing.T, j job) *running {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &running{t: t, cmd: exec.Command(self), lines: make(chan string)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stderr = t.Output()
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	go func() {
		defer close(c.lines)
		s := bufio.NewScanner(out)
		for s.Scan() {
			c.lines <- s.Text()
		}
	}()
	return c
}

// line is the next one that the child says; timeout: the moment since it began came first.
func (c *running) line(moment time.Duration, began time.Time) (line string, timeout bool) {
	c.t.Helper()
	var due <-chan time.Time
	if moment > 0 {
		due = time.After(time.Until(began.Add(moment)))
	}
	select {
	case <-time.After(2 * time.Minute):
		c.t.Fatal("the pipeline says nothing")
		return "", true
	case line, more := <-c.lines:
		if !more {
			c.t.Fatalf("the pipeline ended without a word: %v", c.cmd.Wait())
		}
		return line, false
	case <-due:
		return "", true
	}
}

func (c *running) goOn() { _, _ = io.WriteString(c.in, "\n") }

func (c *running) kill() {
	_ = c.cmd.Process.Kill()
	c.wait()
}

func (c *running) wait() {
	for range c.lines { // it is at its end
	}
	_ = c.cmd.Wait()
}
