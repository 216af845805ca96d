package pages

import (
	"slices"
	"sort"
)

// page is what the directory knows of one.
type page struct {
	first string // no key before it is here, and none from the next page's on
	extent
	bytes uint32 // 0: it has no rows, and no place
}

// directory is all pages in the order of their keys, in parts, so that a new page moves few. The first one begins with the empty key.
type directory struct{ parts [][]page }

const partPages = 256

// place is where a page stands in the directory.
type place struct{ part, page int }

func newDirectory() directory { return directory{[][]page{{{}}}} }

// shared is the directory for somebody who looks on while it is changed by replacing.
func (d directory) shared() directory { return directory{slices.Clone(d.parts)} }

func (d directory) at(at place) page { return d.parts[at.part][at.page] }

// find is the page of a key.
func (d directory) find(key []byte) place {
	i := sort.Search(len(d.parts), func(i int) bool { return d.parts[i][0].first > string(key) }) - 1
	part := d.parts[i]
	return place{i, sort.Search(len(part), func(i int) bool { return part[i].first > string(key) }) - 1}
}

// next is the page behind one.
func (d directory) next(at place) (place, bool) {
	if at.page++; at.page < len(d.parts[at.part]) {
		return at, true
	}
	at = place{at.part + 1, 0}
	return at, at.part < len(d.parts)
}

// until is how many of n sorted keys are of a page; the first one is.
func (d directory) until(at place, n int, key func(i int) []byte) int {
	next, ok := d.next(at)
	if !ok {
		return n
	}
	end := d.at(next).first
	i := 1
	for i < n && string(key(i)) < end {
		i++
	}
	return i
}

// replace puts pages in the place of one. Those without rows go, but for the very first.
func (d *directory) replace(at place, by []page, looked bool) {
	part := d.parts[at.part]
	if len(by) == 1 && by[0].bytes == 0 && (at.part > 0 || at.page > 0) {
		by = nil
	}
	if len(by) == 1 && !looked {
		part[at.page] = by[0]
		return
	}
	out := make([]page, 0, len(part)+len(by))
	out = append(append(append(out, part[:at.page]...), by...), part[at.page+1:]...)
	var parts [][]page
	for n := (len(out) + 2*partPages - 1) / (2 * partPages); n > 0; n-- { // even ones
		k := len(out) / n
		parts, out = append(parts, out[:k:k]), out[k:]
	}
	d.parts = slices.Concat(d.parts[:at.part], parts, d.parts[at.part+1:])
}

// without leaves out the pages that lie in a range, and lists what they had.
func (d directory) without(from, to []byte) (out directory, had []extent) {
	for i, part := range d.parts {
		kept := make([]page, 0, len(part))
		for j, p := range part {
			next, more := d.next(place{i, j})
			in := p.first >= string(from) && (to == nil || more && d.at(next).first <= string(to))
			switch {
			case !in:
				kept = append(kept, p)
				continue
			case i == 0 && j == 0:
				kept = append(kept, page{})
			}
			had = append(had, p.extent)
		}
		if len(kept) > 0 {
			out.parts = append(out.parts, kept)
		}
	}
	return out, had
}

// extents are where all pages lie.
func (d directory) extents() (out []extent) {
	for _, part := range d.parts {
		for _, p := range part {
			if p.units > 0 {
				out = append(out, p.extent)
			}
		}
	}
	return out
}
