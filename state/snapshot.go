package state

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
)

// Part is rows of one table as they go into a snapshot: plain Arrow, readable without this program. Its columns are
// _group, _hash, _key, _deleted and then the values.
type Part struct {
	Table   string
	Version int
	Rows    arrow.RecordBatch
	// Fresh says that no row has a key of an earlier part, and none is a deletion: nobody need look.
	Fresh bool
	// Ahead is how many rows of the table are about to come, those of this part included; 0: nobody knows. Room for them is made at once.
	Ahead int64
}

var partFields = []arrow.Field{
	{Name: "_group", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "_hash", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "_key", Type: arrow.BinaryTypes.Binary},
	{Name: "_deleted", Type: arrow.FixedWidthTypes.Boolean},
}

// Snapshot returns all rows.
func (t *Table) Snapshot() (Part, error) {
	p, err := t.part(t.All(), nil, nil)
	if err != nil {
		return Part{}, err
	}
	if t.units != nil {
		return t.units.withCold(p)
	}
	return t.withCold(p)
}

// Track starts the dirty list; before, changes are not listed and Dirty knows nothing.
func (t *Table) Track() {
	t.tracking = true
	t.touched.Resize(t.room)
}

// Cut ends an epoch of the dirty list and returns its number: Dirty of it later tells what changed after.
func (t *Table) Cut() uint64 {
	t.epoch++
	return t.epoch - 1
}

// Dirty returns the rows changed and the keys deleted after the epoch that Cut named.
//
// AIDEV-NOTE: a key deleted and made anew appears as a row only, and a row touched and then deleted as a deletion
// only, so that the order in which a reader applies the part does not matter.
func (t *Table) Dirty(since uint64) (Part, error) {
	var c lateCopy
	n := t.mark(&c, since)
	return t.part(t.there(c.first(n)), &t.gone, t.goneSince(since))
}

// goneSince are the keys that went after an epoch and have not come back, by their places in the list.
func (t *Table) goneSince(since uint64) (gone []int) {
	for i, e := range t.gone.epoch {
		if e > since && (t.Decl.Key == Sequence || t.find(t.gone.hash[i], t.gone.key(i)) == NoSlot) {
			gone = append(gone, i)
		}
	}
	return gone
}

// Forget drops what the dirty list holds of epochs up to one that is durable.
func (t *Table) Forget(epoch uint64) {
	dirty := t.dirty[:0]
	for _, d := range t.dirty {
		if d.epoch > epoch {
			dirty = append(dirty, d)
		}
	}
	t.dirty, t.gone, t.forgotten = dirty, t.gone.behind(epoch), max(t.forgotten, epoch)
}

