package main

// #include "riverbed.h"
import "C"

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed"
)

// udfSpec is the JSON of rb_session_udf.
type udfSpec struct {
	Name          string   `json:"name"`
	Args          []string `json:"args"`
	Returns       string   `json:"returns"`
	Deterministic bool     `json:"deterministic"`
}

// rb_session_udf makes a function of the host callable from SQL. fn must stay callable while the session lives.
//
//export rb_session_udf
func rb_session_udf(h C.rb_handle, spec C.rb_chars, n C.int64_t, fn C.rb_udf_fn, hostContext C.uint64_t, err *C.rb_text) C.int32_t {
	return guard("register function", err, func() error {
		s, e := get[*session](h)
		if e != nil {
			return e
		}
		var u udfSpec
		if e := fromJSON("register function", spec, n, &u); e != nil {
			return e
		}
		return s.engine.RegisterUDF(riverbed.UDF{
			Name: u.Name, Args: u.Args, Returns: u.Returns, Deterministic: u.Deterministic,
			Call: func(ctx context.Context, args []arrow.Array, rows int) (arrow.Array, error) {
				return callUDF(ctx, fn, hostContext, args, rows)
			},
		})
	})
}
