package main

// #include "riverbed.h"
import "C"

import "github.com/riverbed/riverbed"

// rb_session_replay feeds bad rows of a pipeline back, and answers how many. The session has the streams and sinks by their names. It waits for sources and
// sink; spec is a JSON object.
//
//export rb_session_replay
func rb_session_replay(h C.rb_handle, spec C.rb_chars, n C.int64_t, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("replay", err, func() error {
		s, e := get[*session](h)
		if e != nil {
			return e
		}
		var given riverbed.ReplaySpec
		if e := fromJSON("replay", spec, n, &given); e != nil {
			return e
		}
		ctx, end := s.runs.begin(caller())
		defer end()
		report, e := s.engine.Replay(ctx, given)
		if e != nil {
			return e
		}
		return setJSON(out, report)
	})
}
