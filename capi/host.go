package main

// #include <stdlib.h>
// #include "arrow_c.h"
// #include "riverbed.h"
import "C"

import (
	"encoding/json"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
)

// rb_host names the function by which connectors that live in the host are called, for this process. It must stay callable.
//
//export rb_host
func rb_host(fn C.rb_host_fn, err *C.rb_text) C.int32_t {
	return guard("host", err, func() error {
		riverbed.RegisterHost(func(request []byte, rows arrow.RecordBatch) ([]byte, arrow.RecordBatch, error) {
			return callHost(fn, request, rows)
		})
		return nil
	})
}

// callHost hands a request and its rows to the host, and takes its answer back, rows copied: they flow into state and tables.
func callHost(fn C.rb_host_fn, request []byte, rows arrow.RecordBatch) ([]byte, arrow.RecordBatch, error) {
	s := newCSpace()
	defer s.free()
	if rows != nil {
		exportBatch(rows, nil, unsafe.Pointer(s.in), unsafe.Pointer(s.inSchema))
	}
	text := (*C.char)(C.CBytes(request))
	defer C.free(unsafe.Pointer(text))
	answer := (*C.rb_text)(C.calloc(1, C.size_t(unsafe.Sizeof(C.rb_text{}))))
	defer func() {
		C.free(unsafe.Pointer(answer.data))
		C.free(unsafe.Pointer(answer))
	}()
	rc := C.rbi_call_host(fn, text, C.int64_t(len(request)), (*C.struct_ArrowArray)(unsafe.Pointer(s.in)), (*C.struct_ArrowSchema)(unsafe.Pointer(s.inSchema)),
		(*C.struct_ArrowArray)(unsafe.Pointer(s.out)), (*C.struct_ArrowSchema)(unsafe.Pointer(s.outSchema)), answer)
	said := C.GoBytes(unsafe.Pointer(answer.data), C.int(answer.len))
	if rc != 0 {
		return nil, nil, hostError(said)
	}
	if (*C.struct_ArrowArray)(unsafe.Pointer(s.out)).release == nil {
		return said, nil, nil
	}
	in, err := importBatch(unsafe.Pointer(s.out), unsafe.Pointer(s.outSchema))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = in.close() }()
	out, err := toHeap(in.batches[0])
	return said, out, err
}

// hostError is what the host says went wrong, as an error of ours.
func hostError(said []byte) error {
	var r report
	if len(said) == 0 {
		return errs.New(errs.Cancelled, "host", "the host program is shutting down")
	}
	if err := json.Unmarshal(said, &r); err != nil {
		return errs.Bug("host", "the host reports an error that is not understood: %w", err)
	}
	e := errs.New(errs.Source, "host", "%s", r.Message)
	for _, k := range errs.Kinds {
		if k.Python == r.Class {
			e.Kind = k.Kind
		}
	}
	e.Hint, e.Transient = r.Hint, r.Transient
	return e
}
