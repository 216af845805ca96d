package plan

import (
	"maps"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
)

// Props are facts about a node's output that hold in every run, in both modes.
type Props struct {
	// Keys are minimal sets of columns that no two rows agree in (NULL equals NULL). The empty set says: at most one row.
	Keys []ColSet
	// NotNull columns have a value in every row.
	NotNull ColSet
	// Const columns have the same value in every row.
	Const map[expr.ColID]*expr.Lit
	// Pairs are columns that determine each other: the start and end of windows of one size.
	Pairs [][2]expr.ColID
}

// Unique reports whether no two rows agree in the given columns.
func (p *Props) Unique(cols ColSet) bool {
	for _, k := range p.Keys {
		if Subset(k, cols) {
			return true
		}
	}
	return false
}

// One reports whether there is at most one row.
func (p *Props) One() bool { return len(p.Keys) == 1 && len(p.Keys[0]) == 0 }

// maxKeys bounds the keys kept per node; joins multiply them.
const maxKeys = 8

func (p *Props) addKey(k ColSet) {
	for id := range p.Const {
		if k[id] {
			k = without(k, id)
		}
	}
	for _, pair := range p.Pairs {
		if k[pair[0]] && k[pair[1]] {
			p.addKey(without(k, pair[1]))
			k = without(k, pair[0])
		}
	}
	kept := p.Keys[:0:0]
	for _, have := range p.Keys {
		if Subset(have, k) {
			return
		}
		if !Subset(k, have) {
			kept = append(kept, have)
		}
	}
	p.Keys = kept
	if len(kept) < maxKeys {
		p.Keys = append(kept, k)
	}
}

func without(k ColSet, id expr.ColID) ColSet {
	k = maps.Clone(k)
	delete(k, id)
	return k
}

// Facts derives properties and remembers them; nodes never change, so a Facts may live as long as its plan.
type Facts struct {
	props map[Node]*Props
}

// NewFacts returns an empty Facts.
func NewFacts() *Facts { return &Facts{props: map[Node]*Props{}} }

// Of returns the properties of n's output.
func (f *Facts) Of(n Node) *Props {
	if p, ok := f.props[n]; ok {
		return p
	}
	p := &Props{NotNull: ColSet{}, Const: map[expr.ColID]*expr.Lit{}}
	f.derive(n, p)
	f.props[n] = p
	return p
}

// PropsOf is Of for a single question.
func PropsOf(n Node) *Props { return NewFacts().Of(n) }

func (f *Facts) inherit(p *Props, from *Props) {
	maps.Copy(p.NotNull, from.NotNull)
	maps.Copy(p.Const, from.Const)
	p.Pairs = append(p.Pairs, from.Pairs...)
	for _, k := range from.Keys {
		p.addKey(k)
	}
}

func (f *Facts) derive(n Node, p *Props) {
	switch n := n.(type) {
	case *Scan:
		f.scan(n, p)
	case *Normalize:
		f.inherit(p, f.Of(n.Input))
		key := ColSet{}
		for _, id := range n.Key {
			key[id], p.NotNull[id] = true, true
		}
		p.addKey(key)
	case *Values:
		f.values(n, p)
	case *Filter:
		in := f.Of(n.Input)
		maps.Copy(p.NotNull, in.NotNull)
		maps.Copy(p.Const, in.Const)
		p.Pairs = in.Pairs
		learn(n.Cond, p)
		for _, k := range in.Keys {
			p.addKey(k)
		}
	case *Project:
		f.project(n, p)
	case *Aggregate:
		f.aggregate(n, p)
	case *TimeWindow:
		f.timeWindow(n, p)
	case *Join:
		f.join(n.Kind, n.Left, n.Right, n.Keys, n.On, n.Mark, p)
	case *Apply:
		f.join(n.Kind, n.Left, n.Right, nil, nil, n.Mark, p)
	case *Sort:
		f.inherit(p, f.Of(n.Input))
	case *Limit:
		f.inherit(p, f.Of(n.Input))
		if n.Limit == 0 || n.Limit == 1 {
			p.addKey(ColSet{})
		}
	case *TopN:
		f.inherit(p, f.Of(n.Input))
		if n.Limit == 0 || n.Limit == 1 {
			p.addKey(ColSet{})
		}
	case *GroupTopN:
		f.groupTopN(n, p)
	case *Unnest:
		f.unnest(n, p)
	case *Distinct:
		f.inherit(p, f.Of(n.Input))
		p.addKey(SetOf(n.Columns()))
	case *SetOp:
		f.setOp(n, p)
	case *Window:
		f.inherit(p, f.Of(n.Input))
		for _, w := range n.Funcs {
			switch w.Name {
			case "row_number", "rank", "dense_rank", "count":
				p.NotNull[w.Col.ID] = true
			}
		}
	}
}

