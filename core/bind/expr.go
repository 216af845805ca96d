package bind

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// env is where an expression stands: what its names mean and what it may hold.
type env struct {
	b      *Binder
	scope  *scope
	ctes   *cte
	block  *block // the SELECT around; nil for a bare expression
	clause clause
	inAgg  bool         // inside the arguments of an aggregate
	inOver bool         // inside the arguments of a window function
	lambda *lambdaScope // the lambda in whose body it stands; nil for none
}

// clause is a place in a SELECT.
type clause struct {
	name    string // as messages say it: "WHERE"
	aggs    bool   // aggregates may stand here
	windows bool   // window functions may stand here
	aliases bool   // names of the select list are known here
}

// bind turns an expression of the syntax tree into a bound one.
func (e *env) bind(x sql.Expr) expr.Expr {
	switch x := x.(type) {
	case *sql.Literal:
		return literal(x)
	case *sql.TypedLiteral:
		return meant(e.cast(&expr.Lit{V: x.Text, T: types.String}, typeOf(x.Type), x.Pos))
	case *sql.Interval:
		return e.interval(x)
	case *sql.ColumnRef:
		return e.columnRef(x)
	case *sql.Unary:
		return e.unary(x)
	case *sql.Binary:
		return e.binarySpine(x)
	case *sql.Not:
		return e.not(x)
	case *sql.Is:
		return e.is(x)
	case *sql.Match:
		return e.match(x)
	case *sql.Between:
		return e.between(x)
	case *sql.In:
		return e.in(x)
	case *sql.Exists:
		return e.exists(x)
	case *sql.Subquery:
		return e.scalarSubquery(x)
	case *sql.Quantified:
		return e.quantified(x)
	case *sql.Case:
		return e.caseOf(x)
	case *sql.Cast:
		return e.castOf(x)
	case *sql.Function:
		return e.function(x)
	case *sql.List:
		return e.list(x)
	case *sql.Struct:
		return e.structOf(x)
	case *sql.Map:
		return e.mapOf(x)
	case *sql.Row:
		if _, ok := fn.Lookup("row"); !ok {
			failUnsupported(x.Pos, "a row value outside of comparisons and IN")
		}
		return e.call(x.Pos, "row", e.bindAll(x.Items)...)
	case *sql.Subscript:
		return e.subscript(x)
	case *sql.Slice:
		return e.slice(x)
	case *sql.Field:
		return e.field(e.bind(x.X), x.Name)
	case *sql.Collate:
		failUnsupported(x.Pos, "COLLATE")
	case *sql.Star:
		failHint(x.Pos, "use COLUMNS(*) inside an expression", "* can only stand alone in a select list, or in count(*)")
	case *sql.Columns:
		fail(x.Pos, "COLUMNS can only stand in a select list")
	case *sql.Lambda:
		if j := x.JSONArrow(); j != nil {
			return e.bind(j)
		}
		failHint(x.Pos, "list_transform(l, lambda x: x + 1)", "a lambda stands only in a function that takes one: list_transform, list_filter, list_reduce")
	case *sql.Param:
		return e.parameter(x)
	case *sql.Default:
		fail(x.Pos, "DEFAULT can only be a value of INSERT or UPDATE")
	}
	panic(errs.Bug("bind", "no rule for %T", x))
}

func (e *env) bindAll(xs []sql.Expr) []expr.Expr {
	out := make([]expr.Expr, len(xs))
	for i, x := range xs {
		out[i] = e.bind(x)
	}
	return out
}

// bindCondition binds a BOOLEAN of a clause.
func (e *env) bindCondition(x sql.Expr, what string) expr.Expr {
	return e.condition(e.bind(x), x.Position(), what)
}

// columnRef finds a column, an alias of the select list, a column of an outer query, or a table as a row; further parts
// of the name are fields.
func (e *env) columnRef(x *sql.ColumnRef) expr.Expr {
	if len(x.Parts) == 1 {
		if a, ok := e.macroArg(x.Parts[0]); ok {
			return a
		}
	}
	if p, ok := e.param(x.Parts[0]); ok {
		return e.fields(p, x.Parts[1:])
	}
	h, used := e.scope.lookup(x.Parts)
	at := e.scope
	if used == 0 || len(x.Parts) == 1 && e.yields(h) {
		if a, ok := e.alias(x.Parts[0]); ok {
			return e.fields(a, x.Parts[1:])
		}
	}
	for used == 0 && at.parent != nil {
		at = at.parent
		h, used = at.lookup(x.Parts)
	}
	if used > 0 {
		return e.fields(e.refer(h, x.Parts), x.Parts[used:])
	}
	if a, ok := e.macroArg(x.Parts[0]); ok {
		return e.fields(a, x.Parts[1:])
	}
	if r := e.row(x); r != nil {
		return r
	}
	e.scope.failUnknown(x.Parts, e.aliasNames())
	return nil
}

