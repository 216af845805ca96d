package rules

import (
	"math"
	"math/bits"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// maxExact is how many relations are ordered by trying all trees; beyond that the cheapest pair is joined first.
const maxExact = 10

// joinOrder orders the inner joins between other operators. In batch mode it takes the tree of least cost, by
// estimated rows; equal columns form classes, so that a = b and b = c can also join a with c. In incremental mode it
// keeps the written order, because statistics of live streams are not known, and only avoids products: a
// plan that changed with them would not be found again at a restart.
//
// It must not reorder outer, semi, anti, mark and single joins against inner ones; they are relations of the
// graph as a whole. One exception: a semi join may go down to the relation that it filters (lowerSemi).
// Conditions that may fail stay above the whole graph.
func joinOrder(c *rewriter, root plan.Node) (plan.Node, error) {
	return c.orderJoins(root), nil
}

func (c *rewriter) orderJoins(n plan.Node) plan.Node {
	if j, ok := n.(*plan.Join); ok {
		if j.Kind == plan.Inner {
			return c.orderGraph(j)
		}
		if j.Kind == plan.Semi && c.mode == Batch {
			if m := c.lowerSemi(j); m != nil {
				return c.orderJoins(m)
			}
		}
	}
	children := n.Children()
	out := make([]plan.Node, len(children))
	for i, x := range children {
		out[i] = c.orderJoins(x)
		if _, ok := n.(*plan.SetOp); ok {
			out[i] = exactly(out[i], x.Columns()) // columns go by position there
		}
	}
	return rebuild(n, out...)
}

// lowerSemi moves a semi join below inner joins to the relation that its condition reads, when the right side is
// smaller than that relation and keeps few of its rows; then the joins above meet fewer.
func (c *rewriter) lowerSemi(j *plan.Join) plan.Node {
	read := plan.ColSet{}
	right := plan.SetOf(j.Right.Columns())
	for id := range plan.Reads(j) {
		if !right[id] {
			read[id] = true
		}
	}
	if len(read) == 0 || j.On != nil && expr.Fallible(j.On) {
		return nil
	}
	var lower func(n plan.Node) plan.Node
	lower = func(n plan.Node) plan.Node {
		switch m := n.(type) {
		case *plan.Project:
			if transparent(m) {
				if in := lower(m.Input); in != nil {
					return m.With([]plan.Node{in})
				}
				return nil
			}
		case *plan.Filter:
			if in, ok := m.Input.(*plan.Join); ok && in.Kind == plan.Inner {
				if out := lower(in); out != nil {
					return m.With([]plan.Node{out})
				}
				return nil
			}
		case *plan.Join:
			if m.Kind == plan.Inner {
				for i, side := range m.Children() {
					if plan.Subset(read, plan.SetOf(side.Columns())) {
						if in := lower(side); in != nil {
							sides := m.Children()
							sides[i] = in
							return m.With(sides)
						}
					}
				}
				return nil
			}
		}
		if !plan.Subset(read, plan.SetOf(n.Columns())) {
			return nil
		}
		s := *j
		s.Left = n
		rel, filter := c.est.Of(n), c.est.Of(j.Right)
		if filter.Rows >= rel.Rows || c.est.Of(&s).Rows > rel.Rows/2 {
			return nil
		}
		return &s
	}
	if left := unwrap(j.Left); !isInner(left) {
		return nil
	}
	return lower(j.Left)
}

func isInner(n plan.Node) bool {
	j, ok := n.(*plan.Join)
	return ok && j.Kind == plan.Inner
}

// unwrap looks through what flattening looks through.
func unwrap(n plan.Node) plan.Node {
	for {
		switch m := n.(type) {
		case *plan.Project:
			if !transparent(m) {
				return n
			}
			n = m.Input
		case *plan.Filter:
			n = m.Input
		default:
			return n
		}
	}
}

// transparent reports whether a projection only leaves columns out or reorders them.
func transparent(p *plan.Project) bool {
	return !slices.ContainsFunc(p.Items, func(it plan.Item) bool {
		c, ok := it.Expr.(*expr.Col)
		return !ok || c.ID != it.Col.ID
	})
}

// graph is a set of relations and the conditions between them.
type graph struct {
	c       *rewriter
	rels    []plan.Node
	cols    []plan.ColSet
	est     []*plan.Estimate
	classes [][]member // columns that are equal
	edges   []edge     // other conditions
	above   []expr.Expr
}

type member struct {
	col *expr.Col
	rel uint
}

// edge is a condition between relations; key is set when it is an equality of expressions.
type edge struct {
	cond expr.Expr
	key  *plan.EquiKey
	mask uint
	side [2]uint // of key: relations of its left and right
}

// tree is a joined set of relations.
type tree struct {
	mask uint
	node plan.Node
	est  *plan.Estimate
	cost float64
}

func (c *rewriter) orderGraph(root *plan.Join) plan.Node {
	g := &graph{c: c}
	var keys []plan.EquiKey
	var conds []expr.Expr
	product := false
	var rels []plan.Node
	var flatten func(n plan.Node)
	flatten = func(n plan.Node) {
		switch m := n.(type) {
		case *plan.Project:
			if in := unwrap(m); transparent(m) && isInner(in) {
				flatten(m.Input)
				return
			}
		case *plan.Filter:
			if isInner(unwrap(m.Input)) {
				conds = append(conds, expr.Conjuncts(m.Cond)...)
				flatten(m.Input)
				return
			}
		case *plan.Join:
			if m.Kind == plan.Inner {
				keys = append(keys, m.Keys...)
				conds = append(conds, expr.Conjuncts(m.On)...)
				product = product || len(m.Keys) == 0 && m.On == nil
				flatten(m.Left)
				flatten(m.Right)
				return
			}
		}
		rels = append(rels, n)
	}
	flatten(root)
	if c.mode == Incremental && !product {
		return c.orderBelow(root)
	}
	if c.mode == Batch { // so that a tie of costs does not depend on how the joins were written
		slices.SortStableFunc(rels, func(a, b plan.Node) int { return int(firstID(a)) - int(firstID(b)) })
	}
	for _, n := range rels {
		g.add(c.orderJoins(n))
	}
	for _, k := range keys {
		g.key(k)
	}
	for _, e := range conds {
		g.cond(e)
	}
	var t *tree
	switch {
	case c.mode == Incremental:
		t = g.written()
	case len(g.rels) <= maxExact:
		t = g.exact()
	}
	if t == nil {
		t = g.greedy()
	}
	return where(t.node, g.above)
}

func firstID(n plan.Node) expr.ColID {
	first := expr.ColID(math.MaxInt32)
	for _, col := range n.Columns() {
		first = min(first, col.ID)
	}
	return first
}

// orderBelow keeps the joins of a graph as they are and orders within its relations.
func (c *rewriter) orderBelow(n plan.Node) plan.Node {
	children := n.Children()
	out := make([]plan.Node, len(children))
	for i, x := range children {
		if isInner(unwrap(x)) {
			out[i] = c.orderBelow(x)
		} else {
			out[i] = c.orderJoins(x)
		}
	}
	return rebuild(n, out...)
}

func (g *graph) add(n plan.Node) {
	g.rels = append(g.rels, n)
	g.cols = append(g.cols, plan.SetOf(n.Columns()))
	g.est = append(g.est, g.c.est.Of(n))
}

// mask returns the relations that an expression reads.
func (g *graph) mask(e expr.Expr) uint {
	var m uint
	for id := range plan.ExprColumns(e) {
		for i, cols := range g.cols {
			if cols[id] {
				m |= 1 << i
			}
		}
	}
	return m
}

func (g *graph) key(k plan.EquiKey) {
	l, r := g.mask(k.Left), g.mask(k.Right)
	a, okA := k.Left.(*expr.Col)
	b, okB := k.Right.(*expr.Col)
	if okA && okB && !k.NullSafe && a.T.Equal(b.T) && bits.OnesCount(l) == 1 && bits.OnesCount(r) == 1 {
		g.unite(member{a, l}, member{b, r})
		return
	}
	g.edges = append(g.edges, edge{key: &k, mask: l | r, side: [2]uint{l, r}})
}

func (g *graph) cond(e expr.Expr) {
	m := g.mask(e)
	if m == 0 || stuck(e) {
		g.above = append(g.above, e)
		return
	}
	g.edges = append(g.edges, edge{cond: e, mask: m})
}

// unite puts two columns into one class.
func (g *graph) unite(a, b member) {
	find := func(m member) int {
		return slices.IndexFunc(g.classes, func(c []member) bool {
			return slices.ContainsFunc(c, func(o member) bool { return o.col.ID == m.col.ID })
		})
	}
	i, k := find(a), find(b)
	switch {
	case i < 0 && k < 0:
		g.classes = append(g.classes, []member{a, b})
	case i < 0:
		g.classes[k] = append(g.classes[k], a)
	case k < 0:
		g.classes[i] = append(g.classes[i], b)
	case i != k:
		g.classes[i] = append(g.classes[i], g.classes[k]...)
		g.classes = slices.Delete(g.classes, k, k+1)
	}
}

// conditions returns what joins two disjoint sets: keys, and the conditions that become decidable with them.
func (g *graph) conditions(a, b uint) ([]plan.EquiKey, []expr.Expr) {
	var keys []plan.EquiKey
	var on []expr.Expr
	for _, class := range g.classes {
		var l, r *expr.Col
		for _, m := range class {
			if l == nil && m.rel&a != 0 {
				l = m.col
			}
			if r == nil && m.rel&b != 0 {
				r = m.col
			}
		}
		if l != nil && r != nil {
			keys = append(keys, plan.EquiKey{Left: l, Right: r})
		}
	}
	for _, e := range g.edges {
		if e.mask&^(a|b) != 0 || e.mask&^a == 0 || e.mask&^b == 0 {
			continue
		}
		switch {
		case e.key == nil:
			on = append(on, e.cond)
		case e.side[0]&^a == 0 && e.side[1]&^b == 0:
			keys = append(keys, *e.key)
		case e.side[0]&^b == 0 && e.side[1]&^a == 0:
			keys = append(keys, plan.EquiKey{Left: e.key.Right, Right: e.key.Left, NullSafe: e.key.NullSafe})
		default: // x.a = y.b + x.c: each side reads both sets
			d := decorrelator{rewriter: g.c}
			on = append(on, d.equality(*e.key))
		}
	}
	return keys, on
}

// within returns conditions on one relation alone, which could not be pushed into it.
func (g *graph) leaf(i int) *tree {
	m := uint(1) << i
	var own []expr.Expr
	for _, class := range g.classes { // two columns of one relation in a class are equal there too
		var first *expr.Col
		for _, c := range class {
			if c.rel != m {
				continue
			}
			if first == nil {
				first = c.col
				continue
			}
			d := decorrelator{rewriter: g.c}
			own = append(own, d.equality(plan.EquiKey{Left: first, Right: c.col}))
		}
	}
	for _, e := range g.edges {
		if e.mask != m {
			continue
		}
		if e.key != nil {
			d := decorrelator{rewriter: g.c}
			own = append(own, d.equality(*e.key))
		} else {
			own = append(own, e.cond)
		}
	}
	if len(own) == 0 {
		return &tree{mask: m, node: g.rels[i], est: g.est[i]}
	}
	n := where(g.rels[i], own)
	return &tree{mask: m, node: n, est: g.c.est.Of(n)}
}

func (g *graph) leaves() []*tree {
	out := make([]*tree, len(g.rels))
	for i := range g.rels {
		out[i] = g.leaf(i)
	}
	return out
}

// cost of joining two trees whose join gives so many rows: the rows that come out, those put into the table and those
// that look into it. Without keys every pair is tried.
func cost(a, b *tree, rows float64, keyed bool) float64 {
	small, large := min(a.est.Rows, b.est.Rows), max(a.est.Rows, b.est.Rows)
	c := a.cost + b.cost + rows + float64(2*small) + float64(0.5*large)
	if !keyed {
		c += float64(small * large)
	}
	return c
}

// join makes the tree of two; the smaller input goes to the right, where tables are built.
func (g *graph) join(a, b *tree, keys []plan.EquiKey, on []expr.Expr) *tree {
	cond := expr.Conjunction(on)
	est := g.c.est.Join(plan.Inner, a.est, b.est, keys, cond)
	est.Rows = max(est.Rows, 1)
	t := &tree{mask: a.mask | b.mask, est: est, cost: cost(a, b, est.Rows, len(keys) > 0)}
	j := &plan.Join{Kind: plan.Inner, Left: a.node, Right: b.node, Keys: keys, On: cond}
	if g.c.mode == Batch && a.est.Rows < b.est.Rows {
		j = exchanged(j)
	}
	t.node = j
	return t
}

// exchanged swaps the inputs of an inner join.
func exchanged(j *plan.Join) *plan.Join {
	m := *j
	m.Left, m.Right = j.Right, j.Left
	m.Keys = make([]plan.EquiKey, len(j.Keys))
	for i, k := range j.Keys {
		m.Keys[i] = plan.EquiKey{Left: k.Right, Right: k.Left, NullSafe: k.NullSafe}
	}
	return &m
}

// exact tries every tree over connected sets; nil when the graph falls apart.
func (g *graph) exact() *tree {
	n := len(g.rels)
	best := make([]*tree, 1<<n)
	for i, t := range g.leaves() {
		best[1<<i] = t
	}
	type cut struct{ a, b uint }
	for set := uint(1); set < 1<<n; set++ {
		if bits.OnesCount(set) < 2 {
			continue
		}
		low := set & -set
		least, rows := math.Inf(1), 0.0
		var at cut
		var est *plan.Estimate
		for a := (set - 1) & set; a > 0; a = (a - 1) & set {
			b := set &^ a
			if a&low == 0 || best[a] == nil || best[b] == nil {
				continue
			}
			keys, on := g.conditions(a, b)
			if len(keys) == 0 && len(on) == 0 {
				continue
			}
			if est == nil { // a set's rows do not depend on how it is cut, so one estimate serves all its cuts
				est = g.c.est.Join(plan.Inner, best[a].est, best[b].est, keys, expr.Conjunction(on))
				rows = max(1, est.Rows)
			}
			if c := cost(best[a], best[b], rows, len(keys) > 0); at.a == 0 || c < least { // the first whatever it costs: all may be infinite
				least, at = c, cut{a, b}
			}
		}
		if est == nil {
			continue
		}
		keys, on := g.conditions(at.a, at.b)
		t := g.join(best[at.a], best[at.b], keys, on)
		t.est = &plan.Estimate{Rows: rows, Cols: est.Cols}
		t.cost = least
		best[set] = t
	}
	return best[1<<n-1]
}

// greedy joins the pair that gives the fewest rows, again and again; products come last.
func (g *graph) greedy() *tree {
	forest := g.leaves()
	for len(forest) > 1 {
		var pick *tree
		var at [2]int
		connected := false
		for i := range forest {
			for k := i + 1; k < len(forest); k++ {
				keys, on := g.conditions(forest[i].mask, forest[k].mask)
				linked := len(keys) > 0 || len(on) > 0
				if connected && !linked {
					continue
				}
				t := g.join(forest[i], forest[k], keys, on)
				if pick == nil || linked && !connected || t.est.Rows < pick.est.Rows {
					pick, at, connected = t, [2]int{i, k}, linked
				}
			}
		}
		forest[at[0]] = pick
		forest = slices.Delete(forest, at[1], at[1]+1)
	}
	return forest[0]
}

// written joins in the written order, but takes next a relation that some condition connects, if there is one.
func (g *graph) written() *tree {
	rest := g.leaves()
	t := rest[0]
	rest = rest[1:]
	for len(rest) > 0 {
		at := slices.IndexFunc(rest, func(r *tree) bool {
			keys, on := g.conditions(t.mask, r.mask)
			return len(keys) > 0 || len(on) > 0
		})
		at = max(at, 0)
		keys, on := g.conditions(t.mask, rest[at].mask)
		t = g.join(t, rest[at], keys, on)
		rest = slices.Delete(rest, at, at+1)
	}
	return t
}
