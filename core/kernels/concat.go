package kernels

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
)

// Concat appends arrays of one type, at least one. A single array is returned as it is.
func Concat(parts []arrow.Array) arrow.Array {
	if len(parts) == 1 {
		return parts[0]
	}
	data := make([]arrow.ArrayData, len(parts))
	for i, p := range parts {
		data[i] = p.Data()
	}
	return array.MakeFromData(concatData(data))
}

// Copy copies values into memory of their own, and no more than them: an array may be a slice of something large.
func Copy(a arrow.Array) arrow.Array {
	return array.MakeFromData(concatData([]arrow.ArrayData{a.Data()}))
}

// Compact gives an array that holds little more memory than its values take: a, or a copy.
func Compact(a arrow.Array) arrow.Array {
	if Held(a) > 2*taken(a.Data())+512 {
		return Copy(a)
	}
	return a
}

// Taken is how many bytes the values of an array take.
func Taken(a arrow.Array) int { return taken(a.Data()) }

// Held is how many bytes of memory stay for as long as an array does.
func Held(a arrow.Array) int { return heldBy(a.Data()) }

func heldBy(d arrow.ArrayData) int {
	n := 0
	for _, b := range d.Buffers() {
		if b != nil {
			n += b.Cap()
		}
	}
	for _, c := range d.Children() {
		n += heldBy(c)
	}
	return n
}

// taken is how many bytes the values of an array take.
func taken(d arrow.ArrayData) int {
	n := d.Len()
	bytes := BitBytes(n)
	switch t := d.DataType().(type) {
	case *arrow.StringType, *arrow.BinaryType:
		s := spans(d)
		bytes += 4*len(s) + int(s[len(s)-1]-s[0])
	case *arrow.ListType, *arrow.MapType:
		s := spans(d)
		bytes += 4*len(s) + taken(array.NewSliceData(d.Children()[0], int64(s[0]), int64(s[len(s)-1])))
	case *arrow.StructType:
		for _, c := range d.Children() {
			bytes += taken(array.NewSliceData(c, int64(d.Offset()), int64(d.Offset()+n)))
		}
	case arrow.FixedWidthDataType:
		bytes += (n*t.BitWidth() + 7) / 8
	}
	return bytes
}

func concatData(parts []arrow.ArrayData) arrow.ArrayData {
	dt := parts[0].DataType()
	n := 0
	for _, p := range parts {
		n += p.Len()
	}
	fits32(n)
	if dt.ID() == arrow.NULL {
		return array.NewData(dt, n, []*memory.Buffer{nil}, nil, n, 0)
	}
	valid, nulls := concatValid(parts, n)
	vb := validBuffer(valid)
	switch t := dt.(type) {
	case *arrow.BooleanType:
		out := make([]byte, (n+7)/8)
		at := 0
		for _, p := range parts {
			if b := p.Buffers()[1]; b != nil && b.Len() > 0 {
				copyBits(out, at, b.Bytes(), p.Offset(), p.Len())
			}
			at += p.Len()
		}
		return array.NewData(dt, n, []*memory.Buffer{vb, memory.NewBufferBytes(out)}, nil, nulls, 0)
	case *arrow.StringType, *arrow.BinaryType:
		offs, total := concatSpans(parts, n)
		out := Room[byte](total)
		at := 0
		for _, p := range parts {
			if s := spans(p); s[len(s)-1] > s[0] {
				at += copy(out[at:], p.Buffers()[2].Bytes()[s[0]:s[len(s)-1]])
			}
		}
		return array.NewData(dt, n, []*memory.Buffer{vb, buffer(offs), memory.NewBufferBytes(out)}, nil, nulls, 0)
	case *arrow.ListType, *arrow.MapType:
		offs, _ := concatSpans(parts, n)
		children := make([]arrow.ArrayData, len(parts))
		for i, p := range parts {
			s := spans(p)
			children[i] = array.NewSliceData(p.Children()[0], int64(s[0]), int64(s[len(s)-1]))
		}
		return array.NewData(dt, n, []*memory.Buffer{vb, buffer(offs)}, []arrow.ArrayData{concatData(children)}, nulls, 0)
	case *arrow.StructType:
		children := make([]arrow.ArrayData, t.NumFields())
		for f := range children {
			of := make([]arrow.ArrayData, len(parts))
			for i, p := range parts {
				of[i] = array.NewSliceData(p.Children()[f], int64(p.Offset()), int64(p.Offset()+p.Len()))
			}
			children[f] = concatData(of)
		}
		return array.NewData(dt, n, []*memory.Buffer{vb}, children, nulls, 0)
	case arrow.FixedWidthDataType:
		w := t.BitWidth() / 8
		out := Room[byte](n * w)
		at := 0
		for _, p := range parts {
			to := out[at : at+p.Len()*w]
			if b := p.Buffers()[1]; b != nil && p.Len() > 0 {
				copy(to, b.Bytes()[p.Offset()*w:(p.Offset()+p.Len())*w])
			} else {
				clear(to)
			}
			at += len(to)
		}
		return array.NewData(dt, n, []*memory.Buffer{vb, memory.NewBufferBytes(out)}, nil, nulls, 0)
	}
	panic(errs.Bug("kernels", "concat of %s", dt)) // AIDEV-NOTE: panics on an Arrow type that types.Type.Arrow never gives
}

// concatValid appends the validity; nil means that no row is NULL.
func concatValid(parts []arrow.ArrayData, n int) ([]byte, int) {
	has := func(p arrow.ArrayData) bool {
		b := p.Buffers()[0]
		return b != nil && b.Len() > 0 && p.NullN() != 0 // a slice may not know its number: negative
	}
	if !slices.ContainsFunc(parts, has) {
		return nil, 0
	}
	out := make([]byte, (n+7)/8)
	at := 0
	for _, p := range parts {
		if has(p) {
			copyBits(out, at, p.Buffers()[0].Bytes(), p.Offset(), p.Len())
		} else {
			setBits(out, at, p.Len())
		}
		at += p.Len()
	}
	return out, n - countBits(out, n)
}

func concatSpans(parts []arrow.ArrayData, n int) ([]int32, int) {
	offs := Room[int32](n + 1)
	offs[0] = 0
	to, total := offs[1:], 0
	for _, p := range parts {
		s := spans(p)
		shift := int32(total) - s[0]
		ends := s[1 : p.Len()+1]
		for i, end := range ends {
			to[i] = end + shift
		}
		to = to[len(ends):]
		total += int(s[len(s)-1] - s[0])
		fits32(total)
	}
	return offs, total
}
