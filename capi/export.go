package main

// #include "riverbed.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Export is zero-copy. The engine's buffers live on the Go heap, so each one is pinned while a foreign holder may
// read it; the release of the exported struct unpins it. Buffers that were imported are not Go memory: exporting
// them again keeps the import alive instead.

// pinned counts what foreign holders have of ours; leak tests read it.
var pinned struct{ bytes, buffers atomic.Int64 }

// pin is the allocator of one exported buffer: Free, called when the last exported struct that shares the buffer is
// released, gives the memory back to the collector.
type pin struct {
	pinner runtime.Pinner
	owner  holder // set instead of pinner where the memory is not ours
	size   int64
}

func (p *pin) Allocate(int) []byte { panic(errs.Bug("export", "an exported buffer cannot grow")) }
func (p *pin) Reallocate(int, []byte) []byte {
	panic(errs.Bug("export", "an exported buffer cannot grow"))
}

func (p *pin) Free([]byte) {
	if p.owner != nil {
		p.owner.Release()
	} else {
		p.pinner.Unpin()
	}
	pinned.bytes.Add(-p.size)
	pinned.buffers.Add(-1)
}

// holder keeps memory that is not ours alive.
type holder interface{ Release() }

// pinBuffer returns a counted buffer over the same memory, which may lie in what was lent. The caller releases it.
func pinBuffer(b *memory.Buffer, lent []flow.Lent) *memory.Buffer {
	if b == nil || b.Len() == 0 {
		return nil
	}
	data := b.Bytes()
	p := &pin{size: int64(len(data))}
	if l := lenderOf(data, lent); l != nil {
		l.Retain()
		p.owner = l
	} else if owner := imports.ownerOf(data); owner != nil {
		p.owner = owner
	} else {
		// AIDEV-NOTE: Pin ignores memory that is not Go's, and nothing would keep it alive. The engine has none but
		// what was imported: an operator that maps files or allocates in C has to register an owner.
		p.pinner.Pin(&data[0])
	}
	pinned.bytes.Add(p.size)
	pinned.buffers.Add(1)
	return memory.NewBufferWithAllocator(data, p)
}

// pinData rebuilds d over pinned buffers. The caller releases the result.
func pinData(d arrow.ArrayData, lent []flow.Lent) arrow.ArrayData {
	if d.DataType().ID() == arrow.STRUCT && d.Offset() != 0 {
		s := structFromZero(d)
		defer s.Release()
		d = s
	}
	buffers := make([]*memory.Buffer, len(d.Buffers()))
	for i, b := range d.Buffers() {
		buffers[i] = pinBuffer(b, lent)
	}
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		children[i] = pinData(c, lent)
	}
	var out *array.Data
	if d.DataType().ID() == arrow.DICTIONARY {
		dict := pinData(d.Dictionary(), lent).(*array.Data)
		out = array.NewDataWithDictionary(d.DataType(), d.Len(), buffers, d.NullN(), d.Offset(), dict)
		dict.Release()
	} else {
		out = array.NewData(d.DataType(), d.Len(), buffers, children, d.NullN(), d.Offset())
	}
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range children {
		c.Release()
	}
	return out
}

// structFromZero moves the offset of a sliced struct into its children. The exporter of arrow-go writes the struct's
// offset beside children that are sliced already, and a consumer would add both.
func structFromZero(d arrow.ArrayData) arrow.ArrayData {
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		children[i] = array.NewSliceData(c, int64(d.Offset()), int64(d.Offset()+d.Len()))
		defer children[i].Release()
	}
	a := array.MakeFromData(d)
	defer a.Release()
	return array.NewData(d.DataType(), d.Len(), []*memory.Buffer{validity(a)}, children, a.NullN(), 0)
}

// pinBatch rebuilds rec over pinned buffers. The caller releases the result.
func pinBatch(rec arrow.RecordBatch, lent []flow.Lent) arrow.RecordBatch {
	cols := make([]arrow.Array, rec.NumCols())
	for i, c := range rec.Columns() {
		d := pinData(c.Data(), lent)
		cols[i] = array.MakeFromData(d)
		d.Release()
	}
	out := array.NewRecordBatch(types.Handed(rec.Schema()), cols, rec.NumRows())
	for _, c := range cols {
		c.Release()
	}
	return out
}

// exportBatch fills a pair of C structs with rec, which may lie in what was lent; the receiver releases them.
func exportBatch(rec arrow.RecordBatch, lent []flow.Lent, out, schema unsafe.Pointer) {
	p := pinBatch(rec, lent)
	cdata.ExportArrowRecordBatch(p, (*cdata.CArrowArray)(out), (*cdata.CArrowSchema)(schema))
	p.Release()
}

// exportReader fills a C stream that pulls from r, and takes r over.
func exportReader(r array.RecordReader, out unsafe.Pointer) {
	s := &pinnedReader{RecordReader: r}
	s.refs.Store(1)
	cdata.ExportRecordReader(s, (*cdata.CArrowArrayStream)(out))
	s.Release()
}

// pinnedReader pins each batch it hands out, and lets no panic of the engine reach the consumer, which is C.
type pinnedReader struct {
	array.RecordReader
	refs atomic.Int64
	cur  arrow.RecordBatch
	err  error
}

func (s *pinnedReader) Schema() *arrow.Schema { return types.Handed(s.RecordReader.Schema()) }

func (s *pinnedReader) Retain() { s.refs.Add(1) }

func (s *pinnedReader) Release() {
	if s.refs.Add(-1) == 0 {
		s.drop()
		_ = guardClose("close stream", func() error { s.RecordReader.Release(); return nil })
	}
}

func (s *pinnedReader) drop() {
	if s.cur != nil {
		s.cur.Release()
		s.cur = nil
	}
}

func (s *pinnedReader) Next() (more bool) {
	s.drop()
	if s.err != nil {
		return false
	}
	defer func() {
		if r := recover(); r != nil {
			s.err, more = panicked("read", r), false
		}
	}()
	if !s.RecordReader.Next() {
		s.err = s.RecordReader.Err()
		return false
	}
	s.cur = pinBatch(s.RecordReader.RecordBatch(), nil)
	return true
}

func (s *pinnedReader) RecordBatch() arrow.RecordBatch { return s.cur }
func (s *pinnedReader) Record() arrow.RecordBatch      { return s.cur }

// Err names the Python class in its text: a consumer of a C stream sees nothing but text.
func (s *pinnedReader) Err() error {
	if s.err == nil {
		return nil
	}
	e := errs.As(s.err)
	return errs.New(e.Kind, e.Op, "%s: %s", e.Kind.Info().Python, e.Error())
}