// refer makes the expression that reads a found column and remembers where it stands, for messages.
func (e *env) refer(h hit, name sql.Name) expr.Expr {
	v := h.expr()
	if c, ok := v.(*expr.Col); ok {
		e.b.refs[c] = ref{name.Position(), name.String()}
	}
	return v
}

func (e *env) fields(x expr.Expr, names []sql.Ident) expr.Expr {
	for _, n := range names {
		x = e.field(x, n)
	}
	return x
}

// field is (x).name.
func (e *env) field(x expr.Expr, name sql.Ident) expr.Expr {
	t := x.Type()
	switch t.Kind {
	case types.Struct:
		var names []string
		for _, f := range t.Fields {
			if sameName(f.Name, name.Name) {
				return e.call(name.Pos, "struct_extract", x, &expr.Lit{V: f.Name, T: types.String})
			}
			names = append(names, f.Name)
		}
		failHint(name.Pos, candidates("fields", name.Name, names), "no field %q in %s", name.Name, t)
	case types.Map:
		return e.call(name.Pos, "map_extract_value", x, &expr.Lit{V: name.Name, T: types.String})
	case types.JSON:
		return e.call(name.Pos, "->", x, &expr.Lit{V: name.Name, T: types.String})
	}
	fail(name.Pos, "no field %q: %s is not a STRUCT, MAP or JSON", name.Name, t)
	return nil
}

// row is a table's name used as a value: a STRUCT of its columns.
func (e *env) row(x *sql.ColumnRef) expr.Expr {
	if len(x.Parts) != 1 {
		return nil
	}
	t := e.scope.tableNamed([]string{x.Parts[0].Name})
	if t == nil {
		return nil
	}
	var names []string
	var values []expr.Expr
	for _, c := range t.cols {
		if !e.b.rowID[c.ID] {
			names, values = append(names, c.Name), append(values, e.refer(hit{col: c}, x.Parts))
		}
	}
	return e.pack(x.Pos, names, values)
}

// unary binds a sign or a bit operator; the sign of a number belongs to the number.
func (e *env) unary(x *sql.Unary) expr.Expr {
	if l, negative := signed(x); l != nil {
		return number(l, negative)
	}
	v := e.bind(x.X)
	if l, ok := v.(*expr.Lit); ok && x.Op == "-" {
		switch n := l.V.(type) {
		case float64:
			return &expr.Lit{V: -n, T: l.T}
		case types.IntervalValue:
			if n.Months > -1<<31 && n.Days > -1<<31 && n.Micros > -1<<63 {
				return &expr.Lit{V: types.IntervalValue{Months: -n.Months, Days: -n.Days, Micros: -n.Micros}, T: l.T}
			}
		}
	}
	if x.Op == "@" {
		return e.call(x.Pos, "abs", v)
	}
	return e.call(x.Pos, x.Op, v)
}

// signed reads a number with its signs; nil when x is something else.
func signed(x *sql.Unary) (l *sql.Literal, negative bool) {
	for x.Op == "-" {
		negative = !negative
		switch y := x.X.(type) {
		case *sql.Literal:
			if y.Kind == sql.LitInt || y.Kind == sql.LitDecimal {
				return y, negative
			}
			return nil, false
		case *sql.Unary:
			x = y
		default:
			return nil, false
		}
	}
	return nil, false
}

// binarySpine binds operators from the left. The spine may be ten thousands of operators long, so it is walked in a
// loop, and AND and OR become one flat node.
func (e *env) binarySpine(x *sql.Binary) expr.Expr {
	var spine []*sql.Binary
	var first sql.Expr = x
	for {
		bin, ok := first.(*sql.Binary)
		if !ok {
			break
		}
		spine = append(spine, bin)
		first = bin.Left
	}
	// The leftmost operand of a comparison may be a row, which is not a value by itself.
	if row, ok := first.(*sql.Row); ok {
		last := spine[len(spine)-1]
		if right, ok := last.Right.(*sql.Row); ok && comparisons[last.Op] {
			left := e.compareRows(last, e.bindAll(row.Items), e.bindAll(right.Items))
			return e.climb(spine[:len(spine)-1], left)
		}
	}
	return e.climb(spine, e.bind(first))
}

