package state

import (
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// Bags keeps rows with weights, those of one key together: a block of memory holds the key and, one behind the other, its rows. So a
// key and its rows are two looks into memory, and a row is found, changed or dropped among its neighbours. Equal rows are one row
// with a weight; a row of weight zero is none. A block of many rows is a table of them by their hash.
//
// A block is: the hash of the key; how many rows there are, and the block's class; the key's words; the rows' words, of which the
// first is the weight.
type Bags struct {
	Decl   Decl
	types  [2][]types.Type // of keys, of rows
	key    *record
	row    *record
	wide   []bool // of the columns of rows: more than a word
	head   int    // words of a block before its rows
	mem    arena
	blocks blockIndex
	rows   int
	looks  int64

	enc      *rowkey.Encoder
	same     []Same // columns behind the weight that are one number in all rows
	epoch    uint64
	tracking bool
	changed  changedRows // while tracking
	below    changedRows // rows that had a negative weight at some moment of the step
	restored *Table      // what Restore took, until Restored
	cold     *coldBags   // nil: rows do not leave memory

	at       []uint32
	keyWords []uint64
	rowWords []uint64
}

const (
	blockHash = 0
	blockMeta = 1 // rows << 8 | class; 0 when the block was given back
	blockKey  = 2

	listed = 16 // rows up to which a block is searched from end to end
)

// NewBags makes an empty table of rows under keys; the declared values are the columns of a row, the weight, and the columns same. A key
// may have NULLs where nulls says so.
func NewBags(d Decl, keys, rows []types.Type, nulls bool, same ...Same) *Bags {
	if len(rows)+1+len(same) != len(d.Values) || d.Key != RowKey {
		panic(errs.Bug("state", "table %s declares %d values and has %d columns", d.Name, len(d.Values), len(rows)+1+len(same)))
	}
	b := &Bags{Decl: d, types: [2][]types.Type{keys, rows}, wide: make([]bool, len(rows)), epoch: 1, same: same}
	var kt, rt *texts
	if hasText(keys) {
		kt = newTexts(false)
	}
	if hasText(rows) {
		rt = newTexts(true)
	}
	b.key = newRecord(keys, false, 0, nulls, nil, kt)
	b.row = newRecord(rows, true, 1, false, b.wide, rt)
	b.head = blockKey + b.key.size
	b.blocks.numbers = len(keys) == 1 && !nulls && b.key.cols[0].form == asWord
	b.enc = rowNames(rows)
	return b
}

// pack makes words of rows, and lays all rows out anew when they do not fit.
func (b *Bags) pack(cols []arrow.Array, n int) {
	for {
		var nulls bool
		var wide []int
		if b.rowWords, nulls, wide = b.row.pack(cols, n, b.rowWords); !nulls && len(wide) == 0 {
			return
		}
		b.layOut(nulls, wide)
	}
}

// layOut makes room for NULLs or for wider columns: once for each.
func (b *Bags) layOut(nulls bool, wide []int) {
	for _, c := range wide {
		b.wide[c] = true
	}
	old := *b
	b.row = newRecord(b.types[1], true, 1, nulls || old.row.nulls >= 0, b.wide, old.row.texts)
	b.mem, b.rows = arena{}, 0
	b.blocks.n, b.blocks.cells, b.blocks.dense = 0, nil, nil
	if old.blocks.cells != nil { // else there is no index yet, and what it will be like is open
		b.blocks.cells = make([]uint64, len(old.blocks.cells))
	}
	if old.blocks.dense != nil {
		b.blocks.dense = make([]uint32, len(old.blocks.dense))
	}
	b.changed.layOut(old.row, b.row)
	b.below.layOut(old.row, b.row)
	marked := b.cold.relaid()
	old.blocks.each(func(addr uint32) {
		block := old.mem.at(addr)
		words := relaid(old.row, b.row, old.appendRows(nil, addr))
		at := uint32(0)
		for i := 0; i < len(words); i += b.row.size {
			row := words[i : i+b.row.size]
			at = b.insert(at, block[blockHash], block[blockKey:b.head], row, len(words[i:])/b.row.size)
			b.row.keep(row, -1) // it was counted when it came
		}
		b.key.keep(block[blockKey:b.head], -1)
		marked(b, addr, at)
	})
}

// relaid are rows in another layout.
func relaid(from, to *record, rows []uint64) []uint64 {
	n := len(rows) / from.size
	cols := make([]arrow.Array, len(from.cols))
	for c := range cols {
		cols[c] = from.column(c, rows)
	}
	out, _, _ := to.pack(cols, n, nil)
	for i := range n {
		copy(out[i*to.size:], rows[i*from.size:i*from.size+from.first])
	}
	return out
}

// appendRows appends the words of the rows of a block.
func (b *Bags) appendRows(out []uint64, block uint32) []uint64 {
	for r := b.Rows(block); r.Next(); {
		out = append(out, b.mem.at(r.At)[:b.row.size]...)
	}
	return out
}

// Find writes the block of each key, 0 where there is none. Blocks stay where they are until rows are added.
func (b *Bags) Find(hash []uint64, keys []arrow.Array, blocks []uint32) {
	n := len(hash)
	b.keyWords, _, _ = b.key.pack(keys, n, b.keyWords)
	b.probe(hash, blocks)
	for i, h := range hash {
		blocks[i] = b.settle(h, b.keyWord(i), blocks[i])
	}
	b.sweep()
}

// Rows walks over the rows of a block; of 0 there are none.
type Rows struct {
	At   uint32 // the row
	bags *Bags
	left uint32 // places that were not looked at
	many bool   // some places are empty
}

// Rows begins such a walk. It ends when rows are added.
func (b *Bags) Rows(block uint32) Rows {
	if block == 0 {
		return Rows{}
	}
	n := uint32(b.mem.at(block)[blockMeta] >> 8)
	r := Rows{At: block + uint32(b.head-b.row.size), bags: b, left: n}
	if places := b.places(block); places > listed {
		r.left, r.many = uint32(places), true
	}
	return r
}

// Next goes to the next row.
func (r *Rows) Next() bool {
	for r.left > 0 {
		r.At += uint32(r.bags.row.size)
		r.left--
		if !r.many || r.bags.Weight(r.At) != 0 {
			return true
		}
	}
	return false
}

// Weight is the weight of a row.
func (b *Bags) Weight(row uint32) int64 { return int64(b.mem.at(row)[0]) }

// Records are copies of rows.
type Records struct {
	bags  *Bags
	words []uint64
}

// Records copies rows.
func (b *Bags) Records(rows []uint32) Records {
	size := b.row.size
	b.rowWords = kernels.Sized(b.rowWords, len(rows)*size)
	for i, r := range rows {
		copy(b.rowWords[i*size:(i+1)*size], b.mem.at(r))
	}
	return Records{b, b.rowWords}
}

// None reports whether nothing was copied yet.
func (r Records) None() bool { return r.bags == nil }

// Column is a column of the rows; valid until the next call of Records or Add.
func (r Records) Column(c int) arrow.Array { return r.bags.row.column(c, r.words) }

// Weight is the weight of row i.
func (r Records) Weight(i int) int64 { return int64(r.words[i*r.bags.row.size]) }

// Add adds n rows, each with its key, the key's hash and a weight; w nil is +1 each.
func (b *Bags) Add(hash []uint64, keys, cols []arrow.Array, n int, w []int64) {
	b.looks += int64(n)
	b.pack(cols, n)
	b.keyWords, _, _ = b.key.pack(keys, n, b.keyWords)
	b.reserve(n, hash)
	b.at = kernels.Sized(b.at, n)
	b.probe(hash, b.at)
	for i := 0; i < n; {
		h, key := hash[i], b.keyWord(i)
		j := i + 1
		for j < n && hash[j] == h && slices.Equal(b.keyWord(j), key) {
			j++
		}
		block := b.settle(h, key, b.at[i])
		for ; i < j; i++ {
			weight := int64(1)
			if w != nil {
				weight = w[i]
			}
			if weight != 0 {
				row := b.rowWords[i*b.row.size : (i+1)*b.row.size]
				row[0] = uint64(weight)
				block = b.change(block, h, key, row, j-i)
			}
		}
		if b.cold != nil {
			b.cold.changed(b, block)
		}
	}
	b.sweep()
}

// sweep drops texts that nobody uses any more.
func (b *Bags) sweep() {
	for _, r := range []*record{b.key, b.row} {
		if r.texts != nil {
			r.texts.sweep()
		}
	}
}

func (b *Bags) keyWord(i int) []uint64 { return b.keyWords[i*b.key.size : (i+1)*b.key.size] }

// change adds a row, or its weight to that of the equal one, and returns the block of the key, 0 when it has no row any more. So many
// rows, this among them, are about to come to the key.
func (b *Bags) change(block uint32, hash uint64, key, row []uint64, coming int) uint32 {
	if b.tracking {
		b.changed.add(b, b.epoch, hash, key, row)
	}
	if block != 0 {
		if at, ok := b.locate(block, row); ok {
			w := b.mem.at(at)
			w[0] += row[0]
			switch {
			case w[0] == 0:
				return b.remove(block, at)
			case int64(w[0]) < 0:
				b.below.add(b, 1, hash, key, row)
			}
			return block
		}
	}
	if int64(row[0]) < 0 {
		b.below.add(b, 1, hash, key, row)
	}
	return b.insert(block, hash, key, row, coming)
}

// places is for how many rows a block has room.
func (b *Bags) places(block uint32) int {
	return (classWords(uint8(b.mem.at(block)[blockMeta])) - b.head) / b.row.size
}

// locate returns where a row is in a block, or, in a block that is a table, where it belongs.
func (b *Bags) locate(block uint32, row []uint64) (at uint32, ok bool) {
	w, size := b.mem.at(block), b.row.size
	places := b.places(block)
	if places <= listed {
		n := int(w[blockMeta] >> 8)
		for i, o := 0, b.head; i < n; i, o = i+1, o+size {
			if slices.Equal(w[o+1:o+size], row[1:]) {
				return block + uint32(o), true
			}
		}
		return 0, false
	}
	for i := homeOf(row, places); ; {
		o := b.head + i*size
		if w[o] == 0 {
			return block + uint32(o), false
		}
		if slices.Equal(w[o+1:o+size], row[1:]) {
			return block + uint32(o), true
		}
		if i++; i == places {
			i = 0
		}
	}
}

// homeOf is the place of a row in a table of so many.
func homeOf(row []uint64, places int) int {
	h := uint64(0)
	for _, w := range row[1:] {
		h = bits.RotateLeft64(h, 29) ^ w
		h *= hashMix
		h ^= h >> 32
	}
	hi, _ := bits.Mul64(h*0xd6e8feb86659fd93, uint64(places))
	return int(hi)
}

// insert puts a row that is not there into the block of a key.
func (b *Bags) insert(block uint32, hash uint64, key, row []uint64, coming int) uint32 {
	b.rows++
	b.row.keep(row, 1)
	if block == 0 {
		block = b.newBlock(hash, key, coming)
		b.key.keep(key, 1)
		b.place(hash, key, block)
	} else {
		n := int(b.mem.at(block)[blockMeta] >> 8)
		if places := b.places(block); n == places || places > listed && n >= places-places/4 {
			to := b.newBlock(hash, key, max(n+coming, n+n/2))
			b.move(block, to)
			b.replace(hash, key, block, to)
			block = to
		}
	}
	b.put(block, row)
	return block
}

// put writes a row that is not there into a block with room.
func (b *Bags) put(block uint32, row []uint64) {
	w := b.mem.at(block)
	at := block + uint32(b.head+int(w[blockMeta]>>8)*b.row.size)
	if b.places(block) > listed {
		at, _ = b.locate(block, row)
	}
	copy(b.mem.at(at), row)
	w[blockMeta] += 1 << 8
}

// newBlock makes an empty block with room for n rows.
func (b *Bags) newBlock(hash uint64, key []uint64, n int) uint32 {
	if n > listed {
		n += n / 2 // a third of a table stays empty
	}
	class := classOf(b.head + n*b.row.size)
	if (classWords(class)-b.head)/b.row.size > listed && n <= listed {
		class-- // it would be a table by a place or two
		if (classWords(class)-b.head)/b.row.size < n {
			class++
		}
	}
	block := b.mem.take(class)
	w := b.mem.at(block)
	w[blockHash], w[blockMeta] = hash, uint64(class)
	copy(w[blockKey:], key)
	if b.places(block) > listed {
		clear(w[b.head:classWords(class)])
	}
	return block
}

// move puts the rows of a block into another and gives the first one back.
func (b *Bags) move(from, to uint32) {
	for r := b.Rows(from); r.Next(); {
		b.put(to, b.mem.at(r.At)[:b.row.size])
	}
	if b.cold != nil {
		b.cold.moved(b, from, to)
	}
	b.giveBack(from)
}

func (b *Bags) giveBack(block uint32) {
	w := b.mem.at(block)
	class := uint8(w[blockMeta])
	w[blockMeta] = 0
	b.mem.give(block, class)
}

// remove drops the row at a place, and the block with the last one.
func (b *Bags) remove(block, at uint32) uint32 {
	b.rows--
	b.looks++
	w, size := b.mem.at(block), b.row.size
	w[blockMeta] -= 1 << 8
	n, places := int(w[blockMeta]>>8), b.places(block)
	row := b.mem.at(at)[:size]
	b.row.release(row)
	hash := w[blockHash]
	switch {
	case n == 0:
		b.key.release(w[blockKey:b.head])
		b.unplace(hash, w[blockKey:b.head], block)
		if b.cold != nil {
			b.cold.forget(b, block)
		}
		b.giveBack(block)
		return 0
	case places <= listed:
		copy(row, w[b.head+n*size:b.head+(n+1)*size])
	default:
		b.shiftBack(block, int(at-block-uint32(b.head))/size, places)
	}
	if places > 8 && n < places/4 {
		to := b.newBlock(hash, w[blockKey:b.head], n+n/2)
		b.move(block, to)
		b.replace(hash, b.mem.at(to)[blockKey:b.head], block, to)
		return to
	}
	return block
}

// shiftBack empties a place of a block that is a table: rows behind it move up, so that each is found from its home on.
func (b *Bags) shiftBack(block uint32, i, places int) {
	w, size := b.mem.at(block)[b.head:], b.row.size
	for j := i; ; {
		w[i*size] = 0
		for {
			if j++; j == places {
				j = 0
			}
			if w[j*size] == 0 {
				return
			}
			// The row may move to i when its home does not lie cyclically in (i, j].
			home := homeOf(w[j*size:(j+1)*size], places)
			if (j-home+places)%places >= (j-i+places)%places {
				copy(w[i*size:(i+1)*size], w[j*size:(j+1)*size])
				i = j
				break
			}
		}
	}
}

// EndStep returns how many rows have a negative weight of those that changed since the last call.
func (b *Bags) EndStep() (negative int64) {
	if b.below.len() == 0 {
		return 0
	}
	b.below.each(b, 0, func(_ []uint64, _ uint64, weight int64) {
		if weight < 0 {
			negative++
		}
	})
	b.below = b.below.behind(b, 1)
	return negative
}

// group is the key group of a key with this hash.
func group(hash uint64) uint8 { return uint8(kernels.KeyGroup(hash)) }
