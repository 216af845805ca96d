package exec

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// Calls of one aggregation keep one state between them where they can (fn.Shared): sum(x) beside avg(x), and sum(x + 1) beside
// sum(x), since Σ(x + c) is Σx + c·rows. An x + c that leaves its type is an error of its row, and stays one: the values of
// each batch are compared with the bounds within which no x + c does, and a batch beyond them is evaluated as written.

// bound says between which values a whole-number argument must be, so that none of the calls on it overflows.
type bound struct {
	at     int // in the evaluated list
	lo, hi int64
}

// within reports whether all values are inside.
func (b bound) within(a arrow.Array) bool {
	lo, hi, ok := kernels.Bounds(a)
	return !ok || b.lo <= lo && hi <= b.hi
}

// shared is PrepareAggregate for an aggregation whose accumulators may share state.
func shared(n *plan.Aggregate) (*Prepared, error) {
	m, shifts, bounds := *n, make([]int64, len(n.Aggs)), map[string]bound{}
	m.Aggs = append([]plan.AggItem{}, n.Aggs...)
	for i := range m.Aggs {
		a := &m.Aggs[i]
		if !a.Overload.Shifts || a.Distinct || len(a.Args) != 1 {
			continue
		}
		if x, c, within, ok := shifted(a.Args[0]); ok {
			a.Args, shifts[i] = []expr.Expr{x}, c
			a.Sig.Args = []types.Type{x.Type()}
			k := expr.Key(x)
			if b, ok := bounds[k]; ok {
				within.lo, within.hi = max(within.lo, b.lo), min(within.hi, b.hi)
			}
			bounds[k] = within
		}
	}
	p, err := PrepareAggregate(&m)
	if err != nil {
		return nil, err
	}
	if len(bounds) > 0 {
		if p.written, err = PrepareAggregate(n); err != nil {
			return nil, err
		}
	}
	for i := range m.Aggs {
		if a := &m.Aggs[i]; a.Overload.Narrow && !a.Distinct {
			p.keys.Narrow(p.calls[i].args[0])
		}
	}
	leaders := map[string]int{}
	for i := range m.Aggs {
		a := &m.Aggs[i]
		p.calls[i].shift = shifts[i]
		if b, ok := bounds[keyOf(a)]; ok {
			b.at = p.calls[i].args[0]
			p.bounds = append(p.bounds, b)
			delete(bounds, keyOf(a))
		}
		k, ok := p.stateKey(i)
		if !ok {
			continue
		}
		if first, ok := leaders[k]; ok && p.fresh(i).(fn.Shared).Shares(p.fresh(first)) {
			p.calls[i].of = first
			continue
		}
		leaders[k] = i
	}
	return p, nil
}

// keyOf is the fingerprint of the only argument.
func keyOf(a *plan.AggItem) string {
	if len(a.Args) != 1 {
		return ""
	}
	return expr.Key(a.Args[0])
}

// stateKey tells calls apart that cannot share: those that see other rows or other arguments.
func (p *Prepared) stateKey(i int) (string, bool) {
	a := &p.items[i]
	if _, ok := p.fresh(i).(fn.Shared); !ok || a.Distinct || a.Fn.Ordering {
		return "", false
	}
	k := ""
	for _, e := range a.Args {
		if expr.Volatile(e) {
			return "", false
		}
		k += expr.Key(e) + "\x00"
	}
	if a.Filter != nil {
		if expr.Volatile(a.Filter) {
			return "", false
		}
		k += "\x01" + expr.Key(a.Filter)
	}
	return k, true
}

// fresh makes the accumulator of call i.
func (p *Prepared) fresh(i int) fn.Accumulator { return p.items[i].Overload.New(p.Config(i)) }

// shifted splits x + c or x - c over whole numbers of up to 64 bits; b is between which values of x it stays in its type.
// A widening cast of x is taken off.
func shifted(e expr.Expr) (x expr.Expr, c int64, b bound, ok bool) {
	call, ok := e.(*expr.Call)
	if !ok || len(call.Args) != 2 || call.Fn.Name != "+" && call.Fn.Name != "-" || !narrowInteger(e.Type()) {
		return nil, 0, b, false
	}
	x, lit := call.Args[0], call.Args[1]
	if _, ok := x.(*expr.Lit); ok && call.Fn.Name == "+" {
		x, lit = lit, x
	}
	l, ok := lit.(*expr.Lit)
	if !ok || expr.Volatile(x) || !x.Type().Equal(e.Type()) {
		return nil, 0, b, false
	}
	c, ok = l.V.(int64)
	if !ok || c == math.MinInt64 {
		return nil, 0, b, false
	}
	if call.Fn.Name == "-" {
		c = -c
	}
	b.lo, b.hi = types.IntRange(e.Type().Kind)
	if c > 0 {
		b.hi -= c
	} else {
		b.lo -= c
	}
	if cast, ok := x.(*expr.Cast); ok && narrowInteger(cast.Arg.Type()) && narrower(cast.Arg.Type(), cast.T) {
		x = cast.Arg
	}
	return x, c, b, true
}

// narrowInteger: TINYINT to BIGINT.
func narrowInteger(t types.Type) bool {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Integer, types.BigInt:
		return true
	}
	return false
}

func narrower(a, b types.Type) bool {
	_, x := types.IntRange(a.Kind)
	_, y := types.IntRange(b.Kind)
	return x < y
}

// evalAsWritten evaluates a batch some of whose x + c overflow, or that failed otherwise: for the error of its first row.
func (p *Prepared) evalAsWritten(env *fn.Env, cols []arrow.Array, n int) error {
	if _, err := p.written.Eval(env, cols, n); err != nil {
		return err
	}
	return errs.Bug("run", "values beyond the bounds of a shared sum, but none overflows")
}
