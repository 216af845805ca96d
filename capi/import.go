package main

// #include "riverbed.h"
import "C"

import (
	"cmp"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
)

// Import is zero-copy for what a query only reads. The engine does not count references, so who keeps the memory
// alive is decided here: the import lives while a relation handle, a query over it or its open results, or an
// exported buffer that lies in it, holds the owner. What the engine stores (tables, pushed rows) is copied first
// (toHeap): nothing that outlives a query points into foreign memory.

// importOwner counts the holders of one import.
type importOwner struct {
	refs    atomic.Int64
	foreign []arrow.RecordBatch // as they came, their release is the producer's
}

// retain takes one more reference. It refuses when the last one is gone: the memory then goes back to its producer.
func (o *importOwner) retain() bool { return retainLive(&o.refs) }

// retainLive counts up, but never from zero: what has ended stays ended, also for a caller that found it just before.
func retainLive(refs *atomic.Int64) bool {
	for {
		n := refs.Load()
		if n <= 0 {
			return false
		}
		if refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (o *importOwner) Release() {
	if o.refs.Add(-1) != 0 {
		return
	}
	imports.remove(o)
	for _, b := range o.foreign {
		b.Release()
	}
	o.foreign = nil
}

// imports finds the owner of a piece of foreign memory.
var imports importTable

type importRange struct {
	from, to uintptr // [from, to)
	reach    uintptr // the largest to of this and all ranges before it
	owner    *importOwner
}

type importTable struct {
	mu     sync.RWMutex
	ranges []importRange // sorted by from; they may nest and overlap: slices of one buffer
	owners int
	bytes  int64
}

func (t *importTable) add(o *importOwner, ranges []importRange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners++
	for _, r := range ranges {
		t.bytes += int64(r.to - r.from)
	}
	t.ranges = append(t.ranges, ranges...)
	slices.SortFunc(t.ranges, func(a, b importRange) int { return cmp.Compare(a.from, b.from) })
	t.measure()
}

// measure sets reach after ranges has changed.
func (t *importTable) measure() {
	var reach uintptr
	for i := range t.ranges {
		reach = max(reach, t.ranges[i].to)
		t.ranges[i].reach = reach
	}
}

func (t *importTable) remove(o *importOwner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners--
	t.ranges = slices.DeleteFunc(t.ranges, func(r importRange) bool {
		if r.owner == o {
			t.bytes -= int64(r.to - r.from)
		}
		return r.owner == o
	})
	t.measure()
}

// ownerOf returns an owner of the memory with a reference for the caller, or nil when it was not imported. Two imports
// of one producer may share a buffer; any of their owners keeps it.
//
// AIDEV-NOTE: an owner may end at any moment, and the table knows it only after: one that refuses is passed over for
// the owner that the caller's rows came from, which the caller keeps alive. Without such a one the memory is Go's own,
// exported and imported again, and pinning keeps it.
func (t *importTable) ownerOf(data []byte) *importOwner {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.ranges) == 0 {
		return nil
	}
	at := uintptr(unsafe.Pointer(&data[0]))
	i, _ := slices.BinarySearchFunc(t.ranges, at+1, func(r importRange, x uintptr) int { return cmp.Compare(r.from, x) })
	for i--; i >= 0 && t.ranges[i].reach > at; i-- {
		if at < t.ranges[i].to && t.ranges[i].owner.retain() {
			return t.ranges[i].owner
		}
	}
	return nil
}

func (t *importTable) size() (owners int, bytes int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.owners, t.bytes
}

// relation is bounded Arrow data of the caller: canonical batches over the memory it came in.
type relation struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	owner   *importOwner
	closed  atomic.Bool
}

func (*relation) kind() string { return "relation" }

func (r *relation) close() error {
	if r.closed.CompareAndSwap(false, true) {
		r.owner.Release()
	}
	return nil
}

// table copies the rows, for data that the engine will store.
func (r *relation) table() (*riverbed.ArrowTable, error) {
	copied := make([]arrow.RecordBatch, len(r.batches))
	for i, b := range r.batches {
		var err error
		if copied[i], err = toHeap(b); err != nil {
			return nil, err
		}
	}
	return riverbed.NewArrowTable(r.schema, copied)
}

