package plan

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// Format prints a plan as an indented tree, one node a line, parents first. Columns are name#id, so
// that a printed plan shows which column an expression reads. Plans of subqueries stand below the node
// whose expressions hold them.
func Format(n Node) string {
	var p printer
	p.node(n, 0)
	return p.b.String()
}

type printer struct{ b strings.Builder }

func (p *printer) node(n Node, depth int) {
	p.b.WriteString(strings.Repeat("  ", depth))
	p.b.WriteString(Describe(n))
	p.b.WriteByte('\n')
	for _, e := range n.Exprs() {
		expr.Walk(e, func(x expr.Expr) bool {
			if s, ok := x.(*expr.Subquery); ok {
				fmt.Fprintf(&p.b, "%s[subquery%s]\n", strings.Repeat("  ", depth+1), idList(" outer", s.Outer))
				p.node(s.Plan.(Node), depth+2)
			}
			return true
		})
	}
	for _, c := range n.Children() {
		p.node(c, depth+1)
	}
}

// Describe prints one node without what is below it.
func Describe(n Node) string {
	switch n := n.(type) {
	case *Scan:
		s := "Scan " + n.Source.Name
		if n.Alias != "" && n.Alias != n.Source.Name {
			s += " AS " + n.Alias
		}
		s += " [" + joined(n.Cols, columnText) + "]"
		if len(n.Filters) > 0 {
			s += " where " + exprList(n.Filters, " AND ")
		}
		if n.Limit > 0 {
			s += fmt.Sprintf(" limit %d", n.Limit)
		}
		if n.Guard != nil {
			s += " diverts what fails in " + exprList(n.Guard.fallible(), ", ")
		}
		return s
	case *Normalize:
		return "Normalize" + idList(" by", n.Key)
	case *Values:
		if len(n.Cols) == 0 {
			return fmt.Sprintf("Values rows=%d", len(n.Rows))
		}
		s := "Values [" + joined(n.Cols, columnText) + "]"
		for i, r := range n.Rows {
			if i == 4 {
				return s + fmt.Sprintf(" … %d rows", len(n.Rows))
			}
			s += " (" + exprList(r, ", ") + ")"
		}
		return s
	case *Filter:
		return "Filter " + ExprString(n.Cond)
	case *Project:
		return "Project " + joined(n.Items, itemText)
	case *Aggregate:
		s := "Aggregate"
		if len(n.Keys) > 0 {
			s += " by " + joined(n.Keys, itemText)
		}
		if n.Sets != nil {
			s += fmt.Sprintf(" sets %v", n.Sets)
		}
		if len(n.Aggs) > 0 {
			s += " " + joined(n.Aggs, func(a AggItem) string { return aggText(&a) + " AS " + columnText(a.Col) })
		}
		if n.GroupingID != nil {
			s += " grouping " + columnText(*n.GroupingID)
		}
		return s
	case *TimeWindow:
		s := fmt.Sprintf("TimeWindow %s %s size %s", n.Kind, ExprString(n.Time), intervalText(n.Size))
		if n.Kind != Tumble {
			s += " slide " + intervalText(n.Slide)
		}
		if n.OffsetUS != 0 {
			s += " offset " + spanText(n.OffsetUS)
		}
		if len(n.Keys) > 0 {
			s += " by " + exprList(n.Keys, ", ")
		}
		return s + " AS " + columnText(n.Start) + ", " + columnText(n.End)
	case *Join:
		s := "Join " + n.Kind.String() + joinText(n.Keys, n.On, n.Kind, n.Mark)
		if n.BuildLeft {
			s += " build left"
		}
		return s
	case *Apply:
		return "Apply " + n.Kind.String() + idList(" outer", n.Outer) + joinText(n.Args, n.On, n.Kind, n.Mark)
	case *Sort:
		return "Sort " + sortText(n.Keys) + idList(" tie", n.Tie)
	case *Limit:
		return "Limit " + limitText(n.Limit, n.Offset)
	case *TopN:
		return "TopN " + limitText(n.Limit, n.Offset) + " by " + sortText(n.Keys) + idList(" tie", n.Tie)
	case *GroupTopN:
		s := fmt.Sprintf("GroupTopN %s <= %d", n.Rank, n.Limit)
		if len(n.Part) > 0 {
			s += " partition by " + exprList(n.Part, ", ")
		}
		if len(n.Keys) > 0 {
			s += " order by " + sortText(n.Keys)
		}
		s += idList(" tie", n.Tie)
		if n.RowNumber != nil {
			s += " AS " + columnText(*n.RowNumber)
		}
		return s
	case *Distinct:
		return "Distinct"
	case *SetOp:
		s := "SetOp " + n.Kind.String()
		if n.All {
			s += " ALL"
		}
		return s + " [" + joined(n.Cols, columnText) + "]"
	case *Unnest:
		return n.text()
	case *Recursive:
		if n.All {
			return "Recursive UNION ALL [" + joined(n.Cols, columnText) + "]"
		}
		return "Recursive UNION [" + joined(n.Cols, columnText) + "]"
	case *Window:
		return "Window " + joined(n.Funcs, windowText)
	}
	return fmt.Sprintf("%T", n)
}

