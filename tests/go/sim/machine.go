package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// machine is the disk as a process sees it: what the local store of core/objstore asks of a file system. All that another process or a loss of power can
// tell apart is an operation of the world; to open a folder, to close and to change rights take no time.
type machine struct {
	p *Process
	d *disk
}

func (m machine) do(op, name string, run func() error) error {
	return m.p.w.do(context.Background(), m.p, "disk", op, name, run)
}

// failedDisk is what a disk says that fails.
func failedDisk(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: syscall.EIO} }

func (m machine) Stat(name string) (info fs.FileInfo, err error) {
	err = m.do("stat", name, func() error {
		n := m.d.find(name)
		if n == nil {
			return &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
		}
		info = described{path.Base(name), n, int64(len(n.data)), n.modified}
		return nil
	})
	return info, err
}

func (m machine) Lstat(name string) (fs.FileInfo, error) { return m.Stat(name) }

func (m machine) SameFile(a, b fs.FileInfo) bool { return a.(described).n == b.(described).n }

func (m machine) Open(name string) (objstore.Handle, error) {
	h := &handle{m: m, name: name}
	open := func() error {
		if h.n = m.d.find(name); h.n == nil {
			return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return nil
	}
	m.p.w.mu.Lock()
	n := m.d.find(name)
	m.p.w.mu.Unlock()
	if n != nil && n.names != nil { // folders stay
		h.n = n
		return h, nil
	}
	if err := m.do("open", name, open); err != nil {
		return nil, err
	}
	return h, nil
}

func (m machine) CreateTemp(dir, pattern string) (objstore.Handle, error) {
	h := &handle{m: m}
	err := m.do("create", path.Join(dir, pattern), func() error {
		m.d.temps++
		h.name = path.Join(dir, strings.Replace(pattern, "*", fmt.Sprint(m.d.temps), 1))
		folder, base, err := m.d.at("create", h.name)
		if err != nil {
			return err
		}
		h.n = m.d.file()
		folder.change(change{{base, h.n}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (m machine) Mkdir(name string) error {
	return m.do("mkdir", name, func() error {
		parent, base, err := m.d.at("mkdir", name)
		if err != nil {
			return err
		}
		if parent.names[base] != nil {
			return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
		}
		parent.change(change{{base, m.d.folder()}})
		return nil
	})
}

func (m machine) Link(from, to string) error {
	return m.do("link", to, func() error {
		n := m.d.find(from)
		if n == nil {
			return &fs.PathError{Op: "link", Path: from, Err: fs.ErrNotExist}
		}
		folder, base, err := m.d.at("link", to)
		if err != nil {
			return err
		}
		if folder.names[base] != nil {
			return &fs.PathError{Op: "link", Path: to, Err: fs.ErrExist}
		}
		folder.change(change{{base, n}})
		m.p.w.store.published(to, n.data)
		return nil
	})
}

// Rename knows renames within a folder; no other is asked for.
func (m machine) Rename(from, to string) error {
	return m.do("rename", to, func() error {
		folder, base, err := m.d.at("rename", to)
		if err != nil {
			return err
		}
		old := path.Base(from)
		if path.Dir(from) != path.Dir(to) || folder.names[old] == nil {
			return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
		}
		folder.change(change{{old, nil}, {base, folder.names[old]}})
		return nil
	})
}

func (m machine) Remove(name string) error {
	return m.do("remove", name, func() error {
		folder, base, err := m.d.at("remove", name)
		if err != nil {
			return err
		}
		if folder.names[base] == nil {
			return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
		}
		folder.change(change{{base, nil}})
		return nil
	})
}

// handle is an open file or folder.
type handle struct {
	m    machine
	n    *inode
	name string
}

func (h *handle) Name() string            { return h.name }
func (h *handle) Close() error            { return nil }
func (h *handle) Chmod(fs.FileMode) error { return nil }
func (h *handle) world() *World           { return h.m.p.w }
func (h *handle) Stat() (fs.FileInfo, error) {
	h.world().mu.Lock()
	defer h.world().mu.Unlock()
	return described{path.Base(h.name), h.n, int64(len(h.n.data)), h.n.modified}, nil
}

func (h *handle) Write(p []byte) (int, error) {
	if err := h.m.do("write", h.name, func() error {
		h.n.data, h.n.modified = append(h.n.data, p...), h.world().clock.Now()
		return nil
	}); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (h *handle) ReadAt(p []byte, off int64) (n int, err error) {
	err = h.m.do("read", h.name, func() error {
		if off < int64(len(h.n.data)) {
			n = copy(p, h.n.data[off:])
		}
		return nil
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (h *handle) Sync() error {
	err := h.m.do("sync", h.name, func() error { h.n.sync(); return nil })
	if errors.Is(err, syscall.EIO) {
		h.world().mu.Lock()
		defer h.world().mu.Unlock()
		h.n.broken = true
	}
	return err
}

// described is what is known of a file.
type described struct {
	name     string
	n        *inode
	size     int64
	modified time.Time
}

func (d described) Name() string               { return d.name }
func (d described) Size() int64                { return d.size }
func (d described) ModTime() time.Time         { return d.modified }
func (d described) IsDir() bool                { return d.n.names != nil }
func (d described) Sys() any                   { return nil }
func (d described) Type() fs.FileMode          { return d.Mode().Type() }
func (d described) Info() (fs.FileInfo, error) { return d, nil }

func (d described) Mode() fs.FileMode {
	if d.IsDir() {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// Dir is what is below a folder. A list of a folder is one operation; one of many folders is not.
func (m machine) Dir(name string) fs.FS { return listed{m, name} }

type listed struct {
	m    machine
	base string
}

func (l listed) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported} // nobody reads by way of a list
}

func (l listed) Stat(name string) (fs.FileInfo, error) { return l.m.Stat(path.Join(l.base, name)) }

func (l listed) ReadDir(name string) (out []fs.DirEntry, err error) {
	name = path.Join(l.base, name)
	err = l.m.do("list", name, func() error {
		n := l.m.d.find(name)
		if n == nil || n.names == nil {
			return &fs.PathError{Op: "list", Path: name, Err: fs.ErrNotExist}
		}
		for _, base := range sorted(n.names) {
			below := n.names[base]
			out = append(out, described{base, below, int64(len(below.data)), below.modified})
		}
		return nil
	})
	return out, err
}

func init() {
	objstore.Mount("disk", func(rest string) (objstore.Store, string, error) {
		id, name, _ := strings.Cut(rest, "/")
		p := processOf(id)
		if p == nil {
			return nil, "", errs.New(errs.Usage, "open", "no process %q", id)
		}
		return p.local, "/" + name, nil
	})
}
