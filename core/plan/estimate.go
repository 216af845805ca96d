package plan

import (
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/types"
)

// Guesses where statistics are silent. They are shares of the rows.
const (
	shareEqual    = 0.05 // column = constant, distinct values unknown
	shareComputed = 0.2  // a range of a computed value, mostly HAVING
	shareRange    = 0.33 // column < constant, bounds unknown
	shareLike     = 0.1
	smallTable    = 100 // a table of so few rows is a list of names: each occurs once
	shareUnknown  = 0.25
	shareNull     = 0.05
	rowsUnknown   = 1e6 // of a source that does not tell
	rowsMinimum   = 1.0
	shareAnti     = 0.3
	rowsPerGroup  = 4 // at least, on average
)

// Estimate is what the planner believes of a node's output.
type Estimate struct {
	Rows float64
	Cols map[expr.ColID]ColEstimate
}

// ColEstimate is what the planner believes of one column.
type ColEstimate struct {
	// Distinct is the number of values in the base relation, before filters; 0 is unknown. Joins divide by it, since
	// a filter on one side leaves the domain of the key as it was.
	Distinct float64
	// Base is the number of rows of the base relation; composite keys have at most as many values.
	Base     float64
	Relation *Source
	Min, Max float64 // valid when Ranged
	Ranged   bool
	// Width is the length of the base relation's range. A column that has fewer rows than whole numbers in its range is
	// Sparse: most likely a key, so that columns joined with it refer to it.
	Width  float64
	Sparse bool
}

// Estimator estimates and remembers, like Facts.
type Estimator struct {
	Facts *Facts
	known map[Node]*Estimate
}

// NewEstimator returns an estimator over f.
func NewEstimator(f *Facts) *Estimator { return &Estimator{Facts: f, known: map[Node]*Estimate{}} }

// Of estimates n's output.
func (x *Estimator) Of(n Node) *Estimate {
	if e, ok := x.known[n]; ok {
		return e
	}
	e := x.derive(n)
	if p := x.Facts.Of(n); p.One() {
		e.Rows = 1
	}
	e.Rows = max(e.Rows, rowsMinimum)
	x.known[n] = e
	return e
}

func (x *Estimator) derive(n Node) *Estimate {
	switch n := n.(type) {
	case *Scan:
		e := scanEstimate(n)
		for _, f := range n.Filters {
			e.narrow(f)
		}
		if n.Limit > 0 {
			e.Rows = min(e.Rows, float64(n.Limit))
		}
		return e
	case *Values:
		return &Estimate{Rows: float64(len(n.Rows))}
	case *Filter:
		e := x.Of(n.Input).clone()
		e.narrow(n.Cond)
		return e
	case *Project:
		in := x.Of(n.Input)
		e := &Estimate{Rows: in.Rows, Cols: map[expr.ColID]ColEstimate{}}
		for _, it := range n.Items {
			if c, ok := in.column(it.Expr); ok {
				e.Cols[it.Col.ID] = c
			}
		}
		return e
	case *Aggregate:
		return x.aggregate(n)
	case *TimeWindow:
		e := x.Of(n.Input).clone()
		if size, slide := longest(n.Size), longest(n.Slide); (n.Kind == Hop || n.Kind == Cumulate) && slide > 0 {
			e.Rows *= math.Max(1, float64(size/slide))
		}
		return e
	case *Unnest:
		e := x.Of(n.Input).clone()
		e.Rows *= itemsPerList
		return e
	case *Join:
		return x.Join(n.Kind, x.Of(n.Left), x.Of(n.Right), n.Keys, n.On)
	case *Apply:
		return x.Join(n.Kind, x.Of(n.Left), x.Of(n.Right), nil, nil)
	case *Limit:
		return x.Of(n.Input).first(n.Limit)
	case *TopN:
		return x.Of(n.Input).first(n.Limit)
	case *GroupTopN:
		e := x.Of(n.Input).clone()
		e.Rows = min(e.Rows, e.groups(n.Part)*float64(n.Limit))
		return e
	case *Distinct:
		e := x.Of(n.Input).clone()
		var es []expr.Expr
		for _, c := range n.Columns() {
			es = append(es, c.Ref())
		}
		e.Rows = e.groups(es)
		return e
	case *SetOp:
		l, r := x.Of(n.Left), x.Of(n.Right)
		switch n.Kind {
		case Union:
			return &Estimate{Rows: l.Rows + r.Rows}
		case Intersect:
			return &Estimate{Rows: min(l.Rows, r.Rows) / 2}
		}
		return &Estimate{Rows: l.Rows / 2}
	}
	if c := n.Children(); len(c) == 1 {
		return x.Of(c[0])
	}
	return &Estimate{Rows: rowsUnknown}
}

