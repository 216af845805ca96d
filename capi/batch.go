package main

// #include "riverbed.h"
import "C"

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// holds are the imports that a query reads: it, its open results and their batches keep them alive.
type holds []*importOwner

// retain takes references beside those that the caller, or the loan that it holds, has already.
func (h holds) retain() holds {
	for _, o := range h {
		if !o.retain() {
			panic(errs.Bug("import", "an import that is in use has ended"))
		}
	}
	return h
}

func (h holds) release() {
	for _, o := range h {
		o.Release()
	}
}

// loan is what a query and its runs hold of the caller's variables; the last of them gives it back.
type loan struct {
	refs   atomic.Int64
	owners holds
	ended  func() // may be nil
}

// newLoan takes references of its own.
func newLoan(owners holds, ended func()) *loan {
	l := &loan{owners: owners.retain(), ended: ended}
	l.refs.Store(1)
	return l
}

// retain takes one more reference; it refuses when the last one is gone.
func (l *loan) retain() bool { return retainLive(&l.refs) }

func (l *loan) release() {
	if l.refs.Add(-1) != 0 {
		return
	}
	if l.ended != nil {
		l.ended()
	}
	l.owners.release()
}

// batch is one record batch, with what travels beside it. It may be exported any number of times.
type batch struct {
	delta  flow.Delta
	edge   bool // step, watermark and barrier are set
	held   holds
	closed atomic.Bool
}

func (*batch) kind() string { return "batch" }

func (b *batch) close() error {
	if b.closed.CompareAndSwap(false, true) {
		b.held.release()
		for _, l := range b.delta.Lent {
			l.Release()
		}
	}
	return nil
}

// openBatch makes a handle for a batch of a batch result.
func openBatch(rec arrow.RecordBatch, held holds) C.rb_handle {
	return handles.open(&batch{delta: flow.Delta{Batch: rec}, held: held.retain()})
}

// newDelta is a step's changes; it takes over what they hold of lent memory.
func newDelta(d flow.Delta, held holds) *batch {
	if d.Batch == nil { // a watermark alone
		d.Batch = array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 0)
	}
	return &batch{delta: d, edge: true, held: held.retain()}
}

// openDelta makes a handle for a step's changes.
func openDelta(d flow.Delta, held holds) C.rb_handle { return handles.open(newDelta(d, held)) }

func (b *batch) describe(out *C.rb_batch_info) {
	const absent = math.MinInt64
	out.rows, out.columns = C.int64_t(b.delta.Batch.NumRows()), C.int64_t(b.delta.Batch.NumCols())
	out.step, out.watermark, out.barrier = absent, absent, absent
	if b.edge {
		out.step, out.watermark = C.int64_t(b.delta.Step), C.int64_t(b.delta.Watermark)
		if b.delta.Barrier > 0 {
			out.barrier = C.int64_t(b.delta.Barrier)
		}
	}
}

// rb_batch_describe tells rows, columns, step, watermark and barrier.
//
//export rb_batch_describe
func rb_batch_describe(h C.rb_handle, out *C.rb_batch_info, err *C.rb_text) C.int32_t {
	return guard("batch", err, func() error {
		b, e := get[*batch](h)
		if e != nil {
			return e
		}
		b.describe(out)
		return nil
	})
}

// rb_batch_export fills the pair; step, watermark and barrier stand in the schema's metadata. schema may be NULL, for a host that knows it.
//
//export rb_batch_export
func rb_batch_export(h C.rb_handle, arr, schema unsafe.Pointer, err *C.rb_text) C.int32_t {
	return guard("batch", err, func() error {
		b, e := get[*batch](h)
		if e != nil {
			return e
		}
		rec := b.delta.Batch
		if b.edge && schema != nil {
			rec = withSchema(rec, b.delta.EdgeSchema())
		}
		exportBatch(rec, b.delta.Lent, arr, schema)
		return nil
	})
}
