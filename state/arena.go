package state

import (
	"math/bits"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
)

// arena gives out blocks of words, named by the address of their first word. Blocks come in classes of sizes; one that is given back is
// used again for its class. There are no pointers in it, so that the collector has nothing to follow. Address 0 is no block.
type arena struct {
	chunks [][]uint64 // by the upper bits of an address; from there to the end of the memory
	next   uint32     // the first free word of the newest chunk of small blocks
	end    uint32
	free   [classes][]uint32
	held   int // words
	given  int // of them, in free small blocks
}

const (
	chunkBits = 21 // a chunk has up to 16 megabytes
	chunkMask = 1<<chunkBits - 1
	unit      = 4 // words of the smallest class
	classes   = 116
	bigClass  = 64 // the first class that has memory of its own, which goes when the block does
)

// classWords is the size of a class: four sizes between a power of two and the next.
func classWords(class uint8) int {
	if class < 4 {
		return unit * (int(class) + 1)
	}
	return unit * (4 + int(class)%4 + 1) << (class/4 - 1)
}

// classOf is the smallest class for so many words.
func classOf(words int) uint8 {
	n := uint((words - 1) / unit) // a class holds n from one size to the next, in units
	if n < 4 {
		return uint8(n)
	}
	up := uint(bits.Len(n)) - 3
	return uint8(4*(up+1) + n>>up - 4)
}

// at is the memory from an address on.
func (a *arena) at(addr uint32) []uint64 { return a.chunks[addr>>chunkBits][addr&chunkMask:] }

// has reports whether there is memory at an address that was a block once.
func (a *arena) has(addr uint32) bool { return int(addr&chunkMask) < len(a.chunks[addr>>chunkBits]) }

// take gives a block of a class; what lies in it is arbitrary.
func (a *arena) take(class uint8) uint32 {
	if f := a.free[class]; len(f) > 0 {
		addr := f[len(f)-1]
		a.free[class] = f[:len(f)-1]
		if class >= bigClass {
			a.fill(addr, classWords(class))
		} else {
			a.given -= classWords(class)
		}
		return addr
	}
	n := uint32(classWords(class))
	if class >= bigClass {
		addr := a.chunk(int(n+chunkMask) >> chunkBits)
		a.fill(addr, int(n))
		return addr
	}
	if a.next+n > a.end {
		a.moreSmall(n)
	}
	addr := a.next
	a.next += n
	return addr
}

// moreSmall begins another chunk of small blocks. The first ones are small: most tables are.
func (a *arena) moreSmall(need uint32) {
	for rest := a.end - a.next; rest >= unit; rest = a.end - a.next { // what is left serves smaller classes
		class := classOf(int(rest))
		if classWords(class) > int(rest) {
			class--
		}
		a.free[class] = append(a.free[class], a.next)
		a.given += classWords(class)
		a.next += uint32(classWords(class))
	}
	size := max(int(need)+unit, min(1<<chunkBits, max(64, a.held)))
	a.next = a.chunk(1)
	a.end = a.next + uint32(size)
	a.chunks[a.next>>chunkBits] = kernels.Large(make([]uint64, size))
	a.held += size
	if a.next == 0 {
		a.next = unit
	}
}

// chunk gives addresses for n more chunks.
//
// AIDEV-NOTE: panics when the addresses are used up. There are 2048 chunks of them, 32 GB of small blocks; a big block takes whole chunks,
// however little of its last one it fills, and leaves them to its class alone: blocks of 5 MB come to 10 GB.
func (a *arena) chunk(n int) uint32 {
	addr := len(a.chunks) << chunkBits
	a.chunks = append(a.chunks, make([][]uint64, n)...)
	if len(a.chunks) > 1<<(32-chunkBits) {
		panic(errs.New(errs.State, "state", "a state table of one worker has used up its addresses: it has 32 GB, or from 10 GB on where keys have more than 4 MB of rows each").
			WithHint("use more parallelism, or bound the rows of a key"))
	}
	return uint32(addr)
}

// fill gives a big block its memory.
func (a *arena) fill(addr uint32, words int) {
	mem := kernels.Large(make([]uint64, words))
	a.held += words
	for c := addr >> chunkBits; len(mem) > 0; c++ {
		a.chunks[c] = mem
		mem = mem[min(len(mem), 1<<chunkBits):]
	}
}

// give takes a block back.
func (a *arena) give(addr uint32, class uint8) {
	a.free[class] = append(a.free[class], addr)
	if class < bigClass {
		a.given += classWords(class)
		return
	}
	n := classWords(class)
	a.held -= n
	for c := addr >> chunkBits; n > 0; c, n = c+1, n-1<<chunkBits {
		a.chunks[c] = nil
	}
}