func (e *Estimate) clone() *Estimate {
	c := &Estimate{Rows: e.Rows, Cols: make(map[expr.ColID]ColEstimate, len(e.Cols))}
	for id, v := range e.Cols {
		c.Cols[id] = v
	}
	return c
}

func (e *Estimate) first(n int64) *Estimate {
	c := e.clone()
	if n >= 0 {
		c.Rows = min(c.Rows, float64(n))
	}
	return c
}

func scanEstimate(n *Scan) *Estimate {
	e := &Estimate{Rows: rowsUnknown, Cols: map[expr.ColID]ColEstimate{}}
	if n.Source.Relation == nil {
		return e
	}
	st := n.Source.Relation.Stats()
	if st.Rows >= 0 {
		e.Rows = float64(st.Rows)
	}
	unique := map[int]bool{}
	for _, k := range n.Source.Keys {
		if len(k) == 1 {
			unique[k[0]] = true
		}
	}
	for i, pos := range n.At {
		c := ColEstimate{Base: e.Rows, Relation: n.Source}
		if s, ok := st.Columns[pos]; ok {
			lo, okLo := Number(s.Min)
			hi, okHi := Number(s.Max)
			// Shares are taken of the range, so it must be finite: -inf, or 1e308 on both sides, is no range.
			c.Min, c.Max, c.Ranged = lo, hi, okLo && okHi && !math.IsInf(hi-lo, 0)
			c.Distinct = float64(s.Distinct)
			if c.Distinct == 0 && c.Ranged && (n.Cols[i].Type.IsInteger() || n.Cols[i].Type.Kind == types.Date) {
				// Whole numbers between two bounds: there are no more values than that, and keys are mostly dense.
				c.Distinct = min(e.Rows, hi-lo+1)
				c.Width, c.Sparse = hi-lo+1, hi-lo+1 > e.Rows*1.5
			}
		}
		if unique[pos] {
			c.Distinct = e.Rows
		}
		e.Cols[n.Cols[i].ID] = c
	}
	return e
}

// Number places a value on a line, for interpolation.
func Number(v types.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float32:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	case decimal128.Num:
		f, _ := new(big.Float).SetInt(v.BigInt()).Float64()
		return f, true
	}
	return 0, false
}

// column follows casts and plain references.
func (e *Estimate) column(x expr.Expr) (ColEstimate, bool) {
	switch x := x.(type) {
	case *expr.Col:
		c, ok := e.Cols[x.ID]
		return c, ok
	case *expr.Cast:
		c, ok := e.column(x.Arg)
		c.Ranged = false
		return c, ok
	}
	return ColEstimate{}, false
}

// groups estimates the number of different values that the expressions take together.
func (e *Estimate) groups(es []expr.Expr) float64 {
	n := 1.0
	for _, x := range es {
		c, _ := e.column(x)
		d := c.Distinct
		if d == 0 {
			d = math.Sqrt(e.Rows)
		}
		n *= max(1, min(d, e.Rows))
	}
	return max(1, min(n, e.Rows))
}

