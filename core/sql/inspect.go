package sql

// Inspect calls visit for n and every node below it, parents first, in the
// order of the text. When visit returns false, the node's children are left
// out. It does not recurse, so no tree is too deep for it.
func Inspect(n Node, visit func(Node) bool) {
	walk(n, func(n Node, _ int) bool { return visit(n) })
}

type leveled struct {
	node   Node
	height int
}

// walk is Inspect that also tells how far below n a node stands; a step down a
// left spine (see Node) does not count.
func walk(n Node, visit func(Node, int) bool) {
	stack := []leveled{{n, 1}}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !visit(top.node, top.height) {
			continue
		}
		children := Children(top.node)
		for i := len(children) - 1; i >= 0; i-- {
			height := top.height + 1
			if i == 0 && onSpine(top.node, children[0]) {
				height = top.height
			}
			stack = append(stack, leveled{children[i], height})
		}
	}
}

// onSpine reports whether child is the left operand of a parent of its kind.
func onSpine(parent, child Node) bool {
	switch parent.(type) {
	case *Binary:
		_, ok := child.(*Binary)
		return ok
	case *SetOp:
		_, ok := child.(*SetOp)
		return ok
	case *Join:
		_, ok := child.(*Join)
		return ok
	}
	return false
}

// children collects nodes, leaving out what is absent.
type children []Node

func (c *children) expr(list ...Expr) {
	for _, e := range list {
		if e != nil {
			*c = append(*c, e)
		}
	}
}

func (c *children) tables(list ...TableRef) {
	for _, t := range list {
		if t != nil {
			*c = append(*c, t)
		}
	}
}

func (c *children) query(q *Query) {
	if q != nil {
		*c = append(*c, q)
	}
}

func (c *children) order(list []OrderItem) {
	for _, o := range list {
		c.expr(o.Expr)
	}
}

func (c *children) args(list []Arg) {
	for _, a := range list {
		c.expr(a.Value)
	}
}

func (c *children) items(list []SelectItem) {
	for _, i := range list {
		c.expr(i.Expr)
	}
}

func (c *children) assignments(list []Assignment) {
	for _, a := range list {
		c.expr(a.Value)
	}
}

func (c *children) options(list []Option) {
	for _, o := range list {
		c.expr(o.Value)
	}
}

func (c *children) with(w *With) {
	if w != nil {
		for _, cte := range w.CTEs {
			c.query(cte.Query)
		}
	}
}

func (c *children) asOf(a *AsOf) {
	if a != nil {
		c.expr(a.Value)
	}
}

func (c *children) interval(i *Interval) {
	if i != nil {
		*c = append(*c, i)
	}
}

func (c *children) window(w *Window) {
	if w == nil {
		return
	}
	c.expr(w.PartitionBy...)
	c.order(w.OrderBy)
	if w.Frame != nil {
		c.expr(w.Frame.Start.Offset, w.Frame.End.Offset)
	}
}

func (c *children) groups(list []GroupItem) {
	for _, g := range list {
		c.expr(g.Exprs...)
		c.groups(g.Sets)
	}
}

func (c *children) relation(r *Relation) {
	for _, col := range r.Columns {
		c.expr(col.Default, col.Generated)
		c.expr(col.Checks...)
	}
	for _, k := range r.Constraints {
		c.expr(k.Check)
	}
	if r.Watermark != nil {
		c.expr(r.Watermark.Expr)
	}
	c.options(r.With)
}

