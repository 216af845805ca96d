package rules

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// simplify folds constants and brings conditions into a form in which the other rules find what they look for:
//
//	(a AND b) OR (a AND c)    → a AND (b OR c)
//	x = 1 OR x = 2            → x IN (1, 2)
//	NOT (a = b), NOT x IN …   → a <> b, x NOT IN …
//	d::TIMESTAMP < t          → d < t's day          (casts around a column, where the constant can be cast instead)
//
// It does not move conditions between nodes, and it never folds what would fail: the error belongs to the row
// that asks for the value. It does not use x = x, which is NULL for NULL.
func simplify(c *rewriter, root plan.Node) (plan.Node, error) {
	return simplifyPlan(c, root), nil
}

func simplifyPlan(c *rewriter, root plan.Node) plan.Node {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		es := n.Exprs()
		out := make([]expr.Expr, len(es))
		changed := false
		for i, e := range es {
			out[i] = simplifyExpr(c, e)
			changed = changed || !expr.Equal(out[i], e) || hasSubquery(e)
		}
		if changed {
			n = n.WithExprs(out)
		}
		if f, ok := n.(*plan.Filter); ok {
			return simplifyFilter(f)
		}
		return n
	})
}

// simplifyFilter drops a filter that is always true; one that is never true leaves no rows.
func simplifyFilter(f *plan.Filter) plan.Node {
	switch {
	case plan.IsBool(f.Cond, true):
		return f.Input
	case plan.IsBool(f.Cond, false), plan.IsNullLit(f.Cond), contradicts(f.Cond):
		return &plan.Values{Cols: f.Columns()}
	}
	return f
}

// contradicts reports whether two conjuncts ask a column to equal two constants.
func contradicts(cond expr.Expr) bool {
	equal := map[expr.ColID]*expr.Lit{}
	for _, e := range expr.Conjuncts(cond) {
		if expr.Fallible(e) {
			return false // it would have failed first
		}
		op, l, r, ok := plan.Comparison(e)
		if !ok || op != "=" {
			continue
		}
		col, isCol := l.(*expr.Col)
		lit, isLit := r.(*expr.Lit)
		if !isCol || !isLit {
			continue
		}
		if before := equal[col.ID]; before != nil && !expr.Equal(before, lit) && plainValue(lit.V) && plainValue(before.V) {
			return true
		}
		equal[col.ID] = lit
	}
	return false
}

// plainValue reports whether two values of this kind are equal only when they are the same (0.0 and −0.0 are not).
func plainValue(v types.Value) bool {
	switch v.(type) {
	case int64, uint64, string, bool:
		return true
	}
	return false
}

func hasSubquery(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		_, is := x.(*expr.Subquery)
		found = found || is
		return !found
	})
	return found
}

func simplifyExpr(c *rewriter, e expr.Expr) expr.Expr {
	e = expr.Transform(e, func(x expr.Expr) expr.Expr {
		switch x := x.(type) {
		case *expr.Not:
			return simplifyNot(x)
		case *expr.And:
			return flatten(x)
		case *expr.Or:
			return simplifyOr(x)
		case *expr.In:
			if len(x.List) == 1 && !x.Negate {
				if eq, err := expr.NewCall("=", errs.Pos{}, x.Arg, x.List[0]); err == nil {
					return eq
				}
			}
		case *expr.Call:
			return compareConst(x)
		case *expr.Subquery:
			s := *x
			s.Plan = simplifyPlan(c, x.Plan.(plan.Node))
			return &s
		}
		return x
	})
	return expr.FoldIn(e, c.opts.Env)
}

// flatten makes one AND of nested ones and drops repetitions.
func flatten(a *expr.And) expr.Expr {
	args := distinctExprs(expr.Conjuncts(a))
	if len(args) == len(a.Args) {
		return a
	}
	if len(args) == 0 {
		return plan.True
	}
	return expr.Conjunction(args)
}

