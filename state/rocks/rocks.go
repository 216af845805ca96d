//go:build rocksdb

package rocks

import (
	"errors"
	"fmt"
	"os"

	db "github.com/linxGnu/grocksdb"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/state"
)

const op = "state store"

// Store is a state.Store in a folder.
type Store struct {
	folder *state.Folder
	db     *db.DB
	opts   *db.Options
	table  *db.BlockBasedTableOptions
	cache  *db.Cache
	read   *db.ReadOptions
	write  *db.WriteOptions
	closed bool
	loads  int // files made for Ingest
}

// Open makes an empty store in a folder. It caches about as many bytes of blocks as it is told, and holds half as many that are not written
// yet, 32 MB at least: tables that are written small are merged often.
func Open(path string, cache int64) (*Store, error) {
	folder, err := state.OpenFolder(path)
	if err != nil {
		return nil, err
	}
	s := &Store{folder: folder, cache: db.NewLRUCache(uint64(cache)), read: db.NewDefaultReadOptions(), write: db.NewDefaultWriteOptions()}
	s.write.DisableWAL(true)
	s.read.SetVerifyChecksums(true)
	s.options(cache)
	if s.db, err = db.OpenDb(s.opts, folder.Path("db")); err != nil {
		s.destroy()
		return nil, errors.Join(wrong(err), folder.Close())
	}
	return s, nil
}

// options are what ADR 33 has measured.
func (s *Store) options(cache int64) {
	s.table = db.NewDefaultBlockBasedTableOptions()
	s.table.SetBlockCache(s.cache)
	s.table.SetBlockSize(4 << 10)
	s.table.SetFilterPolicy(db.NewBloomFilter(10))
	s.table.SetWholeKeyFiltering(true)
	s.table.SetFormatVersion(5)
	s.table.SetDataBlockIndexType(db.KDataBlockIndexTypeBinarySearchAndHash)
	o := db.NewDefaultOptions()
	o.SetBlockBasedTableFactory(s.table)
	o.SetCreateIfMissing(true)
	o.SetWriteBufferSize(uint64(min(max(cache/4, 16<<20), 64<<20)))
	o.SetMaxWriteBufferNumber(4)
	o.SetCompression(db.NoCompression)
	o.SetMaxBackgroundJobs(2)
	o.SetMaxOpenFiles(512)
	o.SetInfoLogLevel(db.FatalInfoLogLevel)
	o.SetStatsDumpPeriodSec(0)
	o.SetLevel0FileNumCompactionTrigger(4)
	o.SetLevel0SlowdownWritesTrigger(1000)
	o.SetLevel0StopWritesTrigger(1000)
	s.opts = o
}

func wrong(err error) error {
	return errs.New(errs.State, op, "%w", err).WithHint("look whether the disk of state_dir is full; a restart fills the store anew from the last checkpoint")
}

// failed words an error of the database.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return wrong(err)
}

func (s *Store) check() error {
	if s.closed {
		return errs.New(errs.State, op, "the store is closed")
	}
	return nil
}

func (s *Store) Get(keys [][]byte) ([][]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.get(s.read, keys)
}

func (s *Store) get(read *db.ReadOptions, keys [][]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	if len(keys) == 0 {
		return out, nil
	}
	found, err := s.db.BatchedMultiGetCF(read, s.db.GetDefaultColumnFamily(), true, keys...)
	if err != nil {
		return nil, wrong(err)
	}
	defer found.Destroy()
	size := 0
	for _, v := range found {
		if v.Exists() {
			size += len(v.Data())
		}
	}
	mem := make([]byte, 0, size)
	for i, v := range found {
		if v.Exists() {
			n := len(mem)
			mem = append(mem, v.Data()...)
			out[i] = mem[n:len(mem):len(mem)]
		}
	}
	return out, nil
}

func (s *Store) Apply(changes []state.Pair) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := state.Sorted(changes); err != nil {
		return err
	}
	b := db.NewWriteBatch()
	defer b.Destroy()
	for _, c := range changes {
		if c.Value == nil {
			b.Delete(c.Key)
		} else {
			b.Put(c.Key, c.Value)
		}
	}
	return failed(s.db.Write(s.write, b))
}

func (s *Store) DeleteRange(from, to []byte) error {
	if err := s.check(); err != nil {
		return err
	}
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
	b := db.NewWriteBatch()
	defer b.Destroy()
	b.DeleteRange(from, to)
	return failed(s.db.Write(s.write, b))
}

