package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/riverbed/riverbed/core/errs"
)

// Folder is where a store keeps its files while its process runs. What it finds there of an earlier process goes: a store is
// filled from checkpoints, never from what a killed process has left. Two stores never share one.
type Folder struct {
	path string
	lock *os.File
}

// folderMark is a file that says whose a folder is. Without it nothing is ever removed.
const folderMark = "RIVERBED_STORE"

// ErrInUse is what an error wraps when another store has the folder.
var ErrInUse = errors.New("it is locked")

// OpenFolder makes a folder, or takes over one that an earlier process has left.
//
// AIDEV-NOTE: the lock is of the open file, so the kernel drops it with the process, however that ends; what is removed is
// removed under it.
func OpenFolder(path string) (*Folder, error) {
	const op = "state store"
	failed := func(err error) (*Folder, error) {
		return nil, errs.New(errs.State, op, "the folder %s cannot be used: %w", path, err).WithHint("set state_dir to a folder that can be written")
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return failed(err)
	}
	mark := filepath.Join(path, folderMark)
	found, err := os.ReadDir(path)
	if err != nil {
		return failed(err)
	}
	if _, err := os.Stat(mark); len(found) > 0 && errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.State, op, "the folder %s has files in it that no store has made", path).
			WithHint("set state_dir to a folder of its own, or empty this one")
	}
	lock, err := os.OpenFile(mark, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return failed(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errs.New(errs.State, op, "the folder %s is in use by another store: %w", path, ErrInUse).WithHint("give each pipeline a state_dir of its own")
		}
		return failed(err)
	}
	f := &Folder{path: path, lock: lock}
	if err := f.empty(); err != nil {
		_ = lock.Close()
		return failed(err)
	}
	return f, nil
}

// Path is that of a file in the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

func (f *Folder) empty() error {
	found, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, e := range found {
		if e.Name() == folderMark {
			continue
		}
		if err := os.RemoveAll(f.Path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the files. The mark stays: whoever waits for its lock would otherwise hold that of a file without a name.
func (f *Folder) Close() error {
	return errors.Join(f.empty(), f.lock.Close())
}
