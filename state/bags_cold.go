package state

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
)

// coldBags are the keys of a Bags whose rows are in a store and not in memory: all of a key together, under the key, as the hash of the key and
// each row's weight and bytes. A key in memory counts, whatever the store has of it.
//
// AIDEV-NOTE: as for coldRows, that holds because what memory drops is written (evict) or deleted in the store before the store is asked
// again (gone), and because Fetch comes before Find and Add. A block with changes that no checkpoint has (dirty) stays: Dirty looks for its rows.
type coldBags struct {
	in    *Cold
	store Store // nil: nothing has left yet
	path  string
	pre   []byte
	has   [Groups]bool
	keys  int // that are out
	rows  int
	limit int64
	enc   *rowkey.Encoder // of keys
	exact []rowkey.Key    // of rows
	seen  seen
	marks [][]coldMark // by chunk of the arena and unit there
	hand  int          // the place in the index that is looked at next
	stuck bool         // keys that had to leave stayed: no checkpoint has their changes
	gone  [][]byte
	at    []uint32
}

// changing marks a block of which no checkpoint has all changes.
const changing coldMark = 1 << 6

// Limit lets keys and their rows leave memory, to a store under a path that no other has but those with other key groups. From then on Fetch comes
// before Find and Add, and nobody holds a block over Evict.
func (b *Bags) Limit(in *Cold, path string, bytes int64) {
	c := &coldBags{in: in, path: path, limit: bytes, pre: storePrefix(path, b.Decl.Name), exact: make([]rowkey.Key, len(b.types[1]))}
	for i := range c.exact {
		c.exact[i].Exact = true
	}
	c.enc = rowkey.NewEncoder(b.types[0], make([]rowkey.Key, len(b.types[0])))
	b.cold = c
}

// Out is how many rows are in the store alone.
func (b *Bags) Out() int {
	if b.cold == nil {
		return 0
	}
	return b.cold.rows
}

