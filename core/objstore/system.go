package objstore

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// FS is what Local needs of a file system. The simulation has one that forgets what was not synced (tests/go/sim).
type FS interface {
	// Dir is what is below a folder, to be listed.
	Dir(name string) fs.FS
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	SameFile(a, b fs.FileInfo) bool
	// Open opens a file to be read, or a folder to be synced.
	Open(name string) (Handle, error)
	// CreateTemp makes a file whose name is the pattern's with something drawn instead of its star.
	CreateTemp(dir, pattern string) (Handle, error)
	Mkdir(name string) error
	Link(from, to string) error
	Rename(from, to string) error
	Remove(name string) error
}

// Handle is an open file or folder.
type Handle interface {
	io.ReaderAt
	io.Writer
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	// Sync makes durable what the file holds, or which names the folder has.
	Sync() error
}

// system is a file system, and what this process knows of it.
type system struct {
	FS
	mu   sync.Mutex
	kept map[string]bool // directories that are durable, with all above them
}

// maxKept bounds what is known: who partitions files by a column has a directory for each of its values.
const maxKept = 10_000

func (s *system) stays(dir string) bool {
	name, err := filepath.Abs(dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && s.kept[name]
}

func (s *system) keep(dir string) {
	name, err := filepath.Abs(dir)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || len(s.kept) >= maxKept {
		s.kept = map[string]bool{}
	}
	s.kept[name] = true
}

// On is the store of a file system.
func On(f FS) Local { return Local{&system{FS: f}} }

var machine = &system{FS: osFS{}}

func (l Local) system() *system {
	if l.of == nil {
		return machine
	}
	return l.of
}

// osFS is the file system of the machine.
type osFS struct{}

func (osFS) Dir(name string) fs.FS                  { return os.DirFS(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)  { return os.Stat(name) }
func (osFS) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (osFS) SameFile(a, b fs.FileInfo) bool         { return os.SameFile(a, b) }
func (osFS) Mkdir(name string) error                { return os.Mkdir(name, 0o777) }
func (osFS) Link(from, to string) error             { return os.Link(from, to) }
func (osFS) Rename(from, to string) error           { return os.Rename(from, to) }
func (osFS) Remove(name string) error               { return os.Remove(name) }

func (osFS) Open(name string) (Handle, error) {
	f, err := os.Open(name)
	if err != nil { // not a nil *os.File that is a Handle
		return nil, err
	}
	return f, nil
}

func (osFS) CreateTemp(dir, pattern string) (Handle, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return f, nil
}
