// Package pgtest runs a real PostgreSQL for tests: logical decoding on, every commit flushed to disk, on a free loopback port.
//
// Invariant: a server outlives neither its test nor the process of the test, however that ends, and what it has answered is what a
// crash of it leaves.
package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Password is the password of the superuser postgres; programs that are tested get it by PGPASSWORD or by an option.
const Password = "pg test: 'pass' \\word"

// Server is one PostgreSQL with a data folder of its own.
type Server struct {
	Port int
	bin  string // folder of the programs
	dir  string // of the data, the log and the socket
	cred *syscall.Credential

	parent int           // the process that starts the others
	ended  chan struct{} // closed when it has

	done io.Closer // closing it ends what is left of the server and removes the folder
}

// Start makes a server that ends with the test. settings are lines of postgresql.conf beside ours.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(settings...)
	if err == errMissing {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// errMissing is why a test that needs a server is skipped.
var errMissing = fmt.Errorf("no PostgreSQL server is installed (Debian: apt-get install postgresql)")

// New makes a server that runs until Close, or the end of this process.
func New(settings ...string) (*Server, error) {
	s := &Server{bin: programs()}
	if s.bin == "" {
		return nil, errMissing
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "riverbed-pg"); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // the server refuses to be root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if err := s.watch(); err != nil {
		return nil, err
	}
	if err := s.init(settings); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.Up(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// programs is the folder of the newest server that is installed.
func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	best, version := "", -1
	for _, path := range found {
		if n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))); err == nil && n > version {
			best, version = filepath.Dir(path), n
		}
	}
	if path, err := exec.LookPath("initdb"); best == "" && err == nil { // not Debian
		return filepath.Dir(path)
	}
	return best
}

// watch starts a shell that waits for the end of this process, whose pipe closes then, and clears up.
func (s *Server) watch() error {
	// SIGQUIT and not SIGKILL: the server's processes go with it, and the shared memory is given back.
	cmd := exec.Command("/bin/sh", "-c", `trap '' INT TERM HUP; cat >/dev/null; file=$0/data/postmaster.pid
if pid=$(head -1 "$file" 2>/dev/null); then
  kill -QUIT "$pid"; n=0
  while [ -e "$file" ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done
  [ ! -e "$file" ] || kill -KILL "$pid"
fi 2>/dev/null
rm -rf "$0"`, s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.done = closer(func() error {
		_ = in.Close()
		return cmd.Wait()
	})
	return nil
}

type closer func() error

func (c closer) Close() error { return c() }

// Close ends the server and forgets its data.
func (s *Server) Close() { _ = s.done.Close() }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }
func (s *Server) log() string  { return filepath.Join(s.dir, "log") }

func (s *Server) init(settings []string) error {
	password := filepath.Join(s.dir, "password")
	if err := os.WriteFile(password, []byte(Password+"\n"), 0o644); err != nil {
		return err
	}
	// Only what initdb writes is not flushed; the server flushes all that comes later.
	if out, err := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "scram-sha-256", "--pwfile", password, "--no-sync", "--locale=C", "-E", "UTF8").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Port = free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	conf := append([]string{
		"listen_addresses = '127.0.0.1'", fmt.Sprintf("port = %d", s.Port), fmt.Sprintf("unix_socket_directories = '%s'", s.dir),
		"wal_level = logical", "max_wal_senders = 20", "max_replication_slots = 20", "fsync = on", "synchronous_commit = on",
		"shared_buffers = 32MB", "max_wal_size = 256MB", "dynamic_shared_memory_type = mmap", // in the folder, which goes whatever ends the server
		"logging_collector = off", "log_line_prefix = '%m [%p] '",
	}, settings...)
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + strings.Join(conf, "\n") + "\n")
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.cred}
	return cmd
}

// Up starts the server and waits until it answers.
func (s *Server) Up() error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := s.command("postgres", "-D", s.data())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.parent, s.ended = cmd.Process.Pid, make(chan struct{})
	go func() { // a server that is not waited for stays a process, in whose place no other starts
		_ = cmd.Wait()
		close(s.ended)
	}()
	for exec.Command(filepath.Join(s.bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port)).Run() != nil {
		select {
		case <-s.ended:
			return fmt.Errorf("the server did not start:\n%s", s.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Down ends the server as an administrator would.
func (s *Server) Down() {
	_ = syscall.Kill(s.parent, syscall.SIGINT)
	<-s.ended
}

// Kill ends every process of the server by SIGKILL, so that nothing tidies up.
func (s *Server) Kill() {
	_ = syscall.Kill(s.parent, syscall.SIGSTOP) // so that it starts no more
	children := childrenOf(s.parent)
	_ = syscall.Kill(s.parent, syscall.SIGKILL)
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.ended
	for _, pid := range children {
		for running(pid) {
			time.Sleep(time.Millisecond)
		}
	}
}

// stat gives the state and the parent of a process.
func stat(pid int) (state byte, parent int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	_, rest, found := bytes.Cut(text, []byte(") "))
	if !found {
		return 0, 0, false
	}
	_, err = fmt.Sscanf(string(rest), "%c %d", &state, &parent)
	return state, parent, err == nil
}

func running(pid int) bool {
	state, _, ok := stat(pid)
	return ok && state != 'Z' && state != 'X'
}

func childrenOf(parent int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, p, ok := stat(pid); ok && p == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// URL is how a client reaches a database; "" is postgres. The password is not in it.
func (s *Server) URL(database string) string {
	if database == "" {
		database = "postgres"
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s", s.Port, database)
}

// Log is the last of what the server wrote.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.log())
	if len(text) > 4000 {
		text = text[len(text)-4000:]
	}
	return string(text)
}

// Database makes a fresh database and returns its name.
func (s *Server) Database(t testing.TB, name string) string {
	t.Helper()
	s.SQL(t, "", "CREATE DATABASE "+name)
	return name
}

// SQL runs statements with psql, a client that has nothing of ours, and returns the rows: values between bars, NULL as ∅.
func (s *Server) SQL(t testing.TB, database, text string) []string {
	t.Helper()
	rows, err := s.TrySQL(t.Context(), database, text)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TrySQL is SQL for what may fail.
func (s *Server) TrySQL(ctx context.Context, database, text string) ([]string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "psql"), "-X", "-q", "-A", "-t", "-F", "|", "-P", "null=∅", "-v", "ON_ERROR_STOP=1", "-d", s.URL(database), "-f", "-")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+Password, "PGTZ=UTC", "PGOPTIONS=")
	cmd.Stdin = strings.NewReader(text)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("psql: %w\n%s", err, failed.String())
	}
	if out.Len() == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), nil
}

// Installed reports whether a server can be started here.
func Installed() bool { return programs() != "" }
