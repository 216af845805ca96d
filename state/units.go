package state

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// Units lets the rows of a table leave memory, all of an owner together: the rows of a join key. Owners are the keys of a table that is derived;
// how rows hang together there is their operator's business, which says who changed and puts in its place what comes back.
//
// AIDEV-NOTE: as for coldRows, an owner in memory counts, whatever the store has of it, and Fetch comes before owners are looked for.
type Units struct {
	rows, owners *Table
	in           *Cold
	store        Store // nil: nothing has left yet
	pre          []byte
	has          [Groups]bool
	n            int // owners that are out
	out          int // rows of theirs
	exact        []rowkey.Key
	enc          *rowkey.Encoder
	types        []types.Type
	seen         seen
	marks        Chunked[coldMark] // by slot of the owner
	hand         uint32
	stuck        bool
	limit        int64 // bytes in memory, for Restore
	gone         [][]byte
	slots        []uint32
}

// NewUnits lets the rows of a table, which is empty, leave memory by their owners. There is room for so many bytes of them.
func NewUnits(rows, owners *Table, in *Cold, path string, bytes int64) *Units {
	u := &Units{rows: rows, owners: owners, in: in, limit: bytes, pre: storePrefix(path, rows.Decl.Name), exact: make([]rowkey.Key, len(rows.cols))}
	for i, col := range rows.cols {
		u.types = append(u.types, col.State())
		u.exact[i].Exact = true
	}
	u.enc = rowkey.NewEncoder(u.types, u.exact)
	rows.units = u
	return u
}

// Fetch brings the rows of these owners into memory, those that have left it, and returns the keys of the owners and the slots of each one's rows. The
// caller makes owners of them (Back).
func (u *Units) Fetch(k Keys) (back Keys, slots [][]uint32, err error) {
	if u == nil || u.store == nil {
		return back, nil, nil
	}
	if err := u.drop(); err != nil {
		return back, nil, err
	}
	u.marks.Resize(u.owners.room)
	u.slots = kernels.Sized(u.slots, k.Len())
	u.owners.Find(k, u.slots)
	var missing []int32
	for i, s := range u.slots {
		if s != NoSlot {
			*u.marks.At(s) |= recent
		} else if u.seen.has(k.Hash[i]) {
			missing = append(missing, int32(i))
		}
	}
	if len(missing) == 0 || u.n == 0 {
		return back, nil, nil
	}
	keys, _ := storeKeys(u.pre, u.owners, &k, missing)
	found, err := u.store.Get(keys)
	if err != nil {
		return back, nil, err
	}
	var units []Pair
	for i, v := range found {
		if v != nil {
			units = append(units, Pair{keys[i], v})
		}
	}
	return u.take(units)
}

// More is Fetch for some of the owners that have left memory, others each time, as long as they are dropped between the calls; none when there are no more.
func (u *Units) More() (back Keys, slots [][]uint32, err error) {
	if u == nil || u.n == 0 {
		return back, nil, nil
	}
	if err := u.drop(); err != nil {
		return back, nil, err
	}
	u.marks.Resize(u.owners.room)
	var units []Pair
	size := 0
	for g, has := range u.has {
		if !has || size >= fetchBytes {
			continue
		}
		from, to := groupRange(u.pre, uint8(g))
		if err := u.store.Range(from, to, func(p Pair) bool {
			if u.owners.find(binary.BigEndian.Uint64(p.Value), p.Key[len(u.pre)+1:]) == NoSlot {
				units = append(units, p)
				size += len(p.Value)
			}
			return size < fetchBytes
		}); err != nil {
			return back, nil, err
		}
	}
	return u.take(units)
}

// fetchBytes is how much of units is brought back at a time where many are.
const fetchBytes = 1 << 20

// take brings owners into memory, as the store has them.
func (u *Units) take(units []Pair) (back Keys, slots [][]uint32, err error) {
	back.Offsets = []uint32{0}
	var rows []coldRow
	var ends []int
	for _, p := range units {
		g := p.Key[len(u.pre)]
		rows = appendUnit(rows, p.Value, g)
		ends = append(ends, len(rows))
		back.Data = append(back.Data, p.Key[len(u.pre)+1:]...)
		back.Offsets = append(back.Offsets, uint32(len(back.Data)))
		back.Hash, back.Group = append(back.Hash, binary.BigEndian.Uint64(p.Value)), append(back.Group, g)
	}
	all, err := u.bring(rows)
	if err != nil {
		return back, nil, err
	}
	from := 0
	for _, end := range ends {
		slots = append(slots, all[from:end:end])
		from = end
	}
	u.n -= len(ends)
	u.out -= len(rows)
	return back, slots, nil
}

// Over reports whether more is held than there is room for.
func (u *Units) Over() bool { return u.rows.Bytes() > u.limit }

