package state

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// changedRows names rows of a Bags by what they are: blocks move. A row may be named several times.
type changedRows struct {
	epoch, hash []uint64
	keys, rows  []uint64 // words
}

func (c *changedRows) len() int { return len(c.epoch) }

// add names a row, whose texts live as long as its name.
func (c *changedRows) add(b *Bags, epoch, hash uint64, key, row []uint64) {
	b.key.keep(key, 1)
	b.row.keep(row, 1)
	c.epoch, c.hash = append(c.epoch, epoch), append(c.hash, hash)
	c.keys, c.rows = append(c.keys, key...), append(c.rows, row...)
}

func (c *changedRows) at(b *Bags, i int) (key, row []uint64) {
	return c.keys[i*b.key.size : (i+1)*b.key.size], c.rows[i*b.row.size : (i+1)*b.row.size]
}

func (c *changedRows) layOut(from, to *record) {
	if c.len() > 0 {
		c.rows = relaid(from, to, c.rows)
	}
}

// each gives the rows that changed after an epoch, each once, with its present weight; 0 when it has gone.
func (c *changedRows) each(b *Bags, since uint64, use func(row []uint64, hash uint64, weight int64)) {
	seen := map[string]bool{}
	var name []byte
	for i, e := range c.epoch {
		if e <= since {
			continue
		}
		key, row := c.at(b, i)
		name = name[:0]
		for _, w := range row[1:] { // the key follows from the row
			name = binary.LittleEndian.AppendUint64(name, w)
		}
		if seen[string(name)] {
			continue
		}
		seen[string(name)] = true
		weight := int64(0)
		if block := b.look(c.hash[i], key); block != 0 {
			if at, ok := b.locate(block, row); ok {
				weight = b.Weight(at)
			}
		}
		use(row, c.hash[i], weight)
	}
}

// behind keeps the names of later epochs.
func (c *changedRows) behind(b *Bags, epoch uint64) (out changedRows) {
	for i, e := range c.epoch {
		key, row := c.at(b, i)
		if e > epoch {
			out.add(b, e, c.hash[i], key, row)
		}
		b.key.release(key)
		b.row.release(row)
	}
	b.sweep()
	return out
}

// rowNames encodes rows to what they are called in a snapshot.
func rowNames(ts []types.Type) *rowkey.Encoder {
	exact := make([]rowkey.Key, len(ts))
	for i := range exact {
		exact[i].Exact = true
	}
	return rowkey.NewEncoder(ts, exact)
}

// Name implements Stored.
func (b *Bags) Name() string { return b.Decl.Name }

// Len implements Stored.
func (b *Bags) Len() int { return b.rows + b.Out() }

// Touched implements Stored.
func (b *Bags) Touched() int64 { return b.looks }

// Bytes implements Stored.
func (b *Bags) Bytes() int64 {
	n := int64(4*cap(b.blocks.dense) + 8*(b.mem.held+cap(b.blocks.cells)+cap(b.changed.rows)+cap(b.changed.keys)+2*cap(b.changed.epoch)))
	for _, r := range []*record{b.key, b.row} {
		if r.texts != nil {
			n += r.texts.table.Bytes()
		}
	}
	if b.cold != nil {
		n += b.cold.bytes()
	}
	return n
}

// Track implements Stored.
func (b *Bags) Track() { b.tracking = true }

// Cut implements Stored.
func (b *Bags) Cut() uint64 {
	b.epoch++
	return b.epoch - 1
}

// Forget implements Stored.
func (b *Bags) Forget(epoch uint64) {
	b.changed = b.changed.behind(b, epoch)
	if b.cold != nil && b.cold.store != nil {
		b.cold.dirty(b)
	}
}

// Clear drops all rows.
func (b *Bags) Clear() {
	var blocks []uint32
	b.blocks.each(func(block uint32) { blocks = append(blocks, block) })
	for _, block := range blocks {
		for block != 0 {
			r := b.Rows(block)
			r.Next()
			if w := b.mem.at(block); b.tracking {
				b.changed.add(b, b.epoch, w[blockHash], w[blockKey:b.head], b.mem.at(r.At)[:b.row.size])
			}
			block = b.remove(block, r.At)
		}
	}
	b.sweep()
}

// Snapshot implements Stored.
func (b *Bags) Snapshot() (Part, error) {
	var rows []uint64
	var groups []uint8
	b.blocks.each(func(block uint32) {
		before := len(rows)
		rows = b.appendRows(rows, block)
		g := group(b.mem.at(block)[blockHash])
		for range (len(rows) - before) / b.row.size {
			groups = append(groups, g)
		}
	})
	if b.Out() == 0 {
		return b.part(rows, groups, 0)
	}
	var cold storedBag
	if err := b.cold.visit(b, func(hash uint64, value []byte) {
		before := len(cold.bytes)
		cold.add(value)
		for range len(cold.bytes) - before {
			groups = append(groups, group(hash))
		}
	}); err != nil {
		return Part{}, err
	}
	b.pack(cold.columns(b), len(cold.bytes)) // they fitted once, so no row is laid out anew
	for i, w := range cold.weights {
		b.rowWords[i*b.row.size] = uint64(w)
	}
	p, err := b.part(append(rows, b.rowWords[:len(cold.bytes)*b.row.size]...), groups, 0)
	b.sweep()
	return p, err
}

