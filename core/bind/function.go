package bind

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// call applies a scalar function or operator of the registry and casts the arguments to what the chosen overload takes.
func (e *env) call(pos errs.Pos, name string, args ...expr.Expr) expr.Expr {
	f, ok := fn.Lookup(name)
	if !ok {
		e.failNoFunction(pos, name)
	}
	return e.apply(f, pos, args)
}

func (e *env) apply(f *fn.Scalar, pos errs.Pos, args []expr.Expr) expr.Expr {
	ts, vs := typesOf(args)
	for i, a := range args { // some functions take names in a list: date_part(['year', 'month'], d)
		if c, ok := a.(*expr.Call); ok && ts[i].Kind == types.List && c.Fn.Name == "list_value" && len(c.Args) <= longestNames {
			if l, ok := e.constantOf(a); ok {
				vs[i] = l.V
			}
		}
	}
	sig, overload, err := f.Resolve(ts, vs)
	if err != nil {
		raise(err, pos)
	}
	cast := make([]expr.Expr, len(args))
	for i, a := range args {
		cast[i] = e.cast(a, sig.Args[i], pos)
	}
	return &expr.Call{Fn: f, Sig: sig, Args: cast, Pos: pos, Fallible: overload.Fallible && !sig.Safe}
}

// longestNames bounds the lists that are evaluated while binding; lists of values are longer.
const longestNames = 64

func (e *env) failNoFunction(pos errs.Pos, name string) {
	names := slices.Concat(fn.Names(), fn.AggregateNames(), e.b.cat.Functions())
	for w := range windowFunctions {
		names = append(names, w)
	}
	failHint(pos, errs.DidYouMean(name, names), "there is no function %q", name)
}

// function binds a call: a special form, an aggregate, a window function or a scalar function.
func (e *env) function(x *sql.Function) expr.Expr {
	name := strings.ToLower(x.Name.Last().Name)
	if out := e.sessionCall(x, name); out != nil {
		return out
	}
	if len(x.Name) > 1 && !sameName(x.Name[0].Name, "main") && !sameName(x.Name[0].Name, "system") {
		if f := e.method(x); f != nil {
			return e.function(f)
		}
		failUnsupported(x.Pos, "a function of schema "+x.Name[0].Name)
	}
	if x.Over != nil {
		return e.windowCall(x, name)
	}
	if out := e.timeWindowCall(x, name); out != nil {
		return out
	}
	if y := jsonGroup(x, name); y != nil {
		return e.bind(y)
	}
	if isAggregate(name) {
		return e.aggregate(x, name)
	}
	if windowFunctions[name] != nil {
		failHint(x.Pos, "write "+name+"(…) OVER (…)", "%s is a window function and needs OVER", name)
	}
	if x.Distinct || x.Filter != nil || len(x.OrderBy) > 0 || len(x.WithinGroup) > 0 {
		fail(x.Pos, "DISTINCT, FILTER and ORDER BY belong to aggregates; %s is a scalar function", name)
	}
	if f := special(name); f != nil {
		return f(e, x)
	}
	if f, ok := fn.Lookup(name); ok && f.Lambda != nil {
		return e.lambdaCall(x, f)
	}
	args := e.positional(x)
	if f := e.b.cat.Function(name); f != nil {
		return e.apply(f, x.Pos, args)
	}
	return e.call(x.Pos, name, args...)
}

// positional binds the arguments of a function that has no named ones.
func (e *env) positional(x *sql.Function) []expr.Expr {
	out := make([]expr.Expr, len(x.Args))
	for i, a := range x.Args {
		if !a.Name.IsZero() {
			fail(a.Name.Pos, "%s has no argument named %q", x.Name.Last().Name, a.Name.Name)
		}
		out[i] = e.bind(a.Value)
	}
	return out
}

// special finds the functions that are no calls: they decide which arguments are evaluated, or take names.
func special(name string) func(*env, *sql.Function) expr.Expr {
	switch name {
	case "coalesce", "ifnull":
		return coalesce
	case "nullif":
		return nullif
	case "if", "iif":
		return ifThen
	case "struct_pack":
		return structPack
	case "struct_insert":
		return structInsert
	case "struct_update":
		return structUpdate
	case "list_value", "list_pack":
		return listValue
	case "grouping", "grouping_id":
		return grouping
	case "typeof":
		return typeName
	case "unnest":
		return unnest
	case "generate_subscripts":
		return generateSubscripts
	}
	return nil
}

func coalesce(e *env, x *sql.Function) expr.Expr {
	args := e.positional(x)
	if len(args) == 0 || len(args) != 2 && !sameName(x.Name.Last().Name, "coalesce") {
		fail(x.Pos, "%s takes %s", x.Name, map[bool]string{true: "at least one argument", false: "two arguments"}[len(args) == 0])
	}
	args, t := e.branches(args, x.Pos, strings.ToUpper(x.Name.Last().Name))
	if len(args) == 1 {
		return args[0]
	}
	return &expr.Coalesce{Args: args, T: t}
}

// nullif(a, b) is a unless it equals b; the result has a's type.
func nullif(e *env, x *sql.Function) expr.Expr {
	args := e.positional(x)
	if len(args) != 2 {
		fail(x.Pos, "nullif takes two arguments")
	}
	return &expr.Case{
		Whens: []expr.When{{Cond: e.compare("=", args[0], args[1], x.Pos), Then: &expr.Lit{T: args[0].Type()}}},
		Else:  args[0], T: args[0].Type(),
	}
}

func ifThen(e *env, x *sql.Function) expr.Expr {
	args := e.positional(x)
	if len(args) != 3 {
		fail(x.Pos, "if takes a condition and two values")
	}
	values, t := e.branches(args[1:], x.Pos, "if")
	return &expr.Case{Whens: []expr.When{{Cond: e.condition(args[0], x.Pos, "the condition of if"), Then: values[0]}}, Else: values[1], T: t}
}

func structPack(e *env, x *sql.Function) expr.Expr {
	var names []string
	var values []expr.Expr
	for _, a := range x.Args {
		name := a.Name.Name
		if c, ok := a.Value.(*sql.ColumnRef); ok && name == "" {
			name = c.Parts.Last().Name
		}
		if name == "" {
			fail(x.Pos, "struct_pack takes named arguments: struct_pack(a := 1)")
		}
		names, values = append(names, name), append(values, e.bind(a.Value))
	}
	return e.pack(x.Pos, names, values)
}

func listValue(e *env, x *sql.Function) expr.Expr {
	items, _ := e.branches(e.positional(x), x.Pos, "the list")
	return e.call(x.Pos, "list_value", items...)
}

func typeName(e *env, x *sql.Function) expr.Expr {
	args := e.positional(x)
	if len(args) != 1 {
		fail(x.Pos, "typeof takes one argument")
	}
	return &expr.Lit{V: args[0].Type().String(), T: types.String}
}

func isAggregate(name string) bool {
	_, ok := fn.LookupAggregate(name)
	return ok
}