func disjuncts(e expr.Expr) []expr.Expr {
	o, ok := e.(*expr.Or)
	if !ok {
		return []expr.Expr{e}
	}
	var out []expr.Expr
	for _, a := range o.Args {
		out = append(out, disjuncts(a)...)
	}
	return out
}

// simplifyOr takes out what all alternatives share. Distribution holds in three-valued logic too. What may fail
// stays: taken out, it would be evaluated before its guard.
func simplifyOr(o *expr.Or) expr.Expr {
	alts := disjuncts(o)
	if in := asIn(alts); in != nil {
		return in
	}
	parts := make([][]expr.Expr, len(alts))
	for i, a := range alts {
		parts[i] = expr.Conjuncts(a)
	}
	var common []expr.Expr
	for _, e := range parts[0] {
		if stuck(e) {
			continue
		}
		everywhere := true
		for _, p := range parts[1:] {
			everywhere = everywhere && slices.ContainsFunc(p, func(x expr.Expr) bool { return expr.Equal(x, e) })
		}
		if everywhere {
			common = append(common, e)
		}
	}
	if len(common) == 0 {
		if len(alts) == len(o.Args) {
			return o
		}
		return &expr.Or{Args: alts}
	}
	rest := make([]expr.Expr, len(parts))
	for i, p := range parts {
		left := slices.DeleteFunc(slices.Clone(p), func(x expr.Expr) bool {
			return slices.ContainsFunc(common, func(y expr.Expr) bool { return expr.Equal(x, y) })
		})
		if len(left) == 0 {
			return expr.Conjunction(common) // a OR (a AND c) is a
		}
		rest[i] = expr.Conjunction(left)
	}
	return expr.Conjunction(append(common, simplifyOr(&expr.Or{Args: rest})))
}

// asIn makes an IN of equalities of one column with constants.
func asIn(alts []expr.Expr) expr.Expr {
	if len(alts) < 2 {
		return nil
	}
	var col *expr.Col
	var list []expr.Expr
	for _, a := range alts {
		if in, ok := a.(*expr.In); ok && !in.Negate {
			c, isCol := in.Arg.(*expr.Col)
			if !isCol || col != nil && c.ID != col.ID || slices.ContainsFunc(in.List, notLit) {
				return nil
			}
			col, list = c, append(list, in.List...)
			continue
		}
		op, l, r, ok := plan.Comparison(a)
		if !ok || op != "=" {
			return nil
		}
		if _, isLit := l.(*expr.Lit); isLit {
			l, r = r, l
		}
		c, isCol := l.(*expr.Col)
		if !isCol || notLit(r) || col != nil && c.ID != col.ID {
			return nil
		}
		col, list = c, append(list, r)
	}
	return &expr.In{Arg: col, List: distinctExprs(list)}
}

func notLit(e expr.Expr) bool {
	_, ok := e.(*expr.Lit)
	return !ok
}

func simplifyNot(n *expr.Not) expr.Expr {
	switch x := n.Arg.(type) {
	case *expr.Not:
		return x.Arg
	case *expr.IsNull:
		return &expr.IsNull{Arg: x.Arg, Negate: !x.Negate}
	case *expr.In:
		return &expr.In{Arg: x.Arg, List: x.List, Negate: !x.Negate}
	case *expr.Subquery:
		if x.Kind == expr.InSub || x.Kind == expr.ExistsSub {
			s := *x
			s.Negate = !x.Negate
			return &s
		}
	case *expr.And:
		return &expr.Or{Args: negateAll(x.Args)}
	case *expr.Or:
		return &expr.And{Args: negateAll(x.Args)}
	case *expr.Call:
		if op, l, r, ok := plan.Comparison(x); ok {
			if e, err := expr.NewCall(plan.Opposites[op], x.Pos, l, r); err == nil {
				return e
			}
		}
	}
	return n
}

func negateAll(es []expr.Expr) []expr.Expr {
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		out[i] = simplifyNot(&expr.Not{Arg: e})
	}
	return out
}

