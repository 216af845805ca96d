package plan

import "github.com/riverbed/riverbed/core/expr"

func (*Scan) IsPlanNode()       {}
func (*Normalize) IsPlanNode()  {}
func (*Values) IsPlanNode()     {}
func (*Filter) IsPlanNode()     {}
func (*Project) IsPlanNode()    {}
func (*Aggregate) IsPlanNode()  {}
func (*TimeWindow) IsPlanNode() {}
func (*Join) IsPlanNode()       {}
func (*Apply) IsPlanNode()      {}
func (*Sort) IsPlanNode()       {}
func (*Limit) IsPlanNode()      {}
func (*TopN) IsPlanNode()       {}
func (*GroupTopN) IsPlanNode()  {}
func (*Distinct) IsPlanNode()   {}
func (*SetOp) IsPlanNode()      {}
func (*Window) IsPlanNode()     {}

func (n *Scan) Children() []Node       { return nil }
func (n *Normalize) Children() []Node  { return []Node{n.Input} }
func (n *Values) Children() []Node     { return nil }
func (n *Filter) Children() []Node     { return []Node{n.Input} }
func (n *Project) Children() []Node    { return []Node{n.Input} }
func (n *Aggregate) Children() []Node  { return []Node{n.Input} }
func (n *TimeWindow) Children() []Node { return []Node{n.Input} }
func (n *Join) Children() []Node       { return []Node{n.Left, n.Right} }
func (n *Apply) Children() []Node      { return []Node{n.Left, n.Right} }
func (n *Sort) Children() []Node       { return []Node{n.Input} }
func (n *Limit) Children() []Node      { return []Node{n.Input} }
func (n *TopN) Children() []Node       { return []Node{n.Input} }
func (n *GroupTopN) Children() []Node  { return []Node{n.Input} }
func (n *Distinct) Children() []Node   { return []Node{n.Input} }
func (n *SetOp) Children() []Node      { return []Node{n.Left, n.Right} }
func (n *Window) Children() []Node     { return []Node{n.Input} }

func (n *Scan) With([]Node) Node         { return n }
func (n *Normalize) With(c []Node) Node  { m := *n; m.Input = c[0]; return &m }
func (n *Values) With([]Node) Node       { return n }
func (n *Filter) With(c []Node) Node     { m := *n; m.Input = c[0]; return &m }
func (n *Project) With(c []Node) Node    { m := *n; m.Input = c[0]; return &m }
func (n *Aggregate) With(c []Node) Node  { m := *n; m.Input = c[0]; return &m }
func (n *TimeWindow) With(c []Node) Node { m := *n; m.Input = c[0]; return &m }
func (n *Join) With(c []Node) Node       { m := *n; m.Left, m.Right = c[0], c[1]; return &m }
func (n *Apply) With(c []Node) Node      { m := *n; m.Left, m.Right = c[0], c[1]; return &m }
func (n *Sort) With(c []Node) Node       { m := *n; m.Input = c[0]; return &m }
func (n *Limit) With(c []Node) Node      { m := *n; m.Input = c[0]; return &m }
func (n *TopN) With(c []Node) Node       { m := *n; m.Input = c[0]; return &m }
func (n *GroupTopN) With(c []Node) Node  { m := *n; m.Input = c[0]; return &m }
func (n *Distinct) With(c []Node) Node   { m := *n; m.Input = c[0]; return &m }
func (n *SetOp) With(c []Node) Node      { m := *n; m.Left, m.Right = c[0], c[1]; return &m }
func (n *Window) With(c []Node) Node     { m := *n; m.Input = c[0]; return &m }

func (n *Scan) Columns() []Column      { return n.Cols }
func (n *Normalize) Columns() []Column { return n.Input.Columns() }
func (n *Values) Columns() []Column    { return n.Cols }
func (n *Filter) Columns() []Column    { return n.Input.Columns() }
func (n *Project) Columns() []Column   { return itemColumns(nil, n.Items) }
func (n *Aggregate) Columns() []Column {
	out := itemColumns(nil, n.Keys)
	for _, a := range n.Aggs {
		out = append(out, a.Col)
	}
	if n.GroupingID != nil {
		out = append(out, *n.GroupingID)
	}
	return out
}
func (n *TimeWindow) Columns() []Column { return concat(n.Input.Columns(), n.Start, n.End) }
func (n *Join) Columns() []Column {
	return joinColumns(n.Kind, n.Left, n.Right, n.Mark)
}
func (n *Apply) Columns() []Column    { return joinColumns(n.Kind, n.Left, n.Right, n.Mark) }
func (n *Sort) Columns() []Column     { return n.Input.Columns() }
func (n *Limit) Columns() []Column    { return n.Input.Columns() }
func (n *TopN) Columns() []Column     { return n.Input.Columns() }
func (n *Distinct) Columns() []Column { return n.Input.Columns() }
func (n *SetOp) Columns() []Column    { return n.Cols }
func (n *GroupTopN) Columns() []Column {
	if n.RowNumber == nil {
		return n.Input.Columns()
	}
	return concat(n.Input.Columns(), *n.RowNumber)
}
func (n *Window) Columns() []Column {
	out := concat(n.Input.Columns())
	for _, f := range n.Funcs {
		out = append(out, f.Col)
	}
	return out
}

