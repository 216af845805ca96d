// Package main is the C ABI: opaque handles, a status and a JSON error on every
// call, record batches through the Arrow C Data Interface, and nothing else. It
// holds no engine logic.
//
// Invariant: no Go panic and no Go pointer that is not pinned ever leaves an
// exported function.
//
// Files: riverbed.h (the rules and types), guard.go (panics and errors),
// handles.go, export.go and import.go (memory in both directions), layout.go and
// lent.go (pushes that are not copied), memory.go and pacing.go (the collector),
// then one file per kind of handle.
package main

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "riverbed.h"
import "C"

import (
	"runtime"
	"unsafe"

	_ "github.com/riverbed/riverbed/capi/iceload" // the connector of Iceberg asks the second library, once a table is named
)

func main() {}

// rb_free frees text that the library handed out. NULL is fine.
//
//export rb_free
func rb_free(p unsafe.Pointer) { C.free(p) }

// rb_alloc gives zeroed C memory for an Arrow struct that a capsule will own; its destructor frees it.
//
//export rb_alloc
func rb_alloc(size C.int64_t) unsafe.Pointer { return C.calloc(1, C.size_t(size)) }

// rb_gc collects twice, so that what finalizers and cleanups hold is gone too. For leak tests.
//
//export rb_gc
func rb_gc() {
	runtime.GC()
	runtime.GC()
}
