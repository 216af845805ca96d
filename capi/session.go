package main

// #include "riverbed.h"
import "C"

import (
	"context"
	"sync"
	"unsafe"

	"github.com/riverbed/riverbed"
)

// session is a riverbed.Session and the statements that run in it right now.
type session struct {
	engine *riverbed.Session
	runs   runs
}

func (*session) kind() string { return "session" }

func (s *session) cancel() { s.runs.cancel() }

func (*session) closeWaits() {}

func (s *session) close() error {
	s.runs.cancel()
	defer limits.drop(s.engine)
	return s.engine.Close()
}

// runs cancels what waits on a handle: each call that waits takes a context from it.
type runs struct {
	mu   sync.Mutex
	next int
	stop map[int]context.CancelFunc
}

// begin returns the context of one call; the caller calls end.
func (r *runs) begin(within context.Context) (ctx context.Context, end func()) {
	ctx, stop := context.WithCancel(within)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil {
		r.stop = map[int]context.CancelFunc{}
	}
	r.next++
	n := r.next
	r.stop[n] = stop
	return ctx, func() {
		stop()
		r.mu.Lock()
		delete(r.stop, n)
		r.mu.Unlock()
	}
}

func (r *runs) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, stop := range r.stop {
		stop()
	}
}

// rb_session_open makes a session; config is a JSON object of settings.
//
//export rb_session_open
func rb_session_open(config C.rb_chars, n C.int64_t, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("open", err, func() error {
		given := map[string]string{}
		if e := fromJSON("open", config, n, &given); e != nil {
			return e
		}
		adoptEnvironment()
		s, e := riverbed.Open(given)
		if e != nil {
			return e
		}
		limits.add(s)
		*out = handles.open(&session{engine: s})
		return nil
	})
}

// rb_session_prepare plans a text at once when that waits for nothing, and neither does rb_query_run of it then. Otherwise *out
// is 0 and names are the relations that the text names and the session does not have, as a JSON array: rb_session_sql is next.
//
//export rb_session_prepare
func rb_session_prepare(h C.rb_handle, sql C.rb_chars, n C.int64_t, out *C.rb_handle, names *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("sql", err, func() error {
		*out, *names = 0, C.rb_text{}
		s, e := get[*session](h)
		if e != nil {
			return e
		}
		query := text(sql, n)
		unknown, prompt := s.engine.Prepare(query)
		if !prompt {
			if unknown == nil {
				unknown = []string{}
			}
			return setJSON(names, unknown)
		}
		ctx, end := s.runs.begin(caller())
		defer end()
		return s.plan(ctx, query, nil, nil, out)
	})
}

// rb_session_sql plans one text, and waits for the statements in it that run at once. names is a JSON array, relations
// as many handles, borrowed: what the text may call by these names. params is a JSON object, the values of the text's
// parameters by number or name: null, or a riverbed.Param. *out is 0 when the last statement has no rows.
//
//export rb_session_sql
func rb_session_sql(h C.rb_handle, sql C.rb_chars, n C.int64_t, names C.rb_chars, namesLen C.int64_t, relations *C.rb_handle, params C.rb_chars, paramsLen C.int64_t, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("sql", err, func() error {
		*out = 0
		s, e := get[*session](h)
		if e != nil {
			return e
		}
		var called []string
		if e := fromJSON("sql", names, namesLen, &called); e != nil {
			return e
		}
		var values map[string]*riverbed.Param
		if e := fromJSON("sql", params, paramsLen, &values); e != nil {
			return e
		}
		locals, e := openLocals(called, unsafe.Slice(relations, len(called)))
		if e != nil {
			return e
		}
		ctx, end := s.runs.begin(caller())
		defer end()
		return s.plan(ctx, text(sql, n), values, locals, out)
	})
}

func (s *session) plan(ctx context.Context, text string, values map[string]*riverbed.Param, locals locals, out *C.rb_handle) error {
	params := riverbed.Params{}
	for key, v := range values {
		params[key] = v
	}
	q, e := s.engine.QueryWith(ctx, text, params, locals.relations())
	limits.refresh(s.engine) // SET memory_limit
	if e != nil || q == nil {
		locals.settle(e == nil)
		return e
	}
	*out = handles.open(&query{session: s, engine: q, loan: locals.lend()})
	return nil
}

// createSpec is the JSON of rb_session_create.
type createSpec struct {
	riverbed.StreamSpec
	Kind string `json:"kind"` // stream, table
	Name string `json:"name"`
}

// rb_session_create declares a stream or a table over a connector; it may wait for the source, to infer columns. For
// the connector "memory" *out is the stream's handle, into which rows are pushed; otherwise 0.
//
//export rb_session_create
func rb_session_create(h C.rb_handle, spec C.rb_chars, n C.int64_t, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("create", err, func() error {
		*out = 0
		s, e := get[*session](h)
		if e != nil {
			return e
		}
		var c createSpec
		if e := fromJSON("create", spec, n, &c); e != nil {
			return e
		}
		ctx, end := s.runs.begin(caller())
		defer end()
		if c.Kind == "table" {
			return s.engine.CreateTable(ctx, c.Name, c.StreamSpec)
		}
		if e := s.engine.CreateStream(ctx, c.Name, c.StreamSpec); e != nil || c.Connector != "memory" {
			return e
		}
		push, e := s.engine.PushStream(c.Name)
		if e == nil {
			*out = handles.open(&stream{engine: push})
		}
		return e
	})
}

// rb_session_register makes an in-memory table of a relation's rows, which are copied: the table outlives the caller's
// memory.
//
//export rb_session_register
func rb_session_register(h C.rb_handle, name C.rb_chars, n C.int64_t, relationHandle C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("register", err, func() error {
		s, e := get[*session](h)
		if e != nil {
			return e
		}
		rel, e := get[*relation](relationHandle)
		if e != nil {
			return e
		}
		table, e := rel.table()
		if e != nil {
			return e
		}
		return s.engine.Register(text(name, n), table)
	})
}

// rb_statements splits a script into its statements, a JSON array of texts.
//
//export rb_statements
func rb_statements(script C.rb_chars, n C.int64_t, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("split", err, func() error {
		statements, e := riverbed.Statements(text(script, n))
		if e != nil {
			return e
		}
		return setJSON(out, statements)
	})
}
