package state

import (
	"slices"

	"github.com/riverbed/riverbed/core/kernels"
)

// blockIndex finds the block of a key. Keys that are one number each and lie close together are looked up by their number: that takes
// half the memory, and neighbours, which often come together, are neighbours there too. Others are looked up by their hash: open
// addressing with linear probing; deletion shifts back.
type blockIndex struct {
	n       int      // keys
	cells   []uint64 // upper half of a key's hash << 32 | address of its block; 0 is empty
	dense   []uint32 // by number - low: address of its block, or 0; nil while by hash
	low     uint64
	numbers bool   // keys are numbers
	least   uint64 // of all that came since the index was made
	most    uint64
	seen    uint64 // keeps reads ahead alive
}

const (
	fewNumbers  = 1 << 10 // a range that is no matter
	denseShare  = 8       // numbers lie close when so many times as many make their range
	denserShare = 4       // and when an index by number is made anew
)

// each gives all blocks.
func (x *blockIndex) each(use func(block uint32)) {
	for _, c := range x.cells {
		if c != 0 {
			use(uint32(c))
		}
	}
	for _, block := range x.dense {
		if block != 0 {
			use(block)
		}
	}
}

// reserve makes room for the keys of a batch.
func (b *Bags) reserve(n int, hash []uint64) {
	x := &b.blocks
	if n == 0 {
		return
	}
	if x.numbers {
		low, high := slices.Min(b.keyWords[:n]), slices.Max(b.keyWords[:n])
		if x.n == 0 && x.dense == nil && x.cells == nil {
			x.least, x.most = low, high
		}
		x.least, x.most = min(x.least, low), max(x.most, high)
		if x.dense != nil && low >= x.low && high-x.low < uint64(len(x.dense)) {
			return
		}
		if x.cells == nil && b.span(n, denseShare) || x.cells != nil && (x.n+n)*2 > len(x.cells) && b.span(n, denserShare) {
			b.byNumber(low < x.low)
			return
		}
		if x.dense != nil { // of keys that went there may be a wide range
			x.least, x.most = low, high
			x.each(func(block uint32) {
				key := b.mem.at(block)[blockKey]
				x.least, x.most = min(x.least, key), max(x.most, key)
			})
			if b.span(n, denserShare) {
				b.byNumber(low < x.low)
				return
			}
		}
	}
	b.byHash(n)
}

// span reports whether the numbers, n more of them, lie close together.
func (b *Bags) span(n, share int) bool {
	return b.blocks.most-b.blocks.least < uint64(fewNumbers+share*(b.blocks.n+n))
}

// byNumber makes the index by number, with room to grow where numbers come: below or above.
func (b *Bags) byNumber(below bool) {
	x := &b.blocks
	old := *x
	size := x.most - x.least + 1
	room := size / 2
	x.low = x.least
	if below {
		x.low -= min(room, x.low)
	}
	if end := x.low + size + room; end < x.low { // there are no larger numbers
		room = 0 - x.low - size
	}
	x.cells, x.dense = nil, kernels.Large(make([]uint32, size+room))
	old.each(func(block uint32) { x.dense[b.mem.at(block)[blockKey]-x.low] = block })
}

// byHash makes room for n more keys in the index by hash.
func (b *Bags) byHash(n int) {
	x := &b.blocks
	need := (x.n + n) * 2
	if need <= len(x.cells) {
		return
	}
	size := max(64, len(x.cells))
	for size < need {
		size *= 2
	}
	old := *x
	x.cells, x.dense = kernels.Large(make([]uint64, size)), nil
	old.each(func(block uint32) { x.place(b.mem.at(block)[blockHash], block) })
}

