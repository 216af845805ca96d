package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// shareSubplans lets a subplan that stands in a query more than once be computed once, such as a CTE that is read twice: the later
// ones become projections, which give its columns their own names, over the very node of the first. A plan is then no
// tree any more; the engine keeps the rows of a node that has several parents (exec), and EXPLAIN prints it once.
//
// It runs last, so that each copy had its chance: one that was narrowed by a condition of its own is another subplan and stays. What
// gives nearly as many rows as it reads is computed again rather than kept, and so is what differs each time. With
// on_error = 'bad' nothing is shared, since the copies agree on who tells a bad row.
func shareSubplans(c *rewriter, root plan.Node) (plan.Node, error) {
	if c.opts.Divert || !readsTwice(root) {
		return root, nil
	}
	s := &sharing{c: c, first: map[string]plan.Node{}}
	return s.below(root), nil
}

// readsTwice reports whether some relation is scanned more than once; without that there is nothing to share.
func readsTwice(root plan.Node) bool {
	sources := plan.Sources(root)
	for i, s := range sources {
		if slices.ContainsFunc(sources[:i], func(x *plan.Source) bool { return readsSame(x, s) }) {
			return true
		}
	}
	return false
}

// readsSame reports whether two sources are one relation: each mention of a file has a source of its own. Relations that
// cannot be compared are taken for different.
func readsSame(a, b *plan.Source) bool {
	comparable := func(r flow.Relation) bool { return r != nil && reflect.TypeOf(r).Comparable() }
	return a == b || a.Name == b.Name && comparable(a.Relation) && comparable(b.Relation) && a.Relation == b.Relation
}

type sharing struct {
	c     *rewriter
	first map[string]plan.Node // by key
	known []*plan.Source
}

// number is the same for sources that read the same.
func (s *sharing) number(src *plan.Source) int {
	at := slices.IndexFunc(s.known, func(x *plan.Source) bool { return readsSame(x, src) })
	if at < 0 {
		at, s.known = len(s.known), append(s.known, src)
	}
	return at
}

func (s *sharing) below(n plan.Node) plan.Node {
	key := ""
	if s.worth(n) {
		key = s.key(n)
		if first := s.first[key]; first != nil {
			s.c.note("computed once: %s", plan.Describe(n))
			return again(first, n.Columns())
		}
	}
	children := n.Children()
	out := make([]plan.Node, len(children))
	for i, x := range children {
		out[i] = s.below(x)
	}
	n = rebuild(n, out...)
	if key != "" {
		s.first[key] = n
	}
	return n
}

// again gives a node's columns the names that they have in its copy.
func again(first plan.Node, cols []plan.Column) plan.Node {
	items := make([]plan.Item, len(cols))
	for i, c := range first.Columns() {
		items[i] = plan.Item{Expr: c.Ref(), Col: cols[i]}
	}
	return &plan.Project{Input: first, Items: items}
}

// keptRows is how much dearer it is to keep a row and read it again than to hand it on.
const keptRows = 4

// worth reports whether a node is cheaper to keep than to compute again: estimated by the rows of all nodes below.
func (s *sharing) worth(n plan.Node) bool {
	switch n.(type) {
	case *plan.Aggregate, *plan.Distinct, *plan.Join, *plan.TopN, *plan.GroupTopN, *plan.SetOp:
	default:
		return false
	}
	work, same := 0.0, true
	plan.Walk(n, func(m plan.Node) bool {
		for _, e := range m.Exprs() {
			same = same && !expr.Volatile(e)
		}
		work += s.c.est.Of(m).Rows
		if scan, ok := m.(*plan.Scan); ok {
			if same = same && scan.Source.Relation != nil && scan.Guard == nil; same {
				work += float64(scan.Source.Relation.Stats().Rows)
			}
		}
		return same
	})
	return same && work > keptRows*s.c.est.Of(n).Rows
}

// key is a text that two nodes have in common when they compute the same: columns are numbered in the order in which they
// come, and sources named by the relation.
func (s *sharing) key(n plan.Node) string {
	numbers := map[expr.ColID]expr.ColID{}
	plan.Walk(n, func(m plan.Node) bool {
		for _, c := range m.Columns() {
			if _, ok := numbers[c.ID]; !ok {
				numbers[c.ID] = expr.ColID(len(numbers) + 1)
			}
		}
		return true
	})
	var b strings.Builder
	plan.Walk(plan.Map(n, func(id expr.ColID) expr.ColID {
		if to, ok := numbers[id]; ok {
			return to
		}
		return id
	}), func(m plan.Node) bool {
		if scan, ok := m.(*plan.Scan); ok {
			unnamed := *scan
			unnamed.Alias = ""
			fmt.Fprintf(&b, "%d %v ", s.number(scan.Source), scan.At)
			m = &unnamed
		}
		b.WriteString(plan.Describe(m))
		for _, e := range m.Exprs() {
			b.WriteByte('\t')
			b.WriteString(expr.Key(e))
		}
		for _, c := range m.Columns() {
			fmt.Fprintf(&b, "\t%d %s", c.ID, c.Type)
		}
		fmt.Fprintf(&b, "\t%d\n", len(m.Children()))
		return true
	})
	return b.String()
}
