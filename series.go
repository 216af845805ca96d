package riverbed

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// series is range(…) and generate_series(…) over whole numbers, made as it is read.
type series struct {
	name              string
	start, stop, step int64
	closed            bool // stop belongs to it
}

const seriesBatch = 32 << 10

func newSeries(name string, args []types.Value, argTypes []types.Type) (*series, error) {
	var n [3]int64
	if len(args) < 1 || len(args) > 3 {
		return nil, errs.New(errs.Schema, "bind", "%s takes one to three whole numbers, not %d arguments", name, len(args))
	}
	for i, a := range args {
		v, ok := a.(int64)
		if !ok || !argTypes[i].IsInteger() {
			return nil, errs.New(errs.Schema, "bind", "%s over %s is not supported here; it takes whole numbers", name, argTypes[i])
		}
		n[i] = v
	}
	s := &series{name: name, step: 1}
	switch len(args) {
	case 1:
		s.stop = n[0]
	case 2:
		s.start, s.stop = n[0], n[1]
	case 3:
		s.start, s.stop, s.step = n[0], n[1], n[2]
	}
	if s.step == 0 {
		return nil, errs.New(errs.Schema, "bind", "the step of %s is 0", name)
	}
	s.closed = name == "generate_series"
	return s, nil
}

// rows counts without overflow: the distance of two int64 fits a uint64.
func (s *series) rows() int64 {
	if s.start == s.stop {
		if s.closed {
			return 1
		}
		return 0
	}
	if (s.stop > s.start) != (s.step > 0) {
		return 0
	}
	d, step := uint64(s.stop)-uint64(s.start), uint64(s.step)
	if s.step < 0 {
		d, step = -d, -step
	}
	n := d / step
	if s.closed || d%step != 0 {
		n++
	}
	return int64(min(n, math.MaxInt64))
}

func (s *series) Fields() []types.Field { return []types.Field{{Name: s.name, Type: types.Int64}} }

func (s *series) Stats() flow.Stats {
	n := s.rows()
	st := flow.Stats{Rows: n, Exact: true}
	if n > 0 {
		lo, hi := s.start, s.start+(n-1)*s.step
		st.Columns = map[int]flow.ColumnStats{0: {Min: min(lo, hi), Max: max(lo, hi), Distinct: n}}
	}
	return st
}

func (s *series) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	fields := make([]types.Field, len(req.Columns))
	for i := range fields {
		fields[i] = s.Fields()[0]
	}
	return &seriesScan{s: s, rows: s.rows(), schema: types.ArrowSchema(fields)}, nil
}

type seriesScan struct {
	s      *series
	rows   int64
	schema *arrow.Schema
	next   atomic.Int64
}

func (c *seriesScan) Next(context.Context, int) (*flow.Morsel, error) {
	seq := c.next.Add(1) - 1
	from := seq * seriesBatch
	if from >= c.rows {
		return nil, nil
	}
	n := min(seriesBatch, c.rows-from)
	cols := make([]arrow.Array, c.schema.NumFields())
	if len(cols) > 0 {
		v := make([]int64, n)
		for i := range v {
			v[i] = c.s.start + (from+int64(i))*c.s.step
		}
		for i := range cols {
			cols[i] = kernels.NewFixed(arrow.PrimitiveTypes.Int64, v, nil)
		}
	}
	return &flow.Morsel{Seq: seq, Batch: array.NewRecordBatch(c.schema, cols, n)}, nil
}

func (c *seriesScan) Close() error { return nil }