// expect makes room for the rows to come when, by what the first take, all of them stay in memory.
func (u *Units) expect(rows int) {
	if t := u.rows; t.n > 0 && rows > t.used && int64(rows)*(t.Bytes()/int64(t.used)) <= u.limit {
		t.expect(rows)
	}
}

// Undo brings all rows back. What is known of their owners is not.
func (u *Units) Undo() error {
	if u.n == 0 {
		return nil
	}
	if err := u.drop(); err != nil {
		return err
	}
	for g, has := range u.has {
		if !has {
			continue
		}
		var rows []coldRow
		from, to := groupRange(u.pre, uint8(g))
		err := u.store.Range(from, to, func(p Pair) bool {
			rows = appendUnit(rows, p.Value, uint8(g))
			return true
		})
		if err == nil {
			_, err = u.bring(rows)
		}
		if err == nil {
			err = u.store.DeleteRange(from, to)
		}
		if err != nil {
			return err
		}
	}
	u.n, u.out = 0, 0
	return nil
}

// Open reports whether some owner has left memory, now or before.
func (u *Units) Open() bool { return u != nil && u.store != nil }

// InStore reports whether the store has a version of the rows of an owner in memory.
func (u *Units) InStore(owner uint32) bool {
	return int(owner) < u.marks.Len() && *u.marks.At(owner)&there != 0
}

// Back notes that owners came back as they are in the store.
func (u *Units) Back(owners []uint32) {
	u.marks.Resize(u.owners.room)
	for _, s := range owners {
		*u.marks.At(s) = there | same
	}
}

// appendUnit takes the rows of an owner apart: for each the head of the table, the key and the columns.
func appendUnit(out []coldRow, value []byte, group uint8) []coldRow {
	for v := value[8:]; len(v) > 0; {
		r := coldRow{hash: binary.BigEndian.Uint64(v), group: group}
		r.key, v = cutBytes(v[8:])
		r.value, v = cutBytes(v)
		out = append(out, r)
	}
	return out
}

func cutBytes(b []byte) (text, left []byte) {
	n, at := binary.Uvarint(b)
	end := at + int(n)
	return b[at:end:end], b[end:]
}

// bring makes rows of the store rows in memory.
func (u *Units) bring(rows []coldRow) ([]uint32, error) {
	t := u.rows
	slots := make([]uint32, len(rows))
	t.idx.reserve(len(rows))
	for i, r := range rows {
		s := t.take(r.hash, r.group)
		if t.Decl.Key == RowKey {
			t.setKey(s, r.key)
			t.idx.insert(r.hash, s)
		}
		slots[i] = s
	}
	t.grow()
	for i, a := range rowkey.Decode(u.types, u.exact, len(rows), func(i int) []byte { return rows[i].value }) {
		if err := t.cols[i].Load(slots, a); err != nil {
			return nil, errs.New(errs.State, "state store", "column %q of state table %s: %w", t.Decl.Values[i], t.Decl.Name, err)
		}
	}
	return slots, nil
}

// Evict lets owners leave until the rows hold about so many bytes. rowsOf appends the slots of an owner's rows; forget is told of owners whose rows have
// gone. Nobody may hold a slot.
func (u *Units) Evict(limit int64, rowsOf func(owner uint32, to []uint32) []uint32, forget func(owners []uint32) error) error {
	t := u.rows
	u.stuck = false
	if t.n == 0 {
		return nil
	}
	held := t.Bytes()
	keep := int(limit / max(1, held/int64(max(1, t.used))))
	if held <= limit || t.n <= keep {
		return nil
	}
	if u.store == nil {
		var err error
		if u.store, err = u.in.get(); err != nil {
			return err
		}
	}
	u.marks.Resize(u.owners.room)
	if err := u.drop(); err != nil {
		return err
	}
	need := t.n - keep + keep/64
	var owners, rows []uint32
	var ends []int
	for range 2 * u.owners.used {
		if need <= len(rows) {
			break
		}
		if u.hand++; int(u.hand) >= u.owners.used {
			u.hand = 0
		}
		s := u.hand
		if !u.owners.Live(s) {
			continue
		}
		m := u.marks.At(s)
		if *m&chosen != 0 {
			continue
		}
		if *m&recent != 0 {
			*m &^= recent
			continue
		}
		from := len(rows)
		rows = rowsOf(s, rows)
		if t.tracking && slices.ContainsFunc(rows[from:], func(r uint32) bool { return *t.touched.At(r) > t.forgotten }) {
			rows = rows[:from]
			continue
		}
		*m |= chosen
		owners, ends = append(owners, s), append(ends, len(rows))
	}
	u.stuck = t.tracking && len(rows) < t.n-keep
	if len(owners) == 0 {
		return nil
	}
	t.Before(rows)
	if err := u.write(owners, rows, ends); err != nil {
		return err
	}
	if t.tracking {
		for _, r := range rows {
			*t.touched.At(r) = 0
		}
	}
	t.release(rows)
	u.n += len(owners)
	u.out += len(rows)
	if err := forget(owners); err != nil {
		return err
	}
	for _, s := range owners {
		*u.marks.At(s) = 0
	}
	return nil
}

