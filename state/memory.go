package state

import (
	"bytes"
	"slices"
	"sort"
	"sync"

	"github.com/riverbed/riverbed/core/errs"
)

// Memory is the model of a Store: a sorted slice that changes replace and never edit. Other stores are tested against it.
type Memory struct {
	mu     sync.Mutex
	pairs  []Pair
	closed bool
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{} }

func (m *Memory) check() error {
	if m.closed {
		return errs.New(errs.State, "state store", "the store is closed")
	}
	return nil
}

// now is the content at this moment.
func (m *Memory) now() (memoryView, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return memoryView(m.pairs), m.check()
}

func (m *Memory) Get(keys [][]byte) ([][]byte, error) {
	v, err := m.now()
	if err != nil {
		return nil, err
	}
	return v.Get(keys)
}

func (m *Memory) Apply(changes []Pair) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	return m.apply(changes)
}

func (m *Memory) apply(changes []Pair) error {
	if err := Sorted(changes); err != nil {
		return err
	}
	out := make([]Pair, 0, len(m.pairs)+len(changes))
	i := 0
	for _, c := range changes {
		for i < len(m.pairs) && bytes.Compare(m.pairs[i].Key, c.Key) < 0 {
			out = append(out, m.pairs[i])
			i++
		}
		if i < len(m.pairs) && bytes.Equal(m.pairs[i].Key, c.Key) {
			i++
		}
		if c.Value != nil {
			out = append(out, Pair{bytes.Clone(c.Key), append([]byte{}, c.Value...)})
		}
	}
	m.pairs = append(out, m.pairs[i:]...)
	return nil
}

func (m *Memory) DeleteRange(from, to []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	v := memoryView(m.pairs)
	i, j := v.bounds(from, to)
	m.pairs = append(slices.Clone(m.pairs[:i]), m.pairs[j:]...)
	return nil
}

func (m *Memory) Range(from, to []byte, visit func(Pair) bool) error {
	v, err := m.now()
	if err != nil {
		return err
	}
	return v.Range(from, to, visit)
}

func (m *Memory) Snapshot() (View, error) {
	v, err := m.now()
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (m *Memory) Restore(next func() (Pair, bool)) error { return m.load(next, true) }
func (m *Memory) Ingest(next func() (Pair, bool)) error  { return m.load(next, false) }

func (m *Memory) load(next func() (Pair, bool), replace bool) error {
	var all []Pair
	for p, ok := next(); ok; p, ok = next() {
		all = append(all, p)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	old := m.pairs
	if replace {
		m.pairs = nil
	}
	err := m.apply(all)
	if err != nil {
		m.pairs = old
	}
	return err
}

func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pairs, m.closed = nil, true
	return nil
}

// Sorted refuses a batch of changes that is not sorted and unique.
func Sorted(changes []Pair) error {
	for i := 1; i < len(changes); i++ {
		if bytes.Compare(changes[i-1].Key, changes[i].Key) >= 0 {
			return Unsorted()
		}
	}
	return nil
}

// Unsorted says that changes which came are not sorted and unique.
func Unsorted() error {
	return errs.Bug("state store", "changes are not sorted by key, or one comes twice")
}

// memoryView is the content at one moment. Nothing edits its pairs.
type memoryView []Pair

func (v memoryView) Get(keys [][]byte) ([][]byte, error) {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		j := v.search(k)
		if j < len(v) && bytes.Equal(v[j].Key, k) {
			out[i] = append([]byte{}, v[j].Value...)
		}
	}
	return out, nil
}

func (v memoryView) Range(from, to []byte, visit func(Pair) bool) error {
	i, j := v.bounds(from, to)
	for _, p := range v[i:j] {
		if !visit(Pair{bytes.Clone(p.Key), append([]byte{}, p.Value...)}) {
			break
		}
	}
	return nil
}

func (v memoryView) Close() error { return nil }

func (v memoryView) search(key []byte) int {
	return sort.Search(len(v), func(i int) bool { return bytes.Compare(v[i].Key, key) >= 0 })
}

func (v memoryView) bounds(from, to []byte) (int, int) {
	i, j := v.search(from), len(v)
	if to != nil {
		j = v.search(to)
	}
	return i, max(i, j)
}
