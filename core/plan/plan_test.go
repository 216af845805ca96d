package plan

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// source is a relation or stream that has no rows.
type source struct {
	fields   []types.Field
	stats    flow.Stats
	updating bool
}

func (s *source) Fields() []types.Field                        { return s.fields }
func (s *source) Stats() flow.Stats                            { return s.stats }
func (s *source) Bounded() bool                                { return false }
func (s *source) Updating() bool                               { return s.updating }
func (s *source) Replayable() bool                             { return true }
func (s *source) Splits(context.Context) ([]flow.Split, error) { return nil, nil }
func (s *source) Open(context.Context, flow.Split, flow.Position) (flow.Reader, error) {
	return nil, errs.New(errs.Internal, "test", "no rows")
}
func (s *source) Scan(context.Context, flow.ScanRequest) (flow.Scan, error) {
	return nil, errs.New(errs.Internal, "test", "no rows")
}

// ids gives columns their numbers within a test.
type ids struct{ next expr.ColID }

func (x *ids) col(name string, t types.Type) Column {
	x.next++
	return Column{x.next, name, t}
}

// table scans a bounded relation with columns of BIGINT; those whose name begins with * are unique keys.
func (x *ids) table(name string, cols ...string) *Scan {
	src := &Source{Name: name}
	s := &Scan{Source: src}
	for i, c := range cols {
		if c[0] == '*' {
			c = c[1:]
			src.Keys = append(src.Keys, []int{i})
		}
		src.Fields = append(src.Fields, types.Field{Name: c, Type: types.Int64})
		s.Cols, s.At = append(s.Cols, x.col(c, types.Int64)), append(s.At, i)
	}
	src.Relation = &source{fields: src.Fields, stats: flow.Stats{Rows: 1000}}
	return s
}

// stream scans a live stream of k BIGINT, ts TIMESTAMP with a watermark on ts.
func (x *ids) stream(name string) *Scan {
	src := &Source{Name: name, Fields: []types.Field{{Name: "k", Type: types.Int64}, {Name: "ts", Type: types.TsUS}}, Watermark: &WatermarkSpec{Column: 1}}
	src.Stream = &source{fields: src.Fields}
	return &Scan{Source: src, Cols: []Column{x.col("k", types.Int64), x.col("ts", types.TsUS)}, At: []int{0, 1}}
}

