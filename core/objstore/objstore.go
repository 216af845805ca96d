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
	"sync"
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

// Upload is an object being written. Nothing is visible before Commit; Abort after Commit or Stage does nothing.
type Upload interface {
	io.Writer
	// Commit makes the object durable and visible under its name, replacing what was there.
	Commit() error
	// Stage makes the object durable without making it visible; Store.Publish does that, in whatever process.
	Stage() (Staged, error)
	// Abort drops it.
	Abort() error
}

// Staged is an object that is whole and durable and not yet visible. It holds nothing secret and may be written down as JSON.
type Staged struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// Key is what the store finds it by: a file beside the name, an upload.
	Key string `json:"key"`
	// Parts are the pieces of an upload, in order.
	Parts []string `json:"parts,omitempty"`
	// Mark is drawn for each object, so that one that is visible can be told from another of its name.
	Mark string `json:"mark,omitempty"`
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

	// Publish makes a staged object visible under its name. One that is visible already is left as it is: an earlier answer may
	// have been lost. The error wraps ErrExists when the name is another object's, ErrNotExist when the staged object is gone.
	Publish(ctx context.Context, s Staged) error
	// Discard drops a staged object; one that is not there is no error.
	Discard(ctx context.Context, s Staged) error
	// ListStaged lists what is staged, or is being written, under names that begin with a folder's. Of these only Name and Key are known.
	ListStaged(ctx context.Context, folder string) ([]Staged, error)
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
		bucket, _, _ := strings.Cut(rest, "/")
		if bucket == "" || HasGlob(bucket) {
			return nil, "", errs.New(errs.Usage, "open", "%q names no bucket", path).WithHint("write s3://bucket/key; a pattern may begin behind the bucket")
		}
		return s3FromEnvironment(), rest, nil
	}
	if find, ok := mounted.Load(scheme); ok {
		return find.(func(string) (Store, string, error))(rest)
	}
	return nil, "", errs.New(errs.Unsupported, "open", "no store understands %q", path).WithHint("use a local path, file:// or s3://")
}

// Mount lets For find stores under a scheme of their own: find is given what stands behind "://". The simulation does so (tests/go/sim), before
// anything runs.
func Mount(scheme string, find func(rest string) (Store, string, error)) { mounted.Store(scheme, find) }

var mounted sync.Map // scheme → func(string) (Store, string, error)

// URL is how a name of a store is written outside of it, so that For finds it again.
func URL(s Store, name string) string {
	if u, ok := s.(interface{ URL(name string) string }); ok {
		return u.URL(name)
	}
	return name
}

// Keep makes durable that an object stays which is there. A file system shows a name before it is durable, and who published it may have ended, or failed, before
// it was: whoever acts upon what it finds calls Keep first. Other stores show nothing earlier.
func Keep(ctx context.Context, s Store, name string) error {
	if k, ok := s.(interface {
		Keep(ctx context.Context, name string) error
	}); ok {
		return k.Keep(ctx, name)
	}
	return nil
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
