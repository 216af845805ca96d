package bind

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// arrayOf gathers the one column of a query into a list, in the order of the query: ARRAY(query). No row is an empty list.
func (e *env) arrayOf(node plan.Node, pos errs.Pos) plan.Node {
	cols := node.Columns()
	if len(cols) != 1 {
		fail(pos, "ARRAY takes a query of one column, not %d", len(cols))
	}
	arg := cols[0]
	agg, sig, overload, err := fn.ResolveAggregate("list", []types.Type{arg.Type}, make([]types.Value, 1))
	if err != nil {
		raise(err, pos)
	}
	item := plan.AggItem{Fn: agg, Sig: sig, Overload: overload, Args: []expr.Expr{arg.Ref()}, Col: e.b.column("array", sig.Returns), Pos: pos}
	in := node
	if p, ok := node.(*plan.Project); ok { // it drops what only the order needed
		if _, limited := p.Input.(*plan.Limit); limited {
			in = p.Input
		} else if _, sorted := p.Input.(*plan.Sort); sorted {
			in = p.Input
		}
	}
	switch top := in.(type) {
	case *plan.Sort:
		item.Order, in = top.Keys, top.Input
	case *plan.Limit:
		if s, ok := top.Input.(*plan.Sort); ok {
			item.Order = s.Keys
		}
	}
	list := &plan.Aggregate{Input: in, Aggs: []plan.AggItem{item}}
	empty := e.cast(e.call(pos, "list_value"), sig.Returns, pos)
	value := &expr.Coalesce{Args: []expr.Expr{item.Col.Ref(), empty}, T: sig.Returns}
	return &plan.Project{Input: list, Items: []plan.Item{{Expr: value, Col: e.b.column("array", sig.Returns)}}}
}
