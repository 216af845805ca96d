// Package state holds what operators remember between steps: tables of typed columns under row keys, cut into
// 256 key groups, and the store that keeps what does not fit in memory.
//
// Invariant: a table's content is a function of the changes applied to it, never of the order of its slots or of the
// number of instances; a snapshot names rows by (key group, key), so any parallelism restores any snapshot.
package state

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// Groups is the number of key groups. It is part of the format of checkpoints and never changes.
const Groups = 256

// NoSlot stands for "no row".
const NoSlot = ^uint32(0)

// KeyKind says what a table's key bytes are.
type KeyKind uint8

const (
	RowKey   KeyKind = iota + 1 // the row key of some columns: equal rows, equal bytes
	Sequence                    // a number, unique in its key group: rows without an identity
)

// Decl declares a table beside its operator. Name and Version outlive us on disk.
type Decl struct {
	Name    string
	Version int
	Key     KeyKind
	Values  []string // names of the value columns; their types are the query's
	About   string   // "row → total weight, absent when zero"
}

// Column is a typed value column over slots. fn.Accumulator satisfies it, so an aggregate's accumulators are the
// columns of its table.
type Column interface {
	// Resize makes room for n slots; new ones are empty.
	Resize(n int)
	// Reset empties slots, so that they can be used again.
	Reset(slots []uint32)
	// State is the type under which Save writes.
	State() types.Type
	Save(slots []uint32) (arrow.Array, error)
	Load(slots []uint32, saved arrow.Array) error
	// Bytes is the memory held, roughly.
	Bytes() int64
}

// Keys names n rows of a table: their key bytes or, for a table that holds words, those (see Table.Pack), the hash of the key and
// the key group.
type Keys struct {
	Offsets []uint32 // n+1
	Data    []byte
	Words   rowkey.Packed // Low is not nil: instead of bytes
	Hash    []uint64
	Group   []uint8
}

// Len is the number of keys.
func (k Keys) Len() int { return len(k.Hash) }

// At returns the bytes of key i, where keys are bytes.
func (k Keys) At(i int) []byte { return k.Data[k.Offsets[i]:k.Offsets[i+1]] }
