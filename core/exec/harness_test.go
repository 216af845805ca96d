package exec_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rules"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// table is bounded input that hands out its rows in morsels of `size`.
type table struct {
	fields []types.Field
	rows   [][]types.Value
	size   int
	narrow bool  // filter while reading, as Parquet does
	key    []int // of a table without old images, whose last columns are the split and the weight
	// onMorsel, when set, is called before morsel i is handed out.
	onMorsel func(ctx context.Context, i int) error
	handed   atomic.Int64 // morsels
	kept     atomic.Int64 // rows in them
}

func (r *table) Fields() []types.Field { return r.fields[:len(r.fields)-2*min(len(r.key), 1)] }
func (r *table) Key() []int            { return r.key }
func (r *table) Stats() flow.Stats     { return flow.Stats{Rows: int64(len(r.rows)), Exact: true} }

func (r *table) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return &tableScan{r: r, req: req}, nil
}

type tableScan struct {
	r    *table
	req  flow.ScanRequest
	next atomic.Int64
}

func (s *tableScan) Close() error { return nil }

func (s *tableScan) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	i := int(s.next.Add(1)) - 1
	from := i * s.r.size
	if from >= len(s.r.rows) {
		return nil, nil
	}
	s.r.handed.Add(1)
	if s.r.onMorsel != nil {
		if err := s.r.onMorsel(ctx, i); err != nil {
			return nil, err
		}
	}
	rows := s.r.rows[from:min(from+s.r.size, len(s.r.rows))]
	cols := make([]arrow.Array, len(s.req.Columns))
	fields := make([]types.Field, len(s.req.Columns))
	for c, at := range s.req.Columns {
		vals := make([]types.Value, len(rows))
		for k, row := range rows {
			vals[k] = row[at]
		}
		fields[c] = s.r.fields[at]
		cols[c] = types.ArrayOf(vals, fields[c].Type)
	}
	n, narrowed := len(rows), false
	if s.r.narrow && s.req.Narrow != nil {
		narrowed = true
		for _, st := range s.req.Narrow.Stages {
			in := make([]arrow.Array, len(st.Columns))
			for k, c := range st.Columns {
				in[k] = cols[c]
			}
			keep, all, err := st.Select(worker, in, n)
			if err != nil {
				return nil, err
			}
			if !all {
				n = len(keep)
				for k, c := range cols {
					cols[k] = s.req.Narrow.Take(c, keep)
				}
			}
		}
	}
	s.r.kept.Add(int64(n))
	return &flow.Morsel{Seq: int64(i), Batch: array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(n)), Narrowed: narrowed}, nil
}

// catalog is the tables of a test, and the function boom(x), whose kernel panics at 13.
type catalog map[string]*table

func (c catalog) Resolve(name []string) (*bind.Relation, error) {
	if t := c[name[len(name)-1]]; t != nil {
		return &bind.Relation{Source: &plan.Source{Name: name[len(name)-1], Relation: t, Fields: t.Fields(), Upsert: t.key}}, nil
	}
	return nil, nil
}
func (c catalog) Names() []string                          { return nil }
func (c catalog) ResolveFile(string) (*plan.Source, error) { return nil, nil }
func (c catalog) TableFunction(string, []types.Value, []types.Type, map[string]types.Value) (*plan.Source, error) {
	return nil, nil
}
func (c catalog) TableFunctions() []string { return nil }
func (c catalog) Functions() []string      { return nil }
func (c catalog) Function(name string) *fn.Scalar {
	if name != "boom" {
		return nil
	}
	return &fn.Scalar{Name: "boom", Overloads: []fn.Overload{{Args: []types.Type{types.Int64}, Returns: types.Int64,
		Kernel: func(c *fn.Call) (arrow.Array, error) {
			if a, ok := c.Args[0].Array.(*array.Int64); ok && slices.Contains(a.Int64Values(), 13) {
				panic("thirteen")
			}
			return c.Args[0].Array, nil
		}}}}
}

