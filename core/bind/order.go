package bind

import (
	"math"
	"math/big"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// term is one expression of ORDER BY or DISTINCT ON: an output column, or a value that is computed beside them.
type term struct {
	item  int // position in the select list; -1: value
	value expr.Expr
	key   fn.SortKey
}

var orderClause = clause{name: "ORDER BY", aggs: true, windows: true, aliases: true}

func (bl *block) orderBy(order []sql.OrderItem) []term {
	var out []term
	for _, o := range order {
		if o.All {
			for i := range bl.items {
				out = append(out, term{item: i, key: sortKey(o)})
			}
			continue
		}
		t := bl.term(o.Expr, orderClause)
		t.key = sortKey(o)
		out = append(out, t)
	}
	return out
}

func (bl *block) distinctOn() []term {
	var out []term
	c := orderClause
	c.name = "DISTINCT ON"
	for _, x := range bl.sel.DistinctOn {
		out = append(out, bl.term(x, c))
	}
	return out
}

// term resolves one expression: a position, a name of the select list before a column of FROM, or any expression.
func (bl *block) term(x sql.Expr, c clause) term {
	switch l := x.(type) {
	case *sql.Unary:
		bl.refuseNegative(l, c.name)
	case *sql.Literal:
		if l.Kind != sql.LitInt {
			failHint(l.Pos, "order by a column, or by its position", "%s a constant has no effect", c.name)
		}
		n := bl.ordinal(l, c.name)
		for i := range bl.items {
			if &bl.items[i] == n {
				return term{item: i}
			}
		}
	case *sql.ColumnRef:
		if len(l.Parts) == 1 {
			for i, it := range bl.items {
				if it.alias != "" && sameName(it.alias, l.Parts[0].Name) {
					return term{item: i}
				}
			}
		}
	}
	v := bl.env(c).bind(x)
	for i, it := range bl.items {
		if same(it.value, v) {
			return term{item: i}
		}
	}
	return term{item: -1, value: v}
}

// limit evaluates LIMIT and OFFSET, which are constants; nil when there are none.
func (b *Binder) limit(q *sql.Query, ctes *cte) *plan.Limit {
	if q.Limit == nil && q.Offset == nil {
		return nil
	}
	if q.LimitPercent {
		failUnsupported(q.Limit.Position(), "LIMIT with %")
	}
	l := &plan.Limit{Limit: -1}
	if q.Limit != nil {
		l.Limit = b.rowCount(q.Limit, "LIMIT", -1)
	}
	if q.Offset != nil {
		l.Offset = b.rowCount(q.Offset, "OFFSET", 0)
	}
	if l.Limit < 0 && l.Offset == 0 {
		return nil
	}
	return l
}

// rowCount is a whole, non-negative constant; NULL means that the clause is absent.
func (b *Binder) rowCount(x sql.Expr, name string, absent int64) int64 {
	e := &env{b: b, scope: &scope{}, clause: clause{name: name}}
	if _, ok := x.(*sql.Subquery); ok {
		failUnsupported(x.Position(), name+" with a subquery")
	}
	sql.Inspect(x, func(n sql.Node) bool {
		if c, ok := n.(*sql.ColumnRef); ok {
			fail(c.Pos, "%s must be a constant; %q is a column", name, c.Parts)
		}
		return true
	})
	v := e.bind(x)
	if !v.Type().IsNumeric() && v.Type().Kind != types.Null && v.Type().Kind != types.Varchar {
		fail(x.Position(), "%s wants a number, not %s", name, v.Type())
	}
	l, ok := e.constantOf(e.cast(v, types.Int64, x.Position()))
	if !ok {
		fail(x.Position(), "%s must be a constant", name)
	}
	if l.V == nil {
		return absent
	}
	n := l.V.(int64)
	if n < 0 {
		fail(x.Position(), "%s cannot be negative", name)
	}
	return n
}

// outputOrder binds ORDER BY over the columns of a set operation or VALUES.
func (b *Binder) outputOrder(node plan.Node, order []sql.OrderItem, outer *scope, ctes *cte) (plan.Node, []plan.SortItem) {
	cols := node.Columns()
	e := &env{b: b, scope: &scope{tables: []*table{{cols: cols}}, parent: outer}, ctes: ctes, clause: clause{name: "ORDER BY"}}
	values, names := []expr.Expr{}, columnNames(cols)
	for _, c := range cols {
		values = append(values, c.Ref())
	}
	var at []int
	var keys []fn.SortKey
	for _, o := range order {
		switch l, _ := o.Expr.(*sql.Literal); {
		case o.All:
			for i := range cols {
				at, keys = append(at, i), append(keys, sortKey(o))
			}
			continue
		case l != nil && l.Kind == sql.LitInt:
			n := whole(number(l, false))
			if n == nil || n.Sign() <= 0 || n.Cmp(big.NewInt(int64(len(cols)))) > 0 {
				fail(l.Pos, "ORDER BY %s is out of range: the query has %d columns", l.Text, len(cols))
			}
			at = append(at, int(n.Int64())-1)
		case l != nil:
			failHint(l.Pos, "order by a column, or by its position", "ORDER BY a constant has no effect")
		default:
			v := e.bind(o.Expr)
			if c, ok := v.(*expr.Col); ok {
				if i := indexOf(cols, c.ID); i >= 0 {
					at = append(at, i)
					break
				}
			}
			at = append(at, len(values))
			values, names = append(values, v), append(names, "")
		}
		keys = append(keys, sortKey(o))
	}
	if len(values) > len(cols) {
		node = b.project(node, values, names)
		cols = node.Columns()
	}
	out := make([]plan.SortItem, len(at))
	for i, p := range at {
		out[i] = plan.SortItem{Expr: cols[p].Ref(), Key: keys[i]}
	}
	return node, out
}

func indexOf(cols []plan.Column, id expr.ColID) int {
	for i, c := range cols {
		if c.ID == id {
			return i
		}
	}
	return -1
}

// emit reads the EMIT clause.
func (b *Binder) emit(q *sql.Query) (plan.EmitPolicy, int64) {
	if q.Emit == nil {
		if inner, ok := q.Body.(*sql.Query); ok {
			return b.emit(inner)
		}
		return plan.EmitDefault, 0
	}
	switch q.Emit.Kind {
	case sql.EmitOnWatermark:
		return plan.EmitOnWatermark, 0
	case sql.EmitImmediate:
		return plan.EmitImmediate, 0
	}
	e := &env{b: b, scope: &scope{}, clause: clause{name: "EMIT EVERY"}}
	l, ok := e.constantOf(e.cast(e.bind(q.Emit.Every), types.Span, q.Emit.Pos))
	if !ok || l.V == nil {
		fail(q.Emit.Pos, "EMIT EVERY wants a constant interval")
	}
	v := l.V.(types.IntervalValue)
	const day = 24 * 3600 * 1_000_000
	if v.Months != 0 || v.Days < 0 || v.Micros < 0 || v.Micros > math.MaxInt64/2 || v.Days == 0 && v.Micros == 0 {
		fail(q.Emit.Pos, "EMIT EVERY wants a positive interval of days or less")
	}
	return plan.EmitEvery, int64(v.Days)*day + v.Micros
}

// refuseEmit rejects EMIT below the top of a statement.
func refuseEmit(q *sql.Query) {
	if q.Emit != nil {
		failHint(q.Emit.Pos, "move it to the end of the statement", "EMIT belongs to the whole statement, not to a part of it")
	}
}