func itemColumns(out []Column, items []Item) []Column {
	for _, it := range items {
		out = append(out, it.Col)
	}
	return out
}

func concat(cols []Column, more ...Column) []Column {
	return append(append(make([]Column, 0, len(cols)+len(more)), cols...), more...)
}

func joinColumns(kind JoinKind, left, right Node, mark Column) []Column {
	switch kind {
	case Semi, Anti:
		return left.Columns()
	case Mark:
		return concat(left.Columns(), mark)
	}
	return concat(left.Columns(), right.Columns()...)
}

// exprs gathers or replaces a node's expressions; one walk serves both Exprs and WithExprs.
type exprs struct {
	out []expr.Expr
	in  []expr.Expr // nil while gathering
}

func (x *exprs) one(e expr.Expr) expr.Expr {
	if e == nil {
		return nil
	}
	if x.in == nil {
		x.out = append(x.out, e)
		return e
	}
	e, x.in = x.in[0], x.in[1:]
	return e
}

func (x *exprs) list(es []expr.Expr) []expr.Expr {
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		out[i] = x.one(e)
	}
	return out
}

func (x *exprs) items(items []Item) []Item {
	out := make([]Item, len(items))
	for i, it := range items {
		out[i] = Item{x.one(it.Expr), it.Col}
	}
	return out
}

func (x *exprs) sort(keys []SortItem) []SortItem {
	out := make([]SortItem, len(keys))
	for i, k := range keys {
		out[i] = SortItem{x.one(k.Expr), k.Key}
	}
	return out
}

func (x *exprs) equi(keys []EquiKey) []EquiKey {
	out := make([]EquiKey, len(keys))
	for i, k := range keys {
		out[i] = EquiKey{x.one(k.Left), x.one(k.Right), k.NullSafe}
	}
	return out
}

func (x *exprs) agg(a AggItem) AggItem {
	a.Args, a.Filter, a.Order = x.list(a.Args), x.one(a.Filter), x.sort(a.Order)
	return a
}

func (x *exprs) visit(n Node) Node {
	switch n := n.(type) {
	case *Scan:
		m := *n
		m.Filters = x.list(n.Filters)
		if n.Guard != nil {
			g := *n.Guard
			g.Keep, g.Values = x.list(g.Keep), x.list(g.Values)
			m.Guard = &g
		}
		return &m
	case *Values:
		m := *n
		m.Rows = make([][]expr.Expr, len(n.Rows))
		for i, r := range n.Rows {
			m.Rows[i] = x.list(r)
		}
		return &m
	case *Filter:
		m := *n
		m.Cond = x.one(n.Cond)
		return &m
	case *Project:
		m := *n
		m.Items = x.items(n.Items)
		return &m
	case *Aggregate:
		m := *n
		m.Keys = x.items(n.Keys)
		m.Aggs = make([]AggItem, len(n.Aggs))
		for i, a := range n.Aggs {
			m.Aggs[i] = x.agg(a)
		}
		return &m
	case *TimeWindow:
		m := *n
		m.Time, m.Keys = x.one(n.Time), x.list(n.Keys)
		return &m
	case *Join:
		m := *n
		m.Keys, m.On = x.equi(n.Keys), x.one(n.On)
		return &m
	case *Apply:
		m := *n
		m.Args, m.On = x.equi(n.Args), x.one(n.On)
		return &m
	case *Sort:
		m := *n
		m.Keys = x.sort(n.Keys)
		return &m
	case *TopN:
		m := *n
		m.Keys = x.sort(n.Keys)
		return &m
	case *GroupTopN:
		m := *n
		m.Part, m.Keys = x.list(n.Part), x.sort(n.Keys)
		return &m
	case *Unnest:
		return n.visit(x)
	case *Window:
		m := *n
		m.Funcs = make([]WindowItem, len(n.Funcs))
		for i, f := range n.Funcs {
			if f.Agg != nil {
				a := x.agg(*f.Agg)
				f.Agg = &a
			}
			f.Args, f.Part, f.Order, f.Frame = x.list(f.Args), x.list(f.Part), x.sort(f.Order), x.frame(f.Frame)
			m.Funcs[i] = f
		}
		return &m
	}
	return n // Limit, Distinct, SetOp, Normalize
}

func gather(n Node) []expr.Expr {
	var x exprs
	x.visit(n)
	return x.out
}

func replace(n Node, es []expr.Expr) Node {
	if len(es) == 0 {
		return n
	}
	x := exprs{in: es}
	return x.visit(n)
}

