package pages

import "slices"

// page is what the directory knows of one.
type page struct {
	first string // no key before it is here, and none from the next page's on
	extent
	bytes uint32 // 0: it has no rows, and no place
}

// directory is all pages in the order of their keys, in parts, so that a new page moves few. The first one begins with the empty key.
type directory struct {
	parts []pages
	ranks ranks // of the parts
}

// pages is a part of the directory.
type pages struct {
	all   []page
	ranks ranks
}

const partPages = 256

// place is where a page stands in the directory.
type place struct{ part, page int }

func newDirectory() directory { return directoryOf([]pages{newPages([]page{{}})}) }

func directoryOf(parts []pages) directory {
	d := directory{parts: parts}
	d.ranks = newRanks(len(parts), d.first)
	return d
}

func newPages(all []page) pages {
	p := pages{all: all}
	p.ranks = newRanks(len(all), p.first)
	return p
}

func (d *directory) first(i int) string { return d.parts[i].all[0].first }

func (p *pages) first(i int) string { return p.all[i].first }

// shared is the directory for somebody who looks on while it is changed by replacing.
func (d directory) shared() directory { return directory{slices.Clone(d.parts), d.ranks} }

func (d *directory) at(at place) page { return d.parts[at.part].all[at.page] }

// find is the page of a key.
func (d *directory) find(key []byte) place {
	i := d.ranks.find(key, d.first)
	p := &d.parts[i]
	return place{i, p.ranks.find(key, p.first)}
}

// next is the page behind one.
func (d *directory) next(at place) (place, bool) {
	if at.page++; at.page < len(d.parts[at.part].all) {
		return at, true
	}
	at = place{at.part + 1, 0}
	return at, at.part < len(d.parts)
}

// until is how many of n sorted keys are of a page; the first one is.
func (d *directory) until(at place, n int, key func(i int) []byte) int {
	if n == 1 {
		return 1
	}
	next, ok := d.next(at)
	if !ok {
		return n
	}
	i := 1
	for i < n && d.before(key(i), next) {
		i++
	}
	return i
}

// before reports whether a key is before a page; it is not before the page before that.
func (d *directory) before(key []byte, at place) bool {
	p := &d.parts[at.part]
	if m := len(p.ranks.begin); at.page > 0 && len(key) >= m && string(key[:m]) == p.ranks.begin {
		return p.ranks.before(at.page, twoWords(key[m:]), key, p.first)
	}
	return string(key) < d.at(at).first
}

// replace puts pages in the place of one. Those without rows go, but for the very first.
func (d *directory) replace(at place, by []page, looked bool) {
	part := d.parts[at.part].all
	if len(by) == 1 && by[0].bytes == 0 && (at.part > 0 || at.page > 0) {
		by = nil
	}
	if len(by) == 1 && !looked {
		part[at.page] = by[0]
		return
	}
	out := make([]page, 0, len(part)+len(by))
	out = append(append(append(out, part[:at.page]...), by...), part[at.page+1:]...)
	var parts []pages
	for n := (len(out) + 2*partPages - 1) / (2 * partPages); n > 0; n-- { // even ones
		k := len(out) / n
		parts, out = append(parts, newPages(out[:k:k])), out[k:]
	}
	if len(parts) == 1 && parts[0].first(0) == d.first(at.part) {
		d.parts[at.part] = parts[0]
		return
	}
	*d = directoryOf(slices.Concat(d.parts[:at.part], parts, d.parts[at.part+1:]))
}

// without leaves out the pages that lie in a range, and lists what they had.
func (d *directory) without(from, to []byte) (out directory, had []extent) {
	var parts []pages
	for i, part := range d.parts {
		kept := make([]page, 0, len(part.all))
		for j, p := range part.all {
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
			parts = append(parts, newPages(kept))
		}
	}
	return directoryOf(parts), had
}

// extents are where all pages lie.
func (d *directory) extents() (out []extent) {
	for _, part := range d.parts {
		for _, p := range part.all {
			if p.units > 0 {
				out = append(out, p.extent)
			}
		}
	}
	return out
}