// Children returns the nodes directly below n, in the order of the text.
func Children(n Node) []Node {
	var c children
	switch n := n.(type) {
	case *Interval:
		c.expr(n.Value)
	case *Star:
		for _, r := range n.Replace {
			c.expr(r.Expr)
		}
	case *Columns:
		c.expr(n.Arg)
	case *Unary:
		c.expr(n.X)
	case *Binary:
		c.expr(n.Left, n.Right)
	case *Not:
		c.expr(n.X)
	case *Is:
		c.expr(n.X)
	case *Match:
		c.expr(n.X, n.Pattern, n.Escape)
	case *Between:
		c.expr(n.X, n.Lo, n.Hi)
	case *In:
		c.expr(n.X)
		c.expr(n.List...)
		c.query(n.Query)
		c.expr(n.Set)
	case *Exists:
		c.query(n.Query)
	case *Subquery:
		c.query(n.Query)
	case *Quantified:
		c.expr(n.X)
		c.query(n.Query)
		c.expr(n.Set)
	case *Case:
		c.expr(n.Operand)
		for _, w := range n.Whens {
			c.expr(w.Cond, w.Then)
		}
		c.expr(n.Else)
	case *Cast:
		c.expr(n.X)
	case *Collate:
		c.expr(n.X)
	case *Function:
		c.args(n.Args)
		c.order(n.OrderBy)
		c.order(n.WithinGroup)
		c.expr(n.Filter)
		c.window(n.Over)
	case *List:
		c.expr(n.Items...)
	case *Struct:
		for _, f := range n.Fields {
			c.expr(f.Value)
		}
	case *Map:
		for _, e := range n.Entries {
			c.expr(e.Key, e.Value)
		}
	case *Row:
		c.expr(n.Items...)
	case *Subscript:
		c.expr(n.X, n.Index)
	case *Slice:
		c.expr(n.X, n.Lo, n.Hi, n.Step)
	case *Field:
		c.expr(n.X)
	case *Lambda:
		c.expr(n.Body)

	case *Query:
		c.with(n.With)
		c = append(c, n.Body)
		c.order(n.OrderBy)
		c.expr(n.Limit, n.Offset)
		if n.Emit != nil {
			c.interval(n.Emit.Every)
		}
	case *Select:
		c.expr(n.DistinctOn...)
		c.items(n.Items)
		c.tables(n.From...)
		c.expr(n.Where)
		if n.GroupBy != nil {
			c.groups(n.GroupBy.Items)
		}
		c.expr(n.Having)
		for _, w := range n.Windows {
			c.window(w.Window)
		}
		c.expr(n.Qualify)
	case *SetOp:
		c = append(c, n.Left, n.Right)
	case *Values:
		for _, row := range n.Rows {
			c.expr(row...)
		}

	case *Table:
		c.asOf(n.AsOf)
	case *TableFunction:
		c.expr(n.Call)
	case *WindowTable:
		c.tables(n.Input)
		c.expr(n.PartitionBy...)
		c.expr(n.Time)
		c.args(n.Args)
	case *StatementTable:
		c = append(c, n.Statement)
	case *SubqueryTable:
		c.query(n.Query)
	case *Join:
		c.tables(n.Left, n.Right)
		c.expr(n.On)
	case *MatchRecognize:
		c.tables(n.Input)
		c.expr(n.PartitionBy...)
		c.order(n.OrderBy)
		c.items(n.Measures)
		c.interval(n.Within)
		for _, d := range n.Define {
			c.expr(d.Cond)
		}

	case *CreateTable:
		c.relation(&n.Relation)
		c.query(n.Query)
	case *CreateStream:
		c.relation(&n.Relation)
	case *CreateSink:
		c.relation(&n.Relation)
	case *CreateView:
		c.query(n.Query)
	case *Insert:
		c.with(n.With)
		c.query(n.Query)
		if n.Conflict != nil {
			c.assignments(n.Conflict.Set)
			c.expr(n.Conflict.Where)
		}
		c.items(n.Returning)
	case *Update:
		c.with(n.With)
		c.tables(n.Table)
		c.assignments(n.Set)
		c.tables(n.From...)
		c.expr(n.Where)
		c.items(n.Returning)
	case *Delete:
		c.with(n.With)
		c.tables(n.Table)
		c.tables(n.Using...)
		c.expr(n.Where)
		c.items(n.Returning)
	case *Merge:
		c.with(n.With)
		c.tables(n.Target, n.Source)
		c.expr(n.On)
		for _, w := range n.Whens {
			c.expr(w.Cond)
			c.assignments(w.Set)
			c.expr(w.Values...)
			c.expr(w.Message)
		}
		c.items(n.Returning)
	case *Copy:
		c.query(n.Query)
		c.options(n.Options)
	case *Explain:
		c.options(n.Options)
		c = append(c, n.Statement)
	case *Set:
		c.expr(n.Value)
	case *Prepare:
		c = append(c, n.Statement)
	case *Execute:
		c.args(n.Args)
	case *CreateMacro:
		for _, b := range n.Bodies {
			for _, m := range b.Params {
				c.expr(m.Default)
			}
			c.expr(b.Expr)
			c.query(b.Query)
		}
	case *CreateSequence:
		c.expr(n.Increment, n.Min, n.Max, n.Start)
	case *CreateIndex:
		c.expr(n.Keys...)
	case *Alter:
		if n.Add != nil {
			c.expr(n.Add.Default, n.Add.Generated)
			c.expr(n.Add.Checks...)
		}
		c.expr(n.Value)
		if n.Constraint != nil {
			c.expr(n.Constraint.Check)
		}
	case *Comment:
		c.expr(n.Text)
	case *Pragma:
		c.expr(n.Value)
		c.args(n.Args)
	case *SetVariable:
		c.expr(n.Value)
	case *Describe:
		c.query(n.Query)
	}
	return c
}
