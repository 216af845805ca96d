package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// scan reads a relation. The relation may skip rows by the pushed predicates; the filter here is the exact one. A relation
// that decodes its columns apart applies the filter itself (flow.Narrowing), and those that joins above have found out.
type scan struct {
	node    *plan.Scan
	at      []int // columns to read, as positions in the relation
	schema  *arrow.Schema
	layout  map[expr.ColID]int
	filter  *Filter
	guard   *Guard // nil: none
	env     *Env
	workers int

	open   once
	input  flow.Scan
	stages []flow.Stage // of joins, known before the first pull
}

func newScan(n *plan.Scan, env *Env, workers int) (Operator, error) {
	if n.Source.Relation == nil {
		return nil, errs.E(errs.Usage, "run", n.Pos, "%q is a live stream and never ends; it cannot be read at once", n.Source.Name).
			WithHint("use subscribe(), or to_arrow(until='latest') to read up to its present end")
	}
	s := &scan{node: n, schema: schemaOf(n.Cols), layout: layoutOf(n.Cols), env: env, workers: workers, at: n.At}
	if fields := len(n.Source.Fields); n.Source.Upsert != nil { // for the normalize above
		s.at = append(append([]int{}, n.At...), fields, fields+1)
		s.schema = arrow.NewSchema(append(append([]arrow.Field{}, s.schema.Fields()...), flow.SplitField, flow.WeightField), nil)
	}
	if cond := expr.Conjunction(n.Filters); cond != nil {
		f, err := NewFilter(cond, n.Cols)
		if err != nil {
			return nil, err
		}
		s.filter = f
	}
	var err error
	s.guard, err = NewGuard(n)
	return s, err
}

func (s *scan) Schema() *arrow.Schema { return s.schema }

func (s *scan) start(ctx context.Context) (err error) {
	req := flow.ScanRequest{Columns: s.at, Filters: plan.Predicates(s.node), Workers: s.workers, Room: kernels.Room[byte]}
	if s.guard != nil { // which judges every row, and tells its place
		req.Places = true
		s.input, err = s.node.Source.Relation.Scan(ctx, req)
		return err
	}
	if s.filter == nil {
		req.Limit = s.node.Limit
	}
	if s.node.Limit == 0 {
		narrow := &flow.Narrowing{Take: kernels.Take}
		if s.filter != nil {
			if narrow.Stages, err = s.filterStages(); err != nil {
				return err
			}
		}
		if narrow.Stages = append(narrow.Stages, s.stages...); len(narrow.Stages) > 0 {
			for i := range narrow.Stages {
				narrow.Stages[i].Select = guarded(narrow.Stages[i].Select)
			}
			narrow.Kept = make([]flow.Kept, len(narrow.Stages))
			req.Narrow = narrow
		}
	}
	s.input, err = s.node.Source.Relation.Scan(ctx, req)
	return err
}

func (s *scan) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := s.open.do(func() error { return s.start(ctx) }); err != nil {
		return nil, err
	}
	m, err := s.input.Next(ctx, worker)
	if err != nil || m == nil {
		return nil, err
	}
	cols, n := m.Batch.Columns(), int(m.Batch.NumRows())
	if s.guard != nil {
		if cols, n, err = s.judged(cols, n, m.Places); err != nil {
			return nil, err
		}
	}
	if !m.Narrowed {
		if cols, n, err = s.narrowed(worker, cols, n); err != nil {
			return nil, err
		}
	}
	return morsel(s.schema, m.Seq, cols, n), nil
}

// narrowed applies the filter and the joins' stages to a batch that came whole. Of columns that no stage reads, only the
// rows that all have left are gathered.
func (s *scan) narrowed(worker int, cols []arrow.Array, n int) ([]arrow.Array, int, error) {
	var sel []int32 // nil: all
	if s.filter != nil {
		rows, all, err := s.filter.cond.EvalFilter(s.env.Fn, cols, n)
		if err != nil {
			return nil, 0, err
		}
		if !all {
			sel, n = rows, len(rows)
		}
	}
	for _, st := range s.stages {
		if n == 0 || s.node.Limit != 0 {
			break
		}
		in := make([]arrow.Array, len(st.Columns))
		for i, c := range st.Columns {
			if in[i] = cols[c]; sel != nil {
				in[i] = kernels.Take(cols[c], sel)
			}
		}
		rows, all, err := st.Select(worker, in, n)
		if err != nil {
			return nil, 0, err
		}
		if all {
			continue
		}
		if sel != nil {
			rows = pick(sel, rows)
		}
		sel, n = rows, len(rows)
	}
	if sel == nil {
		return cols, n, nil
	}
	return kernels.TakeBatch(cols, sel), n, nil
}

// judged leaves out the bad rows, and tells them.
func (s *scan) judged(cols []arrow.Array, n int, places *flow.Places) ([]arrow.Array, int, error) {
	pass, all, bad, err := s.guard.Judge(s.env.Fn, cols, n)
	if err != nil || all {
		return cols, n, err
	}
	if len(bad) > 0 && s.env.Bad != nil {
		s.env.Bad(s.guard.Rows(cols, places, bad, s.env.Fn.Now))
	}
	return kernels.TakeBatch(cols, pass), len(pass), nil
}

func (s *scan) Close() error {
	if s.input != nil {
		return s.input.Close()
	}
	return nil
}

// values hands out constant rows, from worker 0.
type values struct {
	schema *arrow.Schema
	batch  arrow.RecordBatch
	of     flow.Checker
	done   bool
}

func newValues(n *plan.Values, env *Env) (Operator, error) {
	v := &values{schema: schemaOf(n.Cols), of: n.Of}
	batch, err := ValuesBatch(n, env)
	v.batch = batch
	return v, err
}

// ValuesBatch evaluates the rows of a Values node.
func ValuesBatch(n *plan.Values, env *Env) (arrow.RecordBatch, error) {
	schema := schemaOf(n.Cols)
	cols := make([]arrow.Array, len(n.Cols))
	for c, col := range n.Cols {
		column := make([]types.Value, len(n.Rows))
		for r := range n.Rows {
			v, err := constant(n.Rows[r][c], env)
			if err != nil {
				return nil, err
			}
			column[r] = v
		}
		cols[c] = types.ArrayOf(column, col.Type)
	}
	return array.NewRecordBatch(schema, cols, int64(len(n.Rows))), nil
}

// constant evaluates an expression that reads no column.
func constant(e expr.Expr, env *Env) (types.Value, error) {
	if l, ok := e.(*expr.Lit); ok {
		return l.V, nil
	}
	p, err := expr.Compile(e, nil)
	if err != nil {
		return nil, err
	}
	arr, err := p.EvalArray(env.Fn, nil, 1)
	if err != nil {
		return nil, err
	}
	return types.ValueAt(arr, 0, e.Type()), nil
}

func (v *values) Schema() *arrow.Schema { return v.schema }

func (v *values) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if worker != 0 || v.done {
		return nil, nil
	}
	if v.of != nil {
		if err := v.of.Check(ctx); err != nil {
			return nil, err
		}
	}
	v.done = true
	return &flow.Morsel{Batch: v.batch}, nil
}

func (v *values) Close() error { return nil }
