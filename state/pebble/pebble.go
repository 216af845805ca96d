// Package pebble keeps a state.Store in Pebble, in a folder of its own.
//
// Invariant: nothing here outlives the process. There is no log and nothing is synced; a folder that an earlier process has left is
// emptied.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"

	db "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/state"
)

const op = "state store"

// Store is a state.Store in a folder.
type Store struct {
	folder *state.Folder
	db     *db.DB
	opts   *db.Options
	closed bool
	loads  int // files made for Ingest

	failing sync.Once
	failed  chan struct{} // closed when Pebble has given up
	err     error         // why
}

// Open makes an empty store in a folder. It caches about as many bytes of blocks as it is told, and holds half as many that are not written
// yet, 32 MB at least: tables that are written small are merged often.
func Open(path string, cache int64) (*Store, error) {
	folder, err := state.OpenFolder(path)
	if err != nil {
		return nil, err
	}
	s := &Store{folder: folder, failed: make(chan struct{})}
	blocks := db.NewCache(cache)
	defer blocks.Unref() // the database has its own reference
	s.opts = options(blocks, cache)
	s.opts.Logger = silent{s}
	s.opts.EventListener = &db.EventListener{BackgroundError: s.fail}
	if s.db, err = db.Open(folder.Path("db"), s.opts); err != nil {
		return nil, errors.Join(wrong(err), folder.Close())
	}
	return s, nil
}

// options are what ADR 33 has measured.
func options(blocks *db.Cache, cache int64) *db.Options {
	o := &db.Options{
		Cache:                       blocks,
		Comparer:                    db.DefaultComparer,
		DisableWAL:                  true,
		FS:                          unsynced{vfs.Default},
		FormatMajorVersion:          db.FormatNewest,
		MemTableSize:                uint64(min(max(cache/4, 16<<20), 64<<20)),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               128 << 20,
		MaxOpenFiles:                512,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	// Compressed blocks cost more time than they save, and so do filters: sorted keys are searched by one iterator, which uses none.
	o.ApplyCompressionSettings(func() db.DBCompressionSettings { return db.DBCompressionNone })
	for i := range o.Levels {
		o.Levels[i].BlockSize = 4 << 10
	}
	o.EnsureDefaults()
	return o
}

func wrong(err error) error {
	return errs.New(errs.State, op, "%w", err).WithHint("look whether the disk of state_dir is full; a restart fills the store anew from the last checkpoint")
}

// do runs a call of the database beside, so that one which will never come back (a disk that is full stops its writes) ends when the
// database has given up.
//
// AIDEV-NOTE: Pebble calls Fatalf where it cannot go on and may not be told to; that ends the goroutine it is on, which is this one
// or one of its own. A call that hangs then is left behind: the pipeline ends with the error.
func (s *Store) do(call func() error) error {
	if s.closed {
		return errs.New(errs.State, op, "the store is closed")
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- errs.Recovered(op, r)
			}
		}()
		done <- call()
	}()
	select {
	case err := <-done:
		if err != nil && errs.As(err).Kind == errs.Internal {
			return wrong(err)
		}
		return err
	case <-s.failed:
		return wrong(s.err)
	}
}

func (s *Store) fail(err error) {
	s.failing.Do(func() {
		s.err = err
		close(s.failed)
	})
}

func (s *Store) Get(keys [][]byte) (out [][]byte, err error) {
	err = s.do(func() (err error) {
		out, err = get(s.db, keys)
		return err
	})
	return out, err
}

func (s *Store) Apply(changes []state.Pair) error {
	if err := state.Sorted(changes); err != nil {
		return err
	}
	return s.do(func() error {
		b := s.db.NewBatch()
		for _, c := range changes {
			var err error
			if c.Value == nil {
				err = b.Delete(c.Key, nil)
			} else {
				err = b.Set(c.Key, c.Value, nil)
			}
			if err != nil {
				return errors.Join(err, b.Close())
			}
		}
		return errors.Join(b.Commit(db.NoSync), b.Close())
	})
}

func (s *Store) DeleteRange(from, to []byte) error {
	return s.do(func() error {
		if to == nil {
			last, err := s.last()
			if err != nil || last == nil {
				return err
			}
			to = append(last, 0) // the key behind it
		}
		if string(from) >= string(to) {
			return nil
		}
		if from == nil {
			from = []byte{}
		}
		return s.db.DeleteRange(from, to, db.NoSync)
	})
}

// last is the largest key, nil where there is none.
func (s *Store) last() (key []byte, err error) {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	if it.Last() {
		key = append([]byte{}, it.Key()...)
	}
	return key, it.Close()
}