// write puts the rows of owners into the store, where it has not got them as they are.
func (u *Units) write(owners, rows []uint32, ends []int) error {
	t := u.rows
	var pairs []Pair
	var changed []uint32
	from := 0
	for i, s := range owners {
		if *u.marks.At(s)&same == 0 {
			changed = append(changed, rows[from:ends[i]]...)
		}
		from = ends[i]
	}
	cols := make([]arrow.Array, len(t.cols))
	for i, col := range t.cols {
		var err error
		if cols[i], err = col.Save(changed); err != nil {
			return errs.New(errs.State, "state store", "column %q of state table %s: %w", t.Decl.Values[i], t.Decl.Name, err)
		}
	}
	enc := u.enc.Encode(cols, len(changed))
	from, next := 0, 0
	for i, s := range owners {
		mine := rows[from:ends[i]]
		from = ends[i]
		if *u.marks.At(s)&same != 0 {
			continue
		}
		hash, g := u.owners.Hash(s), u.owners.Group(s)
		value := binary.BigEndian.AppendUint64(nil, hash)
		for _, r := range mine {
			value = binary.BigEndian.AppendUint64(value, t.heads.At(r).hash)
			var key []byte
			if t.Decl.Key == RowKey {
				key = t.Key(r)
			}
			value = append(binary.AppendUvarint(value, uint64(len(key))), key...)
			row := enc.Row(next)
			value = append(binary.AppendUvarint(value, uint64(len(row))), row...)
			next++
		}
		u.has[g] = true
		u.seen.add(hash)
		pairs = append(pairs, Pair{slices.Concat(u.pre, []byte{g}, u.owners.Key(s)), value})
	}
	if len(pairs) == 0 {
		return nil
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return bytes.Compare(a.Key, b.Key) })
	return u.store.Apply(pairs)
}

// Changed notes that the store has rows of owners no longer as they are.
func (u *Units) Changed(owners []uint32) {
	if u == nil || u.store == nil {
		return
	}
	u.marks.Resize(u.owners.room)
	for _, s := range owners {
		*u.marks.At(s) &^= same
	}
}

// Forget notes that owners go for good, before they do: what the store has of them does not count.
func (u *Units) Forget(owners []uint32) {
	if u == nil || u.store == nil {
		return
	}
	u.marks.Resize(u.owners.room)
	for _, s := range owners {
		m := u.marks.At(s)
		if *m&there != 0 {
			u.gone = append(u.gone, slices.Concat(u.pre, []byte{u.owners.Group(s)}, u.owners.Key(s)))
		}
		*m = 0
	}
}

// drop deletes in the store what has gone.
func (u *Units) drop() error {
	if len(u.gone) == 0 {
		return nil
	}
	slices.SortFunc(u.gone, bytes.Compare)
	u.gone = slices.CompactFunc(u.gone, bytes.Equal)
	pairs := make([]Pair, len(u.gone))
	for i, k := range u.gone {
		pairs[i].Key = k
	}
	u.gone = nil
	return u.store.Apply(pairs)
}

// Stuck reports whether rows stayed, when the table was told to hold less, because no checkpoint has their changes.
func (u *Units) Stuck() bool { return u.stuck }

// withCold adds to a part of what is in memory the rows that are not.
func (u *Units) withCold(p Part) (Part, error) {
	if u.n == 0 {
		return p, nil
	}
	if err := u.drop(); err != nil {
		return Part{}, err
	}
	var rows []coldRow
	for g, has := range u.has {
		if !has {
			continue
		}
		from, to := groupRange(u.pre, uint8(g))
		if err := u.store.Range(from, to, func(pair Pair) bool {
			if u.owners.find(binary.BigEndian.Uint64(pair.Value), pair.Key[len(u.pre)+1:]) == NoSlot {
				rows = appendUnit(rows, pair.Value, uint8(g))
			}
			return true
		}); err != nil {
			return Part{}, err
		}
	}
	group, hash := array.NewUint8Builder(memory.DefaultAllocator), array.NewUint64Builder(memory.DefaultAllocator)
	key, deleted := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary), array.NewBooleanBuilder(memory.DefaultAllocator)
	for _, r := range rows {
		group.Append(r.group)
		if deleted.Append(false); u.rows.Decl.Key == Sequence {
			hash.Append(0)
			key.Append(binary.BigEndian.AppendUint64(nil, r.hash))
			continue
		}
		hash.Append(r.hash)
		key.Append(r.key)
	}
	more := []arrow.Array{group.NewArray(), hash.NewArray(), key.NewArray(), deleted.NewArray()}
	return p.with(append(more, rowkey.Decode(u.types, u.exact, len(rows), func(i int) []byte { return rows[i].value })...))
}