// narrow applies a condition: it lowers Rows and tightens the bounds of the columns it names, so that the second
// half of a range counts only what the first has left.
func (e *Estimate) narrow(cond expr.Expr) {
	for _, c := range expr.Conjuncts(cond) {
		e.Rows *= e.share(c)
	}
	e.Rows = max(e.Rows, rowsMinimum)
}

// Share estimates which part of the rows satisfies a condition.
func (e *Estimate) Share(cond expr.Expr) float64 {
	c := e.clone()
	share := 1.0
	for _, x := range expr.Conjuncts(cond) {
		share *= c.share(x)
	}
	return share
}

func (e *Estimate) share(c expr.Expr) float64 {
	switch c := c.(type) {
	case *expr.Lit:
		if IsBool(c, true) {
			return 1
		}
		return 0
	case *expr.And:
		return e.Share(c)
	case *expr.Or:
		none := 1.0
		for _, a := range c.Args {
			none *= 1 - min(1, e.Share(a))
		}
		return 1 - none
	case *expr.Not:
		return max(0, 1-e.Share(c.Arg))
	case *expr.IsNull:
		if c.Negate {
			return 1 - shareNull
		}
		return shareNull
	case *expr.In:
		s := min(0.5, float64(len(c.List))*e.equal(c.Arg, nil))
		if c.Negate {
			return 1 - s
		}
		return s
	case *expr.Call:
		return e.shareCall(c)
	}
	return shareUnknown
}

func (e *Estimate) shareCall(c *expr.Call) float64 {
	if op, l, r, ok := Comparison(c); ok {
		if _, isLit := l.(*expr.Lit); isLit {
			op, l, r = Flip(op), r, l
		}
		lit, isLit := r.(*expr.Lit)
		if !isLit {
			switch op {
			case "=":
				a, _ := e.column(l)
				b, _ := e.column(r)
				if d := max(a.Distinct, b.Distinct); d > 0 {
					return 1 / d
				}
				return shareEqual
			case "<>":
				return 1 - shareEqual
			}
			return shareRange
		}
		switch op {
		case "=":
			return e.equal(l, lit)
		case "<>":
			return 1 - e.equal(l, lit)
		}
		return e.below(op, l, lit)
	}
	switch c.Fn.Name {
	case "~~", "~~*", "~~~", "like", "ilike", "like_escape", "ilike_escape", "glob", "contains", "starts_with", "suffix", "regexp_matches":
		return shareLike
	case "not like", "not ilike":
		return 1 - shareLike
	}
	return shareUnknown
}

// equal is the share of rows where x has one value.
func (e *Estimate) equal(x expr.Expr, lit *expr.Lit) float64 {
	c, ok := e.column(x)
	if ok && lit != nil && c.Ranged {
		if v, isNum := Number(lit.V); isNum && (v < c.Min || v > c.Max) {
			return 0
		}
	}
	switch {
	case ok && c.Distinct > 0:
		return 1 / c.Distinct
	case ok && c.Base > 0 && c.Base <= smallTable:
		return 1 / c.Base
	}
	return shareEqual
}

// below is the share of rows where x is below or above a constant, and remembers the new bound.
func (e *Estimate) below(op string, x expr.Expr, lit *expr.Lit) float64 {
	col, isCol := x.(*expr.Col)
	c, ok := e.column(x)
	v, isNum := Number(lit.V)
	if !ok {
		return shareComputed
	}
	if !isNum || !c.Ranged || !isCol {
		return shareRange
	}
	if c.Max <= c.Min {
		return shareUnknown
	}
	part := (v - c.Min) / (c.Max - c.Min)
	part = min(1, max(0, part))
	if op[0] == '<' {
		c.Max = min(c.Max, max(v, c.Min))
	} else {
		part = 1 - part
		c.Min = max(c.Min, min(v, c.Max))
	}
	e.Cols[col.ID] = c
	return max(part, 1e-6)
}

