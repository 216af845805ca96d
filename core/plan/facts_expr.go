package plan

import (
	"strings"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// comparisons maps each comparison to the one with its sides exchanged.
var comparisons = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// Opposites maps each comparison to its negation.
var Opposites = map[string]string{"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

// Comparison takes a comparison of two expressions apart.
func Comparison(e expr.Expr) (op string, left, right expr.Expr, ok bool) {
	c, is := e.(*expr.Call)
	if !is || len(c.Args) != 2 {
		return "", nil, nil, false
	}
	if _, ok = comparisons[c.Fn.Name]; !ok {
		return "", nil, nil, false
	}
	return c.Fn.Name, c.Args[0], c.Args[1], true
}

// Flip returns the comparison that holds with the sides exchanged.
func Flip(op string) string { return comparisons[op] }

// Equality takes l = r or l IS NOT DISTINCT FROM r apart.
func Equality(e expr.Expr) (left, right expr.Expr, nullSafe, ok bool) {
	c, is := e.(*expr.Call)
	if !is || len(c.Args) != 2 {
		return nil, nil, false, false
	}
	switch {
	case c.Fn.Name == "=":
		return c.Args[0], c.Args[1], false, true
	case strings.EqualFold(c.Fn.Name, "IS NOT DISTINCT FROM"):
		return c.Args[0], c.Args[1], true, true
	}
	return nil, nil, false, false
}

// IsLit returns the literal that e is.
func IsLit(e expr.Expr) (*expr.Lit, bool) {
	l, ok := e.(*expr.Lit)
	return l, ok
}

// True and False are the literals; Null is the unknown truth value.
var (
	True  = &expr.Lit{V: true, T: types.Bool}
	False = &expr.Lit{V: false, T: types.Bool}
	Null  = &expr.Lit{V: nil, T: types.Bool}
)

// IsBool reports whether e is the given truth value.
func IsBool(e expr.Expr, v bool) bool {
	l, ok := e.(*expr.Lit)
	return ok && l.V == types.Value(v)
}

// IsNullLit reports whether e is a NULL literal.
func IsNullLit(e expr.Expr) bool {
	l, ok := e.(*expr.Lit)
	return ok && l.V == nil
}

// strictOps give NULL when an argument is NULL and never otherwise.
var strictOps = map[string]bool{
	"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true, "+": true, "-": true, "*": true, "||": true,
}

// Rejects reports whether e cannot be true while every column of cols is NULL. It answers false when it does
// not know. An outer join whose padded side is rejected is an inner join; nothing else may be concluded:
// IS NULL above an outer join also holds for rows that matched.
func Rejects(e expr.Expr, cols ColSet) bool {
	v := nullEval(e, cols)
	return v == isNull || v == isFalse || v == notTrue
}

// truth is what is known of an expression when certain columns are NULL.
type truth uint8

const (
	unknown truth = iota
	isNull
	isTrue
	isFalse
	notTrue // NULL or false
)

func nullEval(e expr.Expr, cols ColSet) truth {
	switch e := e.(type) {
	case *expr.Col:
		if cols[e.ID] {
			return isNull
		}
	case *expr.Lit:
		switch e.V {
		case nil:
			return isNull
		case true:
			return isTrue
		case false:
			return isFalse
		}
	case *expr.Cast:
		if nullEval(e.Arg, cols) == isNull {
			return isNull
		}
	case *expr.Call:
		if e.Fn.Nulls == fn.NullAware {
			return unknown
		}
		for _, a := range e.Args {
			if nullEval(a, cols) == isNull {
				return isNull
			}
		}
	case *expr.Not:
		switch nullEval(e.Arg, cols) {
		case isNull:
			return isNull
		case isTrue:
			return isFalse
		case isFalse:
			return isTrue
		}
	case *expr.IsNull:
		switch v := nullEval(e.Arg, cols); {
		case v == isNull && e.Negate:
			return isFalse
		case v == isNull:
			return isTrue
		}
	case *expr.In:
		if nullEval(e.Arg, cols) == isNull && len(e.List) > 0 {
			return isNull
		}
	case *expr.And:
		for _, a := range e.Args {
			if v := nullEval(a, cols); v == isNull || v == isFalse || v == notTrue {
				return notTrue
			}
		}
	case *expr.Or:
		for _, a := range e.Args {
			if v := nullEval(a, cols); v != isNull && v != isFalse && v != notTrue {
				return unknown
			}
		}
		return notTrue
	}
	return unknown
}

// NeverNull reports whether e has a value whenever the columns of notNull have one. It answers false when it does not know.
func NeverNull(e expr.Expr, notNull ColSet) bool {
	all := func(es []expr.Expr) bool {
		for _, x := range es {
			if !NeverNull(x, notNull) {
				return false
			}
		}
		return true
	}
	switch e := e.(type) {
	case *expr.Col:
		return notNull[e.ID]
	case *expr.Lit:
		return e.V != nil
	case *expr.IsNull:
		return true
	case *expr.Cast:
		return !e.Try && NeverNull(e.Arg, notNull)
	case *expr.Call:
		if n := strings.ToUpper(e.Fn.Name); n == "IS DISTINCT FROM" || n == "IS NOT DISTINCT FROM" {
			return true
		}
		return strictOps[e.Fn.Name] && all(e.Args)
	case *expr.And:
		return all(e.Args)
	case *expr.Or:
		return all(e.Args)
	case *expr.Not:
		return NeverNull(e.Arg, notNull)
	case *expr.In:
		return all(e.Children())
	case *expr.Coalesce:
		for _, a := range e.Args {
			if NeverNull(a, notNull) {
				return true
			}
		}
	case *expr.Case:
		if e.Else == nil || !NeverNull(e.Else, notNull) {
			return false
		}
		for _, w := range e.Whens {
			if !NeverNull(w.Then, notNull) {
				return false
			}
		}
		return true
	}
	return false
}

// NullWhenNull reports whether e is certainly NULL while every column of cols is.
func NullWhenNull(e expr.Expr, cols ColSet) bool { return nullEval(e, cols) == isNull }