// climb applies the operators of a spine, which is listed from the top.
func (e *env) climb(spine []*sql.Binary, left expr.Expr) expr.Expr {
	for i := len(spine) - 1; i >= 0; {
		op := spine[i].Op
		if op != sql.OpAnd && op != sql.OpOr {
			left = e.binary(spine[i], left, e.bind(spine[i].Right))
			i--
			continue
		}
		args := []expr.Expr{e.condition(left, spine[i].Left.Position(), "the left side of "+string(op))}
		for ; i >= 0 && spine[i].Op == op; i-- {
			args = append(args, e.condition(e.bind(spine[i].Right), spine[i].Right.Position(), "the right side of "+string(op)))
		}
		if op == sql.OpAnd {
			left = &expr.And{Args: args}
		} else {
			left = &expr.Or{Args: args}
		}
	}
	return left
}

var comparisons = map[sql.Op]bool{sql.OpEq: true, sql.OpNe: true, sql.OpLt: true, sql.OpLe: true, sql.OpGt: true, sql.OpGe: true,
	sql.OpDistinct: true, sql.OpNotDistinct: true}

// listOperators are operators that are another way to call a function of lists.
var listOperators = map[sql.Op]string{sql.OpOverlaps: "list_has_any", sql.OpContains: "list_has_all", sql.OpDistance: "list_distance", sql.OpCosine: "list_cosine_distance"}

func (e *env) binary(x *sql.Binary, left, right expr.Expr) expr.Expr {
	switch {
	case comparisons[x.Op]:
		return e.compare(string(x.Op), left, right, x.Pos)
	case x.Op == sql.OpMatch:
		return e.call(x.Pos, "regexp_matches", left, right)
	case x.Op == sql.OpNotMatch:
		return &expr.Not{Arg: e.call(x.Pos, "regexp_matches", left, right)}
	case listOperators[x.Op] != "":
		return e.call(x.Pos, listOperators[x.Op], left, right)
	case x.Op == sql.OpContained:
		return e.call(x.Pos, "list_has_all", right, left)
	case x.Op == sql.OpStartsWith:
		return e.call(x.Pos, "starts_with", left, right)
	}
	return e.call(x.Pos, string(x.Op), left, right)
}

// compare casts both sides to the type in which they are compared.
func (e *env) compare(op string, left, right expr.Expr, pos errs.Pos) expr.Expr {
	t, ok := types.Comparison(left.Type(), constant(left), right.Type(), constant(right))
	if !ok {
		failHint(pos, "cast one side", "%s cannot compare %s with %s", op, left.Type(), right.Type())
	}
	return e.call(pos, op, e.cast(left, t, pos), e.cast(right, t, pos))
}

// compareRows is (a, b) op (c, d). As in DuckDB a row is a value and never NULL: NULL equals NULL inside it and is greater
// than all else.
func (e *env) compareRows(x *sql.Binary, left, right []expr.Expr) expr.Expr {
	if len(left) != len(right) {
		fail(x.Pos, "the rows have %d and %d values", len(left), len(right))
	}
	switch x.Op {
	case sql.OpEq, sql.OpNotDistinct:
		return e.rowsEqual(left, right, x.Pos)
	case sql.OpNe, sql.OpDistinct:
		return &expr.Not{Arg: e.rowsEqual(left, right, x.Pos)}
	case sql.OpGt:
		return e.rowLess(right, left, x.Pos)
	case sql.OpLe:
		return &expr.Not{Arg: e.rowLess(right, left, x.Pos)}
	case sql.OpGe:
		return &expr.Not{Arg: e.rowLess(left, right, x.Pos)}
	}
	return e.rowLess(left, right, x.Pos)
}

func (e *env) rowsEqual(left, right []expr.Expr, pos errs.Pos) expr.Expr {
	all := make([]expr.Expr, len(left))
	for i := range left {
		all[i] = e.compare(notDistinct, left[i], right[i], pos)
	}
	return allOf(all)
}