// probe writes for each key the block that it may be of and looks at each block, so that what follows finds it in the cache: the looks
// do not wait for one another.
func (b *Bags) probe(hash []uint64, blocks []uint32) {
	x := &b.blocks
	blocks = blocks[:len(hash)]
	switch {
	case x.dense != nil:
		words := b.keyWords[:len(blocks)]
		for i, w := range words {
			blocks[i] = 0
			if at := w - x.low; at < uint64(len(x.dense)) {
				blocks[i] = x.dense[at]
			}
		}
	case len(x.cells) == 0:
		clear(blocks)
		return
	default:
		mask := uint64(len(x.cells) - 1)
		for i, h := range hash {
			at := x.home(h)
			c := x.cells[at]
			for c != 0 && c>>32 != h>>32 {
				at = (at + 1) & mask
				c = x.cells[at]
			}
			blocks[i] = uint32(c)
		}
	}
	seen := uint64(0)
	for _, at := range blocks {
		if at != 0 {
			seen += b.mem.at(at)[blockMeta]
		}
	}
	x.seen = seen
}

func (x *blockIndex) home(hash uint64) uint64 {
	return (hash >> 32) * hashMix >> 32 & uint64(len(x.cells)-1)
}

// settle returns the block of a key for which probe has given one: that one, or another where hashes collide or blocks were moved.
func (b *Bags) settle(hash uint64, key []uint64, block uint32) uint32 {
	if block != 0 && b.blocks.dense == nil && b.holds(block, hash, key) {
		return block
	}
	return b.look(hash, key)
}

// look returns the block of a key, or 0.
func (b *Bags) look(hash uint64, key []uint64) uint32 {
	x := &b.blocks
	if x.dense != nil {
		if at := key[0] - x.low; at < uint64(len(x.dense)) {
			return x.dense[at]
		}
		return 0
	}
	if len(x.cells) == 0 {
		return 0
	}
	for i := x.home(hash); ; i = (i + 1) & uint64(len(x.cells)-1) {
		c := x.cells[i]
		if c == 0 || c>>32 == hash>>32 && b.holds(uint32(c), hash, key) {
			return uint32(c)
		}
	}
}

func (b *Bags) holds(block uint32, hash uint64, key []uint64) bool {
	if !b.mem.has(block) {
		return false
	}
	w := b.mem.at(block)
	return w[blockHash] == hash && w[blockMeta] != 0 && slices.Equal(w[blockKey:blockKey+len(key)], key)
}

// place puts a block where its key is looked for.
func (b *Bags) place(hash uint64, key []uint64, block uint32) {
	x := &b.blocks
	if x.n++; x.dense != nil {
		x.dense[key[0]-x.low] = block
		return
	}
	x.place(hash, block)
}

func (x *blockIndex) place(hash uint64, block uint32) {
	i := x.home(hash)
	for x.cells[i] != 0 {
		i = (i + 1) & uint64(len(x.cells)-1)
	}
	x.cells[i] = hash&^0xffffffff | uint64(block)
}

func (x *blockIndex) cell(hash uint64, block uint32) uint64 {
	i := x.home(hash)
	for uint32(x.cells[i]) != block {
		i = (i + 1) & uint64(len(x.cells)-1)
	}
	return i
}

// replace puts another block in the place of one.
func (b *Bags) replace(hash uint64, key []uint64, block, by uint32) {
	x := &b.blocks
	if x.dense != nil {
		x.dense[key[0]-x.low] = by
		return
	}
	x.cells[x.cell(hash, block)] = hash&^0xffffffff | uint64(by)
}

// unplace takes a block away.
func (b *Bags) unplace(hash uint64, key []uint64, block uint32) {
	x := &b.blocks
	if x.n--; x.dense != nil {
		x.dense[key[0]-x.low] = 0
		return
	}
	mask := uint64(len(x.cells) - 1)
	i := x.cell(hash, block)
	for j := i; ; {
		x.cells[i] = 0
		for {
			j = (j + 1) & mask
			c := x.cells[j]
			if c == 0 {
				return
			}
			// The cell may move to i when its home does not lie cyclically in (i, j].
			if (j-x.home(c))&mask >= (j-i)&mask {
				x.cells[i] = c
				i = j
				break
			}
		}
	}
}
