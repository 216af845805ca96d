package fn

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// variants are the calls to test: every overload, on concrete types.
func variants(f *Aggregate, o *AggOverload) [][]types.Type {
	out := [][]types.Type{nil}
	for _, a := range o.Args {
		choices := []types.Type{a}
		switch {
		case a.Kind == types.Any:
			choices = []types.Type{types.Int32, types.Float64, types.String, types.Span, types.Dec(9, 2), types.ListOf(types.String), types.Bool, types.UUIDType, types.Uint128}
		case a.Kind == types.Decimal:
			choices = []types.Type{types.Dec(9, 2), types.Dec(38, 10)}
		}
		if f.Name == "string_agg" {
			choices = []types.Type{types.String}
		}
		var next [][]types.Type
		for _, done := range out {
			for _, c := range choices {
				next = append(next, append(append([]types.Type{}, done...), c))
			}
		}
		out = next
	}
	return out
}

// constants of the arguments that must be.
func constants(name string, args []types.Type) []types.Value {
	out := make([]types.Value, len(args))
	if len(args) == 3 {
		out[2] = int64(2) // arg_min(x, y, n)
	}
	if len(args) == 2 {
		switch {
		case name == "string_agg":
			out[1] = "; "
		case name == "min" || name == "max":
			out[1] = int64(2)
		case strings.HasPrefix(name, "quantile") && args[1].Kind == types.List:
			out[1] = []types.Value{0.25, -0.9, 1.0}
		case strings.HasPrefix(name, "quantile"):
			out[1] = 0.3
		}
	}
	return out
}

type aggRows struct {
	groups  []uint32
	args    []arrow.Array
	weights []int64
}

func (r aggRows) take(idx []int32, sign int64) (groups []uint32, args []Arg, weights []int64) {
	for _, i := range idx {
		groups, weights = append(groups, r.groups[i]), append(weights, sign*r.weights[i])
	}
	for _, a := range kernels.TakeBatch(r.args, idx) {
		args = append(args, Arg{Array: a})
	}
	if !slices.ContainsFunc(weights, func(w int64) bool { return w != 1 }) {
		weights = nil
	}
	return groups, args, weights
}

func printed(t *testing.T, a Accumulator, groups []uint32) string {
	t.Helper()
	r, err := a.Result(groups)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range groups {
		fmt.Fprintf(&b, "%d: %s; ", i, r.ValueStr(i))
	}
	return b.String()
}

// The result of an aggregate depends on which rows there are and on nothing else: not on batches, order, partial
// accumulators, rows that came and went, or saving and loading.
func TestAggregatesDependOnRowsAlone(t *testing.T) {
	for _, f := range Aggregates {
		for oi := range f.Overloads {
			for _, args := range variants(f, &f.Overloads[oi]) {
				for seed := range uint64(8) {
					checkAggregate(t, f, args, rand.New(rand.NewPCG(seed, uint64(oi))))
				}
			}
		}
	}
}

