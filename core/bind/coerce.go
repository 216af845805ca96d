package bind

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/types"
)

// constant is the value of a constant expression for the coercion table, nil for others and for NULL.
func constant(x expr.Expr) types.Value {
	if l, ok := x.(*expr.Lit); ok {
		return l.Const()
	}
	return nil
}

func typesOf(es []expr.Expr) ([]types.Type, []types.Value) {
	ts, vs := make([]types.Type, len(es)), make([]types.Value, len(es))
	for i, x := range es {
		ts[i], vs[i] = x.Type(), constant(x)
	}
	return ts, vs
}

// cast converts implicitly or explicitly; there is no node for a conversion to the same type.
func (e *env) cast(x expr.Expr, t types.Type, pos errs.Pos) expr.Expr {
	if x.Type().Equal(t) {
		return x
	}
	if !types.CanCast(x.Type(), t) {
		fail(pos, "%s cannot be cast to %s", x.Type(), t)
	}
	c := &expr.Cast{Arg: x, T: t, Pos: pos}
	l, ok := x.(*expr.Lit)
	switch {
	case !ok:
		return c
	case l.V == nil:
		return &expr.Lit{T: t}
	}
	if n := castNumber(l, t); n != nil {
		return n
	}
	return expr.Fold(c) // a constant that does not convert fails if and when a row asks for it
}

// meant makes a constant keep the type that was written for it.
func meant(x expr.Expr) expr.Expr {
	if l, ok := x.(*expr.Lit); ok && !l.Meant {
		return &expr.Lit{V: l.V, T: l.T, Meant: true}
	}
	return x
}

// constantOf evaluates an expression that reads no row.
func (e *env) constantOf(x expr.Expr) (*expr.Lit, bool) {
	l, ok := expr.Fold(x).(*expr.Lit)
	return l, ok
}

// assign converts to a column's type, as INSERT and UPDATE do: any cast that exists is allowed.
func (e *env) assign(x expr.Expr, t types.Type, pos errs.Pos, what string) expr.Expr {
	if !types.CanCast(x.Type(), t) {
		fail(pos, "%s has the type %s, and %s is wanted", what, x.Type(), t)
	}
	return e.cast(x, t, pos)
}

// condition converts to BOOLEAN.
func (e *env) condition(x expr.Expr, pos errs.Pos, what string) expr.Expr {
	if x.Type().Kind == types.Boolean {
		return x
	}
	if t := x.Type(); !t.IsNumeric() && t.Kind != types.Varchar && t.Kind != types.Null {
		failHint(pos, "compare it with something", "%s must be BOOLEAN, not %s", what, t)
	}
	return e.cast(x, types.Bool, pos)
}

// unify finds the type that all of es take. Literals are asked last: they adapt to what the others are.
func unify(es []expr.Expr, common func(a types.Type, b types.Type, bv types.Value) (types.Type, bool)) (t types.Type, odd int, ok bool) {
	rank := func(x expr.Expr) int {
		v := constant(x)
		switch {
		case x.Type().Kind == types.Null:
			return 3
		case types.IsStringLiteral(x.Type(), v):
			return 2
		case types.IsIntLiteral(x.Type(), v):
			return 1
		}
		return 0
	}
	for r := range 4 {
		for i, x := range es {
			if rank(x) != r {
				continue
			}
			if t.Kind == types.Invalid {
				t = x.Type()
				continue
			}
			u, fits := common(t, x.Type(), constant(x))
			if !fits {
				return t, i, false
			}
			t = u
		}
	}
	return t, 0, true
}

// branches unifies the results of CASE, COALESCE and lists and casts them.
func (e *env) branches(es []expr.Expr, pos errs.Pos, what string) ([]expr.Expr, types.Type) {
	t, odd, ok := unify(es, func(a, b types.Type, bv types.Value) (types.Type, bool) { return types.CommonOf(a, nil, b, bv) })
	if !ok {
		failHint(pos, "cast one of them", "the values of %s have types that do not unify: %s and %s", what, t, es[odd].Type())
	}
	return e.castAll(es, t, pos), t
}

func (e *env) castAll(es []expr.Expr, t types.Type, pos errs.Pos) []expr.Expr {
	out := make([]expr.Expr, len(es))
	for i, x := range es {
		out[i] = e.cast(x, t, pos)
	}
	return out
}

// comparable unifies what IN and = compare.
func (e *env) comparable(es []expr.Expr, pos errs.Pos, what string) []expr.Expr {
	t, odd, ok := unify(es, func(a, b types.Type, bv types.Value) (types.Type, bool) { return types.Comparison(a, nil, b, bv) })
	if !ok {
		failHint(pos, "cast one side", "%s cannot compare %s with %s", what, t, es[odd].Type())
	}
	return e.castAll(es, t, pos)
}

// stacked is the type of a column of a set operation: like branches, but anything joins text as text.
func stacked(a, b types.Type) (types.Type, bool) {
	if t, ok := types.Common(a, b); ok {
		return t, true
	}
	if a.Kind == types.Varchar || b.Kind == types.Varchar {
		return types.String, true
	}
	return types.Type{}, false
}
