package bind

import (
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// lambdaScope is the parameters of a lambda whose body is being bound. They hide what stands around.
type lambdaScope struct {
	params        []*expr.Param
	around        *lambdaScope
	inAgg, inOver bool // where the lambda itself stands
}

// param finds a parameter of the lambdas around by name.
func (e *env) param(name sql.Ident) (expr.Expr, bool) {
	for at := e.lambda; at != nil; at = at.around {
		for _, p := range at.params {
			if !sameName(p.Name, name.Name) {
				continue
			}
			if e.inAgg && !at.inAgg || e.inOver && !at.inOver {
				failHint(name.Pos, "aggregate the list itself: list_sum(l)", "an aggregate works on rows; it cannot read %q, the parameter of a lambda around it", name.Name)
			}
			return p, true
		}
	}
	return nil, false
}

// noLambda refuses a subquery in a lambda.
func (e *env) noLambda(pos errs.Pos) {
	if e.lambda != nil {
		failHint(pos, "compute it outside and use its column in the lambda", "a lambda cannot contain a subquery")
	}
}

// maxLambda bounds how often a body is bound until the types of its parameters stay. One more time is enough for any function.
const maxLambda = 3

// lambdaCall binds a call of a function that takes a lambda.
func (e *env) lambdaCall(x *sql.Function, f *fn.Scalar) expr.Expr {
	name := strings.ToLower(x.Name.Last().Name)
	for _, a := range x.Args {
		if !a.Name.IsZero() {
			fail(a.Name.Pos, "%s has no argument named %q", name, a.Name.Name)
		}
	}
	var l *sql.Lambda
	if len(x.Args) > 1 {
		l, _ = x.Args[1].Value.(*sql.Lambda)
	}
	if l == nil {
		failHint(x.Pos, "write "+name+"(l, lambda x: …)", "%s wants a list and a lambda", name)
	}
	form := f.Lambda
	if n := len(l.Params); n < form.Min || n > form.Max {
		fail(l.Pos, "the lambda of %s has from %d to %d parameters, not %d", name, form.Min, form.Max, n)
	}
	args := []expr.Expr{e.bind(x.Args[0].Value)}
	for _, a := range x.Args[2:] {
		args = append(args, e.bind(a.Value))
	}
	if args[0].Type().Kind == types.Null {
		return &expr.Lit{T: types.NullType}
	}
	ts, vs := typesOf(args)
	sig, err := form.Resolve(ts, vs, nil, nil)
	var bound *expr.Lambda
	for range maxLambda {
		if err != nil {
			raise(err, x.Pos)
		}
		bound = e.lambdaOf(l, sig.Params)
		was := sig.Params
		t := bound.Body.Type()
		if sig, err = form.Resolve(ts, vs, &t, constant(bound.Body)); err == nil && equalTypes(was, sig.Params) {
			break
		}
	}
	if err != nil {
		raise(err, x.Pos)
	}
	bound.Body = e.lambdaResult(bound.Body, sig.Body, l)
	out := make([]expr.Expr, 0, len(args)+1)
	for i, a := range args {
		if out = append(out, e.cast(a, sig.Args[i], x.Pos)); i == 0 {
			out = append(out, bound)
		}
	}
	sig.Args = append([]types.Type{sig.Args[0], sig.Body}, sig.Args[1:]...)
	return &expr.Call{Fn: f, Sig: sig.Resolved, Args: out, Pos: x.Pos, Fallible: sig.Fallible}
}

// lambdaOf binds a lambda whose parameters have the given types.
func (e *env) lambdaOf(l *sql.Lambda, params []types.Type) *expr.Lambda {
	in := *e
	in.lambda = &lambdaScope{around: e.lambda, inAgg: e.inAgg, inOver: e.inOver}
	for i, n := range l.Params {
		for _, p := range in.lambda.params {
			if sameName(p.Name, n.Name) {
				fail(n.Pos, "the lambda has two parameters %q", n.Name)
			}
		}
		in.lambda.params = append(in.lambda.params, &expr.Param{ID: e.b.id(), Name: n.Name, T: params[i]})
	}
	return &expr.Lambda{Params: in.lambda.params, Body: in.bind(l.Body)}
}

// lambdaResult casts what a lambda gives.
func (e *env) lambdaResult(body expr.Expr, t types.Type, l *sql.Lambda) expr.Expr {
	if t.Kind == types.Boolean {
		return e.condition(body, l.Body.Position(), "what the lambda gives")
	}
	return e.cast(body, t, l.Body.Position())
}

func equalTypes(a, b []types.Type) bool {
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// namesWhere evaluates an expression over a list of names, as COLUMNS(lambda c: …) does: those for which it is true.
func (e *env) namesWhere(l *sql.Lambda, names []string) map[string]bool {
	items := make([]sql.Expr, len(names))
	for i, n := range names {
		items[i] = &sql.Literal{At: l.At, Kind: sql.LitString, Text: n}
	}
	f, _ := fn.Lookup("list_filter")
	x := &sql.Function{At: l.At, Name: sql.Name{{At: l.At, Name: f.Name}}, Args: []sql.Arg{{Value: &sql.List{At: l.At, Items: items}}, {Value: l}}}
	kept, ok := e.constantOf(e.lambdaCall(x, f))
	if !ok {
		fail(l.Pos, "the lambda of COLUMNS can read nothing but the name of a column")
	}
	out := map[string]bool{}
	list, _ := kept.V.([]types.Value)
	for _, v := range list {
		if s, ok := v.(string); ok {
			out[s] = true
		}
	}
	return out
}
