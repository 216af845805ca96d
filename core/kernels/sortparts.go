package kernels

import (
	"slices"
	"sync/atomic"
)

// EntryCuts parts entries by ranges of their numbers, so that each part can be sorted by itself. Where to cut is learnt from a
// sample: the range in which most of it lies is divided into many cells of one width, and cells are put together until they
// make a part.
type EntryCuts struct {
	mask  uint64 // the bits that are looked at
	first uint64
	shift uint
	cells []uint16 // part of each cell
	Parts int
}

const (
	maxCells = 1 << 16
	// MaxParts is how many parts there may be.
	MaxParts = 1 << 10
)

// NewEntryCuts makes up to parts parts of about one size. Entries with equal first together bits, of up to 64, are in one
// part.
func NewEntryCuts(sample []SortEntry, parts int, together uint) *EntryCuts {
	c := &EntryCuts{mask: ^uint64(0) << (64 - together), cells: make([]uint16, maxCells), Parts: 1}
	words := make([]uint64, len(sample))
	for i, e := range sample {
		words[i] = e.Hi & c.mask
	}
	SortWords(words)
	if len(words) == 0 {
		return c
	}
	edge := len(words) / 64
	c.first = words[edge]
	for width := words[len(words)-1-edge] - c.first; width>>c.shift >= maxCells-2; c.shift++ {
	}
	share := max(len(words)/min(parts, MaxParts), 1)
	part, filled, next := 0, 0, 0
	for cell := range c.cells {
		here := 0
		for next < len(words) && c.cell(words[next]) == cell {
			here++
			next++
		}
		if filled > 0 && filled+here/2 >= share && part+1 < MaxParts {
			part, filled = part+1, 0
		}
		filled += here
		c.cells[cell] = uint16(part)
	}
	c.Parts = part + 1
	return c
}

// cell is 0 below the range, and the last cell above it.
func (c *EntryCuts) cell(w uint64) int {
	w &= c.mask
	if w < c.first {
		return 0
	}
	return int(min((w-c.first)>>(c.shift&63)+1, maxCells-1))
}

// entryBlock is how many entries of a part lie together.
const entryBlock = 256

// EntryParts holds entries by part.
type EntryParts struct {
	cuts    *EntryCuts
	arena   []SortEntry
	next    atomic.Int64 // block that is free
	writers []*EntryWriter
}

// EntryWriter is one goroutine's way to add entries.
type EntryWriter struct {
	of     *EntryParts
	at     []int     // place of the next entry, by part
	blocks [][]int32 // of each part
}

// NewEntryParts makes room for n entries that so many writers add.
func NewEntryParts(cuts *EntryCuts, n, writers int) *EntryParts {
	p := &EntryParts{cuts: cuts}
	p.arena = Room[SortEntry](EntryPlaces(n, cuts.Parts, writers))
	for range writers {
		p.writers = append(p.writers, &EntryWriter{of: p, at: make([]int, cuts.Parts), blocks: make([][]int32, cuts.Parts)})
	}
	return p
}

// EntryPlaces is how many places n entries may need in so many parts.
func EntryPlaces(n, parts, writers int) int { return (n/entryBlock + parts*writers) * entryBlock }

// Writer is the i-th writer.
func (p *EntryParts) Writer(i int) *EntryWriter { return p.writers[i] }

// Add copies entries to their parts.
func (w *EntryWriter) Add(e []SortEntry) {
	cuts, arena := w.of.cuts, w.of.arena
	cells, at := cuts.cells[:maxCells], w.at
	for i := range e {
		x := e[i]
		part := cells[cuts.cell(x.Hi)]
		k := at[part]
		if k%entryBlock == 0 {
			k = w.block(part)
		}
		arena[k] = x
		at[part] = k + 1
	}
}

// AddPlaced is Add, and puts the place of each entry into its lowest low bits; places has room for them.
func (w *EntryWriter) AddPlaced(e []SortEntry, low uint, places []uint32) []uint32 {
	cuts, arena := w.of.cuts, w.of.arena
	cells, at, places := cuts.cells[:maxCells], w.at, places[:len(e)]
	mask := uint64(1)<<low - 1
	for i := range e {
		x := e[i]
		part := cells[cuts.cell(x.Hi)]
		k := at[part]
		if k%entryBlock == 0 {
			k = w.block(part)
		}
		arena[k] = SortEntry{x.Hi, x.Lo&^mask | uint64(k)}
		at[part] = k + 1
		places[i] = uint32(k)
	}
	return places
}

// block begins a block of a part.
func (w *EntryWriter) block(part uint16) int {
	b := w.of.next.Add(1) - 1
	w.blocks[part] = append(w.blocks[part], int32(b))
	return int(b) * entryBlock
}

// Rows is how many entries a part has.
func (p *EntryParts) Rows(part int) int {
	n := 0
	for _, w := range p.writers {
		if k := len(w.blocks[part]); k > 0 {
			n += (k-1)*entryBlock + w.last(part)
		}
	}
	return n
}

// last is how many entries the last block of a part has.
func (w *EntryWriter) last(part int) int { return (w.at[part]-1)%entryBlock + 1 }

// Part copies the entries of a part to dst, which has room for them.
func (p *EntryParts) Part(part int, dst []SortEntry) []SortEntry {
	n := 0
	for _, w := range p.writers {
		for i, b := range w.blocks[part] {
			size := entryBlock
			if i+1 == len(w.blocks[part]) {
				size = w.last(part)
			}
			n += copy(dst[n:], p.arena[int(b)*entryBlock:][:size])
		}
	}
	return dst[:n]
}

// Sample takes about n rows evenly out of rows.
func Sample(rows, n int) []int32 {
	idx := make([]int32, 0, min(rows, n))
	for i := range min(rows, n) {
		idx = append(idx, int32(int64(i)*int64(rows)/int64(min(rows, n))))
	}
	return slices.Clip(idx)
}