// Dirty implements Stored.
func (b *Bags) Dirty(since uint64) (Part, error) {
	var rows, gone []uint64
	var groups, lost []uint8
	b.changed.each(b, since, func(row []uint64, hash uint64, weight int64) {
		if weight == 0 {
			gone, lost = append(gone, row...), append(lost, group(hash))
			return
		}
		rows, groups = append(rows, row...), append(groups, group(hash))
		rows[len(rows)-b.row.size] = uint64(weight)
	})
	return b.part(append(rows, gone...), append(groups, lost...), len(lost))
}

// part makes a part of rows, of which the last `gone` were deleted: of those only the keys are written.
func (b *Bags) part(rows []uint64, groups []uint8, gone int) (Part, error) {
	n, left := len(groups), len(groups)-gone
	values := b.columns(rows)
	key := b.enc.Encode(values, n)
	offs := make([]int32, n+1)
	for i, o := range key.Offs[:n+1] {
		offs[i] = int32(o)
	}
	hash, deleted := make([]uint64, n), make([]byte, (n+7)/8)
	kernels.HashColumns(values, n, hash)
	for i := left; i < n; i++ {
		deleted[i>>3] |= 1 << (i & 7)
	}
	fields, cols := slices.Clone(partFields), []arrow.Array{
		kernels.NewFixed(arrow.PrimitiveTypes.Uint8, groups, nil), kernels.NewFixed(arrow.PrimitiveTypes.Uint64, hash, nil),
		kernels.NewBytes(arrow.BinaryTypes.Binary, offs, slices.Clone(key.Data), nil), kernels.NewBools(n, deleted, nil)}
	weights := make([]int64, left)
	for i := range weights {
		weights[i] = int64(rows[i*b.row.size])
	}
	for i, v := range values {
		values[i] = array.NewSlice(v, 0, int64(left))
		fields = append(fields, b.types[1][i].ArrowField(b.Decl.Values[i]))
	}
	values = append(values, kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil))
	for i := len(values) - 1; i < len(b.Decl.Values); i++ {
		fields = append(fields, types.Int64.ArrowField(b.Decl.Values[i]))
	}
	for _, c := range b.same {
		a, err := c.Save(make([]uint32, left))
		if err != nil {
			return Part{}, err
		}
		values = append(values, a)
	}
	for _, v := range values {
		if gone > 0 {
			v = kernels.Concat([]arrow.Array{v, kernels.Nulls(v.DataType(), gone)})
		}
		cols = append(cols, v)
	}
	return Part{Table: b.Decl.Name, Version: b.Decl.Version, Rows: array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(n))}, nil
}

// columns are those of rows.
func (b *Bags) columns(rows []uint64) []arrow.Array {
	cols := make([]arrow.Array, len(b.row.cols))
	for c := range cols {
		cols[c] = b.row.column(c, rows)
	}
	return cols
}

// Restore implements Stored. The keys are not in the part: rows come to their place by Rearrange.
func (b *Bags) Restore(p Part, mine func(group uint8) bool) error {
	if b.restored == nil {
		var cols []Column
		for _, t := range b.types[1] {
			cols = append(cols, NewValues(t))
		}
		cols = append(cols, &Int64s{})
		for _, c := range b.same {
			cols = append(cols, c)
		}
		b.restored = NewTable(b.Decl, cols...)
		if b.cold != nil {
			b.restored.Limit(b.cold.in, b.cold.path+"/restored", b.cold.limit)
		}
	}
	return b.restored.Restore(p, mine)
}

// Rearrange puts what was restored in its place; keys gives the keys of rows and their hashes.
func (b *Bags) Rearrange(keys func(cols []arrow.Array, n int) (hash []uint64, keys []arrow.Array, err error)) error {
	if b.restored == nil {
		return nil
	}
	from := b.restored
	b.restored = nil
	tracking := b.tracking
	b.tracking = false
	for more := true; more; {
		slots := from.All()
		if err := b.take(from, slots, keys); err != nil {
			return err
		}
		from.discard(slots)
		if b.cold != nil {
			if err := b.Evict(b.cold.limit); err != nil {
				return err
			}
		}
		var err error
		if more, err = from.More(); err != nil {
			return err
		}
	}
	b.tracking, b.below = tracking, b.below.behind(b, 1)
	if b.cold == nil || from.cold.store == nil {
		return nil
	}
	return from.cold.drop()
}

// take adds rows of a table.
func (b *Bags) take(from *Table, slots []uint32, keys func(cols []arrow.Array, n int) (hash []uint64, keys []arrow.Array, err error)) error {
	var cols []arrow.Array
	for _, c := range from.cols {
		a, err := c.Save(slots)
		if err != nil {
			return err
		}
		cols = append(cols, a)
	}
	n := len(b.types[1])
	hash, ks, err := keys(cols[:n], len(slots))
	if err != nil {
		return err
	}
	if err := b.Fetch(hash, ks); err != nil {
		return err
	}
	b.Add(hash, ks, cols[:n], len(slots), cols[n].(*array.Int64).Int64Values())
	return nil
}
