package eo

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

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
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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

// patience is how long a child may say nothing: longer than it waits for a service.
const patience = 3 * time.Minute

// line is the next one that the child says; timeout: the moment since it began came first.
func (c *running) line(moment time.Duration, began time.Time) (line string, timeout bool) {
	c.t.Helper()
	var due <-chan time.Time
	if moment > 0 {
		due = time.After(time.Until(began.Add(moment)))
	}
	select {
	case <-time.After(patience):
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // it says where it is
		c.wait()
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
