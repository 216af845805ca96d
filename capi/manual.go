package main

// #include "riverbed.h"
import "C"

import (
	"sync"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// manual is an incremental run that the host drives by hand, in virtual time.
type manual struct {
	mu   sync.Mutex
	run  *riverbed.Manual
	loan *loan
}

func (*manual) kind() string { return "manual run" }

func (m *manual) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil {
		m.run = nil
		m.loan.release()
	}
	return nil
}

// withManual calls body with the run of a handle, one caller at a time.
func withManual(h C.rb_handle, err *C.rb_text, body func(*riverbed.Manual) error) C.int32_t {
	return guard("manual run", err, func() error {
		m, e := get[*manual](h)
		if e != nil {
			return e
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.run == nil {
			return errs.New(errs.Usage, "manual run", "the manual run is closed")
		}
		return body(m.run)
	})
}

// rb_query_manual makes a manual run of a query; options are riverbed.ManualOptions as JSON.
//
//export rb_query_manual
func rb_query_manual(h C.rb_handle, options C.rb_chars, n C.int64_t, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("manual run", err, func() error {
		q, e := get[*query](h)
		if e != nil {
			return e
		}
		var o riverbed.ManualOptions
		if e := fromJSON("manual run", options, n, &o); e != nil {
			return e
		}
		held, e := q.hold()
		if e != nil {
			return e
		}
		run, e := q.engine.Manual(o)
		if e != nil {
			held.release()
			return e
		}
		*out = handles.open(&manual{run: run, loan: held})
		return nil
	})
}

// rb_manual_fields answers the columns that a source's rows have, [{"name", "type"}].
//
//export rb_manual_fields
func rb_manual_fields(h C.rb_handle, source C.rb_chars, n C.int64_t, out *C.rb_text, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		fields, e := m.Fields(text(source, n))
		if e != nil {
			return e
		}
		return setJSON(out, columnsOf(fields))
	})
}

// rb_manual_push queues a batch, copied, for the next step. A last column __weight has the weights.
//
//export rb_manual_push
func rb_manual_push(h C.rb_handle, source C.rb_chars, n C.int64_t, split C.rb_chars, splitLen C.int64_t, arr, schema unsafe.Pointer, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		rows, weights, e := pushed(arr, schema)
		if e != nil {
			return e
		}
		return m.Push(text(source, n), text(split, splitLen), rows, weights)
	})
}

// pushed moves a batch in, copies it, and takes its weights apart.
func pushed(arr, schema unsafe.Pointer) (arrow.RecordBatch, []int64, error) {
	rel, err := importBatch(arr, schema)
	if err != nil {
		return nil, nil, err
	}
	rec, err := toHeap(rel.batches[0])
	if e := rel.close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, nil, err
	}
	if !flow.HasWeights(rec.Schema()) {
		return rec, nil, nil
	}
	last := int(rec.NumCols()) - 1
	weights, ok := rec.Column(last).(*array.Int64)
	if !ok {
		return nil, nil, errs.New(errs.Usage, "push", "the column %s has the type int64, not %s", flow.WeightColumn, rec.Column(last).DataType())
	}
	if n := weights.NullN(); n > 0 {
		return nil, nil, errs.New(errs.Usage, "push", "the column %s is NULL in %d of %d rows", flow.WeightColumn, n, weights.Len()).
			WithHint("a weight is a number: 1 for a row that comes, -1 for one that goes")
	}
	fields := rec.Schema().Fields()[:last]
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), rec.Columns()[:last], rec.NumRows()), weights.Int64Values(), nil
}

// rb_manual_watermark sets a source's watermark (µs UTC), behind the rows pushed so far.
//
//export rb_manual_watermark
func rb_manual_watermark(h C.rb_handle, source C.rb_chars, n C.int64_t, at C.int64_t, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error { return m.Watermark(text(source, n), flow.Watermark(at)) })
}

// rb_manual_split announces a split (idle 0), or marks it idle until its next row (1).
//
//export rb_manual_split
func rb_manual_split(h C.rb_handle, source C.rb_chars, n C.int64_t, split C.rb_chars, splitLen C.int64_t, idle C.int32_t, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		if idle != 0 {
			return m.Idle(text(source, n), text(split, splitLen))
		}
		return m.Open(text(source, n), text(split, splitLen))
	})
}

// rb_manual_advance moves the clock by so many microseconds.
//
//export rb_manual_advance
func rb_manual_advance(h C.rb_handle, us C.int64_t, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		m.AdvanceClock(time.Duration(us) * time.Microsecond)
		return nil
	})
}

// rb_manual_end ends a source, or all with an empty name.
//
//export rb_manual_end
func rb_manual_end(h C.rb_handle, source C.rb_chars, n C.int64_t, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		if n == 0 {
			m.EndAll()
			return nil
		}
		return m.End(text(source, n))
	})
}

// rb_manual_step runs one step; *out is the batch of its changes.
//
//export rb_manual_step
func rb_manual_step(h C.rb_handle, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		d, e := m.Step()
		if e != nil {
			return e
		}
		*out = openDelta(d, nil)
		return nil
	})
}

// rb_manual_crash forgets everything and restores the snapshot behind the last step, with another parallelism where
// that is not 0.
//
//export rb_manual_crash
func rb_manual_crash(h C.rb_handle, parallelism C.int32_t, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		if parallelism > 0 {
			return m.Restart(int(parallelism))
		}
		return m.Crash()
	})
}

// rb_manual_relation gives what __late or __bad got so far.
//
//export rb_manual_relation
func rb_manual_relation(h C.rb_handle, name C.rb_chars, n C.int64_t, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return withManual(h, err, func(m *riverbed.Manual) error {
		switch text(name, n) {
		case flow.LateRelation:
			*out = openBatch(m.Late(), nil)
		case flow.BadRelation:
			*out = openBatch(m.Bad(), nil)
		default:
			return errs.New(errs.Usage, "manual run", "a run has the relations %s and %s", flow.LateRelation, flow.BadRelation)
		}
		return nil
	})
}
