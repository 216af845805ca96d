// Package pages keeps a state.Store in pages of a file: sorted rows, some thirty a page, under a directory in memory that knows where each page's
// keys begin. So a row costs one read, and a change one read and one write, of 4 KB; where the row was just read and has the room it needs, one write of the value alone.
//
// Invariant: nothing here outlives the process. Nothing is synced; a folder that an earlier process has left is emptied. While somebody looks at
// the store as it was, neither pages nor the directory's parts are edited: they are replaced.
package pages

import (
	"errors"
	"os"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/state"
)

const op = "state store"

// Store is a state.Store in a folder.
type Store struct {
	folder *state.Folder
	file   *os.File

	mu      sync.RWMutex
	dir     directory
	space   space
	viewers int
	wait    []extent // of pages that viewers may look at, free when there are none
	made    *[]extent
	closed  bool
	broken  error // a change that failed half-way: what is on the disk is not known

	seed   uint64 // of the hashes of keys
	spots  spots
	merged merged
	out    writes
	read   []byte
	left   []state.Pair
}

// Open makes an empty store in a folder. It may remember what it has read in so many bytes; the directory comes to them.
func Open(path string, memory int64) (*Store, error) {
	folder, err := state.OpenFolder(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(folder.Path("pages"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, errors.Join(wrong(err), folder.Close())
	}
	return &Store{folder: folder, file: file, dir: newDirectory(), seed: xxh3.HashString(clock.Unique()), spots: newSpots(memory)}, nil
}

func wrong(err error) error {
	return errs.New(errs.State, op, "%w", err).WithHint("look whether the disk of state_dir is full; a restart fills the store anew from the last checkpoint")
}

func (s *Store) check() error {
	if s.closed {
		return errs.New(errs.State, op, "the store is closed")
	}
	return s.broken
}

// Get implements state.Store.
func (s *Store) Get(keys [][]byte) ([][]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.check(); err != nil {
		return nil, err
	}
	out, spots, err := s.get(&s.dir, keys)
	s.spots.add(spots)
	return out, err
}

func (s *Store) hash(key []byte) uint64 { return xxh3.HashSeed(key, s.seed) }

// get looks keys up, and says where their values lie.
func (s *Store) get(d *directory, keys [][]byte) (out [][]byte, spots []spot, err error) {
	out, spots = make([][]byte, len(keys)), make([]spot, 0, len(keys))
	var buf, mem []byte
	for i := 0; i < len(keys); {
		at := d.find(keys[i])
		n := d.until(at, len(keys)-i, func(k int) []byte { return keys[i+k] })
		p := d.at(at)
		if buf, err = s.load(p, buf); err != nil {
			return nil, nil, err
		}
		r := rowsOf(buf)
		for k := i; k < i+n; k++ {
			found := r.seek(keys[k])
			if found == nil {
				continue
			}
			hash := s.hash(keys[k])
			value, sound := bare(found, hash)
			if !sound {
				return nil, nil, spoiled()
			}
			if mem == nil || len(value) > cap(mem)-len(mem) { // what is handed out is never nil
				mem = make([]byte, 0, max(len(value), 64<<10))
			}
			from := len(mem)
			mem = append(mem, value...)
			out[k] = mem[from:len(mem):len(mem)]
			spots = append(spots, spot{key: hash, at: p.at, from: uint32(len(buf) - len(r.values)), room: uint32(roomOf(len(value)))})
		}
		i += n
	}
	return out, spots, nil
}

// load reads a page. Of one without rows it returns nothing.
func (s *Store) load(p page, buf []byte) ([]byte, error) {
	if p.bytes == 0 {
		return nil, nil
	}
	if cap(buf) < int(p.bytes) {
		buf = make([]byte, max(int(p.bytes), unit))
	}
	buf = buf[:p.bytes]
	if _, err := s.file.ReadAt(buf, int64(p.at)*unit); err != nil {
		return nil, wrong(err)
	}
	if !whole(buf) {
		return nil, spoiled()
	}
	return buf, nil
}

func spoiled() error {
	return errs.New(errs.State, op, "a page of the store is not as it was written").WithHint("look whether the disk of state_dir is sound; a restart fills the store anew from the last checkpoint")
}

// Apply implements state.Store.
//
// AIDEV-NOTE: a change that the disk refuses half-way leaves the store broken, and every later call says so: all or nothing.
func (s *Store) Apply(changes []state.Pair) error {
	if err := state.Sorted(changes); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(); err != nil {
		return err
	}
	s.broken = s.apply(changes)
	return s.broken
}

func (s *Store) apply(changes []state.Pair) error {
	s.spots.next()
	changes, err := s.patch(changes)
	if err != nil {
		return err
	}
	for len(changes) > 0 {
		at := s.dir.find(changes[0].Key)
		n := s.dir.until(at, len(changes), func(k int) []byte { return changes[k].Key })
		if err := s.rewrite(at, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	clear(s.left)
	return s.out.flush(s.file)
}

// patch writes values where they lie, of keys that were read lately, and returns the other changes. Somebody who looks at the store as it was would see it.
func (s *Store) patch(changes []state.Pair) ([]state.Pair, error) {
	if s.viewers > 0 {
		return changes, nil
	}
	s.left = s.left[:0]
	for _, c := range changes {
		hash := s.hash(c.Key)
		at, known := s.spots.find(hash, len(c.Value))
		if !known || c.Value == nil {
			s.left = append(s.left, c)
			continue
		}
		s.read = appendValue(s.read[:0], hash, c.Value)
		if _, err := s.file.WriteAt(s.read, int64(at.at)*unit+int64(at.from)); err != nil {
			return nil, wrong(err)
		}
	}
	return s.left, nil
}

// rewrite puts changes into the page that has room for their keys, which becomes several when they are too many.
func (s *Store) rewrite(at place, changes []state.Pair) error {
	old := s.dir.at(at)
	var err error
	if s.read, err = s.load(old, s.read); err != nil {
		return err
	}
	m := &s.merged
	m.merge(s.read, changes, s.hash)
	made := m.cut(old.first)
	if len(made) == 1 && made[0].bytes > 0 && made[0].bytes <= old.units*unit && s.viewers == 0 {
		made[0].extent = old.extent
		s.spots.move(old.extent)
	} else {
		s.release(old.extent)
		for i := range made {
			if made[i].bytes > 0 {
				made[i].extent = s.take(int(made[i].bytes))
			}
		}
	}
	for i, p := range made {
		if p.bytes > 0 {
			if err := s.out.add(s.file, p.at, m.page(i)); err != nil {
				return err
			}
		}
	}
	s.dir.replace(at, made, s.viewers > 0)
	return nil
}

func (s *Store) take(bytes int) extent {
	e := s.space.take((bytes + unit - 1) / unit)
	if s.made != nil {
		*s.made = append(*s.made, e)
	}
	return e
}

// release frees what a page had, now or when nobody looks at it any more.
func (s *Store) release(e extent) {
	s.spots.move(e)
	switch {
	case e.units == 0:
	case s.viewers > 0:
		s.wait = append(s.wait, e)
	default:
		s.space.give(e)
	}
}

// DeleteRange implements state.Store. Pages that lie in the range go unread.
func (s *Store) DeleteRange(from, to []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(); err != nil {
		return err
	}
	if to != nil && string(from) >= string(to) {
		return nil
	}
	s.broken = s.deleteRange(from, to)
	return s.broken
}

func (s *Store) deleteRange(from, to []byte) error {
	s.spots.next()
	edges := []place{s.dir.find(from)}
	if to != nil {
		if last := s.dir.find(to); last != edges[0] {
			edges = append(edges, last)
		}
	}
	var gone []state.Pair
	for _, at := range edges {
		var err error
		if s.read, err = s.load(s.dir.at(at), s.read); err != nil {
			return err
		}
		for r := rowsOf(s.read); r.next(); {
			if k := r.key(); string(k) >= string(from) && (to == nil || string(k) < string(to)) {
				gone = append(gone, state.Pair{Key: k})
			}
		}
	}
	var inner []extent
	s.dir, inner = s.dir.without(from, to) // first: where pages end is known by those behind them
	for _, e := range inner {
		s.release(e)
	}
	return s.apply(gone)
}

// Range implements state.Store.
func (s *Store) Range(from, to []byte, visit func(state.Pair) bool) error {
	v, err := s.Snapshot()
	if err != nil {
		return err
	}
	return errors.Join(v.Range(from, to, visit), v.Close())
}

// Snapshot implements state.Store.
func (s *Store) Snapshot() (state.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(); err != nil {
		return nil, err
	}
	s.viewers++
	return &view{s: s, dir: s.dir.shared()}, nil
}

// leave is for a viewer that has looked enough.
func (s *Store) leave() {
	if s.viewers--; s.viewers > 0 {
		return
	}
	for _, e := range s.wait {
		s.space.give(e)
	}
	s.wait = nil
}

// Restore implements state.Store.
func (s *Store) Restore(next func() (state.Pair, bool)) error { return s.fill(next, true) }

// Ingest implements state.Store.
func (s *Store) Ingest(next func() (state.Pair, bool)) error { return s.fill(next, false) }

// fillBytes is how much is merged at a time.
const fillBytes = 8 << 20

// fill changes the store as a viewer of the old one, to which it returns when the feed fails.
func (s *Store) fill(next func() (state.Pair, bool), replace bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(); err != nil {
		return err
	}
	old, waiting, made := s.dir.shared(), len(s.wait), []extent(nil)
	s.viewers++
	s.made = &made
	s.spots.forget()
	defer func() {
		s.made = nil
		if err != nil {
			s.dir, s.wait = old, s.wait[:waiting]
			for _, e := range made {
				s.space.give(e)
			}
		}
		s.leave()
	}()
	if replace {
		var all []extent
		s.dir, all = newDirectory(), s.dir.extents()
		s.wait = append(s.wait, all...)
	}
	var batch []state.Pair
	size := 0
	for p, ok := next(); ok; p, ok = next() {
		if n := len(batch); n > 0 && string(batch[n-1].Key) >= string(p.Key) {
			return state.Unsorted()
		}
		batch = append(batch, p)
		if size += len(p.Key) + len(p.Value); size >= fillBytes {
			last := len(batch) - 1 // stays: the next key is held against it
			if err := s.apply(batch[:last]); err != nil {
				return err
			}
			batch, size = append(batch[:0], batch[last]), 0
		}
	}
	return s.apply(batch)
}

// Close implements state.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.file.Close(), s.folder.Close())
}

// view is the store at one moment.
type view struct {
	s    *Store
	dir  directory
	gone bool
}

func (v *view) Get(keys [][]byte) ([][]byte, error) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	if err := v.s.check(); err != nil {
		return nil, err
	}
	out, _, err := v.s.get(&v.dir, keys)
	return out, err
}

func (v *view) Range(from, to []byte, visit func(state.Pair) bool) error {
	if to != nil && string(from) >= string(to) {
		return nil
	}
	for at, ok := v.dir.find(from), true; ok; at, ok = v.dir.next(at) {
		p := v.dir.at(at)
		if to != nil && p.first >= string(to) {
			return nil
		}
		buf, err := v.load(p)
		if err != nil {
			return err
		}
		for r := rowsOf(buf); r.next(); {
			k := r.key()
			switch {
			case string(k) < string(from):
				continue
			case to != nil && string(k) >= string(to):
				return nil
			}
			value, sound := bare(r.value, v.s.hash(k))
			if !sound {
				return spoiled()
			}
			if !visit(state.Pair{Key: k, Value: value}) {
				return nil
			}
		}
	}
	return nil
}

// load reads a page into memory of its own: the rows are the visitor's. It is not held while he looks at them.
func (v *view) load(p page) ([]byte, error) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	if err := v.s.check(); err != nil {
		return nil, err
	}
	return v.s.load(p, nil)
}

func (v *view) Close() error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	if !v.gone {
		v.gone = true
		v.s.leave()
	}
	return nil
}