// compareConst puts the constant of a comparison on the right and takes a cast off the column, so that scans
// compare stored values with statistics and the cast is done once.
func compareConst(x *expr.Call) expr.Expr {
	op, l, r, ok := plan.Comparison(x)
	if !ok {
		return x
	}
	if !notLit(l) && notLit(r) {
		if e, err := expr.NewCall(plan.Flip(op), x.Pos, r, l); err == nil {
			return compareAgain(e)
		}
	}
	cast, isCast := l.(*expr.Cast)
	lit, isLit := expr.Fold(r).(*expr.Lit)
	if !isCast || !isLit || lit.V == nil || cast.Try {
		return x
	}
	if _, isCol := cast.Arg.(*expr.Col); !isCol {
		return x
	}
	op, v, ok := uncast(op, cast.Arg.Type(), cast.T, lit.V)
	if !ok {
		return x
	}
	e, err := expr.NewCall(op, x.Pos, cast.Arg, &expr.Lit{V: v, T: cast.Arg.Type()})
	if err != nil {
		return x
	}
	return e
}

func compareAgain(e expr.Expr) expr.Expr {
	if c, ok := e.(*expr.Call); ok {
		return compareConst(c)
	}
	return e
}

const dayUS = 86_400_000_000

// uncast finds op' and w such that from::to op v is the same as from op' w for every value of from.
func uncast(op string, from, to types.Type, v types.Value) (string, types.Value, bool) {
	switch {
	case from.Kind == types.Date && to.Kind == types.Timestamp:
		us, ok := v.(int64)
		if !ok {
			return "", nil, false
		}
		day := us / dayUS
		if us%dayUS < 0 {
			day--
		}
		if us == day*dayUS {
			return op, day, true
		}
		switch op { // v lies within the day
		case "<", "<=":
			return "<=", day, true
		case ">", ">=":
			return ">", day, true
		}
	case from.IsInteger() && to.IsInteger() && from.Kind != types.HugeInt && from.Kind != types.UHugeInt:
		n, ok := smallInt(v)
		if ok && n.fits(from) {
			if from.IsSigned() {
				return op, n.signed, true
			}
			return op, n.unsigned, true
		}
	case from.Kind == types.Decimal && to.Kind == types.Decimal && to.Scale >= from.Scale:
		n, ok := v.(decimal128.Num)
		if !ok {
			return "", nil, false
		}
		q, rest := n.Div(decimal128.GetScaleMultiplier(int(to.Scale - from.Scale)))
		if rest == (decimal128.Num{}) && q.FitsInPrecision(int32(from.Width)) {
			return op, q, true
		}
	}
	return "", nil, false
}

// smallInteger is a whole number that int64 or uint64 holds.
type smallInteger struct {
	signed   int64
	unsigned uint64
	negative bool
	tooLarge bool // for int64
}

func smallInt(v types.Value) (smallInteger, bool) {
	switch v := v.(type) {
	case int64:
		return smallInteger{v, uint64(v), v < 0, false}, true
	case uint64:
		return smallInteger{int64(v), v, false, v > 1<<63-1}, true
	case decimal128.Num:
		b := v.BigInt()
		if b.IsInt64() {
			return smallInteger{b.Int64(), uint64(b.Int64()), b.Sign() < 0, false}, true
		}
	}
	return smallInteger{}, false
}

var intBits = map[types.Kind]uint{
	types.TinyInt: 7, types.SmallInt: 15, types.Integer: 31, types.BigInt: 63,
	types.UTinyInt: 8, types.USmallInt: 16, types.UInteger: 32, types.UBigInt: 64,
}

func (n smallInteger) fits(t types.Type) bool {
	bits := intBits[t.Kind]
	if !t.IsSigned() {
		return !n.negative && (bits == 64 || n.unsigned < 1<<bits)
	}
	if bits == 63 {
		return !n.tooLarge
	}
	return !n.tooLarge && n.signed >= -1<<bits && n.signed < 1<<bits
}
