package main

// #include <stdlib.h>
// #include "riverbed.h"
import "C"

import (
	"context"
	"runtime/cgo"
	"strconv"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// errCap is how much text a callback may answer.
const errCap = 8 << 10

// cSpace is C memory for one call of a callback: structs and error text. Go memory would do for the call, but the
// callee may move the structs' contents, which holds pointers, and C memory has no rules about that.
type cSpace struct {
	in, out             *cdata.CArrowArray
	inSchema, outSchema *cdata.CArrowSchema
	err                 *C.char
}

func newCSpace() *cSpace {
	return &cSpace{
		in: (*cdata.CArrowArray)(C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowArray{})))), out: (*cdata.CArrowArray)(C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowArray{})))),
		inSchema: (*cdata.CArrowSchema)(C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowSchema{})))), outSchema: (*cdata.CArrowSchema)(C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowSchema{})))),
		err: (*C.char)(C.calloc(1, errCap)),
	}
}

// free releases whatever the callee left behind.
func (s *cSpace) free() {
	cdata.ReleaseCArrowArray(s.in)
	cdata.ReleaseCArrowArray(s.out)
	cdata.ReleaseCArrowSchema(s.inSchema)
	cdata.ReleaseCArrowSchema(s.outSchema)
	for _, p := range []unsafe.Pointer{unsafe.Pointer(s.in), unsafe.Pointer(s.out), unsafe.Pointer(s.inSchema), unsafe.Pointer(s.outSchema), unsafe.Pointer(s.err)} {
		C.free(p)
	}
}

func (s *cSpace) message() string { return C.GoString(s.err) }

// callUDF hands the arguments to the host's function and takes its array back, in the engine's layout and copied:
// results flow into state and tables, and nothing stored may point into foreign memory. The engine checks its type and
// length.
func callUDF(run context.Context, fn C.rb_udf_fn, hostContext C.uint64_t, args []arrow.Array, rows int) (arrow.Array, error) {
	fields := make([]arrow.Field, len(args))
	for i, a := range args {
		fields[i] = arrow.Field{Name: strconv.Itoa(i), Type: a.DataType(), Nullable: true}
	}
	in := array.NewRecordBatch(arrow.NewSchema(fields, nil), args, int64(rows))
	s := newCSpace()
	defer s.free()
	exportBatch(in, nil, unsafe.Pointer(s.in), unsafe.Pointer(s.inSchema))
	h := cgo.NewHandle(run)
	defer h.Delete()
	rc := C.rbi_call_udf(fn, hostContext, C.uint64_t(h), (*C.struct_ArrowArray)(unsafe.Pointer(s.in)), (*C.struct_ArrowSchema)(unsafe.Pointer(s.inSchema)),
		(*C.struct_ArrowArray)(unsafe.Pointer(s.out)), (*C.struct_ArrowSchema)(unsafe.Pointer(s.outSchema)), s.err, errCap)
	if rc != 0 {
		return nil, errs.New(errs.Data, "call function", "it raised %s", s.message())
	}
	C.rbi_take_array((*C.struct_ArrowArray)(unsafe.Pointer(s.out)), (*C.struct_ArrowSchema)(unsafe.Pointer(s.outSchema)))
	field, got, err := cdata.ImportCArray(s.out, s.outSchema)
	if err != nil {
		return nil, errs.New(errs.Data, "call function", "it returned no Arrow array: %w", err)
	}
	defer got.Release()
	want, err := types.FromArrow(field)
	if err != nil {
		return nil, err
	}
	d, err := canonicalData(got, want.Arrow())
	if err != nil {
		return nil, err
	}
	return heapArray(array.MakeFromData(d))
}

// caller is the context of the run whose function calls the library right now, in this thread; otherwise it says nothing.
// A statement that a function runs is cancelled with the run, and is not left to wait for it.
func caller() context.Context {
	if h := C.rbi_caller(); h != 0 {
		return cgo.Handle(h).Value().(context.Context)
	}
	return context.Background()
}

// callSink hands one batch of changes to the host's function.
func callSink(fn C.rb_sink_fn, hostContext C.uint64_t, d flow.Delta, held holds) error {
	text := (*C.char)(C.calloc(1, errCap))
	defer C.free(unsafe.Pointer(text))
	if rc := C.rbi_call_sink(fn, hostContext, openDelta(d, held), text, errCap); rc != 0 {
		return errs.New(errs.Source, "sink", "the sink function raised %s", C.GoString(text))
	}
	return nil
}
