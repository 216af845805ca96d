package rowkey

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
)

// bits is a validity bitmap; the zero value has every bit set.
type bits struct {
	b   []byte
	off int
}

func (v bits) get(i int) bool {
	if v.b == nil {
		return true
	}
	i += v.off
	return v.b[i>>3]>>(i&7)&1 != 0
}

func validity(a arrow.Array) bits {
	if a.NullN() == 0 || len(a.NullBitmapBytes()) == 0 {
		return bits{}
	}
	return bits{a.NullBitmapBytes(), a.Data().Offset()}
}

// offsets returns the n+1 offsets of a string, list or map array, its own offset applied.
func offsets(a arrow.Array) []int32 {
	d := a.Data()
	if d.Len() == 0 || d.Buffers()[1] == nil || d.Buffers()[1].Len() == 0 {
		return make([]int32, d.Len()+1)
	}
	return arrow.GetOffsets[int32](d, 1)
}

func texts(a arrow.Array) ([]int32, []byte) {
	var data []byte
	if b := a.Data().Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	return offsets(a), data
}

// textSize is the size of an escaped text with its end.
func textSize(s []byte) int {
	if len(s) > fewBytes {
		return len(s) + bytes.Count(s, []byte{0}) + 2
	}
	n := len(s) + 2
	for _, c := range s {
		if c == 0 {
			n++
		}
	}
	return n
}

// fewBytes is up to where a loop is cheaper than the calls that longer texts are worth.
const fewBytes = 8

// putText writes an escaped text with its end and returns its size.
func putText(dst, s []byte) int {
	n := 0
	if len(s) <= fewBytes {
		for _, c := range s {
			dst[n] = c
			n++
			if c == 0 {
				dst[n] = 0xFF
				n++
			}
		}
		dst[n], dst[n+1] = 0, 0
		return n + 2
	}
	for {
		z := bytes.IndexByte(s, 0)
		if z < 0 {
			break
		}
		n += copy(dst[n:], s[:z+1])
		dst[n] = 0xFF
		n++
		s = s[z+1:]
	}
	n += copy(dst[n:], s)
	dst[n], dst[n+1] = 0, 0
	return n + 2
}