// Fetch brings the rows of these keys into memory, those that have left it.
func (b *Bags) Fetch(hash []uint64, keys []arrow.Array) error {
	c := b.cold
	if c == nil || c.store == nil {
		return nil
	}
	if err := c.drop(); err != nil {
		return err
	}
	c.at = kernels.Sized(c.at, len(hash))
	b.Find(hash, keys, c.at)
	var missing []int32
	for i, block := range c.at {
		if block != 0 {
			*c.mark(b, block) |= recent
		} else if c.seen.has(hash[i]) {
			missing = append(missing, int32(i))
		}
	}
	if len(missing) == 0 || c.keys == 0 {
		return nil
	}
	keys = kernels.TakeBatch(keys, missing)
	named := c.names(hash, keys, missing)
	asked := make([][]byte, len(named))
	for i, n := range named {
		asked[i] = n.key
	}
	found, err := c.store.Get(asked)
	if err != nil {
		return err
	}
	var rows []int32
	var values [][]byte
	for i, v := range found {
		if v != nil {
			rows, values = append(rows, named[i].row), append(values, v)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	hashes := make([]uint64, len(rows))
	for i, r := range rows {
		hashes[i] = hash[missing[r]]
	}
	b.bring(hashes, kernels.TakeBatch(keys, rows), values)
	return nil
}

// named is a key in the store, and which of those asked for it is.
type named struct {
	key []byte
	row int32
}

// names are the keys in the store of some keys, sorted and each once.
func (c *coldBags) names(hash []uint64, keys []arrow.Array, rows []int32) []named {
	enc := c.enc.Encode(keys, len(rows))
	out := make([]named, len(rows))
	mem := make([]byte, 0, len(enc.Data)+len(rows)*(len(c.pre)+1))
	for i, r := range rows {
		from := len(mem)
		mem = append(append(append(mem, c.pre...), group(hash[r])), enc.Row(i)...)
		out[i] = named{mem[from:len(mem):len(mem)], int32(i)}
	}
	slices.SortFunc(out, func(a, b named) int { return bytes.Compare(a.key, b.key) })
	return slices.CompactFunc(out, func(a, b named) bool { return bytes.Equal(a.key, b.key) })
}

// bring makes blocks of what the store has of some keys, of which memory has nothing.
func (b *Bags) bring(hash []uint64, keys []arrow.Array, values [][]byte) {
	c := b.cold
	var rows storedBag
	for _, v := range values {
		rows.add(v)
	}
	n := len(rows.bytes)
	b.pack(rows.columns(b), n)
	b.keyWords, _, _ = b.key.pack(keys, len(hash), b.keyWords)
	b.reserve(len(hash), hash)
	at := 0
	for i, h := range hash {
		block := uint32(0)
		for end := rows.ends[i]; at < end; at++ {
			row := b.rowWords[at*b.row.size : (at+1)*b.row.size]
			row[0] = uint64(rows.weights[at])
			block = b.insert(block, h, b.keyWord(i), row, end-at)
		}
		*c.mark(b, block) = there | same
	}
	c.keys -= len(hash)
	c.rows -= n
	b.sweep()
}

// storedBag is rows as the store has them.
type storedBag struct {
	bytes   [][]byte
	weights []int64
	ends    []int // of the rows of each key
}

func (s *storedBag) add(value []byte) {
	for v := value[8:]; len(v) > 0; {
		weight, n := binary.Varint(v)
		size, m := binary.Uvarint(v[n:])
		from := n + m
		s.bytes, s.weights = append(s.bytes, v[from:from+int(size)]), append(s.weights, weight)
		v = v[from+int(size):]
	}
	s.ends = append(s.ends, len(s.bytes))
}

func (s *storedBag) columns(b *Bags) []arrow.Array {
	return rowkey.Decode(b.types[1], b.cold.exact, len(s.bytes), func(i int) []byte { return s.bytes[i] })
}

// Evict lets rows leave memory until about so many bytes are held. Nobody may hold a block.
func (b *Bags) Evict(limit int64) error {
	c := b.cold
	if c == nil {
		return nil
	}
	c.stuck = false
	blocks := 8 * int64(b.mem.held-b.mem.given)
	live := blocks + 4*int64(len(b.blocks.dense)) + 8*int64(len(b.blocks.cells))
	for _, r := range []*record{b.key, b.row} {
		if r.texts != nil {
			live += r.texts.live()
		}
	}
	if live <= limit {
		return nil
	}
	if c.store == nil {
		var err error
		if c.store, err = c.in.get(); err != nil {
			return err
		}
		c.dirty(b)
	}
	out, left := c.choose(b, int64(float64(live-limit+limit/64)*float64(blocks)/float64(live)))
	c.stuck = b.tracking && left > limit/32
	for len(out) > 0 {
		n, rows := 0, 0
		for n < len(out) && rows < fetchRows {
			rows += int(b.mem.at(out[n])[blockMeta] >> 8)
			n++
		}
		if err := b.evict(out[:n]); err != nil {
			return err
		}
		out = out[n:]
	}
	b.sweep()
	return nil
}

// Stuck reports whether keys stayed, when the table was told to hold less, because no checkpoint has their changes.
func (b *Bags) Stuck() bool { return b.cold != nil && b.cold.stuck }

// choose gives blocks of so many bytes that may leave, in the order in which the hand comes to them, in two rounds at most.
func (c *coldBags) choose(b *Bags, bytes int64) (out []uint32, left int64) {
	n := max(len(b.blocks.cells), len(b.blocks.dense))
	for range 2 * n {
		if bytes <= 0 {
			break
		}
		if c.hand++; c.hand >= n {
			c.hand = 0
		}
		var block uint32
		if b.blocks.dense != nil {
			block = b.blocks.dense[c.hand]
		} else {
			block = uint32(b.blocks.cells[c.hand])
		}
		if block == 0 {
			continue
		}
		switch m := c.mark(b, block); {
		case *m&(changing|chosen) != 0:
		case *m&recent != 0:
			*m &^= recent
		default:
			*m |= chosen
			out = append(out, block)
			bytes -= int64(8 * classWords(uint8(b.mem.at(block)[blockMeta])))
		}
	}
	return out, bytes
}

// evict writes the rows of blocks, those that the store has not as they are, and forgets them.
func (b *Bags) evict(blocks []uint32) error {
	c := b.cold
	if err := c.drop(); err != nil {
		return err
	}
	var write []uint32
	for _, block := range blocks {
		if *c.mark(b, block)&same == 0 {
			write = append(write, block)
		}
	}
	if err := c.write(b, write); err != nil {
		return err
	}
	for _, block := range blocks {
		w := b.mem.at(block)
		n := int(w[blockMeta] >> 8)
		for r := b.Rows(block); r.Next(); {
			b.row.release(b.mem.at(r.At)[:b.row.size])
		}
		key := w[blockKey:b.head]
		b.key.release(key)
		b.unplace(w[blockHash], key, block)
		*c.mark(b, block) = 0
		b.giveBack(block)
		b.rows -= n
		c.rows += n
	}
	c.keys += len(blocks)
	return nil
}

// write puts the rows of blocks into the store.
func (c *coldBags) write(b *Bags, blocks []uint32) error {
	if len(blocks) == 0 {
		return nil
	}
	var rows, keys []uint64
	for _, block := range blocks {
		rows = b.appendRows(rows, block)
		keys = append(keys, b.mem.at(block)[blockKey:b.head]...)
	}
	names := c.keysOf(b, keys, len(blocks))
	enc := b.enc.Encode(b.columns(rows), len(rows)/b.row.size)
	pairs := make([]Pair, len(blocks))
	at := 0
	for i, block := range blocks {
		w := b.mem.at(block)
		hash := w[blockHash]
		value := binary.BigEndian.AppendUint64(nil, hash)
		for range w[blockMeta] >> 8 {
			value = binary.AppendVarint(value, int64(rows[at*b.row.size]))
			row := enc.Row(at)
			value = append(binary.AppendUvarint(value, uint64(len(row))), row...)
			at++
		}
		c.has[group(hash)] = true
		c.seen.add(hash)
		pairs[i] = Pair{slices.Concat(c.pre, []byte{group(hash)}, names.Row(i)), value}
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return bytes.Compare(a.Key, b.Key) })
	return c.store.Apply(pairs)
}

// keysOf are the bytes of keys that are words.
func (c *coldBags) keysOf(b *Bags, words []uint64, n int) rowkey.Rows {
	cols := make([]arrow.Array, len(b.key.cols))
	for i := range cols {
		cols[i] = b.key.column(i, words)
	}
	return c.enc.Encode(cols, n)
}

// drop deletes in the store what has gone.
func (c *coldBags) drop() error {
	if len(c.gone) == 0 {
		return nil
	}
	slices.SortFunc(c.gone, bytes.Compare)
	c.gone = slices.CompactFunc(c.gone, bytes.Equal)
	pairs := make([]Pair, len(c.gone))
	for i, k := range c.gone {
		pairs[i].Key = k
	}
	c.gone = nil
	return c.store.Apply(pairs)
}

// mark is that of a block.
func (c *coldBags) mark(b *Bags, block uint32) *coldMark {
	chunk := int(block >> chunkBits)
	for len(c.marks) <= chunk {
		c.marks = append(c.marks, nil)
	}
	if c.marks[chunk] == nil {
		c.marks[chunk] = make([]coldMark, len(b.mem.chunks[chunk])/unit+1)
	}
	return &c.marks[chunk][block&chunkMask/unit]
}

// changed notes what became of the block of a key, 0 when it has no row any more.
func (c *coldBags) changed(b *Bags, block uint32) {
	if c.store == nil || block == 0 {
		return
	}
	m := c.mark(b, block)
	if *m = *m&^same | recent; b.tracking {
		*m |= changing
	}
}

// moved notes that a block lies elsewhere.
func (c *coldBags) moved(b *Bags, from, to uint32) {
	if c.store != nil {
		m := c.mark(b, from)
		*c.mark(b, to), *m = *m, 0
	}
}

// relaid tells, while all blocks are laid out anew, which is which.
func (c *coldBags) relaid() func(b *Bags, from, to uint32) {
	if c == nil || c.store == nil {
		return func(*Bags, uint32, uint32) {}
	}
	old := c.marks
	c.marks = nil
	return func(b *Bags, from, to uint32) {
		if chunk := int(from >> chunkBits); chunk < len(old) && old[chunk] != nil {
			*c.mark(b, to) = old[chunk][from&chunkMask/unit]
		}
	}
}

// forget notes that a key goes for good: what the store has of it does not count.
func (c *coldBags) forget(b *Bags, block uint32) {
	if c.store == nil {
		return
	}
	m := c.mark(b, block)
	if w := b.mem.at(block); *m&there != 0 {
		name := c.keysOf(b, w[blockKey:b.head], 1).Row(0)
		c.gone = append(c.gone, slices.Concat(c.pre, []byte{group(w[blockHash])}, name))
	}
	*m = 0
}

// dirty finds the blocks with changes that no checkpoint has.
func (c *coldBags) dirty(b *Bags) {
	for _, marks := range c.marks {
		for i := range marks {
			marks[i] &^= changing
		}
	}
	for i, h := range b.changed.hash {
		key, _ := b.changed.at(b, i)
		if block := b.look(h, key); block != 0 {
			*c.mark(b, block) |= changing
		}
	}
}

// visit gives what is in the store and not in memory.
func (c *coldBags) visit(b *Bags, use func(hash uint64, value []byte)) error {
	if err := c.drop(); err != nil {
		return err
	}
	var keys []uint64
	var groups []uint8
	b.blocks.each(func(block uint32) {
		if *c.mark(b, block)&there != 0 {
			w := b.mem.at(block)
			keys, groups = append(keys, w[blockKey:b.head]...), append(groups, group(w[blockHash]))
		}
	})
	here := map[string]bool{}
	if len(groups) > 0 {
		names := c.keysOf(b, keys, len(groups))
		for i, g := range groups {
			here[string(append([]byte{g}, names.Row(i)...))] = true
		}
	}
	for g, has := range c.has {
		if !has {
			continue
		}
		from, to := groupRange(c.pre, uint8(g))
		err := c.store.Range(from, to, func(p Pair) bool {
			if !here[string(p.Key[len(c.pre):])] {
				use(binary.BigEndian.Uint64(p.Value), p.Value)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bytes is the memory held, but for what grows with what is out.
func (c *coldBags) bytes() (n int64) {
	for _, m := range c.marks {
		n += int64(len(m))
	}
	return n
}
