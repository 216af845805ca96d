package service

import (
	"io/fs"
	"path"
	"strings"

	"github.com/riverbed/riverbed/core/objstore"
)

// What a hadoop catalog asks of its files, so that tables on S3 can be read. It publishes by renaming, which no object store does atomically, so that of
// two writers one would be lost: writing is refused before it comes to that.

// readOnly reports whether a catalog's tables can be read and not written.
func readOnly(kind, warehouse string) bool {
	scheme, _, ok := strings.Cut(warehouse, "://")
	return (kind == "hadoop" || kind == "file") && ok && scheme != "file"
}

// reads are the operations that change nothing.
var reads = map[string]bool{"load": true, "files": true, "changes": true, "marker": true}

type folder struct{ name string }

func (f folder) Name() string               { return path.Base(f.name) }
func (f folder) IsDir() bool                { return true }
func (f folder) Type() fs.FileMode          { return fs.ModeDir }
func (f folder) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// WalkDir lists the objects of a folder; folders in it are left out, and nobody asks for them.
func (b bucket) WalkDir(root string, fn fs.WalkDirFunc) error {
	s, key, err := objstore.For(root)
	if err != nil {
		return err
	}
	found, err := s.Glob(b.ctx, strings.TrimSuffix(key, "/")+"/*")
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fn(root, nil, &fs.PathError{Op: "list", Path: root, Err: fs.ErrNotExist})
	}
	if err := fn(root, folder{root}, nil); err != nil {
		return skipped(err)
	}
	for _, o := range found {
		if err := fn(objstore.URL(s, o.Name), fs.FileInfoToDirEntry(described{o}), nil); err != nil {
			return skipped(err)
		}
	}
	return nil
}

func skipped(err error) error {
	if err == fs.SkipAll || err == fs.SkipDir {
		return nil
	}
	return err
}

func (b bucket) Stat(name string) (fs.FileInfo, error) {
	s, key, err := objstore.For(name)
	if err != nil {
		return nil, err
	}
	o, err := s.Stat(b.ctx, key)
	return described{o}, err
}

func (b bucket) refuse(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
}

// Rename, RenameNoReplace, RemoveAll and MkdirAll are for writers.
func (b bucket) Rename(from, _ string) error          { return b.refuse("rename", from) }
func (b bucket) RenameNoReplace(from, _ string) error { return b.refuse("rename", from) }
func (b bucket) RemoveAll(name string) error          { return b.refuse("remove", name) }
func (b bucket) MkdirAll(name string) error           { return b.refuse("make", name) }