func checkAggregate(t *testing.T, f *Aggregate, args []types.Type, r *rand.Rand) {
	t.Helper()
	_, sig, o, err := ResolveAggregate(f.Name, args, constants(f.Name, args))
	if err != nil {
		t.Fatalf("%s: %v", display(f.Name, args), err)
	}
	cfg := AggConfig{Args: sig.Args, Ret: sig.Returns, Data: sig.Data}
	if f.Ordering {
		cfg.Plain = len(cfg.Args)
		cfg.Args = append(append([]types.Type{}, cfg.Args...), types.Int8, types.String)
		cfg.Order = []SortKey{{Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0}}
	}
	const n, groups = 120, 5
	rows := aggRows{}
	weighted := r.IntN(2) == 0
	for i := range n {
		rows.groups, rows.weights = append(rows.groups, uint32(r.IntN(groups-1))), append(rows.weights, 1)
		if weighted && r.IntN(3) == 0 {
			rows.weights[i] = int64(1 + r.IntN(3))
		}
	}
	for _, typ := range cfg.Args {
		rows.args = append(rows.args, rowkeytest.Column(r, typ, n))
	}
	// Rows with a NULL among the arguments do not come unless the function keeps them.
	plainArgs := rows.args
	if f.Ordering {
		plainArgs = rows.args[:cfg.Plain]
	}
	var live []int32
	for i := range int32(n) {
		null := false
		for _, a := range plainArgs {
			null = null || a.IsNull(int(i))
		}
		if !null || f.KeepNulls {
			live = append(live, i)
		}
	}
	all := make([]uint32, groups)
	for g := range all {
		all[g] = uint32(g)
	}
	what := fmt.Sprintf("%s by %v", display(f.Name, cfg.Args), cfg.Order)

	whole := o.New(cfg)
	whole.Resize(groups)
	if g, a, w := rows.take(live, 1); whole.Add(g, a, w) != nil {
		t.Fatal(what)
	}
	want := printed(t, whole, all)
	if strings.HasPrefix(want, "the sum") {
		return
	}
	if res, _ := whole.Result(all); !arrow.TypeEqual(res.DataType(), sig.Returns.Arrow()) {
		t.Fatalf("%s gives %s, want %s", what, res.DataType(), sig.Returns.Arrow())
	}

	r.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	makers := []func(AggConfig) Accumulator{o.New}
	if o.NewRetract != nil {
		makers = append(makers, o.NewRetract)
	}
	for m, make1 := range makers {
		retracts := m == 1 || o.NewRetract == nil
		parts := []Accumulator{make1(cfg), make1(cfg)}
		for _, p := range parts {
			p.Resize(groups)
		}
		for from := 0; from < len(live); {
			to := min(len(live), from+1+r.IntN(40))
			p := parts[r.IntN(2)]
			g, a, w := rows.take(live[from:to], 1)
			if err := p.Add(g, a, w); err != nil {
				t.Fatal(what, err)
			}
			if retracts { // some rows come once more and leave again, perhaps before they come
				some := live[:r.IntN(len(live))]
				order := []int64{1, -1}
				if r.IntN(2) == 0 {
					order = []int64{-1, 1}
				}
				for _, sign := range order {
					g, a, w := rows.take(some, sign)
					if err := p.Add(g, a, w); err != nil {
						t.Fatal(what, err)
					}
				}
			}
			from = to
		}
		saved, err := parts[0].Save(all)
		if err != nil {
			t.Fatal(what, err)
		}
		if !arrow.TypeEqual(saved.DataType(), parts[0].State().Arrow()) {
			t.Fatalf("%s saves %s, says %s", what, saved.DataType(), parts[0].State().Arrow())
		}
		back := make1(cfg)
		back.Resize(groups)
		if err := back.Load(all, saved); err != nil {
			t.Fatal(what, err)
		}
		if err := back.Merge(parts[1], all); err != nil {
			t.Fatal(what, err)
		}
		if got := printed(t, back, all); got != want {
			t.Fatalf("%s, accumulator %d, in parts:\n%s\nwant\n%s", what, m, got, want)
		}
		empty := make1(cfg)
		empty.Resize(groups)
		back.Reset(all)
		if got, w := printed(t, back, all), printed(t, empty, all); got != w {
			t.Fatalf("%s, accumulator %d, after a reset:\n%s\nwant\n%s", what, m, got, w)
		}
		if back.Bytes() < 0 {
			t.Fatalf("%s holds %d bytes", what, back.Bytes())
		}
	}
}

// column reads values written as types.Value.
func valueColumn(typ types.Type, vals ...string) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, typ.Arrow())
	for _, v := range vals {
		if v == "NULL" {
			b.AppendNull()
		} else if d, ok := b.(*array.Decimal128Builder); ok { // HUGEINT has more values than DECIMAL(38)
			n, _ := new(big.Int).SetString(strings.ReplaceAll(v, ".", ""), 10)
			d.Append(decimal128.FromBigInt(n))
		} else if err := b.AppendValueFromString(v); err != nil {
			panic(err)
		}
	}
	return b.NewArray()
}

