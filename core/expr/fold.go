package expr

import (
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// Fold computes what does not depend on a row: immutable calls over constants, and the parts of AND, OR and CASE that
// constants decide. What would fail is left as it is, so that it fails only if a row ever asks for it.
func Fold(e Expr) Expr { return FoldIn(e, nil) }

// FoldIn is Fold for a run whose surroundings are fixed (batch): now() and what reads the time zone are folded too.
func FoldIn(e Expr, env *fn.Env) Expr {
	return Transform(e, func(x Expr) Expr { return foldNode(x, env) })
}

func foldNode(e Expr, env *fn.Env) Expr {
	switch e := e.(type) {
	case *And:
		return foldLogic(e.Args, false)
	case *Or:
		return foldLogic(e.Args, true)
	case *Case:
		return foldCase(e)
	case *Coalesce:
		return foldCoalesce(e)
	case *Call:
		if e.Fn.Purity == fn.Volatile || e.Fn.Purity == fn.Stable && env == nil || e.Fn == fn.Try {
			return e
		}
	case *Cast:
		if env == nil && fn.CastReadsZone(e.Arg.Type(), e.T) {
			return e
		}
	case *Not, *IsNull, *In:
	default:
		return e
	}
	for _, c := range e.Children() {
		switch c := c.(type) {
		case *Lit:
			continue
		case *Lambda: // over a constant list
			if p := purity(c); closed(c) && p != fn.Volatile && (p != fn.Stable || env != nil) {
				continue
			}
		}
		return e
	}
	if l, ok := evalConst(e, env); ok {
		return l
	}
	return e
}

// evalConst evaluates an expression without columns; ok is false when it fails.
func evalConst(e Expr, env *fn.Env) (*Lit, bool) {
	p, err := Compile(e, nil)
	if err != nil {
		return nil, false
	}
	v, err := p.EvalArray(env, nil, 1)
	if err != nil {
		return nil, false
	}
	return &Lit{V: types.ValueAt(v, 0, e.Type()), T: e.Type(), Meant: true}, true
}

// foldLogic drops arguments that decide nothing, and ends at one that decides everything unless one before it may fail.
func foldLogic(args []Expr, or bool) Expr {
	var kept []Expr
	fallible := false
	for _, a := range args {
		if l, ok := a.(*Lit); ok && l.V != nil {
			if l.V.(bool) != or {
				continue
			}
			if !fallible {
				return l
			}
			kept = append(kept, l)
			break
		}
		fallible = fallible || Fallible(a)
		kept = append(kept, a)
	}
	switch {
	case len(kept) == 0:
		return &Lit{V: !or, T: types.Bool}
	case len(kept) == 1:
		return kept[0]
	case or:
		return &Or{kept}
	}
	return &And{kept}
}

func foldCase(e *Case) Expr {
	out := &Case{T: e.T, Else: e.Else}
	for _, w := range e.Whens {
		l, ok := w.Cond.(*Lit)
		if ok && l.V == true {
			out.Else = w.Then
			break
		}
		if !ok {
			out.Whens = append(out.Whens, w)
		}
	}
	if len(out.Whens) > 0 {
		return out
	}
	if out.Else == nil {
		return &Lit{T: e.T}
	}
	return out.Else
}

func foldCoalesce(e *Coalesce) Expr {
	var kept []Expr
	for _, a := range e.Args {
		l, ok := a.(*Lit)
		if ok && l.V == nil {
			continue
		}
		kept = append(kept, a)
		if ok {
			break
		}
	}
	switch len(kept) {
	case 0:
		return &Lit{T: e.T}
	case 1:
		return kept[0]
	}
	return &Coalesce{kept, e.T}
}

// Fallible reports whether evaluating e may fail for a row.
func Fallible(e Expr) bool {
	found := false
	Walk(e, func(x Expr) bool {
		switch x := x.(type) {
		case *Call:
			if x.Fn == fn.Try {
				return false
			}
			found = found || x.Fallible
		case *Cast:
			if _, fallible, _ := fn.CastFor(x.Arg.Type(), x.T); fallible && !x.Try {
				found = true
			}
		case *In:
			for _, item := range x.List {
				if !item.Type().Equal(x.Arg.Type()) && item.Type().Kind != types.Null {
					found = true // compiled to comparisons that cast
				}
			}
		case *Subquery:
			found = true
		}
		return !found
	})
	return found
}

// Volatile reports whether each evaluation of e gives another value.
func Volatile(e Expr) bool { return purity(e) == fn.Volatile }

// Purity is the least pure of what e calls.
func Purity(e Expr) fn.Purity { return purity(e) }

func purity(e Expr) fn.Purity {
	p := fn.Immutable
	Walk(e, func(x Expr) bool {
		switch x := x.(type) {
		case *Call:
			p = max(p, x.Fn.Purity)
		case *Cast:
			if fn.CastReadsZone(x.Arg.Type(), x.T) {
				p = max(p, fn.Stable)
			}
		}
		return true
	})
	return p
}