// part is rows, and keys of a list of those that went, by their places.
func (t *Table) part(slots []uint32, list *goneRows, gone []int) (Part, error) {
	n := len(slots) + len(gone)
	group, hash, deleted := make([]uint8, n), make([]uint64, n), make([]byte, bitutil.BytesForBits(int64(n)))
	ends, keys := make([]int32, n+1), []byte(nil)
	for i, s := range slots {
		h := t.heads.At(s)
		if group[i] = h.group; t.Decl.Key != Sequence {
			hash[i] = h.hash
		}
	}
	if t.Packed() {
		keys = t.writeKeys(slots, ends[1:])
	} else {
		for i, s := range slots {
			if t.Decl.Key == Sequence {
				keys = binary.BigEndian.AppendUint64(keys, t.heads.At(s).hash)
			} else {
				keys = append(keys, t.keys.get(s)...)
			}
			if i == 0 {
				keys = kernels.Ahead(keys, n)
			}
			ends[i+1] = int32(len(keys))
		}
	}
	for k, g := range gone {
		i := len(slots) + k
		group[i], hash[i], keys = list.group[g], list.hash[g], append(keys, list.key(g)...)
		ends[i+1] = int32(len(keys))
		bitutil.SetBit(deleted, i)
	}
	fields := append([]arrow.Field{}, partFields...)
	cols := []arrow.Array{
		kernels.NewFixed(arrow.PrimitiveTypes.Uint8, group, nil), kernels.NewFixed(arrow.PrimitiveTypes.Uint64, hash, nil),
		kernels.NewBytes(arrow.BinaryTypes.Binary, ends, keys, nil), kernels.NewBools(n, deleted, nil),
	}
	for i, c := range t.cols {
		a, err := c.Save(slots)
		if err != nil {
			return Part{}, errs.New(errs.State, "snapshot", "column %q of state table %s: %w", t.Decl.Values[i], t.Decl.Name, err)
		}
		if len(gone) > 0 {
			a, err = array.Concatenate([]arrow.Array{a, kernels.Nulls(a.DataType(), len(gone))}, memory.DefaultAllocator)
			if err != nil {
				return Part{}, errs.New(errs.State, "snapshot", "column %q of state table %s: %w", t.Decl.Values[i], t.Decl.Name, err)
			}
		}
		f := c.State().ArrowField(t.Decl.Values[i])
		f.Type = a.DataType()
		fields, cols = append(fields, f), append(cols, a)
	}
	return Part{Table: t.Decl.Name, Version: t.Decl.Version, Rows: array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(n))}, nil
}

// Restore takes the rows of a part whose key groups are mine, in the order of parts: a later row of the same key
// replaces an earlier one and a deletion removes it.
func (t *Table) Restore(p Part, mine func(group uint8) bool) error {
	if err := checkPart(p, t.Decl); err != nil {
		return err
	}
	if t.cold != nil {
		return t.restoreCold(p, mine)
	}
	empty := t.n == 0
	err := t.restore(p, mine)
	if empty && t.units != nil {
		t.units.expect(p.ahead(mine))
	}
	return err
}

func (t *Table) restore(p Part, mine func(group uint8) bool) error {
	groups, hashes := kernels.Values[uint8](p.Rows.Column(0)), kernels.Values[uint64](p.Rows.Column(1))
	ends, keys := kernels.Spans(p.Rows.Column(2).(*array.Binary))
	deleted := p.Rows.Column(3).(*array.Boolean)
	var own [Groups]bool
	for g := range own {
		own[g] = mine(uint8(g))
	}
	if t.n == 0 && t.cold == nil && t.units == nil { // otherwise not all of them may stay in memory
		t.expect(p.ahead(mine))
	}
	fresh := p.Fresh && t.Decl.Key == RowKey // nobody has the keys
	rows, slots := make([]uint32, 0, len(groups)), make([]uint32, 0, len(groups))
	var drop []uint32
	var have map[sequence]uint32 // of earlier parts
	if !p.Fresh {
		have = t.sequences()
	}
	for i, g := range groups {
		if !own[g] {
			continue
		}
		key := keys[ends[i]:ends[i+1]]
		s := NoSlot
		if !fresh {
			if t.Decl.Key == RowKey {
				s = t.find(hashes[i], key)
			} else if at, ok := have[sequence{g, binary.BigEndian.Uint64(key)}]; ok {
				s = at
			}
			if deleted.Value(i) {
				if s != NoSlot {
					drop = append(drop, s)
				}
				continue
			}
		}
		if s == NoSlot {
			s = t.take(hashes[i], g)
			switch {
			case t.Decl.Key == RowKey:
				if t.setKey(s, key); !fresh {
					t.idx.insert(hashes[i], s)
				}
			default:
				n := binary.BigEndian.Uint64(key)
				t.heads.At(s).hash, t.seq[g] = n, max(t.seq[g], n+1)
			}
		}
		rows, slots = append(rows, uint32(i)), append(slots, s)
	}
	if fresh {
		t.idx.insertAll(hashes, rows, slots)
	}
	t.grow()
	for i, c := range t.cols {
		from := p.Rows.Column(len(partFields) + i)
		picked, err := pick(from, rows)
		if err == nil {
			if !fresh {
				c.Reset(slots) // the row may replace one of an earlier part, and a column may add to what it holds
			}
			err = c.Load(slots, picked)
		}
		if err != nil {
			return errs.New(errs.State, "restore", "column %q of state table %s: %w", t.Decl.Values[i], t.Decl.Name, err)
		}
	}
	if t.cold != nil {
		t.cold.changed(slots)
	}
	t.discard(drop) // not listed as a change: whoever restores has the part
	return nil
}

