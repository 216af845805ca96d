package main

// #include "riverbed.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/flow"
)

// stream is the side of a memory stream that the host feeds.
type stream struct {
	engine riverbed.PushStream
	runs   runs
}

func (*stream) kind() string { return "stream" }

func (s *stream) cancel() { s.runs.cancel() }

// close leaves the stream open: queries may still read it, and a session that closes ends it.
func (s *stream) close() error {
	s.runs.cancel()
	return nil
}

// rb_stream_push queues a batch, copied; a last column __weight has the weights. It does not wait: when the queue is full,
// *out is a handle for rb_push_wait, otherwise 0.
//
//export rb_stream_push
func rb_stream_push(h C.rb_handle, split C.rb_chars, n C.int64_t, arr, schema unsafe.Pointer, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("push", err, func() error {
		*out = 0
		s, e := get[*stream](h)
		if e != nil {
			return e
		}
		rows, weights, e := pushed(arr, schema)
		if e != nil {
			return e
		}
		name := text(split, n)
		taken, e := s.engine.TryPush(name, rows, weights)
		if e == nil && !taken {
			*out = handles.open(&push{stream: s, split: name, rows: rows, weights: weights})
		}
		return e
	})
}

// push is rows that found the queue full.
type push struct {
	stream  *stream
	split   string
	rows    arrow.RecordBatch
	weights []int64
	closed  atomic.Bool
}

func (*push) kind() string { return "push" }

func (p *push) close() error {
	if l, ok := p.rows.(flow.LentBatch); ok && p.closed.CompareAndSwap(false, true) {
		l.Lent.Release()
	}
	return nil
}

// rb_push_wait queues the rows of a push when there is room. It waits; rb_cancel of the stream ends the wait.
//
//export rb_push_wait
func rb_push_wait(h C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("push", err, func() error {
		p, e := get[*push](h)
		if e != nil {
			return e
		}
		ctx, end := p.stream.runs.begin(caller())
		defer end()
		return p.stream.engine.Push(ctx, p.split, p.rows, p.weights)
	})
}

// rb_stream_watermark says that no event time before at (µs UTC) will be pushed into the split.
//
//export rb_stream_watermark
func rb_stream_watermark(h C.rb_handle, split C.rb_chars, n C.int64_t, at C.int64_t, err *C.rb_text) C.int32_t {
	return guard("push", err, func() error {
		s, e := get[*stream](h)
		if e != nil {
			return e
		}
		return s.engine.AdvanceWatermark(text(split, n), flow.Watermark(at))
	})
}

// rb_stream_idle marks a split idle until its next push.
//
//export rb_stream_idle
func rb_stream_idle(h C.rb_handle, split C.rb_chars, n C.int64_t, err *C.rb_text) C.int32_t {
	return guard("push", err, func() error {
		s, e := get[*stream](h)
		if e == nil {
			s.engine.Idle(text(split, n))
		}
		return e
	})
}

// rb_stream_end ends the stream; what is queued is still read.
//
//export rb_stream_end
func rb_stream_end(h C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("push", err, func() error {
		s, e := get[*stream](h)
		if e == nil {
			s.engine.Close()
		}
		return e
	})
}
