// Package main is the second library: catalogs and metadata of Iceberg tables behind four functions, JSON in and JSON out. The base library loads it
// when an Iceberg table is first asked for (capi/iceload), so that nothing else pays for its size and its start.
//
// Invariant: no Go panic and no Go pointer leaves an exported function, and what a call answers is the caller's to free.
package main

// #include <stdint.h>
// #include <stdlib.h>
// #include <string.h>
// #include <unistd.h>
// #ifdef __APPLE__
// #include <crt_externs.h>
// #define environ (*_NSGetEnviron())
// #else
// extern char **environ;
// #endif
// static char *variable(int i) { return environ ? environ[i] : 0; }
import "C"

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/riverbed/riverbed/capi/iceberg/service"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

func main() {}

// loaded is the process that has the library. Its goroutines are not in a forked child, where a call would wait for ever.
var loaded = os.Getpid()

func init() {
	// Warnings of iceberg-go would go to the host's standard error; what matters comes as an answer.
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// A catalog service that is up and silent must not hold us.
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.ResponseHeaderTimeout = time.Minute
	}
}

// calls are those that run, so that they can be cancelled.
var calls = struct {
	sync.Mutex
	last C.uint64_t
	by   map[C.uint64_t]running
}{by: map[C.uint64_t]running{}}

type running struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// rb_iceberg_begin gives a call its number, by which it can be cancelled before it is made and while it runs.
//
//export rb_iceberg_begin
func rb_iceberg_begin() C.uint64_t {
	ctx, cancel := context.WithCancel(context.Background())
	calls.Lock()
	defer calls.Unlock()
	calls.last++
	calls.by[calls.last] = running{ctx, cancel}
	return calls.last
}

// rb_iceberg_call answers a request; it waits, and ends the number. *answer is malloc'd: rb_iceberg_free it.
//
//export rb_iceberg_call
func rb_iceberg_call(number C.uint64_t, request *C.char, length C.int64_t, answer **C.char, answered *C.int64_t) {
	out := ask(number, C.GoStringN(request, C.int(length)))
	text, err := json.Marshal(out)
	if err != nil {
		text = []byte(`{"error":"the answer cannot be written down","kind":"io"}`)
	}
	p := (*C.char)(C.malloc(C.size_t(len(text) + 1)))
	copied := unsafe.Slice((*byte)(unsafe.Pointer(p)), len(text)+1)
	copy(copied, text)
	copied[len(text)] = 0
	*answer, *answered = p, C.int64_t(len(text))
}

func ask(number C.uint64_t, request string) (a meta.Answer) {
	// AIDEV-NOTE: a panic that passed an exported function would end the host process.
	defer func() {
		if p := recover(); p != nil {
			a = meta.Answer{Error: fmt.Sprintf("internal error: %v", p), Kind: "io"}
		}
	}()
	if os.Getpid() != loaded {
		return meta.Answer{Error: "this process is a forked child of the one that opened the library of Iceberg metadata", Kind: "usage", Hint: "start workers by spawn or forkserver"}
	}
	calls.Lock()
	c, ok := calls.by[number]
	calls.Unlock()
	if !ok {
		return meta.Answer{Error: "the call was not begun", Kind: "usage"}
	}
	defer func() {
		c.cancel()
		calls.Lock()
		delete(calls.by, number)
		calls.Unlock()
	}()
	adoptEnvironment()
	var r meta.Request
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return meta.Answer{Error: "the request is no JSON of a request: " + err.Error(), Kind: "usage"}
	}
	return service.Call(c.ctx, r)
}

// rb_iceberg_cancel ends a call early; one that has ended is left alone.
//
//export rb_iceberg_cancel
func rb_iceberg_cancel(number C.uint64_t) {
	calls.Lock()
	defer calls.Unlock()
	if c, ok := calls.by[number]; ok {
		c.cancel()
	}
}

// rb_iceberg_free frees an answer.
//
//export rb_iceberg_free
func rb_iceberg_free(p unsafe.Pointer) { C.free(p) }

// adoptEnvironment takes over what the host has set since the library was loaded, as the base library does: keys are set in a notebook, later.
func adoptEnvironment() {
	theirs := map[string]bool{}
	for i := 0; ; i++ {
		v := C.variable(C.int(i))
		if v == nil {
			break
		}
		name, value, ok := strings.Cut(C.GoString(v), "=")
		if !ok || !adopted(name) {
			continue
		}
		theirs[name] = true
		if have, set := os.LookupEnv(name); !set || have != value {
			_ = os.Setenv(name, value)
		}
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); adopted(name) && !theirs[name] {
			_ = os.Unsetenv(name)
		}
	}
}

func adopted(name string) bool {
	return strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "PG")
}