// What DuckDB 2.0.1 gives for the same values.
func TestAggregateValues(t *testing.T) {
	i32, f64, str := types.Int32, types.Float64, types.String
	for _, c := range []struct {
		name   string
		typ    types.Type
		vals   string
		second types.Value
		ret    types.Type
		want   string
	}{
		{"count", i32, "1 NULL 2", nil, types.Int64, "2"},
		{"count", i32, "NULL", nil, types.Int64, "0"},
		{"count_if", types.Bool, "true false NULL", nil, types.Int128, "1"},
		{"count_if", types.Bool, "NULL", nil, types.Int128, "NULL"},
		{"sum", i32, "1 NULL 2", nil, types.Int128, "3"},
		{"sum", i32, "NULL", nil, types.Int128, "NULL"},
		{"sum", types.Bool, "true true", nil, types.Int128, "2"},
		{"sum", types.Int64, "9223372036854775807 9223372036854775807", nil, types.Int128, "18446744073709551614"},
		{"sum", types.Uint64, "18446744073709551615 18446744073709551615", nil, types.Int128, "36893488147419103230"},
		{"sum", types.Dec(5, 2), "1.25 -3.00", nil, types.Dec(38, 2), "-1.75"},
		{"sum", types.Float32, "0.5 0.25", nil, f64, "0.75"},
		{"sum", f64, "1e308 1e308", nil, f64, "+Inf"},
		{"sum", f64, "0.1 0.2 0.3", nil, f64, "0.6"},
		{"avg", i32, "1 2 NULL", nil, f64, "1.5"},
		{"avg", types.Dec(5, 2), "1.00 1.01", nil, f64, "1.005"},
		{"avg", types.Int128, "170141183460469231731687303715884105727", nil, f64, "1.7014118346046923e+38"},
		{"avg", f64, "NULL", nil, f64, "NULL"},
		{"var_samp", i32, "1", nil, f64, "NULL"},
		{"var_pop", i32, "1", nil, f64, "0"},
		{"stddev_pop", f64, "1 2 4", nil, f64, "1.247219128924647"},
		{"stddev", f64, "1 2 4", nil, f64, "1.5275252316519468"}, // DuckDB: …65, which is not the nearest
		{"min", f64, "NaN 1", nil, f64, "1"},
		{"max", f64, "NaN 1", nil, f64, "NaN"},
		{"min", str, "b ab NULL", nil, str, "ab"},
		{"max", types.Bool, "true false", nil, types.Bool, "true"},
		{"bool_and", types.Bool, "true NULL", nil, types.Bool, "true"},
		{"bool_or", types.Bool, "NULL", nil, types.Bool, "NULL"},
		{"bit_and", i32, "6 3", nil, i32, "2"},
		{"bit_or", types.Int128, "6 3", nil, types.Int128, "7"},
		{"bit_xor", types.Uint8, "6 3", nil, types.Uint8, "5"},
		{"median", i32, "1 2", nil, f64, "1.5"},
		{"median", str, "a b", nil, str, "a"},
		{"median", f64, "NaN 1 2", nil, f64, "2"},
		{"median", types.Dec(5, 2), "0.01 0.02", nil, types.Dec(5, 2), "0.01"},
		{"quantile_cont", f64, "1 2", 0.3, f64, "1.2999999999999998"},
		{"quantile_cont", i32, "1 2 3 4", -0.25, f64, "3.25"},
		{"quantile_disc", i32, "1 2 3 4", 0.5, i32, "2"},
		{"quantile_disc", i32, "1 2 3 4", 0.25, i32, "1"},
		{"quantile_disc", i32, "1 2 3 4", -0.5, i32, "3"},
		{"quantile_disc", i32, "1 2 3 4", 1.0, i32, "4"},
		{"quantile_disc", i32, "1 2 3", -0.25, i32, "3"},
		{"mode", i32, "1 2 2 1 2", nil, i32, "2"},
		{"list", i32, "2 1 NULL", nil, types.ListOf(i32), "[1,2,null]"},
		{"list", i32, "", nil, types.ListOf(i32), "NULL"},
		{"string_agg", str, "b a NULL", nil, str, "a,b"},
		{"string_agg", str, "b a", "", str, "ab"},
		{"string_agg", str, "NULL", nil, str, "NULL"},
		{"first", i32, "NULL 1", nil, i32, "1"},
		{"last", i32, "NULL 1", nil, i32, "NULL"},
		{"any_value", i32, "NULL 1", nil, i32, "1"},
	} {
		var vals []string
		if c.vals != "" {
			vals = strings.Split(c.vals, " ")
		}
		args, consts := []types.Type{c.typ}, []types.Value{nil}
		if c.second != nil {
			second := str
			if _, ok := c.second.(float64); ok {
				second = f64
			}
			args, consts = append(args, second), append(consts, c.second)
		}
		f, sig, o, err := ResolveAggregate(c.name, args, consts)
		if err != nil {
			t.Error(err)
			continue
		}
		if !sig.Returns.Equal(c.ret) {
			t.Errorf("%s(%s) is %s, want %s", c.name, c.typ, sig.Returns, c.ret)
		}
		if sig.Args[0].Kind == types.Double && c.typ.Kind != types.Double {
			c.typ = types.Float64
		}
		col := valueColumn(c.typ, vals...)
		if !f.KeepNulls {
			if sel, all := kernels.SelectValid(col); !all {
				col = kernels.Take(col, sel)
			}
		}
		acc := o.New(AggConfig{Args: sig.Args, Ret: sig.Returns, Data: sig.Data, Plain: len(sig.Args)})
		acc.Resize(1)
		in := []Arg{{Array: col}}
		if c.second != nil {
			in = append(in, Arg{Array: kernels.Nulls(sig.Args[1].Arrow(), 1), Const: true})
		}
		if err := acc.Add(make([]uint32, col.Len()), in, nil); err != nil {
			t.Error(err)
		}
		r, err := acc.Result([]uint32{0})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Replace(r.ValueStr(0), "(null)", "NULL", 1); got != c.want {
			t.Errorf("%s of %s %s is %s, want %s", c.name, c.typ, c.vals, got, c.want)
		}
	}
}