// importStream reads a C stream to its end.
func importStream(stream unsafe.Pointer) (*relation, error) {
	C.rbi_take_stream((*C.struct_ArrowArrayStream)(stream))
	r, err := cdata.ImportCRecordReader((*cdata.CArrowArrayStream)(stream), nil)
	if err != nil {
		return nil, errs.New(errs.Source, "import", "the Arrow stream cannot be read: %w", err)
	}
	defer func() {
		if c, ok := r.(interface{ Release() }); ok {
			c.Release()
		}
	}()
	var foreign []arrow.RecordBatch
	for {
		b, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			releaseAll(foreign)
			return nil, errs.New(errs.Source, "import", "the Arrow stream failed: %w", err)
		}
		b.Retain() // the reader gives its own reference back at the next Read
		foreign = append(foreign, b)
	}
	sch := r.(interface{ Schema() *arrow.Schema }).Schema()
	return newRelation(sch, foreign)
}

// importBatch moves one batch in.
func importBatch(arr, schema unsafe.Pointer) (*relation, error) {
	C.rbi_take_array((*C.struct_ArrowArray)(arr), (*C.struct_ArrowSchema)(schema))
	b, err := cdata.ImportCRecordBatch((*cdata.CArrowArray)(arr), (*cdata.CArrowSchema)(schema))
	if err != nil {
		return nil, errs.New(errs.Source, "import", "the Arrow batch cannot be read: %w", err)
	}
	return newRelation(b.Schema(), []arrow.RecordBatch{b})
}

// newRelation takes the foreign batches over.
func newRelation(schema *arrow.Schema, foreign []arrow.RecordBatch) (*relation, error) {
	target, err := canonicalSchema(schema)
	if err != nil {
		releaseAll(foreign)
		return nil, err
	}
	owner := &importOwner{foreign: foreign}
	owner.refs.Store(1)
	rel := &relation{schema: target, owner: owner}
	var ranges []importRange
	for _, b := range foreign {
		cols := make([]arrow.Array, b.NumCols())
		for i, c := range b.Columns() {
			ranges = appendRanges(ranges, c.Data(), owner)
			if cols[i], err = canonicalArray(c, target.Field(i)); err != nil {
				releaseAll(foreign)
				return nil, err
			}
		}
		rel.batches = append(rel.batches, array.NewRecordBatch(target, cols, b.NumRows()))
	}
	imports.add(owner, ranges)
	return rel, nil
}

func rangeOf(data []byte, o *importOwner) importRange {
	from := uintptr(unsafe.Pointer(&data[0]))
	return importRange{from: from, to: from + uintptr(len(data)), owner: o}
}

func appendRanges(to []importRange, d arrow.ArrayData, o *importOwner) []importRange {
	for _, b := range d.Buffers() {
		if b != nil && b.Len() > 0 {
			to = append(to, rangeOf(b.Bytes(), o))
		}
	}
	for _, c := range d.Children() {
		to = appendRanges(to, c, o)
	}
	if d.DataType().ID() == arrow.DICTIONARY {
		to = appendRanges(to, d.Dictionary(), o)
	}
	return to
}

// uncounted rebuilds d over buffers without a reference count: the owner counts, the engine does not.
// d holds no dictionary: canonical arrays have none.
func uncounted(d arrow.ArrayData) arrow.ArrayData {
	buffers := make([]*memory.Buffer, len(d.Buffers()))
	for i, b := range d.Buffers() {
		if b != nil {
			buffers[i] = memory.NewBufferBytes(b.Bytes())
		}
	}
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		children[i] = uncounted(c)
	}
	return array.NewData(d.DataType(), d.Len(), buffers, children, d.NullN(), d.Offset())
}

// toHeap copies a canonical batch into Go memory.
func toHeap(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, b.NumCols())
	for i, c := range b.Columns() {
		var err error
		if cols[i], err = heapArray(c); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(b.Schema(), cols, b.NumRows()), nil
}

// heapArray copies the values of an array and no more than them: it may be a slice of something large.
func heapArray(a arrow.Array) (arrow.Array, error) {
	out, err := array.Concatenate([]arrow.Array{a}, memory.DefaultAllocator)
	if err != nil {
		return nil, errs.New(errs.Source, "import", "an array of %s cannot be copied: %w", a.DataType(), err)
	}
	return out, nil
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// rb_import_stream moves a stream in and reads it to its end; it may wait for the producer.
//
//export rb_import_stream
func rb_import_stream(stream unsafe.Pointer, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("import", err, func() error {
		rel, e := importStream(stream)
		if e == nil {
			*out = handles.open(rel)
		}
		return e
	})
}
