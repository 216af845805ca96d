package main

// #include "riverbed.h"
import "C"

import (
	"context"
	"sync"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

func withSchema(rec arrow.RecordBatch, s *arrow.Schema) arrow.RecordBatch {
	return array.NewRecordBatch(s, rec.Columns(), rec.NumRows())
}

// result is a batch run that is being read. It holds the loan of its query until the run has ended.
type result struct {
	mu     sync.Mutex // one reader at a time; close waits for it
	ctx    context.Context
	reader array.RecordReader
	stop   context.CancelFunc
	loan   *loan
}

func (*result) kind() string { return "result" }

func (r *result) cancel() { r.stop() }

func (*result) closeWaits() {}

func (r *result) close() error {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reader != nil {
		r.reader.Release() // returns when the run's workers have: only then may the imports go
		r.reader = nil
		r.loan.release()
	}
	return nil
}

// newResult takes the reader and a reference of the loan over.
func newResult(ctx context.Context, reader array.RecordReader, stop context.CancelFunc, held *loan) *result {
	return &result{ctx: ctx, reader: reader, stop: stop, loan: held}
}

// rb_result_schema fills a C schema.
//
//export rb_result_schema
func rb_result_schema(h C.rb_handle, schema unsafe.Pointer, err *C.rb_text) C.int32_t {
	return guard("result", err, func() error {
		r, e := get[*result](h)
		if e != nil {
			return e
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.reader == nil {
			return errs.New(errs.Usage, "result", "the result is closed")
		}
		cdata.ExportArrowSchema(types.Handed(r.reader.Schema()), (*cdata.CArrowSchema)(schema))
		return nil
	})
}

// patient is a reader that can say whether its Next would wait.
type patient interface {
	Ready(atMost time.Duration) bool
}

// rb_result_next waits at most so long for the next batch. It answers with the states of rb_subscription_next.
//
//export rb_result_next
func rb_result_next(h C.rb_handle, timeoutMS C.int64_t, out *C.rb_handle, state *C.int32_t, err *C.rb_text) C.int32_t {
	return guard("read", err, func() error {
		*out, *state = 0, stateNothing
		r, e := get[*result](h)
		if e != nil {
			return e
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.reader == nil {
			return errs.New(errs.Usage, "result", "the result is closed")
		}
		if p, ok := r.reader.(patient); ok && !p.Ready(time.Duration(timeoutMS)*time.Millisecond) {
			return nil
		}
		if r.reader.Next() {
			*out, *state = openBatch(r.reader.RecordBatch(), r.loan.owners), stateBatch
			return nil
		}
		*state = stateEnd
		return r.reader.Err()
	})
}

// rb_result_stream moves the result into a C stream; the handle is gone. Its get_next waits.
//
//export rb_result_stream
func rb_result_stream(h C.rb_handle, stream unsafe.Pointer, err *C.rb_text) C.int32_t {
	return guard("stream", err, func() error {
		r, e := get[*result](h)
		if e != nil {
			return e
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.reader == nil {
			return errs.New(errs.Usage, "stream", "the result is closed")
		}
		handles.remove(h)
		exportReader(&resultReader{result: r, RecordReader: r.reader}, stream)
		return nil
	})
}

// resultReader is a result whose release is the stream's.
type resultReader struct {
	array.RecordReader
	result *result
}

func (r *resultReader) Release() { _ = r.result.close() }
