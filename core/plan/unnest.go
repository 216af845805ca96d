package plan

import (
	"fmt"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
)

// Unnest makes a row of each item of its lists: of an input row as many rows as its longest list has items, with NULL where
// another list is shorter. A list that is NULL has no items. It looks at one row alone, so it is the same in both modes.
type Unnest struct {
	Input Node
	Pass  []Column // columns of the input that are handed on
	Lists []Item   // of type LIST, and the column of the items
	// Ordinality, when set, receives the number of the item, from 1.
	Ordinality *Column
	// Outer keeps an input row without items, once, with NULLs.
	Outer bool
	Pos   errs.Pos
}

func (*Unnest) IsPlanNode()                     {}
func (n *Unnest) Children() []Node              { return []Node{n.Input} }
func (n *Unnest) With(c []Node) Node            { m := *n; m.Input = c[0]; return &m }
func (n *Unnest) Exprs() []expr.Expr            { return gather(n) }
func (n *Unnest) WithExprs(es []expr.Expr) Node { return replace(n, es) }
func (n *Unnest) Columns() []Column {
	out := itemColumns(concat(n.Pass), n.Lists)
	if n.Ordinality != nil {
		out = append(out, *n.Ordinality)
	}
	return out
}

// visit serves exprs.visit.
func (n *Unnest) visit(x *exprs) Node {
	m := *n
	m.Lists = x.items(n.Lists)
	return &m
}

// mapped serves Map.
func (n *Unnest) mapped(col func(Column) Column) Node {
	m := *n
	m.Pass, m.Lists = make([]Column, len(n.Pass)), make([]Item, len(n.Lists))
	for i, c := range n.Pass {
		m.Pass[i] = col(c)
	}
	for i, it := range n.Lists {
		m.Lists[i] = Item{it.Expr, col(it.Col)}
	}
	if n.Ordinality != nil {
		c := col(*n.Ordinality)
		m.Ordinality = &c
	}
	return &m
}

// unnest: what the input says of columns that are handed on holds still; its keys tell the rows apart with the number of the
// item.
func (f *Facts) unnest(n *Unnest, p *Props) {
	in := f.Of(n.Input)
	pass := SetOf(n.Pass)
	for id := range in.NotNull {
		if pass[id] {
			p.NotNull[id] = true
		}
	}
	for id, l := range in.Const {
		if pass[id] {
			p.Const[id] = l
		}
	}
	for _, pair := range in.Pairs {
		if pass[pair[0]] && pass[pair[1]] {
			p.Pairs = append(p.Pairs, pair)
		}
	}
	if n.Ordinality == nil {
		return
	}
	if !n.Outer {
		p.NotNull[n.Ordinality.ID] = true
	}
	for _, k := range in.Keys {
		if Subset(k, pass) {
			with := ColSet{n.Ordinality.ID: true}
			for id := range k {
				with[id] = true
			}
			p.addKey(with)
		}
	}
}

// itemsPerList is how many items a list is taken to have.
const itemsPerList = 4

func (n *Unnest) text() string {
	s := "Unnest " + joined(n.Lists, itemText)
	if n.Ordinality != nil {
		s += " ordinality " + columnText(*n.Ordinality)
	}
	if n.Outer {
		s += " outer"
	}
	return s + fmt.Sprintf(" keeps [%s]", joined(n.Pass, columnText))
}
