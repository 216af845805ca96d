package main

// #include "riverbed.h"
import "C"

import (
	"sync/atomic"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// query is a planned statement, and what it holds of the caller's variables.
type query struct {
	session *session
	engine  *riverbed.Query
	loan    *loan
	runs    runs
	closed  atomic.Bool
}

func (*query) kind() string { return "query" }

func (q *query) cancel() { q.runs.cancel() }

// close leaves runs of the query alone: results and subscriptions live until they are closed themselves.
func (q *query) close() error {
	if q.closed.CompareAndSwap(false, true) {
		q.loan.release()
	}
	return nil
}

// hold takes a reference of the loan for a run. It comes before the run starts: another thread may close the query at
// any moment, and its memory must not go while it is read.
func (q *query) hold() (*loan, error) {
	if !q.loan.retain() {
		return nil, errs.New(errs.Usage, "call", "the query is closed")
	}
	return q.loan, nil
}

// column is one column of a query, for people and for stubs.
type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func columnsOf(fields []types.Field) []column {
	out := make([]column, len(fields))
	for i, f := range fields {
		out[i] = column{f.Name, f.Type.String()}
	}
	return out
}

// rb_query_describe answers {"columns": [{"name", "type"}], "live": …, "pipeline": …, "follows": …, "bad_rows": …}.
//
//export rb_query_describe
func rb_query_describe(h C.rb_handle, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("describe", err, func() error {
		q, e := get[*query](h)
		if e != nil {
			return e
		}
		return setJSON(out, map[string]any{"columns": columnsOf(q.engine.Fields()), "live": q.engine.Followed(), "pipeline": q.engine.Pipeline(), "follows": q.engine.Follows(), "bad_rows": q.engine.BadRows()})
	})
}

// rb_query_explain prints the plan; mode is "", "batch" or "incremental".
//
//export rb_query_explain
func rb_query_explain(h C.rb_handle, mode C.rb_chars, n C.int64_t, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("explain", err, func() error {
		q, e := get[*query](h)
		if e != nil {
			return e
		}
		plan, e := q.engine.Explain(text(mode, n))
		if e == nil {
			setText(out, plan)
		}
		return e
	})
}

// rb_query_run starts the query as batch; the rows are read from the result.
//
//export rb_query_run
func rb_query_run(h C.rb_handle, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("run", err, func() error {
		q, e := get[*query](h)
		if e != nil {
			return e
		}
		held, e := q.hold()
		if e != nil {
			return e
		}
		ctx, end := q.runs.begin(caller()) // lives as long as the result
		reader, e := q.engine.Run(ctx)
		if e != nil {
			end()
			held.release()
			return e
		}
		*out = handles.open(newResult(ctx, reader, end, held))
		return nil
	})
}

// rb_query_render runs the query and draws its first rows; form is "text" or "html". It waits.
//
//export rb_query_render
func rb_query_render(h C.rb_handle, form C.rb_chars, n C.int64_t, rows C.int64_t, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("show", err, func() error {
		q, e := get[*query](h)
		if e != nil {
			return e
		}
		held, e := q.hold()
		if e != nil {
			return e
		}
		defer held.release()
		ctx, end := q.runs.begin(caller())
		defer end()
		drawn, e := q.engine.Render(ctx, riverbed.RenderOptions{HTML: text(form, n) == "html", MaxRows: int(rows)})
		if e == nil {
			setText(out, drawn)
		}
		return e
	})
}