// learn takes what a true condition says of columns.
func learn(cond expr.Expr, p *Props) {
	for _, c := range expr.Conjuncts(cond) {
		cols := ExprColumns(c)
		for id := range cols {
			if Rejects(c, ColSet{id: true}) {
				p.NotNull[id] = true
			}
		}
		if l, r, _, ok := Equality(c); ok {
			if _, isLit := l.(*expr.Lit); isLit {
				l, r = r, l
			}
			col, isCol := l.(*expr.Col)
			lit, isLit := r.(*expr.Lit)
			if isCol && isLit && lit.V != nil {
				p.Const[col.ID] = lit
			}
		}
	}
}

func (f *Facts) scan(n *Scan, p *Props) {
	at := make(map[int]expr.ColID, len(n.At))
	for i, pos := range n.At {
		at[pos] = n.Cols[i].ID
	}
	// A table's rows change between planning and running, so only its declared keys count.
	if n.Source.Relation != nil && !n.Source.Table {
		st := n.Source.Relation.Stats()
		for pos, id := range at {
			if c, ok := st.Columns[pos]; ok && st.Exact && c.Nulls == 0 && c.Min != nil {
				p.NotNull[id] = true
			}
		}
	}
	for _, e := range n.Filters {
		learn(e, p)
	}
	for _, key := range n.Source.Keys {
		k := ColSet{}
		for _, pos := range key {
			if id, ok := at[pos]; ok {
				k[id] = true
			}
		}
		if len(k) == len(key) {
			p.addKey(k)
		}
	}
}

func (f *Facts) values(n *Values, p *Props) {
	if len(n.Rows) <= 1 {
		p.addKey(ColSet{})
	}
	for i, c := range n.Cols {
		never := true
		for _, r := range n.Rows {
			never = never && NeverNull(r[i], nil)
		}
		p.NotNull[c.ID] = never
		if !never {
			delete(p.NotNull, c.ID)
		}
		if len(n.Rows) == 1 {
			if l, ok := n.Rows[0][i].(*expr.Lit); ok {
				p.Const[c.ID] = l
			}
		}
	}
}

// carry moves facts over items that pass columns on under other IDs. An input key survives when all its columns do.
func (f *Facts) carry(in *Props, items []Item, p *Props) {
	names := map[expr.ColID][]expr.ColID{}
	for _, it := range items {
		if NeverNull(it.Expr, in.NotNull) {
			p.NotNull[it.Col.ID] = true
		}
		switch e := it.Expr.(type) {
		case *expr.Col:
			names[e.ID] = append(names[e.ID], it.Col.ID)
			if l, ok := in.Const[e.ID]; ok {
				p.Const[it.Col.ID] = l
			}
		case *expr.Lit:
			p.Const[it.Col.ID] = e
		}
	}
	for _, pair := range in.Pairs {
		for _, a := range names[pair[0]] {
			for _, b := range names[pair[1]] {
				p.Pairs = append(p.Pairs, [2]expr.ColID{a, b})
			}
		}
	}
	for _, k := range in.Keys {
		out, whole := ColSet{}, true
		for id := range k {
			if to := names[id]; len(to) > 0 {
				out[to[0]] = true
			} else {
				whole = false
			}
		}
		if whole {
			p.addKey(out)
		}
	}
}

func (f *Facts) project(n *Project, p *Props) { f.carry(f.Of(n.Input), n.Items, p) }

func (f *Facts) aggregate(n *Aggregate, p *Props) {
	in := f.Of(n.Input)
	for _, a := range n.Aggs {
		if NeverNullAgg(&a) {
			p.NotNull[a.Col.ID] = true
		}
	}
	if n.Sets != nil {
		// A key column is NULL in the sets that leave it out, and two sets may give equal rows unless told apart.
		if n.GroupingID != nil {
			k := ColSet{n.GroupingID.ID: true}
			for _, it := range n.Keys {
				k[it.Col.ID] = true
			}
			p.NotNull[n.GroupingID.ID] = true
			p.addKey(k)
		}
		return
	}
	f.carry(in, n.Keys, p)
	k := ColSet{}
	for _, it := range n.Keys {
		k[it.Col.ID] = true
	}
	p.addKey(k)
	if len(n.Keys) == 0 {
		return
	}
	for _, a := range n.Aggs {
		switch a.Fn.Name {
		case "sum", "min", "max", "avg":
			// A group has a row; that row's value is not NULL; so the result is none.
			if a.Filter == nil && len(a.Args) == 1 && NeverNull(a.Args[0], in.NotNull) {
				p.NotNull[a.Col.ID] = true
			}
		}
	}
}

// NeverNullAgg reports whether an aggregate has a value even for no rows: the counts.
func NeverNullAgg(a *AggItem) bool {
	switch a.Fn.Name {
	case "count", "count_star", "count_if", "approx_count_distinct", "regr_count":
		return true
	}
	return false
}

