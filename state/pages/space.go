package pages

import (
	"math/bits"
	"os"
)

// extent is a piece of the file, in units; how many is a power of two.
type extent struct{ at, units uint32 }

// space is what the file has room for.
type space struct {
	end  uint32
	free [32][]uint32 // by the power
}

// take finds room for n units.
func (s *space) take(n int) extent {
	power := bits.Len(uint(n - 1))
	for p := power; p < len(s.free); p++ {
		last := len(s.free[p]) - 1
		if last < 0 {
			continue
		}
		at := s.free[p][last]
		s.free[p] = s.free[p][:last]
		for ; p > power; p-- { // the upper halves stay free
			s.free[p-1] = append(s.free[p-1], at+1<<(p-1))
		}
		return extent{at, 1 << power}
	}
	at := s.end
	s.end += 1 << power
	return extent{at, 1 << power}
}

// give gives an extent back.
func (s *space) give(e extent) {
	if e.units > 0 {
		p := bits.TrailingZeros32(e.units)
		s.free[p] = append(s.free[p], e.at)
	}
}

// writes gathers pages that lie side by side, to write them at once.
type writes struct {
	at  uint32
	buf []byte
}

const mostWritten = 1 << 20

// add takes a page, which must not be read before flush.
func (w *writes) add(f *os.File, at uint32, page []byte) error {
	if len(w.buf) > 0 {
		used := uint32((len(w.buf) + unit - 1) / unit)
		if w.at+used != at || len(w.buf) > mostWritten {
			if err := w.flush(f); err != nil {
				return err
			}
		} else {
			w.buf = w.buf[:min(cap(w.buf), int(used)*unit)]
			for len(w.buf) < int(used)*unit {
				w.buf = append(w.buf, 0)
			}
		}
	}
	if len(w.buf) == 0 {
		w.at = at
	}
	w.buf = append(w.buf, page...)
	return nil
}

func (w *writes) flush(f *os.File) error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := f.WriteAt(w.buf, int64(w.at)*unit)
	w.buf = w.buf[:0]
	if err != nil {
		return wrong(err)
	}
	return nil
}