// ahead is about how many of the rows to come are of the key groups that are mine, 0 when nobody knows.
func (p *Part) ahead(mine func(group uint8) bool) int {
	owned := 0
	for g := range Groups {
		if mine(uint8(g)) {
			owned++
		}
	}
	return int(p.Ahead) * owned / Groups
}

// expect makes room for so many rows of a table that has few, as growing would copy what it has time and again.
func (t *Table) expect(n int) {
	if n == 0 {
		return
	}
	if t.Decl.Key == RowKey {
		t.idx.reserve(n - t.n)
	}
	t.ahead = max(t.ahead, n)
	for _, c := range t.cols {
		c.Resize(t.ahead)
	}
}

// find returns the slot of a key's bytes, or NoSlot.
func (t *Table) find(h uint64, key []byte) uint32 {
	if !t.Packed() {
		return t.idx.find(t, h, key)
	}
	k := t.parseKey(key)
	return t.idx.findWords(t, h, &k)
}

// setKey gives a slot its key.
func (t *Table) setKey(slot uint32, key []byte) {
	if !t.Packed() {
		t.keys.set(slot, key)
		return
	}
	k := t.parseKey(key)
	t.setWords(slot, &k)
}

// checkPart refuses a part of another table.
func checkPart(p Part, d Decl) error {
	if p.Table != d.Name || p.Version != d.Version {
		return errs.New(errs.State, "restore", "state table %s version %d was written, this program has %s version %d",
			p.Table, p.Version, d.Name, d.Version).WithHint("restore with the version that wrote it, or read again from the start")
	}
	if got, want := int(p.Rows.NumCols()), len(partFields)+len(d.Values); got != want {
		return errs.New(errs.State, "restore", "state table %s has %d columns in the snapshot, not %d", p.Table, got, want).
			WithHint("restore with the query and the version that wrote it, or read again from the start")
	}
	if keys, ok := p.Rows.Column(2).(*array.Binary); ok && d.Key == Sequence {
		for i := range keys.Len() {
			if n := len(keys.Value(i)); n != 8 {
				return errs.New(errs.State, "restore", "state table %s numbers its rows, and the snapshot has a key of %d bytes", p.Table, n).
					WithHint("restore with the version that wrote it, or read again from the start")
			}
		}
	}
	return nil
}

// sequence names a row of a table without an index.
type sequence struct {
	group uint8
	n     uint64
}

// sequences finds the rows of a table without an index; only Restore needs them, for a part after the first.
func (t *Table) sequences() map[sequence]uint32 {
	if t.Decl.Key != Sequence || t.n == 0 {
		return nil
	}
	out := make(map[sequence]uint32, t.n)
	for _, s := range t.All() {
		out[sequence{t.Group(s), t.heads.At(s).hash}] = s
	}
	return out
}

// pick takes rows of an array as runs.
func pick(a arrow.Array, rows []uint32) (arrow.Array, error) {
	if len(rows) == a.Len() {
		return a, nil
	}
	if len(rows) == 0 {
		return array.NewSlice(a, 0, 0), nil
	}
	var parts []arrow.Array
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j] == rows[j-1]+1 {
			j++
		}
		parts = append(parts, array.NewSlice(a, int64(rows[i]), int64(rows[j-1])+1))
		i = j
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}