func joined[T any](list []T, text func(T) string) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = text(x)
	}
	return strings.Join(parts, ", ")
}

func columnText(c Column) string { return fmt.Sprintf("%s#%d", c.Name, c.ID) }

func itemText(it Item) string {
	if c, ok := it.Expr.(*expr.Col); ok && c.ID == it.Col.ID {
		return columnText(it.Col)
	}
	return ExprString(it.Expr) + " AS " + columnText(it.Col)
}

func exprList(es []expr.Expr, sep string) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = ExprString(e)
	}
	return strings.Join(parts, sep)
}

func idList(label string, ids []expr.ColID) string {
	if len(ids) == 0 {
		return ""
	}
	return label + "(" + joined(ids, func(id expr.ColID) string { return fmt.Sprintf("#%d", id) }) + ")"
}

func sortText(keys []SortItem) string {
	return joined(keys, func(k SortItem) string { return ExprString(k.Expr) + keyText(k.Key) })
}

func keyText(k fn.SortKey) string {
	s := ""
	if k.Desc {
		s = " DESC"
	}
	if k.NullsFirst {
		s += " NULLS FIRST"
	}
	return s
}

func limitText(limit, offset int64) string {
	s := "all"
	if limit >= 0 {
		s = strconv.FormatInt(limit, 10)
	}
	if offset > 0 {
		s += fmt.Sprintf(" offset %d", offset)
	}
	return s
}

func joinText(keys []EquiKey, on expr.Expr, kind JoinKind, mark Column) string {
	var parts []string
	for _, k := range keys {
		op := " = "
		if k.NullSafe {
			op = " IS NOT DISTINCT FROM "
		}
		parts = append(parts, ExprString(k.Left)+op+ExprString(k.Right))
	}
	if on != nil {
		parts = append(parts, "("+ExprString(on)+")")
	}
	s := ""
	if len(parts) > 0 {
		s = " on " + strings.Join(parts, " AND ")
	}
	if kind == Mark {
		s += " AS " + columnText(mark)
	}
	return s
}

func aggText(a *AggItem) string {
	s := a.Fn.Name + "("
	if a.Distinct {
		s += "DISTINCT "
	}
	s += exprList(a.Args, ", ")
	if len(a.Order) > 0 {
		s += " ORDER BY " + sortText(a.Order)
	}
	s += ")" + idList(" tie", a.Tie)
	if a.Filter != nil {
		s += " FILTER (" + ExprString(a.Filter) + ")"
	}
	return s
}

func windowText(w WindowItem) string {
	s := w.Name + "(" + exprList(w.Args, ", ")
	if w.IgnoreNulls {
		s += " IGNORE NULLS"
	}
	s += ")"
	if w.Agg != nil {
		s = aggText(w.Agg)
	}
	var over []string
	if len(w.Part) > 0 {
		over = append(over, "PARTITION BY "+exprList(w.Part, ", "))
	}
	if len(w.Order) > 0 {
		over = append(over, "ORDER BY "+sortText(w.Order))
	}
	if w.Frame != nil {
		over = append(over, w.Frame.String())
	}
	return s + " OVER (" + strings.Join(over, " ") + ")" + idList(" tie", w.Tie) + " AS " + columnText(w.Col)
}