// define makes a table: "a BIGINT, b VARCHAR", rows "1,x", "NULL,y".
func define(t testing.TB, columns string, rows ...string) *table {
	t.Helper()
	r := &table{size: 3}
	for _, c := range strings.Split(columns, ", ") {
		name, typ, _ := strings.Cut(c, " ")
		f := types.Field{Name: name, Type: types.Int64}
		switch typ {
		case "VARCHAR":
			f.Type = types.String
		case "TIMESTAMP":
			f.Type = types.TsUS
		case "SMALLINT":
			f.Type = types.Int16
		case "INTEGER":
			f.Type = types.Int32
		case "DOUBLE":
			f.Type = types.Float64
		}
		r.fields = append(r.fields, f)
	}
	for _, text := range rows {
		var row []types.Value
		for i, v := range strings.Split(text, ",") {
			switch {
			case v == "NULL":
				row = append(row, nil)
			case r.fields[i].Type.Kind == types.Varchar:
				row = append(row, v)
			case r.fields[i].Type.Kind == types.Double:
				x, err := strconv.ParseFloat(v, 64)
				if err != nil {
					t.Fatal(err)
				}
				row = append(row, x)
			default:
				var n int64
				if _, err := fmt.Sscan(v, &n); err != nil {
					t.Fatal(err)
				}
				row = append(row, n)
			}
		}
		r.rows = append(r.rows, row)
	}
	return r
}

// series is a table of one column x with the numbers below n.
func series(t testing.TB, n int) *table {
	r := define(t, "x BIGINT")
	for i := range n {
		r.rows = append(r.rows, []types.Value{int64(i)})
	}
	return r
}

func planned(t testing.TB, c catalog, text string) *plan.Query {
	t.Helper()
	st, err := sql.ParseOne(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	q, err := bind.New(c, bind.Options{SQL: text}).Query(st.(*sql.Query))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	opt, _, err := rules.Optimize(q, rules.Batch, rules.Options{})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return opt
}

// run returns the rows of a plan as texts.
func run(ctx context.Context, n plan.Node, env *exec.Env) ([]string, error) {
	r, err := exec.Run(ctx, n, env, nil)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []string
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			vals := make([]string, b.NumCols())
			for c := range vals {
				switch v := types.ValueAt(b.Column(c), i, n.Columns()[c].Type).(type) {
				case nil:
					vals[c] = "NULL"
				case decimal128.Num:
					vals[c] = types.BigOf(v).String()
				default:
					vals[c] = fmt.Sprint(v)
				}
			}
			out = append(out, strings.Join(vals, ","))
		}
	}
	return out, r.Err()
}

func env(workers int) *exec.Env {
	return &exec.Env{Fn: &fn.Env{}, Workers: workers, Memory: exec.NewBudget(0)}
}

// check runs a query on one and on three workers, with relations that filter and ones that do not. want is rows apart by
// "; ", or "error: " and what the message contains. Rows are compared in any order unless the query begins its ORDER BY at the end.
func check(t *testing.T, c catalog, text, want string) {
	t.Helper()
	ordered := strings.Contains(text, "ORDER BY") && !strings.Contains(text, "OVER")
	for _, workers := range []int{1, 3} {
		for _, narrow := range []bool{false, true} {
			for _, r := range c {
				r.narrow = narrow
			}
			checkPlan(t, fmt.Sprintf("%s (%d workers, narrow %t)", text, workers, narrow), planned(t, c, text).Root, env(workers), ordered, want)
		}
	}
}

func checkPlan(t *testing.T, name string, n plan.Node, e *exec.Env, ordered bool, want string) {
	t.Helper()
	rows, err := run(context.Background(), n, e)
	if part, ok := strings.CutPrefix(want, "error: "); ok {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s\ngave %q, %v, want an error with %q", name, rows, err, part)
		}
		return
	}
	if err != nil {
		t.Errorf("%s\n%v", name, err)
		return
	}
	wanted := strings.Split(want, "; ")
	if want == "" {
		wanted = nil
	}
	if !ordered {
		slices.Sort(rows)
		slices.Sort(wanted)
	}
	if !slices.Equal(rows, wanted) {
		t.Errorf("%s\ngave %q\nwant %q", name, rows, wanted)
	}
}

func kindOf(err error) errs.Kind { return errs.As(err).Kind }
