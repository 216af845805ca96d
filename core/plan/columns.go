package plan

import (
	"maps"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
)

// ColSet is a set of columns.
type ColSet = map[expr.ColID]bool

// SetOf returns the set of some columns.
func SetOf(cols []Column) ColSet {
	s := make(ColSet, len(cols))
	for _, c := range cols {
		s[c.ID] = true
	}
	return s
}

// IDs returns a set's members in rising order, because nothing may depend on the order of a map.
func IDs(s ColSet) []expr.ColID { return slices.Sorted(maps.Keys(s)) }

// Subset reports whether every member of a is in b.
func Subset(a, b ColSet) bool {
	for id := range a {
		if !b[id] {
			return false
		}
	}
	return true
}

// Overlap reports whether a and b share a member.
func Overlap(a, b ColSet) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

// ExprColumns returns the columns that e reads. Of a subquery these are the columns that it takes from outside.
func ExprColumns(e expr.Expr) ColSet {
	s := ColSet{}
	addExpr(e, s)
	return s
}

func addExpr(e expr.Expr, s ColSet) {
	expr.Walk(e, func(x expr.Expr) bool {
		switch x := x.(type) {
		case *expr.Col:
			s[x.ID] = true
		case *expr.Subquery:
			maps.Copy(s, Free(x.Plan.(Node)))
		}
		return true
	})
}

// Reads returns the columns that the node's own work needs of its inputs: expressions and tie-breaks, and for
// nodes that look at whole rows every column.
func Reads(n Node) ColSet {
	s := ColSet{}
	for _, e := range n.Exprs() {
		addExpr(e, s)
	}
	for _, tie := range ties(n) {
		for _, id := range *tie {
			s[id] = true
		}
	}
	switch n := n.(type) {
	case *Normalize:
		for _, id := range n.Key {
			s[id] = true
		}
	case *Scan:
		if n.Guard != nil {
			maps.Copy(s, SetOf(n.Guard.Show))
		}
	case *Distinct, *SetOp:
		for _, c := range n.Children() {
			maps.Copy(s, SetOf(c.Columns()))
		}
	}
	return s
}

// ties lists the node's tie-break lists, which name columns without being expressions.
func ties(n Node) []*[]expr.ColID {
	switch n := n.(type) {
	case *Sort:
		return []*[]expr.ColID{&n.Tie}
	case *TopN:
		return []*[]expr.ColID{&n.Tie}
	case *GroupTopN:
		return []*[]expr.ColID{&n.Tie}
	case *Aggregate:
		var out []*[]expr.ColID
		for i := range n.Aggs {
			out = append(out, &n.Aggs[i].Tie)
		}
		return out
	case *Window:
		var out []*[]expr.ColID
		for i := range n.Funcs {
			out = append(out, &n.Funcs[i].Tie)
			if a := n.Funcs[i].Agg; a != nil {
				out = append(out, &a.Tie)
			}
		}
		return out
	}
	return nil
}

// Free returns the columns that a plan reads and does not make itself: those of outer queries.
func Free(n Node) ColSet {
	used, made := ColSet{}, ColSet{}
	Walk(n, func(m Node) bool {
		maps.Copy(used, Reads(m))
		for _, c := range m.Columns() {
			made[c.ID] = true
		}
		return true
	})
	for id := range made {
		delete(used, id)
	}
	return used
}

// MaxID returns the largest column ID in a plan, its subqueries included.
func MaxID(n Node) expr.ColID {
	var top expr.ColID
	WalkAll(n, func(m Node) bool {
		for _, c := range m.Columns() {
			top = max(top, c.ID)
		}
		for _, e := range m.Exprs() {
			expr.Walk(e, func(x expr.Expr) bool {
				if c, ok := x.(*expr.Col); ok {
					top = max(top, c.ID)
				}
				return true
			})
		}
		return true
	})
	return top
}

// Map rewrites a plan's columns: to gives the new ID of a column, or the same one. It serves copies of a plan,
// whose columns must differ from the original's, and moves of a plan's expressions onto other columns.
func Map(n Node, to func(expr.ColID) expr.ColID) Node {
	return Transform(n, func(m Node) Node { return mapNode(m, to) })
}