// last is the largest key, nil where there is none.
func (s *Store) last() (key []byte, err error) {
	it := s.db.NewIterator(s.read)
	defer it.Close()
	if it.SeekToLast(); it.Valid() {
		k := it.Key()
		key = append([]byte{}, k.Data()...)
		k.Free()
	}
	return key, failed(it.Err())
}

func (s *Store) Range(from, to []byte, visit func(state.Pair) bool) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.visit(s.read, from, to, visit)
}

// visit sees the content as it was when its iterator was made.
func (s *Store) visit(read *db.ReadOptions, from, to []byte, visit func(state.Pair) bool) error {
	it := s.db.NewIterator(read)
	defer it.Close()
	for it.Seek(from); it.Valid(); it.Next() {
		k, v := it.Key(), it.Value()
		p := state.Pair{Key: append([]byte{}, k.Data()...), Value: append([]byte{}, v.Data()...)}
		k.Free()
		v.Free()
		if to != nil && string(p.Key) >= string(to) || !visit(p) {
			break
		}
	}
	return failed(it.Err())
}

func (s *Store) Snapshot() (state.View, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	v := &view{s: s, snap: s.db.NewSnapshot(), read: db.NewDefaultReadOptions()}
	v.read.SetSnapshot(v.snap)
	return v, nil
}

func (s *Store) Restore(next func() (state.Pair, bool)) error { return s.load(next, true) }
func (s *Store) Ingest(next func() (state.Pair, bool)) error  { return s.load(next, false) }

// fileSize is how large the files for Ingest become.
const fileSize = 64 << 20

// load writes tables and hands them to the database whole. A table that breaks off is not used, so that a feed which fails changes nothing.
func (s *Store) load(next func() (state.Pair, bool), replace bool) error {
	if err := s.check(); err != nil {
		return err
	}
	paths, err := s.tables(next)
	if err == nil && replace {
		err = s.DeleteRange(nil, nil)
	}
	if err == nil && len(paths) > 0 {
		o := db.NewDefaultIngestExternalFileOptions()
		o.SetMoveFiles(true)
		err = failed(s.db.IngestExternalFile(paths, o))
		o.Destroy()
	}
	for _, p := range paths {
		_ = os.Remove(p) // where the database has not moved it
	}
	return err
}

func (s *Store) tables(next func() (state.Pair, bool)) (paths []string, err error) {
	env := db.NewDefaultEnvOptions()
	defer env.Destroy()
	var w *db.SSTFileWriter
	end := func() (err error) {
		if w != nil {
			err = failed(w.Finish())
			w.Destroy()
		}
		w = nil
		return err
	}
	var before []byte
	first := true
	size := 0
	for p, ok := next(); ok; p, ok = next() {
		if !first && string(before) >= string(p.Key) {
			return paths, errors.Join(state.Unsorted(), end())
		}
		before, first = append(before[:0], p.Key...), false
		if w == nil {
			s.loads++
			path := s.folder.Path(fmt.Sprintf("%06d.load", s.loads))
			w, size = db.NewSSTFileWriter(env, s.opts), 0
			paths = append(paths, path)
			if err := w.Open(path); err != nil {
				return paths, errors.Join(wrong(err), end())
			}
		}
		if p.Value == nil {
			err = w.Delete(p.Key)
		} else {
			err = w.Put(p.Key, p.Value)
		}
		if err != nil {
			return paths, errors.Join(wrong(err), end())
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
	s.closed = true
	s.db.Close()
	s.destroy()
	return s.folder.Close()
}

// destroy gives the options back. Those of tables and their filter belong to opts.
func (s *Store) destroy() {
	s.read.Destroy()
	s.write.Destroy()
	s.opts.Destroy()
	s.table.Destroy()
	s.cache.Destroy()
}

// view is a snapshot.
type view struct {
	s    *Store
	snap *db.Snapshot
	read *db.ReadOptions
}

func (v *view) check() error {
	if v.snap == nil {
		return errs.New(errs.State, op, "the view is closed")
	}
	return v.s.check()
}

func (v *view) Get(keys [][]byte) ([][]byte, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	return v.s.get(v.read, keys)
}

func (v *view) Range(from, to []byte, visit func(state.Pair) bool) error {
	if err := v.check(); err != nil {
		return err
	}
	return v.s.visit(v.read, from, to, visit)
}

func (v *view) Close() error {
	if v.check() == nil {
		v.s.db.ReleaseSnapshot(v.snap)
		v.read.Destroy()
	}
	v.snap = nil
	return nil
}
