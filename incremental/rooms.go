package incremental

// rooms are lists of one size, in pages, so that growing copies none but the first page.
type rooms struct {
	each  int
	pages [][]firstRow
	used  uint32
	free  []uint32
}

// pageShift is of how many lists a page is.
const pageShift = 10

// take gives a list.
func (r *rooms) take() uint32 {
	if n := len(r.free); n > 0 {
		last := r.free[n-1]
		r.free = r.free[:n-1]
		return last
	}
	r.used++
	if page := int((r.used - 1) >> pageShift); page == 0 {
		if len(r.pages) == 0 {
			r.pages = append(r.pages, nil)
		}
		if first := &r.pages[0]; int(r.used)*r.each > len(*first) {
			*first = append(make([]firstRow, 0, 2*int(r.used)*r.each), *first...)[:min(2*int(r.used), 1<<pageShift)*r.each]
		}
	} else if page == len(r.pages) {
		r.pages = append(r.pages, make([]firstRow, r.each<<pageShift))
	}
	return r.used - 1
}

func (r *rooms) of(list uint32) []firstRow {
	from := int(list&(1<<pageShift-1)) * r.each
	return r.pages[list>>pageShift][from : from+r.each : from+r.each]
}
