package plan

import (
	"context"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Recursive is WITH RECURSIVE: the rows of Base, then those of Step over the rows of the time before, until there are no more.
// Step reads them by scans whose source has the relation Work. Without All a row that was there before does not count.
//
// Only batch has it: how far a change goes is known when the recursion has run again.
type Recursive struct {
	Base, Step Node
	All        bool
	Work       *WorkTable
	Cols       []Column
	Pos        errs.Pos
}

func (*Recursive) IsPlanNode()                  {}
func (n *Recursive) Children() []Node           { return []Node{n.Base, n.Step} }
func (n *Recursive) With(c []Node) Node         { m := *n; m.Base, m.Step = c[0], c[1]; return &m }
func (n *Recursive) Columns() []Column          { return n.Cols }
func (n *Recursive) Exprs() []expr.Expr         { return nil }
func (n *Recursive) WithExprs([]expr.Expr) Node { return n }
func (n *Recursive) mapped(col func(Column) Column) Node {
	m := *n
	m.Cols = make([]Column, len(n.Cols))
	for i, c := range n.Cols {
		m.Cols[i] = col(c)
	}
	return &m
}

// WorkTable stands in a plan for the rows that a recursion adds at a time. The run puts them in its place.
type WorkTable struct{ Of []types.Field }

// Fields implements flow.Relation.
func (w *WorkTable) Fields() []types.Field { return w.Of }

// Stats implements flow.Relation: nothing is known.
func (w *WorkTable) Stats() flow.Stats { return flow.Stats{Rows: -1} }

// Scan implements flow.Relation.
func (w *WorkTable) Scan(context.Context, flow.ScanRequest) (flow.Scan, error) {
	return nil, errs.Bug("run", "a recursion's own rows are read outside of it")
}
