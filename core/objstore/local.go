package objstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/bmatcuk/doublestar/v4"
)

// Local is the file system. Names are its paths.
type Local struct{}

type localFile struct {
	*os.File
	info Info
}

func (f localFile) Info() Info { return f.info }

// Glob matches files, not directories.
func (Local) Glob(_ context.Context, pattern string) ([]Info, error) {
	names, err := doublestar.FilepathGlob(pattern, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	sort.Strings(names)
	out := make([]Info, 0, len(names))
	for _, name := range names {
		st, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since it was listed
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Info{name, st.Size(), st.ModTime()})
	}
	return out, nil
}

// Stat describes a file.
func (Local) Stat(_ context.Context, name string) (Info, error) {
	st, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	if st.IsDir() {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: errors.New("is a directory")}
	}
	return Info{name, st.Size(), st.ModTime()}, nil
}

// Open opens a file for reading.
func (l Local) Open(ctx context.Context, name string) (File, error) {
	info, err := l.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return localFile{f, info}, nil
}

// upload writes beside its place and renames; the rename is the atomic step.
type upload struct {
	f    *os.File
	name string
	done bool
}

// Create makes missing directories and starts a temporary file in the same one, as rename must not cross devices.
// The temporary name begins with a dot and ends in .tmp, so globs for data files pass it by.
func (Local) Create(_ context.Context, name string) (Upload, error) {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return nil, err
	}
	return &upload{f: f, name: name}, nil
}

func (u *upload) Write(p []byte) (int, error) { return u.f.Write(p) }

func (u *upload) Commit() error {
	if err := u.sync(); err != nil {
		return err
	}
	if err := os.Rename(u.f.Name(), u.name); err != nil {
		return err
	}
	u.done = true
	return syncDir(filepath.Dir(u.name))
}

// sync makes the content durable before the name points to it.
func (u *upload) sync() error {
	if err := u.f.Chmod(0o644); err != nil {
		return err
	}
	if err := u.f.Sync(); err != nil {
		return err
	}
	return u.f.Close()
}

func (u *upload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	_ = u.f.Close()
	return os.Remove(u.f.Name())
}

// PutIfAbsent links the finished file to its name: a link fails where a rename would replace.
func (l Local) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	up, err := l.Create(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = up.Abort() }()
	u := up.(*upload)
	if _, err := u.Write(data); err != nil {
		return err
	}
	if err := u.sync(); err != nil {
		return err
	}
	if err := os.Link(u.f.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// Delete removes a file.
func (Local) Delete(_ context.Context, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes a rename durable: the entry lives in the directory.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
