// Package objstore is the one door to files and object stores: reading, listing, publishing whole objects.
//
// Invariant: a name either has no object or a whole one. Writers publish by an atomic step, so a reader never
// sees half of what was written, and after a crash an object that was published and synced is there.
package objstore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/riverbed/riverbed/core/errs"
)

// ErrNotExist is wrapped by errors about objects that are not there.
var ErrNotExist = fs.ErrNotExist

// ErrExists is wrapped by PutIfAbsent when the name is taken.
var ErrExists = fs.ErrExist

// Info describes an object.
type Info struct {
	Name     string
	Size     int64
	Modified time.Time
}

// File is an open object.
type File interface {
	io.ReaderAt
	io.Closer
	Info() Info
}

// Upload is an object being written. Nothing is visible before Commit; Abort after Commit does nothing.
type Upload interface {
	io.Writer
	// Commit makes the object durable and visible under its name, replacing what was there.
	Commit() error
	// Abort drops it.
	Abort() error
}

// Store reads and writes objects by name.
type Store interface {
	// Glob lists the objects that match a pattern (*, ?, [..], {a,b}, **), sorted by name.
	Glob(ctx context.Context, pattern string) ([]Info, error)
	Stat(ctx context.Context, name string) (Info, error)
	Open(ctx context.Context, name string) (File, error)
	// Create starts an upload.
	Create(ctx context.Context, name string) (Upload, error)
	// PutIfAbsent publishes data under a name that is free; otherwise the error wraps ErrExists and nothing changes.
	PutIfAbsent(ctx context.Context, name string, data []byte) error
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// For returns the store that a path or URL lives in, and the name within that store.
func For(path string) (Store, string, error) {
	scheme, rest, ok := strings.Cut(path, "://")
	if !ok {
		return Local{}, path, nil
	}
	switch scheme {
	case "file":
		return Local{}, rest, nil
	case "s3", "s3a":
		return nil, "", errs.New(errs.Unsupported, "open", "%s:// paths come with the durable connectors and cannot be read yet: %q", scheme, path).
			WithHint("copy the files to a local directory and name that")
	}
	return nil, "", errs.New(errs.Unsupported, "open", "no store understands %q", path).WithHint("use a local path or file://")
}

// Get reads a whole object.
func Get(ctx context.Context, s Store, name string) ([]byte, error) {
	f, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, f.Info().Size)
	if _, err := f.ReadAt(buf, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return buf, nil
}

// Put publishes a whole object.
func Put(ctx context.Context, s Store, name string, data []byte) error {
	u, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = u.Abort() }()
	if _, err := u.Write(data); err != nil {
		return err
	}
	return u.Commit()
}

// HasGlob reports whether path holds characters that Glob would expand.
func HasGlob(path string) bool { return strings.ContainsAny(path, "*?[{") }