// rowLess: the first column that differs decides.
func (e *env) rowLess(left, right []expr.Expr, pos errs.Pos) expr.Expr {
	var any []expr.Expr
	for i := range left {
		less := &expr.Coalesce{T: types.Bool, Args: []expr.Expr{
			anyOf([]expr.Expr{
				allOf([]expr.Expr{&expr.IsNull{Arg: left[i], Negate: true}, &expr.IsNull{Arg: right[i]}}),
				e.compare("<", left[i], right[i], pos),
			}),
			&expr.Lit{V: false, T: types.Bool},
		}}
		if i == 0 {
			any = append(any, less)
			continue
		}
		any = append(any, allOf([]expr.Expr{e.rowsEqual(left[:i], right[:i], pos), less}))
	}
	return anyOf(any)
}

func allOf(es []expr.Expr) expr.Expr {
	if len(es) == 1 {
		return es[0]
	}
	return &expr.And{Args: es}
}

func anyOf(es []expr.Expr) expr.Expr {
	if len(es) == 1 {
		return es[0]
	}
	return &expr.Or{Args: es}
}

func (e *env) not(x *sql.Not) expr.Expr {
	if s, ok := x.X.(*sql.Exists); ok {
		v := e.exists(s).(*expr.Subquery)
		v.Negate = true
		return v
	}
	return &expr.Not{Arg: e.bindCondition(x.X, "the operand of NOT")}
}

func (e *env) is(x *sql.Is) expr.Expr {
	if row, ok := x.X.(*sql.Row); ok && x.What == sql.IsNull {
		e.bindAll(row.Items)
		return &expr.Lit{V: x.Not, T: types.Bool} // a row is never NULL, whatever is in it
	}
	v := e.bind(x.X)
	if x.What == sql.IsNull {
		return &expr.IsNull{Arg: v, Negate: x.Not}
	}
	v = e.condition(v, x.Pos, "the operand of IS "+string(x.What))
	if x.What == sql.IsUnknown {
		return &expr.IsNull{Arg: v, Negate: x.Not}
	}
	op := "IS NOT DISTINCT FROM"
	if x.Not {
		op = "IS DISTINCT FROM"
	}
	return e.call(x.Pos, op, v, &expr.Lit{V: x.What == sql.IsTrue, T: types.Bool})
}

// match binds LIKE and its relatives. LIKE and ILIKE take an escape character, and their negations are functions of
// their own.
func (e *env) match(x *sql.Match) expr.Expr {
	args := []expr.Expr{e.bind(x.X), e.bind(x.Pattern)}
	name, likes := lower(string(x.Kind)), x.Kind == sql.Like || x.Kind == sql.ILike
	if x.Escape != nil {
		if !likes {
			failUnsupported(x.Pos, string(x.Kind)+" with ESCAPE")
		}
		args = append(args, e.bind(x.Escape))
	}
	switch {
	case !x.Not:
		return e.call(x.Pos, name, args...)
	case likes:
		return e.call(x.Pos, "not "+name, args...)
	}
	return &expr.Not{Arg: e.call(x.Pos, name, args...)}
}

func (e *env) between(x *sql.Between) expr.Expr {
	v, lo, hi := e.bind(x.X), e.bind(x.Lo), e.bind(x.Hi)
	within := func(lo, hi expr.Expr) expr.Expr {
		return &expr.And{Args: []expr.Expr{e.compare(">=", v, lo, x.Pos), e.compare("<=", v, hi, x.Pos)}}
	}
	out := within(lo, hi)
	if x.Symmetric {
		out = &expr.Or{Args: []expr.Expr{out, within(hi, lo)}}
	}
	if x.Not {
		return &expr.Not{Arg: out}
	}
	return out
}

// in binds membership in a list, a list value or a subquery. A row is compared column by column.
func (e *env) in(x *sql.In) expr.Expr {
	if x.Query != nil {
		return e.inSubquery(x)
	}
	if x.Set != nil {
		set := e.bind(x.Set)
		out := e.call(x.Pos, "list_contains", set, e.bind(x.X))
		if x.Not {
			return &expr.Not{Arg: out}
		}
		return out
	}
	if row, ok := x.X.(*sql.Row); ok {
		return e.rowInList(x, row)
	}
	all := e.comparable(append([]expr.Expr{e.bind(x.X)}, e.bindAll(x.List)...), x.Pos, "IN")
	return &expr.In{Arg: all[0], List: all[1:], Negate: x.Not}
}

func (e *env) rowInList(x *sql.In, row *sql.Row) expr.Expr {
	left := e.bindAll(row.Items)
	var any []expr.Expr
	for _, item := range x.List {
		right, ok := item.(*sql.Row)
		if !ok || len(right.Items) != len(left) {
			fail(item.Position(), "IN wants rows of %d values here", len(left))
		}
		any = append(any, e.rowsEqual(left, e.bindAll(right.Items), x.Pos))
	}
	out := anyOf(any)
	if x.Not {
		return &expr.Not{Arg: out}
	}
	return out
}

