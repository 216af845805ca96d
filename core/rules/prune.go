package rules

import (
	"maps"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// prune keeps only the columns that are used above, down to what scans read, and drops aggregates, window functions and
// joins whose results nobody reads. It must not change the number of rows: a scan of which no column is used still
// counts its rows, and a join is dropped only when it can neither repeat nor drop a row.
func prune(c *rewriter, root plan.Node) (plan.Node, error) {
	return exactly(c.prune(root, plan.SetOf(root.Columns())), root.Columns()), nil
}

// prune returns n with at least the columns of need, and few others.
func (c *rewriter) prune(n plan.Node, need plan.ColSet) plan.Node {
	with := func(more plan.ColSet) plan.ColSet {
		all := maps.Clone(need)
		maps.Copy(all, more)
		return all
	}
	switch n := n.(type) {
	case *plan.Scan:
		return pruneScan(n, with(plan.Reads(n)))
	case *plan.Values:
		return pruneValues(n, need)
	case *plan.Project:
		return c.pruneProject(n, need)
	case *plan.Aggregate:
		return c.pruneAggregate(n, need)
	case *plan.Recursive: // what one round does not need the next may
		return rebuild(n, exactly(c.prune(n.Base, plan.SetOf(n.Base.Columns())), n.Base.Columns()), exactly(c.prune(n.Step, plan.SetOf(n.Step.Columns())), n.Step.Columns()))
	case *plan.Unnest:
		return c.pruneUnnest(n, need)
	case *plan.Join:
		return c.pruneJoin(n, need)
	case *plan.GroupTopN:
		m := *n
		if n.RowNumber != nil && !need[n.RowNumber.ID] {
			m.RowNumber = nil
		}
		if m.Input = c.narrow(n.Input, with(plan.Reads(n))); m.Input == n.Input && m.RowNumber == n.RowNumber {
			return n
		}
		return &m
	case *plan.Window:
		m := *n
		m.Funcs = nil
		for _, f := range n.Funcs {
			if need[f.Col.ID] {
				m.Funcs = append(m.Funcs, f)
			}
		}
		if len(m.Funcs) == 0 {
			return c.prune(n.Input, need)
		}
		if m.Input = c.narrow(n.Input, with(plan.Reads(&m))); m.Input == n.Input && len(m.Funcs) == len(n.Funcs) {
			return n
		}
		return &m
	case *plan.Distinct:
		in := exactly(c.prune(n.Input, plan.SetOf(n.Columns())), n.Columns())
		if c.facts.Of(in).Unique(plan.SetOf(in.Columns())) {
			return in // there are no equal rows
		}
		return rebuild(n, in)
	case *plan.SetOp:
		return c.pruneSetOp(n, need)
	case *plan.Sort, *plan.TopN:
		return rebuild(n, c.narrow(n.Children()[0], with(plan.Reads(n))))
	}
	children := n.Children()
	out := make([]plan.Node, len(children))
	for i, x := range children {
		out[i] = c.prune(x, with(plan.Reads(n)))
	}
	return rebuild(n, out...)
}

// narrow prunes the input of an operator that copies rows, and leaves out columns that only served a filter below it.
func (c *rewriter) narrow(n plan.Node, need plan.ColSet) plan.Node {
	n = c.prune(n, need)
	var keep []plan.Column
	for _, col := range n.Columns() {
		if need[col.ID] {
			keep = append(keep, col)
		}
	}
	return exactly(n, keep)
}

func pruneScan(n *plan.Scan, need plan.ColSet) plan.Node {
	m := *n
	m.Cols, m.At = []plan.Column{}, []int{}
	for i, col := range n.Cols {
		if need[col.ID] {
			m.Cols, m.At = append(m.Cols, col), append(m.At, n.At[i])
		}
	}
	if len(m.Cols) == len(n.Cols) {
		return n
	}
	return &m
}

func pruneValues(n *plan.Values, need plan.ColSet) plan.Node {
	m := &plan.Values{Rows: make([][]expr.Expr, len(n.Rows)), Of: n.Of}
	for r := range n.Rows {
		m.Rows[r] = []expr.Expr{}
	}
	for i, col := range n.Cols {
		if !need[col.ID] {
			continue
		}
		m.Cols = append(m.Cols, col)
		for r, row := range n.Rows {
			m.Rows[r] = append(m.Rows[r], row[i])
		}
	}
	if len(m.Cols) == len(n.Cols) {
		return n
	}
	return m
}

func (c *rewriter) pruneProject(n *plan.Project, need plan.ColSet) plan.Node {
	m := &plan.Project{}
	below := plan.ColSet{}
	identity := true
	for _, it := range n.Items {
		if !need[it.Col.ID] {
			continue
		}
		m.Items = append(m.Items, it)
		maps.Copy(below, plan.ExprColumns(it.Expr))
		ref, ok := it.Expr.(*expr.Col)
		identity = identity && ok && ref.ID == it.Col.ID
	}
	m.Input = c.prune(n.Input, below)
	if identity {
		return m.Input // whoever minds the order or the extra columns puts a projection above
	}
	if m.Input == n.Input && len(m.Items) == len(n.Items) {
		return n
	}
	return m
}

func (c *rewriter) pruneAggregate(n *plan.Aggregate, need plan.ColSet) plan.Node {
	m := *n
	m.Aggs = nil
	for _, a := range n.Aggs {
		if need[a.Col.ID] {
			m.Aggs = append(m.Aggs, a)
		}
	}
	if n.GroupingID != nil && !need[n.GroupingID.ID] {
		m.GroupingID = nil
	}
	if len(m.Aggs) == 0 && len(m.Keys) == 0 && m.Sets == nil {
		return &plan.Values{Rows: [][]expr.Expr{{}}} // one group, whatever the input
	}
	m.Input = c.prune(n.Input, plan.Reads(&m))
	if m.Input == n.Input && len(m.Aggs) == len(n.Aggs) && m.GroupingID == n.GroupingID {
		return n
	}
	return &m
}

func (c *rewriter) pruneJoin(n *plan.Join, need plan.ColSet) plan.Node {
	right := plan.SetOf(n.Right.Columns())
	if c.useless(n, need, right) {
		return c.prune(n.Left, need)
	}
	all := maps.Clone(need)
	maps.Copy(all, plan.Reads(n))
	return rebuild(n, c.narrow(n.Left, all), c.narrow(n.Right, all))
}

// useless reports whether a join only hands its left rows on: nothing of the right is read and each left row comes out once.
func (c *rewriter) useless(n *plan.Join, need, right plan.ColSet) bool {
	if plan.Overlap(need, right) {
		return false
	}
	switch n.Kind {
	case plan.Mark:
		return !need[n.Mark.ID]
	case plan.Left:
		keys := plan.ColSet{}
		for _, k := range n.Keys {
			if col, ok := k.Right.(*expr.Col); ok {
				keys[col.ID] = true
			}
		}
		return c.facts.Of(n.Right).Unique(keys)
	}
	return false
}

func (c *rewriter) pruneSetOp(n *plan.SetOp, need plan.ColSet) plan.Node {
	m := *n
	lc, rc := n.Left.Columns(), n.Right.Columns()
	var left, right []plan.Column
	m.Cols = []plan.Column{}
	for i, col := range n.Cols {
		if need[col.ID] || n.Kind != plan.Union || !n.All {
			m.Cols = append(m.Cols, col)
			left, right = append(left, lc[i]), append(right, rc[i])
		}
	}
	m.Left = exactly(c.prune(n.Left, plan.SetOf(left)), left)
	m.Right = exactly(c.prune(n.Right, plan.SetOf(right)), right)
	if m.Left == n.Left && m.Right == n.Right && len(m.Cols) == len(n.Cols) {
		return n
	}
	return &m
}
