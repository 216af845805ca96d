// Package iceload loads the library of Iceberg metadata (capi/iceberg) when it is first asked something, and asks it. It is a library of its own because
// it is as large as all the rest and takes a quarter of a second to start.
//
// Invariant: the library is loaded once and by one path. A call ends when its context does.
package iceload

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "library.h"
//
// static uint64_t begin(rbi_iceberg *l) { return l->begin(); }
// static void cancel(rbi_iceberg *l, uint64_t number) { l->cancel(number); }
// static void release(rbi_iceberg *l, void *answer) { l->free(answer); }
// static void call(rbi_iceberg *l, uint64_t number, const char *request, int64_t length, char **answer, int64_t *answered) {
//   l->call(number, request, length, answer, answered);
// }
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/errs"
)

// Variable names the library's file, where it is not beside the base library.
const Variable = "RIVERBED_ICEBERG_LIBRARY"

const file = "libriverbed_iceberg.so"

// library is the loaded one. What failed is tried again: the file may have been built since.
var library struct {
	sync.Mutex
	functions *C.rbi_iceberg
	path      string
}

// Path is where the library is expected.
func Path() string {
	if path := os.Getenv(Variable); path != "" {
		return path
	}
	beside := C.rbi_iceberg_beside()
	if beside == nil {
		return file
	}
	return filepath.Join(filepath.Dir(C.GoString(beside)), file)
}

func load() (*C.rbi_iceberg, error) {
	library.Lock()
	defer library.Unlock()
	if library.functions != nil {
		return library.functions, nil
	}
	path := Path()
	const hint = "reinstall riverbed, whose wheel has it; in a source tree `make iceberg` builds it; " + Variable + " names another"
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.Unsupported, "open", "the library of Iceberg metadata is not there: %s", path).WithHint(hint)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	functions := (*C.rbi_iceberg)(C.calloc(1, C.size_t(unsafe.Sizeof(C.rbi_iceberg{}))))
	if failed := C.rbi_iceberg_open(name, functions); failed != nil {
		defer C.free(unsafe.Pointer(failed))
		C.free(unsafe.Pointer(functions))
		return nil, errs.New(errs.Unsupported, "open", "the library of Iceberg metadata cannot be loaded: %s", C.GoString(failed)).WithHint(hint)
	}
	library.functions, library.path = functions, path
	return functions, nil
}

// Call asks the library. The error is about asking; what the library refuses is in the answer.
func Call(ctx context.Context, r meta.Request) (meta.Answer, error) {
	var a meta.Answer
	if err := ctx.Err(); err != nil {
		return a, err
	}
	l, err := load()
	if err != nil {
		return a, err
	}
	request, err := json.Marshal(r)
	if err != nil {
		return a, errs.Bug("iceberg", "cannot encode the request: %w", err)
	}
	number := C.begin(l)
	stop := context.AfterFunc(ctx, func() { C.cancel(l, number) })
	defer stop()

	var text *C.char
	var length C.int64_t
	given := C.CBytes(request)
	defer C.free(given)
	C.call(l, number, (*C.char)(given), C.int64_t(len(request)), &text, &length)
	defer C.release(l, unsafe.Pointer(text))
	if err := json.Unmarshal(unsafe.Slice((*byte)(unsafe.Pointer(text)), int(length)), &a); err != nil {
		return a, errs.Bug("iceberg", "the answer of the library of Iceberg metadata is no JSON of an answer: %w", err)
	}
	if a.Error != "" && ctx.Err() != nil {
		return a, ctx.Err()
	}
	return a, nil
}