func call(t *testing.T, name string, args ...expr.Expr) expr.Expr {
	t.Helper()
	e, err := expr.NewCall(name, errs.Pos{}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func num(v int64) *expr.Lit   { return &expr.Lit{V: v, T: types.Int64} }
func text(v string) *expr.Lit { return &expr.Lit{V: v, T: types.String} }
func seconds(n int64) *expr.Lit {
	return &expr.Lit{V: types.IntervalValue{Micros: n * 1e6}, T: types.Span}
}
func equi(l, r Column) []EquiKey { return []EquiKey{{Left: l.Ref(), Right: r.Ref()}} }

// keys prints a node's unique keys by name.
func keys(n Node) []string {
	names := map[expr.ColID]string{}
	for _, c := range n.Columns() {
		names[c.ID] = c.Name
	}
	var out []string
	for _, k := range PropsOf(n).Keys {
		s := ""
		for _, id := range IDs(k) {
			s += names[id] + " "
		}
		out = append(out, s)
	}
	return out
}

func TestKeys(t *testing.T) {
	var x ids
	a, b := x.table("a", "*id", "v"), x.table("b", "*bid", "w")
	agg := &Aggregate{Input: b, Keys: []Item{{b.Cols[1].Ref(), b.Cols[1]}}}
	s := x.stream("s")
	w := &TimeWindow{Input: s, Kind: Tumble, Time: s.Cols[1].Ref(), Size: types.IntervalValue{Micros: 1e6}, Start: x.col("start", types.TsUS), End: x.col("end", types.TsUS)}
	windows := &Aggregate{Input: w, Keys: []Item{{s.Cols[0].Ref(), s.Cols[0]}, {w.Start.Ref(), w.Start}, {w.End.Ref(), w.End}}}
	for _, c := range []struct {
		name string
		n    Node
		want []string
	}{
		{"a declared key", a, []string{"id "}},
		{"a constant takes its place", &Filter{Input: a, Cond: call(t, "=", a.Cols[0].Ref(), num(3))}, []string{""}},
		{"a foreign key keeps the left's", &Join{Kind: Inner, Left: a, Right: b, Keys: equi(a.Cols[1], b.Cols[0])}, []string{"id "}},
		{"both together without one", &Join{Kind: Inner, Left: a, Right: b}, []string{"id bid "}},
		{"padding of both sides may repeat NULLs", &Join{Kind: Full, Left: a, Right: b, Keys: equi(a.Cols[0], b.Cols[0])}, nil},
		{"the left's in a left join", &Join{Kind: Left, Left: a, Right: b, Keys: equi(a.Cols[1], b.Cols[0])}, []string{"id "}},
		{"not the right's in a left join", &Join{Kind: Left, Left: a, Right: b, Keys: equi(a.Cols[0], b.Cols[1])}, []string{"id bid "}},
		{"semi join", &Join{Kind: Semi, Left: a, Right: b, Keys: equi(a.Cols[0], b.Cols[0])}, []string{"id "}},
		{"group keys", agg, []string{"w "}},
		{"no group keys: one row", &Aggregate{Input: a}, []string{""}},
		{"start and end say the same", windows, []string{"k start ", "k end "}},
		{"limit 1", &Limit{Input: b, Limit: 1}, []string{""}},
		{"one of each partition", &GroupTopN{Input: b, Part: []expr.Expr{b.Cols[1].Ref()}, Limit: 1, Rank: "row_number"}, []string{"bid ", "w "}},
		{"ranks have ties", &GroupTopN{Input: b, Part: []expr.Expr{b.Cols[1].Ref()}, Limit: 1, Rank: "rank"}, []string{"bid "}},
		{"union all has none", &SetOp{Kind: Union, All: true, Left: a, Right: b, Cols: []Column{x.col("u", types.Int64), x.col("v", types.Int64)}}, nil},
	} {
		if got := keys(c.n); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRejects(t *testing.T) {
	var x ids
	c, d := x.col("c", types.Int64).Ref(), x.col("d", types.Int64).Ref()
	null := ColSet{c.ID: true}
	for _, k := range []struct {
		e    expr.Expr
		want bool
	}{
		{call(t, "=", c, num(1)), true},
		{call(t, "<", d, call(t, "+", c, num(1))), true},
		{call(t, "is distinct from", c, num(1)), false},
		{&expr.IsNull{Arg: c}, false},
		{&expr.IsNull{Arg: c, Negate: true}, true},
		{&expr.Not{Arg: &expr.IsNull{Arg: c}}, true},
		{&expr.Or{Args: []expr.Expr{call(t, "=", c, num(1)), call(t, "=", d, num(1))}}, false},
		{&expr.And{Args: []expr.Expr{call(t, "=", c, num(1)), call(t, "=", d, num(1))}}, true},
		{&expr.Coalesce{Args: []expr.Expr{call(t, "=", c, num(1)), True}, T: types.Bool}, false},
		{&expr.In{Arg: c, List: []expr.Expr{num(1)}}, true},
		{&expr.In{Arg: c, List: []expr.Expr{num(1)}, Negate: true}, true},
		{&expr.IsNull{Arg: call(t, "<", d, c)}, false},
	} {
		if got := Rejects(k.e, null); got != k.want {
			t.Errorf("%s with c NULL: rejects %v", ExprString(k.e), got)
		}
	}
}

func TestPredicates(t *testing.T) {
	var x ids
	s := x.table("t", "a", "b")
	s.At = []int{3, 5} // columns of a wider relation
	a := s.Cols[0].Ref()
	name := Column{s.Cols[1].ID, "b", types.String}
	s.Cols[1] = name
	like := &expr.Call{Fn: &fn.Scalar{Name: "~~"}, Sig: fn.Resolved{Returns: types.Bool}, Args: []expr.Expr{name.Ref(), text("abc%")}}
	for _, c := range []struct {
		e    expr.Expr
		want []flow.Predicate
	}{
		{call(t, "<", a, num(7)), []flow.Predicate{{Column: 3, Op: flow.CmpLt, Values: []types.Value{int64(7)}}}},
		{call(t, "<", num(7), a), []flow.Predicate{{Column: 3, Op: flow.CmpGt, Values: []types.Value{int64(7)}}}},
		{call(t, "=", a, a), nil},
		{&expr.In{Arg: a, List: []expr.Expr{num(1), num(2), &expr.Lit{T: types.Int64}}}, []flow.Predicate{{Column: 3, Op: flow.CmpIn, Values: []types.Value{int64(1), int64(2)}}}},
		{&expr.In{Arg: a, List: []expr.Expr{num(1)}, Negate: true}, nil},
		{&expr.IsNull{Arg: a}, []flow.Predicate{{Column: 3, Op: flow.CmpIsNull}}},
		{&expr.Or{Args: []expr.Expr{call(t, "=", a, num(1)), call(t, "=", a, num(2))}}, []flow.Predicate{{Column: 3, Op: flow.CmpIn, Values: []types.Value{int64(1), int64(2)}}}},
		{&expr.Or{Args: []expr.Expr{call(t, "=", a, num(1)), call(t, "<", a, num(2))}}, nil},
		{like, []flow.Predicate{{Column: 5, Op: flow.CmpGe, Values: []types.Value{"abc"}}, {Column: 5, Op: flow.CmpLt, Values: []types.Value{"abd"}}}},
		{like.With([]expr.Expr{name.Ref(), text("%abc")}), nil},
	} {
		m := *s
		m.Filters = []expr.Expr{c.e}
		if got := Predicates(&m); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", ExprString(c.e), got, c.want)
		}
	}
}

func TestJoinBounds(t *testing.T) {
	var x ids
	l, r := x.stream("l"), x.stream("r")
	lt, rt := l.Cols[1].Ref(), r.Cols[1].Ref()
	on := func(es ...expr.Expr) *Join { return &Join{Kind: Inner, Left: l, Right: r, On: expr.Conjunction(es)} }
	for _, c := range []struct {
		j    *Join
		want string
	}{
		{on(call(t, ">=", rt, call(t, "-", lt, seconds(5))), call(t, "<=", rt, lt)), "left time − right time between 0 seconds and 5 seconds"},
		{on(call(t, "<", lt, call(t, "+", rt, seconds(3)))), "left time − right time at most 3 seconds"},
		{on(call(t, ">", call(t, "+", lt, seconds(2)), rt)), "left time − right time at least −2 seconds"},
		{&Join{Kind: Inner, Left: l, Right: r, Keys: equi(l.Cols[1], r.Cols[1])}, "equal times"},
		{on(call(t, "<", lt, call(t, "+", rt, &expr.Lit{V: types.IntervalValue{Months: 1}, T: types.Span}))), "no bound"},
		{&Join{Kind: Inner, Left: l, Right: r, Keys: equi(l.Cols[0], r.Cols[0])}, "no bound"},
	} {
		b, _ := JoinBounds(c.j)
		if got := b.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", Describe(c.j), got, c.want)
		}
	}
}

// TestTimesAfterJoin: a row's time stays bound to the watermark only where no old row can come out again.
func TestTimesAfterJoin(t *testing.T) {
	var x ids
	l, r, b := x.stream("l"), x.stream("r"), x.table("b", "*k")
	lt, rt := l.Cols[1].Ref(), r.Cols[1].Ref()
	has := func(n Node, c Column) bool { _, ok := TimeColumns(n)[c.ID]; return ok }
	free := &Join{Kind: Inner, Left: l, Right: r, Keys: equi(l.Cols[0], r.Cols[0])}
	if has(free, l.Cols[1]) || has(free, r.Cols[1]) {
		t.Error("without a bound an old row may meet a new one")
	}
	after := &Join{Kind: Inner, Left: l, Right: r, On: call(t, ">=", lt, rt)}
	if !has(after, l.Cols[1]) {
		t.Error("a left row at or after its right row is at or after the watermark")
	}
	if has(after, r.Cols[1]) {
		t.Error("a new left row may meet an old right row")
	}
	if static := (&Join{Kind: Inner, Left: l, Right: b, Keys: equi(l.Cols[0], b.Cols[0])}); !has(static, l.Cols[1]) {
		t.Error("a bounded side brings no old left row back")
	}
}

func TestEmit(t *testing.T) {
	var x ids
	s := x.stream("s")
	w := &TimeWindow{Input: s, Kind: Tumble, Time: s.Cols[1].Ref(), Size: types.IntervalValue{Micros: 1e6}, Start: x.col("start", types.TsUS), End: x.col("end", types.TsUS)}
	windowed := &Aggregate{Input: w, Keys: []Item{{w.End.Ref(), w.End}}}
	byKey := &Aggregate{Input: s, Keys: []Item{{s.Cols[0].Ref(), s.Cols[0]}}}
	updating := x.stream("u")
	updating.Source.Stream.(*source).updating = true
	byTime := &Aggregate{Input: updating, Keys: []Item{{updating.Cols[1].Ref(), updating.Cols[1]}}}
	for _, c := range []struct {
		name string
		root Node
		ask  EmitPolicy
		want string
	}{
		{"window", windowed, EmitDefault, "ON WATERMARK"},
		{"window, asked", windowed, EmitOnWatermark, "ON WATERMARK"},
		{"key", byKey, EmitDefault, "IMMEDIATE"},
		{"key, asked", byKey, EmitOnWatermark, "refused"},
		{"no group", s, EmitDefault, "IMMEDIATE"},
		{"no group, asked", s, EmitOnWatermark, "ON WATERMARK"},
		{"updating stream", byTime, EmitDefault, "IMMEDIATE"},
		{"updating stream, asked", byTime, EmitOnWatermark, "refused"},
		{"total of windows", &Aggregate{Input: windowed}, EmitDefault, "IMMEDIATE"},
		{"outer join, asked", &Join{Kind: Left, Left: s, Right: windowed}, EmitOnWatermark, "refused"},
	} {
		p, why, err := EmitFor(&Query{Root: c.root, Emit: c.ask})
		got := p.String()
		if err != nil {
			got = "refused"
		}
		if got != c.want {
			t.Errorf("%s: %s (%s, %v), want %s", c.name, got, why, err, c.want)
		}
	}
}

// TestRegistry: every entry is complete, and every node has an entry.
func TestRegistry(t *testing.T) {
	for _, o := range Ops {
		if o.Name == "" || o.Summary == "" || o.SQL == "" {
			t.Errorf("%q: name, summary and SQL must be given", o.Name)
		}
		for _, s := range []Support{o.Batch, o.Incremental} {
			if s.Yes == (s.Why != "") {
				t.Errorf("%s: a mode is supported or has a reason why not", o.Name)
			}
		}
	}
	var x ids
	a := x.table("a", "k")
	for _, n := range []Node{a, &Values{}, &Filter{Input: a}, &Project{Input: a}, &Aggregate{Input: a}, &Aggregate{Input: a, Sets: [][]int{{}}},
		&Sort{Input: a}, &Limit{Input: a}, &TopN{Input: a}, &GroupTopN{Input: a}, &Distinct{Input: a}, &SetOp{Kind: Union, All: true, Left: a, Right: a},
		&SetOp{Kind: Except, Left: a, Right: a}, &Window{Input: a}, &Normalize{Input: a}, &Apply{Left: a, Right: a}} {
		if OpOf(n) == nil {
			t.Errorf("%T has no entry", n)
		}
	}
	for k := Inner; k <= Single; k++ {
		if OpOf(&Join{Kind: k}) == nil {
			t.Errorf("join %s has no entry", k)
		}
	}
	for k := Tumble; k <= Cumulate; k++ {
		if OpOf(&TimeWindow{Kind: k}) == nil {
			t.Errorf("window %s has no entry", k)
		}
	}
}

func TestMapGivesNewColumns(t *testing.T) {
	var x ids
	a := x.table("a", "k", "v")
	sub := &expr.Subquery{Kind: expr.ExistsSub, Plan: &Filter{Input: x.table("b", "k"), Cond: a.Cols[0].Ref()}, Outer: []expr.ColID{a.Cols[0].ID}}
	n := &Sort{Input: &Filter{Input: a, Cond: sub}, Keys: []SortItem{{Expr: a.Cols[1].Ref()}}, Tie: []expr.ColID{a.Cols[0].ID}}
	m := Map(n, func(id expr.ColID) expr.ColID { return id + 100 })
	for id := range Reads(m) {
		if id <= 100 {
			t.Errorf("the copy still reads #%d: %s", id, Format(m))
		}
	}
	if got := fmt.Sprint(IDs(Produced(m))); got != "[101 102 103]" {
		t.Errorf("the copy makes %s", got)
	}
	if len(Free(n)) != 0 {
		t.Errorf("free columns %v", Free(n))
	}
}
