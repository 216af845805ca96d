package incremental

import (
	"slices"
	"sort"
)

// ordered is a sorted list of slots in chunks, so that an insert moves a chunk and not the list. The order is the caller's.
type ordered struct{ chunks [][]uint32 }

// orderedChunk is the size at which a chunk splits.
const orderedChunk = 512

// place finds the chunk and the position in it where a slot is or would go. before(x) says that x stands before that slot.
func (o *ordered) place(before func(x uint32) bool) (chunk, at int) {
	chunk = sort.Search(len(o.chunks), func(i int) bool { c := o.chunks[i]; return !before(c[len(c)-1]) })
	if chunk == len(o.chunks) {
		if chunk == 0 {
			return 0, 0
		}
		chunk--
	}
	c := o.chunks[chunk]
	return chunk, sort.Search(len(c), func(i int) bool { return !before(c[i]) })
}

func (o *ordered) insert(slot uint32, before func(x uint32) bool) {
	if len(o.chunks) == 0 {
		o.chunks = [][]uint32{{slot}}
		return
	}
	i, at := o.place(before)
	c := slices.Insert(o.chunks[i], at, slot)
	if len(c) >= orderedChunk {
		half := len(c) / 2
		o.chunks = slices.Insert(o.chunks, i+1, slices.Clone(c[half:]))
		c = c[:half]
	}
	o.chunks[i] = c
}

func (o *ordered) remove(slot uint32, before func(x uint32) bool) {
	i, at := o.place(before)
	c := o.chunks[i]
	if at >= len(c) || c[at] != slot {
		return
	}
	if c = slices.Delete(c, at, at+1); len(c) == 0 {
		o.chunks = slices.Delete(o.chunks, i, i+1)
		return
	}
	o.chunks[i] = c
}

// each visits slots in order until visit returns false.
func (o *ordered) each(visit func(slot uint32) bool) {
	for _, c := range o.chunks {
		for _, s := range c {
			if !visit(s) {
				return
			}
		}
	}
}

// last is the last slot of a list that has one.
func (o *ordered) last() uint32 {
	c := o.chunks[len(o.chunks)-1]
	return c[len(c)-1]
}

// cut keeps the slots up to the first that is not to be kept and appends the rest to gone.
func (o *ordered) cut(gone []uint32, keep func(slot uint32) bool) []uint32 {
	for i, c := range o.chunks {
		for j, s := range c {
			if keep(s) {
				continue
			}
			gone = append(gone, c[j:]...)
			for _, rest := range o.chunks[i+1:] {
				gone = append(gone, rest...)
			}
			if o.chunks[i] = c[:j]; j == 0 {
				i--
			}
			o.chunks = o.chunks[:i+1]
			return gone
		}
	}
	return gone
}
