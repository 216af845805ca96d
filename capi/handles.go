package main

// #include "riverbed.h"
import "C"

import (
	"fmt"
	"sync"

	"github.com/riverbed/riverbed/core/errs"
)

// handles ties numbers to Go values. runtime/cgo.Handle would do for the numbers, but it panics on a stale one; here
// a closed handle is an ordinary error, and the counts by kind are what the leak tests read.
var handles = handleTable{items: map[C.rb_handle]any{}}

type handleTable struct {
	mu    sync.Mutex
	last  C.rb_handle
	items map[C.rb_handle]any
}

// open stores v and returns its number, which is never used again.
func (t *handleTable) open(v any) C.rb_handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.items[t.last] = v
	return t.last
}

func (t *handleTable) find(h C.rb_handle) (any, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.items[h]
	return v, ok
}

func (t *handleTable) remove(h C.rb_handle) (any, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.items[h]
	delete(t.items, h)
	return v, ok
}

// counts says how many handles of each kind are open.
func (t *handleTable) counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := map[string]int{}
	for _, v := range t.items {
		n[kindOf(v)]++
	}
	return n
}

// named is what every value behind a handle is: it can say its kind in words.
type named interface{ kind() string }

func kindOf(v any) string {
	if k, ok := v.(named); ok {
		return k.kind()
	}
	return fmt.Sprintf("%T", v)
}

// get returns the value behind a handle of kind T.
func get[T named](h C.rb_handle) (T, error) {
	v, ok := handles.find(h)
	t, isT := v.(T)
	switch {
	case ok && isT:
		return t, nil
	case ok:
		return t, errs.New(errs.Usage, "call", "this is a %s, a %s is needed", kindOf(v), t.kind())
	}
	return t, errs.New(errs.Usage, "call", "the %s is closed", t.kind())
}

// closer is a value that has something to give back.
type closer interface{ close() error }

// rb_close gives a handle of any kind back. Closing twice is fine: the second call finds nothing.
//
//export rb_close
func rb_close(h C.rb_handle) C.int32_t {
	return guardClose("close", func() error {
		if v, ok := handles.remove(h); ok {
			if c, ok := v.(closer); ok {
				return c.close()
			}
		}
		return nil
	})
}

// rb_drop is rb_close for finalizers: what may have to wait for a run is closed behind the caller, since the
// finalizer may itself run inside a callback of that run.
//
//export rb_drop
func rb_drop(h C.rb_handle) C.int32_t {
	return guardClose("close", func() error {
		v, ok := handles.remove(h)
		if !ok {
			return nil
		}
		c, ok := v.(closer)
		if !ok {
			return nil
		}
		if _, waits := v.(waiter); !waits {
			return c.close()
		}
		if c, ok := v.(canceller); ok {
			c.cancel()
		}
		go func() { _ = guardClose("close", c.close) }()
		return nil
	})
}

// waiter is a value whose close waits for a run to end.
type waiter interface{ closeWaits() }

// canceller is a value with calls that wait.
type canceller interface{ cancel() }

// rb_cancel makes calls that wait on the handle return with kind "cancelled". It does not close it.
//
//export rb_cancel
func rb_cancel(h C.rb_handle) C.int32_t {
	return guardClose("cancel", func() error {
		if v, ok := handles.find(h); ok {
			if c, ok := v.(canceller); ok {
				c.cancel()
			}
		}
		return nil
	})
}
