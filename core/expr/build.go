package expr

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// NewCall resolves a function by name over bound arguments and casts them to what it takes.
func NewCall(name string, pos errs.Pos, args ...Expr) (Expr, error) {
	ts, vs := make([]types.Type, len(args)), make([]types.Value, len(args))
	for i, a := range args {
		ts[i] = a.Type()
		if l, ok := a.(*Lit); ok {
			vs[i] = l.Const()
		}
	}
	f, sig, o, err := fn.Resolve(name, ts, vs)
	if err != nil {
		e := errs.As(err)
		if !e.Pos.Valid() {
			e.Pos = pos
		}
		return nil, e
	}
	cast := make([]Expr, len(args))
	for i, a := range args {
		cast[i] = CastTo(a, sig.Args[i], pos)
	}
	return &Call{Fn: f, Sig: sig, Args: cast, Pos: pos, Fallible: o.Fallible && !sig.Safe}, nil
}

// CastTo casts e to t unless it has that type. Literals are converted at once where that cannot go wrong.
func CastTo(e Expr, t types.Type, pos errs.Pos) Expr {
	if e.Type().Equal(t) || t.Kind == types.Any {
		return e
	}
	c := &Cast{Arg: e, T: t, Pos: pos}
	if l, ok := e.(*Lit); ok {
		if l.V == nil {
			return &Lit{T: t}
		}
		return foldNode(c, nil)
	}
	return c
}