func (f *Facts) timeWindow(n *TimeWindow, p *Props) {
	in := f.Of(n.Input)
	maps.Copy(p.NotNull, in.NotNull)
	maps.Copy(p.Const, in.Const)
	if NeverNull(n.Time, in.NotNull) { // a row without a time is in a window without edges
		p.NotNull[n.Start.ID], p.NotNull[n.End.ID] = true, true
	}
	p.Pairs = in.Pairs
	if (n.Kind == Tumble || n.Kind == Hop) && n.Size.Months == 0 { // months differ in length
		p.Pairs = append(slices.Clip(p.Pairs), [2]expr.ColID{n.Start.ID, n.End.ID})
	}
	for _, k := range in.Keys {
		switch n.Kind {
		case Tumble, Session:
			p.addKey(k)
		case Hop:
			k = maps.Clone(k)
			k[n.Start.ID] = true
			p.addKey(k)
		case Cumulate:
			k = maps.Clone(k)
			k[n.End.ID] = true
			p.addKey(k)
		}
	}
}

func (f *Facts) join(kind JoinKind, left, right Node, keys []EquiKey, on expr.Expr, mark Column, p *Props) {
	l, r := f.Of(left), f.Of(right)
	if kind != Right && kind != Full {
		maps.Copy(p.NotNull, l.NotNull)
		maps.Copy(p.Const, l.Const)
	}
	p.Pairs = append(p.Pairs, l.Pairs...) // padding makes both columns NULL, so pairs stay pairs
	switch kind {
	case Semi, Anti, Mark, Single:
		if kind == Mark && len(keys) == 0 && on == nil {
			p.NotNull[mark.ID] = true
		}
		if kind == Semi {
			learnKeys(keys, p, true, false)
		}
		for _, k := range l.Keys {
			p.addKey(k)
		}
		return
	}
	p.Pairs = append(p.Pairs, r.Pairs...)
	if kind == Inner || kind == Right {
		maps.Copy(p.NotNull, r.NotNull)
		maps.Copy(p.Const, r.Const)
	}
	if kind == Inner {
		learnKeys(keys, p, true, true)
		if on != nil {
			learn(on, p)
		}
	}
	lk, rk := ColSet{}, ColSet{}
	for _, k := range keys {
		if c, ok := k.Left.(*expr.Col); ok {
			lk[c.ID] = true
		}
		if c, ok := k.Right.(*expr.Col); ok {
			rk[c.ID] = true
		}
	}
	// Each left row meets at most one right row: left keys stay keys, unless right rows can come without a partner.
	if (kind == Inner || kind == Left) && r.Unique(rk) {
		for _, k := range l.Keys {
			p.addKey(k)
		}
	}
	if (kind == Inner || kind == Right) && l.Unique(lk) {
		for _, k := range r.Keys {
			p.addKey(k)
		}
	}
	for _, a := range l.Keys {
		for _, b := range r.Keys {
			k := maps.Clone(a)
			maps.Copy(k, b)
			if kind == Full && !Overlap(a, l.NotNull) && !Overlap(b, r.NotNull) {
				continue // a padded left row and a padded right row may both be all NULL here
			}
			p.addKey(k)
		}
	}
}

func learnKeys(keys []EquiKey, p *Props, left, right bool) {
	for _, k := range keys {
		if k.NullSafe {
			continue
		}
		if left {
			for id := range ExprColumns(k.Left) {
				if nullEval(k.Left, ColSet{id: true}) == isNull {
					p.NotNull[id] = true
				}
			}
		}
		if right {
			for id := range ExprColumns(k.Right) {
				if nullEval(k.Right, ColSet{id: true}) == isNull {
					p.NotNull[id] = true
				}
			}
		}
	}
}

func (f *Facts) groupTopN(n *GroupTopN, p *Props) {
	f.inherit(p, f.Of(n.Input))
	part, plain := ColSet{}, true
	for _, e := range n.Part {
		if c, ok := e.(*expr.Col); ok {
			part[c.ID] = true
		} else {
			plain = false
		}
	}
	if n.RowNumber != nil {
		p.NotNull[n.RowNumber.ID] = true
	}
	if !plain || n.Rank != "row_number" {
		return
	}
	switch {
	case n.Limit == 1:
		p.addKey(part)
	case n.RowNumber != nil:
		part[n.RowNumber.ID] = true
		p.addKey(part)
	}
}

func (f *Facts) setOp(n *SetOp, p *Props) {
	l, r := f.Of(n.Left), f.Of(n.Right)
	lc, rc := n.Left.Columns(), n.Right.Columns()
	for i, c := range n.Cols {
		left, right := l.NotNull[lc[i].ID], r.NotNull[rc[i].ID]
		if left && right || left && n.Kind == Except || (left || right) && n.Kind == Intersect {
			p.NotNull[c.ID] = true
		}
	}
	if !n.All {
		p.addKey(SetOf(n.Cols))
	}
	if n.Kind != Union {
		at := map[expr.ColID]expr.ColID{}
		for i, c := range lc {
			at[c.ID] = n.Cols[i].ID
		}
		for _, k := range l.Keys {
			out := ColSet{}
			for id := range k {
				out[at[id]] = true
			}
			p.addKey(out)
		}
	}
}
