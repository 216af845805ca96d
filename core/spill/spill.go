// Package spill keeps batches that do not fit in memory in temporary files.
//
// Invariant: a file has no name once it is open, so that it is gone when its last handle is, however the process ends.
// Where the system cannot do that the file goes at Close, and what a dead process has left when the next one begins to
// spill.
package spill

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/riverbed/riverbed/core/errs"
)

const pattern = "riverbed-spill-*.arrow"

// Dir is where the files of one session go. It is made at the first need.
type Dir struct {
	path  string
	sweep sync.Once
	open  atomic.Int64
	bytes atomic.Int64
	// create makes a file; tests make it fail.
	create func(dir string) (disk, error)
}

// disk is what a File needs of an *os.File.
type disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// NewDir returns the directory at a path; "" is the system's for temporary files.
func NewDir(path string) *Dir {
	if path == "" {
		path = os.TempDir()
	}
	return &Dir{path: path, create: temporary}
}

// Open is the number of files in use.
func (d *Dir) Open() int64 { return d.open.Load() }

// Bytes is what was written to all files so far.
func (d *Dir) Bytes() int64 { return d.bytes.Load() }

// Create makes an empty file.
func (d *Dir) Create() (*File, error) {
	d.sweep.Do(func() {
		// Whatever has a name is left over, or is about to lose it and does not mind; a file that its process still needs
		// cannot be removed where it has kept its name.
		old, _ := filepath.Glob(filepath.Join(d.path, pattern))
		for _, name := range old {
			_ = os.Remove(name)
		}
	})
	f, err := d.create(d.path)
	if err != nil {
		return nil, errs.New(errs.Source, "spill", "no temporary file could be made in %s: %w", d.path, err).
			WithHint("set state_dir to a folder that can be written, or raise memory_limit")
	}
	d.open.Add(1)
	return &File{dir: d, disk: f}, nil
}

// named is a file that keeps its name until it is closed.
type named struct{ *os.File }

func (f named) Close() error { return errors.Join(f.File.Close(), os.Remove(f.Name())) }

func temporary(dir string) (disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return named{f}, nil
	}
	return f, nil
}

// File holds batches in the order in which they came. Its methods may be called by several goroutines.
type File struct {
	dir    *Dir
	disk   disk
	size   atomic.Int64
	closed sync.Once
}

// Span says where in its file a batch stands.
type Span struct{ at, size int64 }

// Size is the bytes that the batch takes in the file.
func (s Span) Size() int64 { return s.size }

var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// Write appends a batch.
func (f *File) Write(b arrow.RecordBatch) (Span, error) {
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	w := ipc.NewWriter(buf, ipc.WithSchema(b.Schema()))
	if err := errors.Join(w.Write(b), w.Close()); err != nil {
		return Span{}, errs.New(errs.Internal, "spill", "a batch could not be written: %w", err)
	}
	s := Span{size: int64(buf.Len())}
	s.at = f.size.Add(s.size) - s.size
	if _, err := f.disk.WriteAt(buf.Bytes(), s.at); err != nil {
		e := errs.New(errs.Source, "spill", "a temporary file in %s could not be written after %d MB: %w", f.dir.path, s.at>>20, err)
		if errors.Is(err, syscall.ENOSPC) {
			return Span{}, e.WithHint("the disk is full: set state_dir to a folder with more room, or raise memory_limit")
		}
		return Span{}, e.WithHint("set state_dir to another folder, or raise memory_limit")
	}
	f.dir.bytes.Add(s.size)
	return s, nil
}

// Read reads a batch that Write has written.
func (f *File) Read(s Span) (arrow.RecordBatch, error) {
	fail := func(err error) (arrow.RecordBatch, error) {
		return nil, errs.New(errs.Source, "spill", "a temporary file in %s could not be read: %w", f.dir.path, err)
	}
	data := make([]byte, s.size)
	if _, err := f.disk.ReadAt(data, s.at); err != nil {
		return fail(err)
	}
	r, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return fail(err)
	}
	b, err := r.Read()
	if err != nil {
		return fail(err)
	}
	return b, nil
}

// Close gives the file back. It may be called more than once.
func (f *File) Close() (err error) {
	f.closed.Do(func() {
		f.dir.open.Add(-1)
		err = f.disk.Close()
	})
	return err
}