func (x *Estimator) aggregate(n *Aggregate) *Estimate {
	in := x.Of(n.Input)
	e := &Estimate{Rows: 1, Cols: map[expr.ColID]ColEstimate{}}
	if len(n.Keys) > 0 {
		var es []expr.Expr
		for _, k := range n.Keys {
			es = append(es, k.Expr)
			if c, ok := in.column(k.Expr); ok {
				e.Cols[k.Col.ID] = c
			}
		}
		e.Rows = in.groups(es)
		if keys := columnsOf(es); !x.Facts.Of(n.Input).Unique(keys) {
			// Nobody groups by what is different in each row; a dense range only looks like that.
			e.Rows = min(e.Rows, max(1, in.Rows/rowsPerGroup))
		}
	}
	return e
}

func columnsOf(es []expr.Expr) ColSet {
	s := ColSet{}
	for _, e := range es {
		if c, ok := e.(*expr.Col); ok {
			s[c.ID] = true
		}
	}
	return s
}

// Join estimates a join from its inputs: the product, divided for each key by the size of its domain.
func (x *Estimator) Join(kind JoinKind, l, r *Estimate, keys []EquiKey, on expr.Expr) *Estimate {
	out := &Estimate{Cols: make(map[expr.ColID]ColEstimate, len(l.Cols)+len(r.Cols))}
	for id, c := range l.Cols {
		out.Cols[id] = c
	}
	if kind != Semi && kind != Anti && kind != Mark {
		for id, c := range r.Cols {
			out.Cols[id] = c
		}
	}
	domain := keyDomain(l, r, keys)
	inner := l.Rows * r.Rows / domain
	if on != nil {
		both := &Estimate{Rows: inner, Cols: map[expr.ColID]ColEstimate{}}
		for _, side := range []*Estimate{l, r} {
			for id, c := range side.Cols {
				both.Cols[id] = c
			}
		}
		inner *= both.Share(on)
	}
	match := 1.0 // the share of left rows that have a partner
	if len(keys) > 0 {
		match = min(1, r.Rows/domain)
	}
	switch kind {
	case Inner:
		out.Rows = inner
	case Left:
		out.Rows = max(inner, l.Rows)
	case Right:
		out.Rows = max(inner, r.Rows)
	case Full:
		out.Rows = max(inner, l.Rows, r.Rows)
	case Semi:
		out.Rows = l.Rows * match
	case Anti:
		out.Rows = l.Rows * max(shareAnti, 1-match)
	default:
		out.Rows = l.Rows
	}
	return out
}

// keyDomain is the number of different keys that two inputs could have. One column: the larger domain holds the
// smaller. Several columns of one relation: as many as that relation has rows at most, and the lesser side counts,
// because a composite key mostly refers to it.
func keyDomain(l, r *Estimate, keys []EquiKey) float64 {
	if len(keys) == 0 {
		return 1
	}
	product := 1.0
	var lc, rc []ColEstimate
	for _, k := range keys {
		a, _ := l.column(k.Left)
		b, _ := r.column(k.Right)
		lc, rc = append(lc, a), append(rc, b)
		product *= domain(a, b, l.Rows, r.Rows)
	}
	if len(keys) == 1 {
		return max(product, 1)
	}
	return max(1, min(product, composite(lc), composite(rc)))
}

// domain is the number of values of one key.
func domain(a, b ColEstimate, left, right float64) float64 {
	if a.Sparse != b.Sparse && a.Width > 0 && b.Width > 0 && max(a.Width, b.Width) < 2*min(a.Width, b.Width) {
		if a.Sparse { // the dense side only counts numbers in its range; those that occur are the sparse side's
			return max(a.Distinct, 1)
		}
		return max(b.Distinct, 1)
	}
	if d := max(a.Distinct, b.Distinct); d > 0 {
		return d
	}
	return max(min(left, right), 1)
}

func composite(cols []ColEstimate) float64 {
	rel := cols[0].Relation
	same := slices.ContainsFunc(cols, func(c ColEstimate) bool { return c.Relation != rel })
	if rel == nil || same {
		return math.Inf(1)
	}
	return cols[0].Base
}
