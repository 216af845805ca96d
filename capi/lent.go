package main

// #include "arrow_c.h"
// #include "riverbed.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// lending is a pushed batch in the memory that it came in: the queue, the steps that read it, changes that lie in it and what was exported
// of them each hold a reference.
type lending struct {
	refs     atomic.Int64
	giveBack func()        // to the producer
	ranges   []importRange // few, in no order
	bytes    int64
}

// lendings counts what is lent; leak tests read it.
var lendings struct{ batches, bytes atomic.Int64 }

var _ flow.Lent = (*lending)(nil)

func (l *lending) Retain() {
	if !retainLive(&l.refs) {
		panic(errs.Bug("lend", "rows that were given back are read"))
	}
}

func (l *lending) Release() {
	if l.refs.Add(-1) != 0 {
		return
	}
	lendings.batches.Add(-1)
	lendings.bytes.Add(-l.bytes)
	l.giveBack()
	l.giveBack = nil
}

func (l *lending) Holds(b []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, r := range l.ranges {
		if r.from <= at && at < r.to {
			return true
		}
	}
	return false
}

// lenderOf finds what a buffer was lent with; nil where it is other memory.
func lenderOf(data []byte, lent []flow.Lent) flow.Lent {
	for _, l := range lent {
		if l.Holds(data) {
			return l
		}
	}
	return nil
}

// lend moves one batch in without copying it. The caller releases what it returns, and the batch with it.
func lend(arr unsafe.Pointer, as *layout) (flow.LentBatch, error) {
	l := &lending{}
	l.refs.Store(1)
	cols, rows, err := l.take((*C.struct_ArrowArray)(arr), as)
	if err != nil {
		return flow.LentBatch{}, err
	}
	for _, r := range l.ranges {
		l.bytes += int64(r.to - r.from)
	}
	lendings.batches.Add(1)
	lendings.bytes.Add(l.bytes)
	return flow.LentBatch{RecordBatch: array.NewRecordBatch(as.target, cols, rows), Lent: l}, nil
}

// take moves an array out of the host's struct, which is released behind an error.
func (l *lending) take(arr *C.struct_ArrowArray, as *layout) (cols []arrow.Array, rows int64, err error) {
	if arr.release == nil {
		return nil, 0, errs.New(errs.Source, "import", "the Arrow batch was given away already")
	}
	if cols, ranges, ok := as.flat(arr); ok {
		rows, l.ranges = int64(arr.length), ranges
		moved := C.rbi_move_array(arr)
		l.giveBack = func() { C.rbi_give_back(moved) }
		return cols, rows, nil
	}
	mend(arr, arrow.StructOf(as.schema.Fields()...))
	C.rbi_take_array(arr, nil)
	b, err := cdata.ImportCRecordBatchWithSchema((*cdata.CArrowArray)(unsafe.Pointer(arr)), as.schema)
	if err != nil {
		return nil, 0, errs.New(errs.Source, "import", "the Arrow batch cannot be read: %w", err)
	}
	cols = make([]arrow.Array, b.NumCols())
	for i, c := range b.Columns() {
		l.ranges = appendRanges(l.ranges, c.Data(), nil)
		if cols[i], err = canonicalArray(c, as.target.Field(i)); err != nil {
			b.Release()
			return nil, 0, err
		}
	}
	l.giveBack = b.Release
	return cols, b.NumRows(), nil
}

// rb_stream_lend is rb_stream_push without a copy, for memory that nobody changes: the library holds it until the changes that lie in it
// are read and closed. There are no weights. as is a layout (rb_layout_open).
//
//export rb_stream_lend
func rb_stream_lend(h C.rb_handle, split C.rb_chars, n C.int64_t, arr unsafe.Pointer, as C.rb_handle, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("push", err, func() error {
		*out = 0
		s, e := get[*stream](h)
		if e != nil {
			return e
		}
		in, e := get[*layout](as)
		if e != nil {
			return e
		}
		rows, e := lend(arr, in)
		if e != nil {
			return e
		}
		name := text(split, n)
		taken, e := s.engine.TryPush(name, rows, nil)
		if e == nil && !taken {
			*out = handles.open(&push{stream: s, split: name, rows: rows}) // the reference is its
			return nil
		}
		rows.Lent.Release()
		return e
	})
}
