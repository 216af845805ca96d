package main

// #include "arrow_c.h"
// #include "riverbed.h"
import "C"

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
)

// layout is a schema of the host that many batches come in. To read a schema costs more than to take a batch of it.
type layout struct {
	schema *arrow.Schema // as it came
	target *arrow.Schema // in the engine's layouts
	// buffers is how many there are of a batch, of all columns together, when each column comes in the engine's own layout and has neither
	// children nor a dictionary; otherwise 0.
	buffers int
}

func (*layout) kind() string { return "layout" }

// rb_layout_open reads a schema, once for all batches of it.
//
//export rb_layout_open
func rb_layout_open(schema unsafe.Pointer, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("import", err, func() error {
		s, e := cdata.ImportCArrowSchema((*cdata.CArrowSchema)(schema))
		if e != nil {
			return errs.New(errs.Source, "import", "the Arrow schema cannot be read: %w", e)
		}
		l, e := newLayout(s)
		if e == nil {
			*out = handles.open(l)
		}
		return e
	})
}

func newLayout(s *arrow.Schema) (*layout, error) {
	target, err := canonicalSchema(s)
	if err != nil {
		return nil, err
	}
	l := &layout{schema: s, target: target}
	for i, f := range s.Fields() {
		n := flatBuffers(target.Field(i).Type)
		if n == 0 || !arrow.TypeEqual(f.Type, target.Field(i).Type) {
			l.buffers = 0
			break
		}
		l.buffers += n
	}
	return l, nil
}

// offsetSize is that of the offsets of texts.
const offsetSize = int64(arrow.Int32SizeBytes)

// flatBuffers is how many buffers an array without children has; 0 for other types.
func flatBuffers(t arrow.DataType) int {
	switch t := t.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		return 3
	case *arrow.DictionaryType, arrow.ExtensionType:
		return 0
	case arrow.FixedWidthDataType:
		if bits := t.BitWidth(); bits == 1 || bits%8 == 0 {
			return 2
		}
	}
	return 0
}

// flat makes arrays over the buffers of a, which lie where they lay. It answers false for what only cdata reads, or refuses with
// the right words.
//
// AIDEV-NOTE: sizes follow from lengths, which the host is trusted in, as in cdata: the C data interface has no sizes of buffers.
func (l *layout) flat(a *C.struct_ArrowArray) ([]arrow.Array, []importRange, bool) {
	n := len(l.target.Fields())
	if l.buffers == 0 || a.length <= 0 || a.length > math.MaxInt32 || a.offset != 0 || a.null_count > 0 || int(a.n_children) != n {
		return nil, nil, false
	}
	t := taking{room: make([]memory.Buffer, l.buffers), parts: make([]*memory.Buffer, l.buffers), ranges: make([]importRange, 0, l.buffers)}
	cols := make([]arrow.Array, n)
	for i, c := range unsafe.Slice(a.children, n) {
		if c.length != a.length || !t.column(c, l.target.Field(i).Type) {
			return nil, nil, false
		}
		cols[i] = array.MakeFromData(t.data)
	}
	return cols, t.ranges, true
}

// mend does to an array what rbi_take_array does where it has the host's schema.
func mend(a *C.struct_ArrowArray, t arrow.DataType) {
	var children []arrow.Field
	switch t := t.(type) {
	case *arrow.NullType:
		if a.n_buffers == 1 {
			a.n_buffers = 0
		}
	case arrow.ExtensionType:
		mend(a, t.StorageType())
	case *arrow.DictionaryType:
		if a.dictionary != nil {
			mend(a.dictionary, t.ValueType)
		}
	case arrow.NestedType:
		children = t.Fields()
	}
	if int(a.n_children) == len(children) {
		for i, c := range unsafe.Slice(a.children, len(children)) {
			mend(c, children[i].Type)
		}
	}
}

// taking is a batch that is being read: all its buffers are allocated in one.
type taking struct {
	room   []memory.Buffer
	parts  []*memory.Buffer
	ranges []importRange
	data   arrow.ArrayData // of the last column
}

func (t *taking) column(c *C.struct_ArrowArray, of arrow.DataType) bool {
	want := flatBuffers(of)
	if c.offset < 0 || c.offset > math.MaxInt32 || int(c.n_buffers) != want || c.n_children != 0 || c.dictionary != nil {
		return false
	}
	from, end := unsafe.Slice(c.buffers, want), int64(c.offset+c.length)
	parts := t.parts[:want:want]
	if t.parts = t.parts[want:]; from[0] != nil {
		parts[0] = t.buffer(from[0], (end+7)/8)
	} else if c.null_count > 0 {
		return false
	}
	if from[1] == nil {
		return false
	}
	if want == 2 {
		parts[1] = t.buffer(from[1], (end*int64(of.(arrow.FixedWidthDataType).BitWidth())+7)/8)
	} else {
		last := *(*int32)(unsafe.Add(from[1], end*offsetSize))
		if last < 0 || last > 0 && from[2] == nil {
			return false
		}
		parts[1], parts[2] = t.buffer(from[1], (end+1)*offsetSize), t.buffer(from[2], int64(last))
	}
	t.data = array.NewData(of, int(c.length), parts, nil, int(c.null_count), int(c.offset))
	return true
}

// buffer is a view of foreign memory that nobody counts: what was lent is.
func (t *taking) buffer(p unsafe.Pointer, size int64) *memory.Buffer {
	b := &t.room[0]
	t.room = t.room[1:]
	if size == 0 {
		b.Reset([]byte{})
		return b
	}
	b.Reset(unsafe.Slice((*byte)(p), size))
	t.ranges = append(t.ranges, rangeOf(b.Bytes(), nil))
	return b
}