func (n *Scan) Exprs() []expr.Expr       { return gather(n) }
func (n *Normalize) Exprs() []expr.Expr  { return nil }
func (n *Values) Exprs() []expr.Expr     { return gather(n) }
func (n *Filter) Exprs() []expr.Expr     { return gather(n) }
func (n *Project) Exprs() []expr.Expr    { return gather(n) }
func (n *Aggregate) Exprs() []expr.Expr  { return gather(n) }
func (n *TimeWindow) Exprs() []expr.Expr { return gather(n) }
func (n *Join) Exprs() []expr.Expr       { return gather(n) }
func (n *Apply) Exprs() []expr.Expr      { return gather(n) }
func (n *Sort) Exprs() []expr.Expr       { return gather(n) }
func (n *Limit) Exprs() []expr.Expr      { return nil }
func (n *TopN) Exprs() []expr.Expr       { return gather(n) }
func (n *GroupTopN) Exprs() []expr.Expr  { return gather(n) }
func (n *Distinct) Exprs() []expr.Expr   { return nil }
func (n *SetOp) Exprs() []expr.Expr      { return nil }
func (n *Window) Exprs() []expr.Expr     { return gather(n) }

func (n *Scan) WithExprs(es []expr.Expr) Node       { return replace(n, es) }
func (n *Normalize) WithExprs([]expr.Expr) Node     { return n }
func (n *Values) WithExprs(es []expr.Expr) Node     { return replace(n, es) }
func (n *Filter) WithExprs(es []expr.Expr) Node     { return replace(n, es) }
func (n *Project) WithExprs(es []expr.Expr) Node    { return replace(n, es) }
func (n *Aggregate) WithExprs(es []expr.Expr) Node  { return replace(n, es) }
func (n *TimeWindow) WithExprs(es []expr.Expr) Node { return replace(n, es) }
func (n *Join) WithExprs(es []expr.Expr) Node       { return replace(n, es) }
func (n *Apply) WithExprs(es []expr.Expr) Node      { return replace(n, es) }
func (n *Sort) WithExprs(es []expr.Expr) Node       { return replace(n, es) }
func (n *Limit) WithExprs([]expr.Expr) Node         { return n }
func (n *TopN) WithExprs(es []expr.Expr) Node       { return replace(n, es) }
func (n *GroupTopN) WithExprs(es []expr.Expr) Node  { return replace(n, es) }
func (n *Distinct) WithExprs([]expr.Expr) Node      { return n }
func (n *SetOp) WithExprs([]expr.Expr) Node         { return n }
func (n *Window) WithExprs(es []expr.Expr) Node     { return replace(n, es) }

// Walk visits n and everything below it, parents first; visit returns false to stay out of a node's children.
func Walk(n Node, visit func(Node) bool) {
	if !visit(n) {
		return
	}
	for _, c := range n.Children() {
		Walk(c, visit)
	}
}

// WalkAll is Walk that also visits the plans of subqueries. Until the rules have decorrelated a query, what its expressions
// read is found in no other way.
func WalkAll(n Node, visit func(Node) bool) {
	Walk(n, func(m Node) bool {
		if !visit(m) {
			return false
		}
		for _, e := range m.Exprs() {
			expr.Walk(e, func(x expr.Expr) bool {
				if q, ok := x.(*expr.Subquery); ok {
					WalkAll(q.Plan.(Node), visit)
				}
				return true
			})
		}
		return true
	})
}

// Sources lists what a query reads, its subqueries included, once per scan.
func Sources(n Node) []*Source {
	var out []*Source
	WalkAll(n, func(m Node) bool {
		if s, ok := m.(*Scan); ok {
			out = append(out, s.Source)
		}
		return true
	})
	return out
}

// MapSources gives every scan of a query, those of its subqueries included, the source that to returns for its own.
func MapSources(n Node, to func(*Source) *Source) Node {
	return Transform(n, func(m Node) Node {
		if s, ok := m.(*Scan); ok {
			if src := to(s.Source); src != s.Source {
				c := *s
				c.Source = src
				return &c
			}
			return m
		}
		return mapExprs(m, func(x expr.Expr) expr.Expr {
			if q, ok := x.(*expr.Subquery); ok {
				c := *q
				c.Plan = MapSources(q.Plan.(Node), to)
				return &c
			}
			return x
		})
	})
}

// mapExprs rewrites the expressions of a node.
func mapExprs(n Node, f func(expr.Expr) expr.Expr) Node {
	es := n.Exprs()
	changed := make([]expr.Expr, len(es))
	for i, e := range es {
		changed[i] = expr.Transform(e, f)
	}
	return n.WithExprs(changed)
}

// Transform rebuilds a plan bottom-up; f returns its argument to keep a node.
func Transform(n Node, f func(Node) Node) Node {
	children := n.Children()
	var changed []Node
	for i, c := range children {
		if m := Transform(c, f); m != c {
			if changed == nil {
				changed = append([]Node{}, children...)
			}
			changed[i] = m
		}
	}
	if changed != nil {
		n = n.With(changed)
	}
	return f(n)
}
