package plan

import (
	"unicode/utf8"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Predicates turns a scan's filters into what relations understand, so that they can skip row groups, files and
// partitions. It leaves out what it cannot say: the scan operator applies all filters exactly.
func Predicates(s *Scan) []flow.Predicate {
	at := make(map[expr.ColID]int, len(s.Cols))
	for i, c := range s.Cols {
		at[c.ID] = s.At[i]
	}
	var out []flow.Predicate
	filters := s.Filters
	if s.Guard != nil { // a row that would be bad must be seen
		filters = s.Guard.Sure()
	}
	for _, f := range filters {
		for _, e := range expr.Conjuncts(f) {
			out = append(out, predicates(e, at)...)
		}
	}
	return out
}

var compareOps = map[string]flow.CompareOp{
	"=": flow.CmpEq, "<>": flow.CmpNe, "<": flow.CmpLt, "<=": flow.CmpLe, ">": flow.CmpGt, ">=": flow.CmpGe,
}

func predicates(e expr.Expr, at map[expr.ColID]int) []flow.Predicate {
	column := func(x expr.Expr) (int, types.Type, bool) {
		c, ok := x.(*expr.Col)
		if !ok {
			return 0, types.Type{}, false
		}
		pos, ok := at[c.ID]
		return pos, c.T, ok
	}
	compared := func(x expr.Expr) (flow.Predicate, bool) {
		c := rising(x)
		if c == nil {
			return flow.Predicate{}, false
		}
		pos, ok := at[c.ID]
		return flow.Predicate{Column: pos, Rising: applied(x, c)}, ok
	}
	switch e := e.(type) {
	case *expr.IsNull:
		if pos, _, ok := column(e.Arg); ok {
			op := flow.CmpIsNull
			if e.Negate {
				op = flow.CmpIsNotNull
			}
			return []flow.Predicate{{Column: pos, Op: op}}
		}
	case *expr.In:
		p, ok := compared(e.Arg)
		if !ok || e.Negate {
			return nil
		}
		t := e.Arg.Type()
		p.Op = flow.CmpIn
		for _, x := range e.List {
			l, isLit := x.(*expr.Lit)
			if !isLit || !l.T.Equal(t) && l.V != nil {
				return nil
			}
			if l.V != nil { // NULL in the list makes no row true
				p.Values = append(p.Values, l.V)
			}
		}
		return []flow.Predicate{p}
	case *expr.Or:
		return alternatives(e, at)
	case *expr.Call:
		if op, l, r, ok := Comparison(e); ok {
			if _, isLit := l.(*expr.Lit); isLit {
				op, l, r = Flip(op), r, l
			}
			lit, isLit := r.(*expr.Lit)
			if !isLit || lit.V == nil || !lit.T.Equal(l.Type()) {
				return nil
			}
			p, ok := compared(l)
			if !ok {
				return nil
			}
			p.Op, p.Values = compareOps[op], []types.Value{lit.V}
			return []flow.Predicate{p}
		}
		if pattern, ok := likePrefix(e); ok {
			if pos, t, isCol := column(e.Args[0]); isCol && t.Kind == types.Varchar {
				return prefixRange(pos, pattern)
			}
		}
	}
	return nil
}

// alternatives says of an OR what holds in every alternative of one column: the IN of equalities.
func alternatives(e *expr.Or, at map[expr.ColID]int) []flow.Predicate {
	out := flow.Predicate{Column: -1, Op: flow.CmpIn}
	for _, a := range e.Args {
		ps := predicates(a, at)
		if len(ps) != 1 || ps[0].Rising != nil || ps[0].Op != flow.CmpEq && ps[0].Op != flow.CmpIn || out.Column >= 0 && ps[0].Column != out.Column {
			return nil
		}
		out.Column = ps[0].Column
		out.Values = append(out.Values, ps[0].Values...)
	}
	return []flow.Predicate{out}
}

// likePrefix returns what a LIKE pattern without escapes begins with.
func likePrefix(e *expr.Call) (string, bool) {
	switch e.Fn.Name {
	case "~~", "like", "LIKE":
	default:
		return "", false
	}
	lit, ok := e.Args[1].(*expr.Lit)
	if !ok || len(e.Args) != 2 {
		return "", false
	}
	s, ok := lit.V.(string)
	if !ok {
		return "", false
	}
	for i, r := range s {
		switch r {
		case '%', '_':
			return s[:i], i > 0
		case '\\':
			return "", false
		}
	}
	return s, len(s) > 0
}

// prefixRange is prefix <= column < the next string that does not have the prefix.
func prefixRange(pos int, prefix string) []flow.Predicate {
	out := []flow.Predicate{{Column: pos, Op: flow.CmpGe, Values: []types.Value{prefix}}}
	for s := prefix; s != ""; {
		r, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
		next := r + 1
		if next == 0xD800 { // the surrogates are no characters
			next = 0xE000
		}
		if r != utf8.RuneError && next <= utf8.MaxRune {
			return append(out, flow.Predicate{Column: pos, Op: flow.CmpLt, Values: []types.Value{s + string(next)}})
		}
	}
	return out
}
