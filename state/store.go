package state

import "encoding/binary"

// Pair is a key and its value. A nil Value in a batch of changes deletes the key.
type Pair struct{ Key, Value []byte }

// Store keeps what does not fit in memory, sorted by key bytes. It is disposable: it has no log of its own and is filled
// from checkpoints. Several goroutines may use it. Every call takes a batch; one Get per row is not a design. Keys of a batch are sorted and unique.
// Slices handed in belong to the caller again after the call; slices handed out are the caller's to keep.
type Store interface {
	// Get returns a value for each key, nil where there is none. An empty value is not nil.
	Get(keys [][]byte) ([][]byte, error)
	// Apply puts and deletes a batch, all or nothing.
	Apply(changes []Pair) error
	// DeleteRange drops from <= key < to. A nil bound is open.
	DeleteRange(from, to []byte) error
	// Range visits from <= key < to in order until visit returns false. The store may be changed meanwhile; the visit
	// sees it as it was.
	Range(from, to []byte, visit func(Pair) bool) error
	// Snapshot is the content now, unchanged by what follows. It must be closed.
	Snapshot() (View, error)
	// Restore replaces the content by sorted pairs; next returns false after the last.
	Restore(next func() (Pair, bool)) error
	// Ingest adds sorted pairs in bulk; they win over what is there. next returns false after the last.
	Ingest(next func() (Pair, bool)) error
	Close() error
}

// View is a snapshot of a store.
type View interface {
	Get(keys [][]byte) ([][]byte, error)
	Range(from, to []byte, visit func(Pair) bool) error
	Close() error
}

// StoreKey is where a row of a table lies in a store: operator path, table, key group, key. All rows of one group of a
// table are one range, so that another parallelism moves ranges.
func StoreKey(operator, table string, group uint8, key []byte) []byte {
	out := make([]byte, 0, len(operator)+len(table)+len(key)+5)
	out = binary.BigEndian.AppendUint16(out, uint16(len(operator)))
	out = append(out, operator...)
	out = binary.BigEndian.AppendUint16(out, uint16(len(table)))
	out = append(out, table...)
	out = append(out, group)
	return append(out, key...)
}
