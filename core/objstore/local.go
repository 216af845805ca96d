package objstore

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// Local is the file system. Names are its paths.
type Local struct {
	of *system // nil: that of the machine
}

type localFile struct {
	Handle
	info Info
}

func (f localFile) Info() Info { return f.info }

// Glob matches files, not directories and not what is being written.
func (l Local) Glob(_ context.Context, pattern string) ([]Info, error) {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(pattern)))
	if rest == "" || rest == "." || rest == ".." {
		return nil, nil // a folder
	}
	names, err := doublestar.Glob(l.system().Dir(base), rest, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	sort.Strings(names)
	out := make([]Info, 0, len(names))
	for _, name := range names {
		if _, temporary := staging(filepath.Base(name)); temporary {
			continue
		}
		name = filepath.Join(base, name)
		st, err := l.system().Stat(name)
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
func (l Local) Stat(_ context.Context, name string) (Info, error) {
	st, err := l.system().Stat(name)
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
	f, err := l.system().Open(name)
	if err != nil {
		return nil, err
	}
	return localFile{f, info}, nil
}

// upload writes beside its place and renames; the rename is the atomic step.
type upload struct {
	l    Local
	f    Handle
	name string
	done bool
}

// Create makes missing directories and starts a temporary file in the same one, as rename must not cross devices.
// The temporary name begins with a dot and ends in .tmp, so globs for data files pass it by.
func (l Local) Create(_ context.Context, name string) (Upload, error) {
	dir := filepath.Dir(name)
	if err := l.makeDir(dir); err != nil {
		return nil, err
	}
	f, err := l.system().CreateTemp(dir, "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return nil, err
	}
	return &upload{l: l, f: f, name: name}, nil
}

func (u *upload) Write(p []byte) (int, error) { return u.f.Write(p) }

func (u *upload) Commit() error {
	if err := u.sync(); err != nil {
		return err
	}
	if err := u.l.system().Rename(u.f.Name(), u.name); err != nil {
		return err
	}
	u.done = true
	return u.l.syncDir(filepath.Dir(u.name))
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

// Stage leaves the temporary file, which is what is staged.
func (u *upload) Stage() (Staged, error) {
	st, err := u.f.Stat()
	if err != nil {
		return Staged{}, err
	}
	if err := u.sync(); err != nil {
		return Staged{}, err
	}
	if err := u.l.syncDir(filepath.Dir(u.name)); err != nil {
		return Staged{}, err
	}
	u.done = true
	return Staged{Name: u.name, Size: st.Size(), Key: u.f.Name()}, nil
}

// Publish links the staged file to its name before it takes its own away, so that nothing that has the name is replaced.
//
// AIDEV-NOTE: ended between the two, both names are of one file, and the next Publish sees that. When the staged file is gone
// the name must be its own: nothing else takes the temporary name away but Discard, and that is for what nobody publishes.
func (l Local) Publish(_ context.Context, s Staged) error {
	system := l.system()
	staged, err := system.Stat(s.Key)
	if errors.Is(err, fs.ErrNotExist) {
		if st, e := system.Stat(s.Name); e == nil && st.Size() == s.Size {
			return l.syncDir(filepath.Dir(s.Name))
		}
	}
	if err != nil {
		return err
	}
	switch err := system.Link(s.Key, s.Name); {
	case errors.Is(err, fs.ErrExist):
		st, e := system.Stat(s.Name)
		if e != nil {
			return e
		}
		if !system.SameFile(st, staged) {
			return err
		}
	case err != nil: // a file system without links
		if _, e := system.Lstat(s.Name); !errors.Is(e, fs.ErrNotExist) {
			return err
		}
		if e := system.Rename(s.Key, s.Name); e != nil {
			return errors.Join(err, e)
		}
		return l.syncDir(filepath.Dir(s.Name))
	}
	// The name is durable before the other one goes.
	if err := l.syncDir(filepath.Dir(s.Name)); err != nil {
		return err
	}
	if err := system.Remove(s.Key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Discard removes the temporary file.
func (l Local) Discard(ctx context.Context, s Staged) error { return l.Delete(ctx, s.Key) }

// ListStaged finds the temporary files below a folder.
func (l Local) ListStaged(ctx context.Context, folder string) ([]Staged, error) {
	var out []Staged
	err := fs.WalkDir(l.system().Dir(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if e := ctx.Err(); e != nil {
			return e
		}
		if name, ok := staging(d.Name()); ok && !d.IsDir() {
			key := filepath.Join(folder, path)
			out = append(out, Staged{Name: filepath.Join(filepath.Dir(key), name), Key: key})
		}
		return nil
	})
	return out, err
}

// staging is the name that a temporary file is for.
func staging(base string) (name string, ok bool) {
	base, dot := strings.CutPrefix(base, ".")
	base, tmp := strings.CutSuffix(base, ".tmp")
	at := strings.LastIndexByte(base, '.')
	if !dot || !tmp || at <= 0 {
		return "", false
	}
	return base[:at], true
}

func (u *upload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	_ = u.f.Close()
	return u.l.system().Remove(u.f.Name())
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
	if err := l.system().Link(u.f.Name(), name); err != nil {
		return err
	}
	return l.syncDir(filepath.Dir(name))
}

// Delete removes a file.
func (l Local) Delete(_ context.Context, name string) error {
	if err := l.system().Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeDir makes missing directories, and durable that they are there: what is synced in them later would be lost with them.
//
// AIDEV-NOTE: one that is there may be of somebody who ended, or failed, before it was durable. So a process syncs what is above a directory
// once, whoever made it.
func (l Local) makeDir(dir string) error {
	system := l.system()
	there := func() bool { st, err := system.Stat(dir); return err == nil && st.IsDir() }
	had := there()
	if had && system.stays(dir) {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return nil
	}
	if err := l.makeDir(parent); err != nil {
		return err
	}
	if !had {
		if err := system.Mkdir(dir); err != nil && !there() { // otherwise somebody else made it meanwhile
			return err
		}
	}
	if err := l.syncDir(parent); err != nil && !(had && unsyncable(err)) {
		return err
	}
	system.keep(dir)
	return nil
}

// unsyncable are directories that we may not open, or whose file system holds nothing that could be lost: one that is there was not made in them by us.
func unsyncable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS)
}

// Keep makes durable that a file stays which is there.
func (l Local) Keep(_ context.Context, name string) error {
	dir := filepath.Dir(name)
	if err := l.makeDir(dir); err != nil {
		return err
	}
	return l.syncDir(dir)
}

// syncDir makes a rename durable: the entry lives in the directory.
func (l Local) syncDir(dir string) error {
	d, err := l.system().Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
