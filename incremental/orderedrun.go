package incremental

import "slices"

// around appends the slots that lie together with one: its neighbours, as long as each joins the next.
func (o *ordered) around(slot uint32, before func(x uint32) bool, joins func(a, b uint32) bool, to []uint32) []uint32 {
	chunk, at := o.place(before)
	last := slot
	for i, j := chunk, at-1; ; j-- {
		for j < 0 && i > 0 {
			i--
			j = len(o.chunks[i]) - 1
		}
		if j < 0 || !joins(o.chunks[i][j], last) {
			break
		}
		last = o.chunks[i][j]
		to = append(to, last)
	}
	slices.Reverse(to)
	last = slot
	to = append(to, slot)
	for i, j := chunk, at+1; ; j++ {
		for i < len(o.chunks) && j == len(o.chunks[i]) {
			i, j = i+1, 0
		}
		if i == len(o.chunks) || !joins(last, o.chunks[i][j]) {
			return to
		}
		last = o.chunks[i][j]
		to = append(to, last)
	}
}

// behead drops the first n slots.
func (o *ordered) behead(n int) {
	for n > 0 && n >= len(o.chunks[0]) {
		n -= len(o.chunks[0])
		o.chunks = o.chunks[1:]
	}
	if n > 0 {
		o.chunks[0] = slices.Clone(o.chunks[0][n:])
	}
}

// from visits slots in order, from the first that before does not hold of, until visit returns false.
func (o *ordered) from(before func(x uint32) bool, visit func(slot uint32) bool) {
	if len(o.chunks) == 0 {
		return
	}
	first, at := o.place(before)
	for i, c := range o.chunks[first:] {
		if i == 0 {
			c = c[at:]
		}
		for _, s := range c {
			if !visit(s) {
				return
			}
		}
	}
}