// caseOf binds both forms of CASE; the operand of a simple one is compared with each WHEN.
func (e *env) caseOf(x *sql.Case) expr.Expr {
	var operand expr.Expr
	if x.Operand != nil {
		operand = e.bind(x.Operand)
	}
	out := &expr.Case{}
	var results []expr.Expr
	for _, w := range x.Whens {
		var cond expr.Expr
		if operand != nil {
			cond = e.compare("=", operand, e.bind(w.Cond), w.Cond.Position())
		} else {
			cond = e.bindCondition(w.Cond, "the condition of WHEN")
		}
		out.Whens = append(out.Whens, expr.When{Cond: cond})
		results = append(results, e.bind(w.Then))
	}
	if x.Else != nil {
		results = append(results, e.bind(x.Else))
	}
	results, out.T = e.branches(results, x.Pos, "CASE")
	for i := range out.Whens {
		out.Whens[i].Then = results[i]
	}
	if x.Else != nil {
		out.Else = results[len(results)-1]
	}
	return out
}

func (e *env) castOf(x *sql.Cast) expr.Expr {
	t := typeOf(x.Type)
	v := e.bind(x.X)
	if !x.Try {
		return meant(e.cast(v, t, x.Pos))
	}
	if v.Type().Equal(t) {
		return meant(v)
	}
	if !types.CanCast(v.Type(), t) {
		fail(x.Pos, "%s cannot be cast to %s", v.Type(), t)
	}
	return &expr.Cast{Arg: v, T: t, Try: true, Pos: x.Pos}
}

func (e *env) list(x *sql.List) expr.Expr {
	items, _ := e.branches(e.bindAll(x.Items), x.Pos, "the list")
	return e.call(x.Pos, "list_value", items...)
}

func (e *env) structOf(x *sql.Struct) expr.Expr {
	var names []string
	var values []expr.Expr
	for _, f := range x.Fields {
		names, values = append(names, f.Name.Name), append(values, e.bind(f.Value))
	}
	return e.pack(x.Pos, names, values)
}

// pack makes a STRUCT; its function takes pairs of a name and a value.
func (e *env) pack(pos errs.Pos, names []string, values []expr.Expr) expr.Expr {
	args := make([]expr.Expr, 0, 2*len(names))
	for i, n := range names {
		args = append(args, &expr.Lit{V: n, T: types.String}, values[i])
	}
	return e.call(pos, "struct_pack", args...)
}

func (e *env) mapOf(x *sql.Map) expr.Expr {
	var keys, values []expr.Expr
	for _, m := range x.Entries {
		keys, values = append(keys, e.bind(m.Key)), append(values, e.bind(m.Value))
	}
	keys, _ = e.branches(keys, x.Pos, "the keys of MAP")
	values, _ = e.branches(values, x.Pos, "the values of MAP")
	return e.call(x.Pos, "map", e.call(x.Pos, "list_value", keys...), e.call(x.Pos, "list_value", values...))
}

// subscript is x['field'] for structs and maps and x[i] for lists and text.
func (e *env) subscript(x *sql.Subscript) expr.Expr {
	v, i := e.bind(x.X), e.bind(x.Index)
	if name, ok := constant(i).(string); ok && v.Type().Kind == types.Struct {
		return e.field(v, sql.Ident{At: sql.At{Pos: x.Index.Position()}, Name: name})
	}
	switch v.Type().Kind {
	case types.Struct:
		return e.call(x.Pos, "struct_extract", v, i)
	case types.Map:
		return e.call(x.Pos, "map_extract_value", v, i)
	case types.JSON:
		return e.call(x.Pos, "->", v, i)
	}
	return e.call(x.Pos, "array_extract", v, i)
}

func (e *env) slice(x *sql.Slice) expr.Expr {
	bound := func(b sql.Expr, open int64) expr.Expr {
		if b == nil {
			return &expr.Lit{V: open, T: types.Int64}
		}
		return e.bind(b)
	}
	args := []expr.Expr{e.bind(x.X), bound(x.Lo, fn.OpenLow), bound(x.Hi, fn.OpenHigh)}
	if x.Step != nil {
		args = append(args, e.bind(x.Step))
	}
	return e.call(x.Pos, "array_slice", args...)
}