// ExprString prints a bound expression on one line.
func ExprString(e expr.Expr) string {
	switch e := e.(type) {
	case nil:
		return "<none>"
	case *expr.Col:
		return fmt.Sprintf("%s#%d", e.Name, e.ID)
	case *expr.Lit:
		return litText(e)
	case *expr.Call:
		if e.Fn.Operator && len(e.Args) == 2 {
			return "(" + ExprString(e.Args[0]) + " " + e.Fn.Name + " " + ExprString(e.Args[1]) + ")"
		}
		return e.Fn.Name + "(" + exprList(e.Args, ", ") + ")"
	case *expr.Cast:
		if e.Try {
			return "TRY_CAST(" + ExprString(e.Arg) + " AS " + e.T.String() + ")"
		}
		return ExprString(e.Arg) + "::" + e.T.String()
	case *expr.And:
		return "(" + exprList(e.Args, " AND ") + ")"
	case *expr.Or:
		return "(" + exprList(e.Args, " OR ") + ")"
	case *expr.Not:
		return "NOT " + ExprString(e.Arg)
	case *expr.IsNull:
		if e.Negate {
			return ExprString(e.Arg) + " IS NOT NULL"
		}
		return ExprString(e.Arg) + " IS NULL"
	case *expr.Case:
		s := "CASE"
		for _, w := range e.Whens {
			s += " WHEN " + ExprString(w.Cond) + " THEN " + ExprString(w.Then)
		}
		if e.Else != nil {
			s += " ELSE " + ExprString(e.Else)
		}
		return s + " END"
	case *expr.Lambda, *expr.Param:
		return expr.String(e)
	case *expr.Coalesce:
		return "coalesce(" + exprList(e.Args, ", ") + ")"
	case *expr.In:
		op := " IN ("
		if e.Negate {
			op = " NOT IN ("
		}
		list := e.List
		if len(list) > 10 {
			return ExprString(e.Arg) + op + exprList(list[:10], ", ") + fmt.Sprintf(", … %d values)", len(list))
		}
		return ExprString(e.Arg) + op + exprList(list, ", ") + ")"
	case *expr.Subquery:
		return subqueryText(e)
	}
	if s, ok := e.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T(%s)", e, exprList(e.Children(), ", "))
}

func subqueryText(e *expr.Subquery) string {
	args := exprList(e.Args, ", ")
	if len(e.Args) > 1 {
		args = "(" + args + ")"
	}
	s := "[subquery]"
	switch e.Kind {
	case expr.ExistsSub:
		s = "EXISTS " + s
	case expr.InSub:
		if e.Negate {
			return args + " NOT IN " + s
		}
		s = args + " IN " + s
	case expr.AnySub:
		s = args + " " + e.Op + " ANY " + s
	case expr.AllSub:
		s = args + " " + e.Op + " ALL " + s
	}
	if e.Negate {
		return "NOT " + s
	}
	return s
}

func litText(e *expr.Lit) string {
	if e.V == nil {
		return "NULL"
	}
	switch v := e.V.(type) {
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		return "x'" + hex.EncodeToString(v) + "'"
	case decimal128.Num:
		if e.T.Kind == types.Decimal {
			return v.ToString(int32(e.T.Scale))
		}
		return types.Format(v, e.T)
	case types.IntervalValue:
		return "INTERVAL '" + intervalText(v) + "'"
	case int64:
		if e.T.IsTemporal() {
			return e.T.String() + " " + strconv.FormatInt(v, 10)
		}
		return strconv.FormatInt(v, 10)
	}
	return fmt.Sprint(e.V)
}

func intervalText(v types.IntervalValue) string {
	var parts []string
	if v.Months != 0 {
		parts = append(parts, fmt.Sprintf("%d months", v.Months))
	}
	if v.Days != 0 {
		parts = append(parts, fmt.Sprintf("%d days", v.Days))
	}
	switch us := v.Micros; {
	case us != 0 && us%1_000_000 == 0:
		parts = append(parts, fmt.Sprintf("%d seconds", us/1_000_000))
	case us != 0:
		parts = append(parts, fmt.Sprintf("%d microseconds", us))
	}
	if parts == nil {
		return "0 seconds"
	}
	return strings.Join(parts, " ")
}