func mapNode(n Node, to func(expr.ColID) expr.ColID) Node {
	n = mapExprs(n, func(x expr.Expr) expr.Expr {
		switch x := x.(type) {
		case *expr.Col:
			if id := to(x.ID); id != x.ID {
				return &expr.Col{ID: id, Name: x.Name, T: x.T}
			}
		case *expr.Subquery:
			s := *x
			s.Plan = Map(x.Plan.(Node), to)
			s.Outer = mapIDs(x.Outer, to)
			return &s
		}
		return x
	})
	col := func(c Column) Column { c.ID = to(c.ID); return c }
	cols := func(cs []Column) []Column {
		out := make([]Column, len(cs))
		for i, c := range cs {
			out[i] = col(c)
		}
		return out
	}
	opt := func(c *Column) *Column {
		if c == nil {
			return nil
		}
		d := col(*c)
		return &d
	}
	items := func(in []Item) []Item {
		out := make([]Item, len(in))
		for i, it := range in {
			out[i] = Item{it.Expr, col(it.Col)}
		}
		return out
	}
	switch m := n.(type) {
	case *Scan:
		k := *m
		k.Cols = cols(m.Cols)
		if m.Guard != nil {
			g := *m.Guard
			g.Show = cols(g.Show)
			k.Guard = &g
		}
		return &k
	case *Normalize:
		k := *m
		k.Key = mapIDs(m.Key, to)
		return &k
	case *Values:
		k := *m
		k.Cols = cols(m.Cols)
		return &k
	case *Project:
		k := *m
		k.Items = items(m.Items)
		return &k
	case *Aggregate:
		k := *m
		k.Keys, k.GroupingID = items(m.Keys), opt(m.GroupingID)
		k.Aggs = slices.Clone(m.Aggs)
		for i := range k.Aggs {
			k.Aggs[i].Col, k.Aggs[i].Tie = col(k.Aggs[i].Col), mapIDs(k.Aggs[i].Tie, to)
		}
		return &k
	case *TimeWindow:
		k := *m
		k.Start, k.End = col(m.Start), col(m.End)
		return &k
	case *Unnest:
		return m.mapped(col)
	case *Recursive:
		return m.mapped(col)
	case *Join:
		k := *m
		k.Mark = col(m.Mark)
		return &k
	case *Apply:
		k := *m
		k.Mark, k.Outer = col(m.Mark), mapIDs(m.Outer, to)
		return &k
	case *Sort:
		k := *m
		k.Tie = mapIDs(m.Tie, to)
		return &k
	case *TopN:
		k := *m
		k.Tie = mapIDs(m.Tie, to)
		return &k
	case *GroupTopN:
		k := *m
		k.Tie, k.RowNumber = mapIDs(m.Tie, to), opt(m.RowNumber)
		return &k
	case *SetOp:
		k := *m
		k.Cols = cols(m.Cols)
		return &k
	case *Window:
		k := *m
		k.Funcs = slices.Clone(m.Funcs)
		for i := range k.Funcs {
			f := &k.Funcs[i]
			f.Col, f.Tie = col(f.Col), mapIDs(f.Tie, to)
			if f.Agg != nil {
				a := *f.Agg
				a.Col, a.Tie = col(a.Col), mapIDs(a.Tie, to)
				f.Agg = &a
			}
		}
		return &k
	}
	return n
}

func mapIDs(ids []expr.ColID, to func(expr.ColID) expr.ColID) []expr.ColID {
	if ids == nil {
		return nil
	}
	out := make([]expr.ColID, len(ids))
	for i, id := range ids {
		out[i] = to(id)
	}
	return out
}

// Produced returns every column that some node of the plan makes.
func Produced(n Node) ColSet {
	s := ColSet{}
	WalkAll(n, func(m Node) bool {
		for _, c := range m.Columns() {
			s[c.ID] = true
		}
		return true
	})
	return s
}