// What DuckDB 2.0.1 gives for pairs (y, x); its last bits are less exact.
func TestPairAggregates(t *testing.T) {
	names := strings.Fields("covar_pop covar_samp corr regr_slope regr_intercept regr_r2 regr_sxx regr_syy regr_sxy regr_avgx regr_avgy")
	for _, c := range []struct{ y, x, want string }{
		{"1 3 4", "2 5 4", "1.2222222222222223 1.8333333333333333 0.7857142857142857 0.7857142857142857 -0.21428571428571427 " +
			"0.6173469387755102 4.666666666666667 4.666666666666667 3.6666666666666665 3.6666666666666665 2.6666666666666665"},
		{"1", "2", "0 NULL NaN NaN NULL NULL 0 0 0 2 1"},
		{"1 1", "2 3", "0 0 NaN 0 1 1 0.5 0 0 2.5 1"},
		{"1 2", "2 2", "0 0 NaN NaN NULL NULL 0 0.5 0 2 1.5"},
		{"NULL", "2", "NULL NULL NULL NULL NULL NULL NULL NULL NULL NULL NULL"},
	} {
		y, x := valueColumn(types.Float64, strings.Fields(c.y)...), valueColumn(types.Float64, strings.Fields(c.x)...)
		for i, want := range strings.Fields(c.want) {
			_, _, o, err := ResolveAggregate(names[i], []types.Type{types.Float64, types.Float64}, nil)
			if err != nil {
				t.Fatal(err)
			}
			acc := o.New(AggConfig{})
			acc.Resize(1)
			if err := acc.Add(make([]uint32, y.Len()), []Arg{{Array: y}, {Array: x}}, nil); err != nil {
				t.Fatal(err)
			}
			r, _ := acc.Result([]uint32{0})
			if got := strings.Replace(r.ValueStr(0), "(null)", "NULL", 1); got != want {
				t.Errorf("%s of y %s, x %s is %s, want %s", names[i], c.y, c.x, got, want)
			}
		}
	}
}

// Overflow is judged on the value shown: a sum that leaves HUGEINT on the way and comes back is right.
func TestSumOverflow(t *testing.T) {
	for _, typ := range []types.Type{types.Int128, types.Dec(38, 0)} {
		most := "170141183460469231731687303715884105727"
		if typ.Kind == types.Decimal {
			most = strings.Repeat("9", 38)
		}
		_, sig, o, err := ResolveAggregate("sum", []types.Type{typ}, nil)
		if err != nil {
			t.Fatal(err)
		}
		acc := o.New(AggConfig{Args: sig.Args, Ret: sig.Returns})
		acc.Resize(1)
		add := func(v string, w int64) {
			if err := acc.Add([]uint32{0}, []Arg{{Array: valueColumn(typ, v)}}, []int64{w}); err != nil {
				t.Fatal(err)
			}
		}
		add(most, 3)
		add("1", 1)
		if _, err := acc.Result([]uint32{0}); err == nil {
			t.Errorf("%s: four times the greatest value is no error", typ)
		}
		add(most, -2)
		add("1", -1)
		r, err := acc.Result([]uint32{0})
		if err != nil || r.(*array.Decimal128).Value(0).BigInt().String() != most {
			t.Errorf("%s: %v, %v", typ, r, err)
		}
	}
}

func TestAggregatesAreDocumented(t *testing.T) {
	for _, f := range Aggregates {
		if f.Summary == "" || len(f.Examples) == 0 || f.Category == "" || len(f.Overloads) == 0 {
			t.Errorf("%s needs a summary, an example, a category and an overload", f.Name)
		}
		for i, o := range f.Overloads {
			if o.New == nil || f.Algebra == Ordered && o.NewRetract == nil || f.Algebra == BatchOnly && f.Why == "" {
				t.Errorf("%s, overload %d: no accumulator, or no reason", f.Name, i)
			}
		}
	}
}

func TestSketchIsClose(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 5000, 200_000} {
		var a, b, both sketch
		for i := range n {
			h := kernels.HashBytes([]byte(fmt.Sprint(i)))
			both.add(h)
			if i%3 > 0 {
				a.add(h)
			}
			if i%3 < 2 {
				b.add(h)
			}
		}
		a.merge(&b)
		if a.estimate() != both.estimate() {
			t.Errorf("%d values in two parts are %d, at once %d", n, a.estimate(), both.estimate())
		}
		if e := float64(both.estimate()); e < 0.95*float64(n) || e > 1.05*float64(n) {
			t.Errorf("%d values are estimated as %v", n, e)
		}
	}
}
