package main

// #include "riverbed.h"
import "C"

import (
	"context"

	"github.com/riverbed/riverbed"
)

// place names checkpoints: the JSON of rb_inspect and rb_savepoint.
type place struct {
	URL      string `json:"url"`
	Pipeline string `json:"pipeline"`
	Epoch    int64  `json:"epoch"` // 0: the newest
	To       string `json:"to"`
}

// rb_inspect answers what the checkpoints of a pipeline hold, a JSON object.
//
//export rb_inspect
func rb_inspect(spec C.rb_chars, n C.int64_t, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("inspect", err, func() error {
		var p place
		if e := fromJSON("inspect", spec, n, &p); e != nil {
			return e
		}
		found, e := riverbed.Inspect(context.Background(), p.URL, p.Pipeline)
		if e != nil {
			return e
		}
		setText(out, found)
		return nil
	})
}

// rb_savepoint copies a checkpoint to a folder of its own.
//
//export rb_savepoint
func rb_savepoint(spec C.rb_chars, n C.int64_t, err *C.rb_text) C.int32_t {
	return guard("savepoint", err, func() error {
		var p place
		if e := fromJSON("savepoint", spec, n, &p); e != nil {
			return e
		}
		return riverbed.Savepoint(context.Background(), p.URL, p.Pipeline, p.Epoch, p.To)
	})
}
