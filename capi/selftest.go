package main

// #include "riverbed.h"
import "C"

import (
	"context"
	"runtime"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// What this file exports serves the tests of the boundary itself; none of it needs the engine.

// rb_version answers {"version": …, "go": …, "errors": [{"code", "kind", "class"}]}.
//
//export rb_version
func rb_version(out *C.rb_text) C.int32_t {
	type entry struct {
		Code  uint8  `json:"code"`
		Kind  string `json:"kind"`
		Class string `json:"class"`
	}
	kinds := make([]entry, len(errs.Kinds))
	for i, k := range errs.Kinds {
		kinds[i] = entry{uint8(k.Kind), k.Name, k.Python}
	}
	return guardClose("version", func() error {
		return setJSON(out, map[string]any{"version": riverbed.Version, "go": runtime.Version(), "errors": kinds})
	})
}

// rb_memory answers what is alive: handles by kind, bytes that foreign holders pin, bytes that we hold of others.
//
//export rb_memory
func rb_memory(out *C.rb_text) C.int32_t {
	return guardClose("memory", func() error {
		owners, bytes := imports.size()
		return setJSON(out, map[string]any{
			"handles":        handles.counts(),
			"pinned_bytes":   pinned.bytes.Load(),
			"pinned_buffers": pinned.buffers.Load(),
			"imports":        int64(owners) + lendings.batches.Load(),
			"imported_bytes": bytes + lendings.bytes.Load(),
			"goroutines":     runtime.NumGoroutine(),
		})
	})
}

// rb_test_echo reads a relation back as a result: import and export without an engine between.
//
//export rb_test_echo
func rb_test_echo(h C.rb_handle, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("echo", err, func() error {
		rel, e := get[*relation](h)
		if e != nil {
			return e
		}
		reader, e := array.NewRecordReader(rel.schema, rel.batches)
		if e != nil {
			return e
		}
		ctx, stop := context.WithCancel(context.Background())
		*out = handles.open(newResult(ctx, reader, stop, newLoan(holds{rel.owner}, nil)))
		return nil
	})
}

// rb_test_wait waits so long, or until the result is cancelled.
//
//export rb_test_wait
func rb_test_wait(h C.rb_handle, ms C.int64_t, err *C.rb_text) C.int32_t {
	return guard("wait", err, func() error {
		r, e := get[*result](h)
		if e != nil {
			return e
		}
		if (clock.Wall{}).Sleep(r.ctx, time.Duration(ms)*time.Millisecond) != nil {
			return errs.New(errs.Cancelled, "wait", "the wait was cancelled")
		}
		return nil
	})
}

// rb_test_panic panics: 0 with a value, 1 by a nil pointer, 2 by an index. A test does it on purpose.
//
//export rb_test_panic
func rb_test_panic(how C.int32_t, err *C.rb_text) C.int32_t {
	return guard("test", err, func() error {
		switch how {
		case 1:
			var p *errs.Error
			p.Msg = "never"
		case 2:
			var none []int
			none[int(how)]++
		}
		// AIDEV-NOTE: the one panic that is meant; tests/python/test_panic.py provokes it in a process of its own.
		panic("provoked by rb_test_panic")
	})
}
