package main

// #include <stdlib.h>
// #include <string.h>
// #include "riverbed.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/riverbed/riverbed/core/errs"
)

// poison holds the first panic's report. After one, the state of the engine is unknown: calls are refused, and only
// closing and freeing still work.
var poison atomic.Pointer[string]

// guard runs the body of an exported function: it recovers, poisons, and turns an error into status and JSON.
func guard(op string, out *C.rb_text, body func() error) C.int32_t {
	if p := poison.Load(); p != nil {
		return fail(out, errs.New(errs.Internal, op, "Riverbed stopped after an internal error: %s", firstLine(*p)).
			WithHint("restart the process; the first error has the details"))
	}
	return run(op, out, body)
}

// guardClose is guard for functions that only give something back: they also work in a poisoned library.
func guardClose(op string, body func() error) C.int32_t {
	var ignored C.rb_text
	rc := run(op, &ignored, body)
	C.free(unsafe.Pointer(ignored.data))
	return rc
}

func run(op string, out *C.rb_text, body func() error) (rc C.int32_t) {
	if out != nil {
		out.data, out.len = nil, 0
	}
	// AIDEV-NOTE: a panic that passed an exported function would end the host process.
	defer func() {
		if r := recover(); r != nil {
			rc = fail(out, panicked(op, r))
		}
	}()
	if err := body(); err != nil {
		return fail(out, errs.As(err))
	}
	return 0
}

// panicked poisons the library and returns the error that reports r.
func panicked(op string, r any) *errs.Error {
	report := fmt.Sprintf("%v\n%s", r, stackHead(debug.Stack()))
	poison.CompareAndSwap(nil, &report)
	return errs.Bug(op, "internal error in %s: %s", op, report)
}

// stackHead keeps the frames nearest to the panic: they name the bug, the rest names the runtime.
func stackHead(stack []byte) string {
	const frames = 8
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines { // the stack begins with debug.Stack and the recovering function
		if strings.HasPrefix(l, "panic(") && i+2 < len(lines) {
			lines = lines[i+2:]
			break
		}
	}
	return strings.Join(lines[:min(len(lines), 2*frames)], "\n")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// report is the JSON form of an error.
type report struct {
	Class     string `json:"class"`
	Kind      string `json:"kind"`
	Code      uint8  `json:"code"`
	Op        string `json:"op,omitempty"`
	Message   string `json:"message"`
	Text      string `json:"text"`
	Hint      string `json:"hint,omitempty"`
	SQL       string `json:"sql,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Offset    int    `json:"offset,omitempty"`
	Transient bool   `json:"transient,omitempty"`
}

func fail(out *C.rb_text, e *errs.Error) C.int32_t {
	info := e.Kind.Info()
	if out != nil {
		r := report{
			Class: info.Python, Kind: info.Name, Code: uint8(info.Kind), Op: e.Op, Message: e.Message(), Text: e.Error(),
			Hint: e.Hint, SQL: e.SQL, Line: e.Pos.Line, Column: e.Pos.Col, Offset: e.Pos.Offset, Transient: e.Transient,
		}
		if err := setJSON(out, r); err != nil { // cannot happen: strings and numbers only
			setText(out, "{}")
		}
	}
	return C.int32_t(info.Kind)
}

// setText fills out with a malloc'd copy of s. The caller frees it.
func setText(out *C.rb_text, s string) {
	out.len = C.int64_t(len(s))
	out.data = (*C.char)(C.malloc(C.size_t(len(s) + 1)))
	dst := unsafe.Slice((*byte)(unsafe.Pointer(out.data)), len(s)+1)
	copy(dst, s)
	dst[len(s)] = 0
}

func setJSON(out *C.rb_text, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return errs.Bug("json", "cannot encode %T: %w", v, err)
	}
	setText(out, string(b))
	return nil
}

// text copies the caller's characters.
func text(p C.rb_chars, n C.int64_t) string {
	if p == nil || n <= 0 {
		return ""
	}
	return strings.Clone(unsafe.String((*byte)(unsafe.Pointer(p)), int(n)))
}

// fromJSON decodes options of the caller; an empty text leaves v as it is.
func fromJSON(op string, p C.rb_chars, n C.int64_t, v any) error {
	s := text(p, n)
	if s == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return errs.New(errs.Usage, op, "the options of %s are not understood: %w", op, err)
	}
	return nil
}
