package bind

import (
	"bytes"
	"math"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
)

// same reports whether two bound expressions are equal: the same columns through the same operations. It decides which
// expression is a GROUP BY key and which aggregates are one.
func same(a, b expr.Expr) bool {
	if a == b {
		return true
	}
	switch x := a.(type) {
	case *expr.Col:
		y, ok := b.(*expr.Col)
		return ok && x.ID == y.ID
	case *expr.Lit:
		y, ok := b.(*expr.Lit)
		return ok && sameValue(x, y)
	case *expr.Call:
		y, ok := b.(*expr.Call)
		return ok && x.Fn == y.Fn && x.Sig.Returns.Equal(y.Sig.Returns) && sameList(x.Args, y.Args)
	case *expr.Lambda:
		y, ok := b.(*expr.Lambda)
		return ok && expr.Equal(x, y)
	case *expr.Cast:
		y, ok := b.(*expr.Cast)
		return ok && x.Try == y.Try && x.T.Equal(y.T) && same(x.Arg, y.Arg)
	case *expr.And:
		y, ok := b.(*expr.And)
		return ok && sameList(x.Args, y.Args)
	case *expr.Or:
		y, ok := b.(*expr.Or)
		return ok && sameList(x.Args, y.Args)
	case *expr.Not:
		y, ok := b.(*expr.Not)
		return ok && same(x.Arg, y.Arg)
	case *expr.IsNull:
		y, ok := b.(*expr.IsNull)
		return ok && x.Negate == y.Negate && same(x.Arg, y.Arg)
	case *expr.Coalesce:
		y, ok := b.(*expr.Coalesce)
		return ok && sameList(x.Args, y.Args)
	case *expr.In:
		y, ok := b.(*expr.In)
		return ok && x.Negate == y.Negate && same(x.Arg, y.Arg) && sameList(x.List, y.List)
	case *expr.Case:
		y, ok := b.(*expr.Case)
		return ok && len(x.Whens) == len(y.Whens) && (x.Else == nil) == (y.Else == nil) && sameList(x.Children(), y.Children())
	case *expr.Subquery:
		y, ok := b.(*expr.Subquery)
		return ok && x.Kind == y.Kind && x.Op == y.Op && x.Negate == y.Negate && x.Source == y.Source && x.Source != nil &&
			slices.Equal(x.Outer, y.Outer) && sameList(x.Args, y.Args)
	}
	return false
}

func sameList(a, b []expr.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}

func sameValue(a, b *expr.Lit) bool {
	if !a.T.Equal(b.T) {
		return false
	}
	if x, ok := a.V.([]byte); ok {
		y, ok := b.V.([]byte)
		return ok && bytes.Equal(x, y)
	}
	if a.T.IsNested() {
		return a.V == nil && b.V == nil
	}
	switch x := a.V.(type) { // NaN is the same literal, and -0.0 is not 0.0
	case float64:
		y, ok := b.V.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	case float32:
		y, ok := b.V.(float32)
		return ok && math.Float32bits(x) == math.Float32bits(y)
	}
	return a.V == b.V
}