// Range visits on the caller's goroutine: a visitor may panic or call the store.
func (s *Store) Range(from, to []byte, visit func(state.Pair) bool) error {
	var v state.View
	err := s.do(func() error {
		v = &view{s, s.db.NewSnapshot()}
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(v.Range(from, to, visit), v.Close())
}

func (s *Store) Snapshot() (v state.View, err error) {
	err = s.do(func() error {
		v = &view{s, s.db.NewSnapshot()}
		return nil
	})
	return v, err
}

func (s *Store) Restore(next func() (state.Pair, bool)) error {
	return s.load(next, true)
}

func (s *Store) Ingest(next func() (state.Pair, bool)) error {
	return s.load(next, false)
}

// fileSize is how large the files for Ingest become.
const fileSize = 64 << 20

// load writes tables and hands them to the database whole. A table that breaks off is not used, so that a feed which fails changes nothing.
func (s *Store) load(next func() (state.Pair, bool), replace bool) error {
	return s.do(func() error {
		paths, err := s.write(next)
		if err == nil && replace {
			var last []byte
			if last, err = s.last(); err == nil && last != nil {
				err = s.db.DeleteRange([]byte{}, append(last, 0), db.NoSync)
			}
		}
		if err == nil && len(paths) > 0 {
			err = s.db.Ingest(context.Background(), paths)
		}
		for _, p := range paths {
			_ = s.opts.FS.Remove(p) // what the database has taken is linked elsewhere
		}
		return err
	})
}

func (s *Store) write(next func() (state.Pair, bool)) (paths []string, err error) {
	var w *sstable.Writer
	size := 0
	end := func() error {
		if w == nil {
			return nil
		}
		out := w
		w, size = nil, 0
		return out.Close()
	}
	before, first := []byte(nil), true
	for p, ok := next(); ok; p, ok = next() {
		if !first && string(before) >= string(p.Key) {
			return paths, errors.Join(state.Unsorted(), end())
		}
		before, first = append(before[:0], p.Key...), false
		if w == nil {
			s.loads++
			path := s.folder.Path(fmt.Sprintf("%06d.load", s.loads))
			f, err := s.opts.FS.Create(path, vfs.WriteCategoryUnspecified)
			if err != nil {
				return paths, err
			}
			paths = append(paths, path)
			// As for the first level: tombstones in a table of the last one do not count.
			w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), s.opts.MakeWriterOptions(0, s.db.TableFormat()))
		}
		if p.Value == nil {
			err = w.Delete(p.Key)
		} else {
			err = w.Set(p.Key, p.Value)
		}
		if err != nil {
			return paths, errors.Join(err, end())
		}
		if size += len(p.Key) + len(p.Value); size >= fileSize {
			if err := end(); err != nil {
				return paths, err
			}
		}
	}
	return paths, end()
}

func (s *Store) Close() error {
	if s.closed {
		return nil
	}
	err := s.do(s.db.Close)
	s.closed = true
	return errors.Join(err, s.folder.Close())
}

// view is a snapshot.
type view struct {
	s    *Store
	snap *db.Snapshot
}

func (v *view) Get(keys [][]byte) (out [][]byte, err error) {
	err = v.s.do(func() (err error) {
		out, err = get(v.snap, keys)
		return err
	})
	return out, err
}

func (v *view) Range(from, to []byte, visit func(state.Pair) bool) error {
	if to != nil && string(from) >= string(to) {
		return nil
	}
	var it *db.Iterator
	err := v.s.do(func() (err error) {
		it, err = v.snap.NewIter(&db.IterOptions{LowerBound: from, UpperBound: to})
		return err
	})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && visit(state.Pair{Key: append([]byte{}, it.Key()...), Value: append([]byte{}, it.Value()...)}); {
		ok = it.Next()
	}
	if err := it.Close(); err != nil {
		return wrong(err)
	}
	return nil
}

func (v *view) Close() error {
	if v.s.closed {
		return nil
	}
	return v.s.do(v.snap.Close)
}

// get reads keys, which are sorted, one behind the other: each search begins where the last one ended.
func get(r db.Reader, keys [][]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	if len(keys) == 0 {
		return out, nil
	}
	it, err := r.NewIter(&db.IterOptions{LowerBound: keys[0]})
	if err != nil {
		return nil, err
	}
	var mem []byte
	for i, k := range keys {
		if !it.SeekGE(k) {
			break
		}
		if string(it.Key()) != string(k) {
			continue
		}
		v := it.Value()
		if mem == nil || len(v) > cap(mem)-len(mem) { // what is handed out is never nil
			mem = make([]byte, 0, max(len(v), 64<<10))
		}
		n := len(mem)
		mem = append(mem, v...)
		out[i] = mem[n:len(mem):len(mem)]
	}
	return out, it.Close()
}

// silent takes what Pebble wants to log.
type silent struct{ s *Store }

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

// Fatalf must not return.
func (l silent) Fatalf(format string, args ...any) {
	l.s.fail(fmt.Errorf(format, args...))
	runtime.Goexit()
}

// unsynced is a file system whose files nobody waits for: after a crash of the machine there is nothing to be found.
type unsynced struct{ vfs.FS }

func (u unsynced) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return unsyncedFile(u.FS.Create(name, c))
}

func (u unsynced) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return unsyncedFile(u.FS.OpenReadWrite(name, c, opts...))
}

func (u unsynced) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return unsyncedFile(u.FS.ReuseForWrite(from, to, c))
}

func (u unsynced) OpenDir(name string) (vfs.File, error) {
	return unsyncedFile(u.FS.OpenDir(filepath.Clean(name)))
}

func unsyncedFile(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

type file struct{ vfs.File }

func (file) Sync() error                { return nil }
func (file) SyncData() error            { return nil }
func (file) SyncTo(int64) (bool, error) { return false, nil }
