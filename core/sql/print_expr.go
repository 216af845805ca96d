package sql

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// precOf is how tightly an expression holds together, as the parser sees it.
func precOf(e Expr) int {
	switch e := e.(type) {
	case *Binary:
		switch e.Op {
		case OpDistinct, OpNotDistinct:
			return precIs
		}
		return infixes[string(e.Op)].prec
	case *Quantified:
		return infixes[string(e.Op)].prec
	case *Not:
		return precNot
	case *Is:
		return precIs
	case *Match, *Between, *In:
		return precLike
	case *Unary:
		if e.Op == "~" || e.Op == "@" {
			return precOp
		}
		return precSign
	case *Collate:
		return precAt
	case *Subscript, *Slice, *Field:
		return precPostfix
	}
	return precPrimary
}

// leftMin is how tightly the left operand of an operator must hold to go
// without parentheses; comparisons do not chain.
func leftMin(prec int) int {
	if prec == precCompare {
		return prec + 1
	}
	return prec
}

// expr writes an expression, in parentheses when it holds less tightly than min.
func (w *printer) expr(e Expr, min int) {
	if precOf(e) < min {
		w.put("(")
		defer w.put(")")
	}
	switch e := e.(type) {
	case *Literal:
		w.literal(e)
	case *TypedLiteral:
		if ownSyntax[e.Type.Name] && e.Type.Fields == nil && e.Type.Params == nil {
			w.put(quoteName(e.Type.Name)) // "INTERVAL" '…' is a name here
		} else {
			w.typeName(e.Type)
		}
		w.put(" ", quoteString(e.Text))
	case *Interval:
		w.interval(e)
	case *ColumnRef:
		w.name(e.Parts)
	case *Star:
		w.star(e)
	case *Columns:
		w.put("COLUMNS(")
		w.expr(e.Arg, 0)
		w.put(")")
	case *Unary:
		w.unary(e)
	case *Binary:
		w.binary(e)
	case *Not:
		w.put("NOT ")
		w.expr(e.X, precNot)
	case *Is:
		w.expr(e.X, precIs)
		w.put(" IS ", notText(e.Not), string(e.What))
	case *Match:
		w.match(e)
	case *Between:
		w.expr(e.X, precLike)
		w.put(" ", notText(e.Not), "BETWEEN ")
		w.putIf(e.Symmetric, "SYMMETRIC ")
		w.expr(e.Lo, precLike+1)
		w.put(" AND ")
		w.expr(e.Hi, precLike+1)
	case *In:
		w.in(e)
	case *Exists:
		w.put("EXISTS ")
		w.parenQuery(e.Query)
	case *Subquery:
		w.putIf(e.Array, "ARRAY ")
		w.parenQuery(e.Query)
	case *Quantified:
		w.quantified(e)
	case *Case:
		w.caseExpr(e)
	case *Cast:
		w.putIf(e.Try, "TRY_")
		w.put("CAST(")
		w.expr(e.X, 0)
		w.put(" AS ")
		w.typeName(e.Type)
		w.put(")")
	case *Collate:
		w.expr(e.X, precAt)
		w.put(" COLLATE ")
		w.name(e.Name)
	case *Function:
		w.function(e)
	case *List:
		w.put("[")
		w.exprs(e.Items)
		w.put("]")
	case *Struct:
		w.put("{")
		w.list(len(e.Fields), func(i int) {
			w.put(quoteString(e.Fields[i].Name.Name), ": ")
			w.expr(e.Fields[i].Value, 0)
		})
		w.put("}")
	case *Map:
		w.put("MAP {")
		w.list(len(e.Entries), func(i int) {
			w.expr(e.Entries[i].Key, 0)
			w.put(": ")
			w.expr(e.Entries[i].Value, 0)
		})
		w.put("}")
	case *Row:
		w.put("ROW(") // with the word: then (…) is never anything but parentheses
		w.exprs(e.Items)
		w.put(")")
	case *Subscript:
		w.base(e.X, false)
		w.put("[")
		w.expr(e.Index, 0)
		w.put("]")
	case *Slice:
		w.slice(e)
	case *Field:
		w.base(e.X, true)
		w.put(".")
		w.ident(e.Name)
	case *Lambda:
		w.lambda(e)
	case *Param:
		w.put("$", e.Name)
		w.putIf(e.Name == "", strconv.Itoa(e.Index))
	case *Default:
		w.put("DEFAULT")
	}
}

func notText(not bool) string {
	if not {
		return "NOT "
	}
	return ""
}

func (w *printer) exprs(list []Expr) {
	w.list(len(list), func(i int) { w.expr(list[i], 0) })
}

func (w *printer) literal(l *Literal) {
	switch l.Kind {
	case LitString:
		w.put(quoteString(l.Text))
	case LitBlob:
		w.put("x'", hex.EncodeToString([]byte(l.Text)), "'")
	case LitNull, LitBool:
		w.put(strings.ToUpper(l.Text))
	default:
		w.put(l.Text)
	}
}

func (w *printer) interval(iv *Interval) {
	w.put("INTERVAL ")
	if l, ok := iv.Value.(*Literal); ok && l.Kind == LitString {
		w.literal(l)
	} else {
		w.put("(")
		w.expr(iv.Value, 0)
		w.put(")")
	}
	w.putIf(iv.Unit != "", " ", iv.Unit)
}

func (w *printer) star(s *Star) {
	for _, q := range s.Qualifier {
		w.ident(q)
		w.put(".")
	}
	w.put("*")
	if s.Exclude != nil {
		w.put(" EXCLUDE (")
		w.list(len(s.Exclude), func(i int) { w.name(s.Exclude[i]) })
		w.put(")")
	}
	if s.Replace != nil {
		w.put(" REPLACE (")
		w.list(len(s.Replace), func(i int) {
			w.expr(s.Replace[i].Expr, 0)
			w.alias(s.Replace[i].Name)
		})
		w.put(")")
	}
	if s.Rename != nil {
		w.put(" RENAME (")
		w.list(len(s.Rename), func(i int) {
			w.name(s.Rename[i].From)
			w.alias(s.Rename[i].To)
		})
		w.put(")")
	}
}

func (w *printer) unary(u *Unary) {
	w.put(u.Op)
	inner, nested := u.X.(*Unary)
	switch {
	case nested && inner.Op == u.Op: // --x would be a comment
		w.put("(")
		w.unary(inner)
		w.put(")")
	case u.Op == "-" || u.Op == "+":
		w.expr(u.X, precSign)
	default:
		w.expr(u.X, precOp+1)
	}
}

// binary writes the left spine in a loop: it may be long.
func (w *printer) binary(top *Binary) {
	spine := []*Binary{top}
	var left Expr
	for {
		b := spine[len(spine)-1]
		next, ok := b.Left.(*Binary)
		if !ok || precOf(next) < leftMin(precOf(b)) {
			left = b.Left
			break
		}
		spine = append(spine, next)
	}
	w.expr(left, leftMin(precOf(spine[len(spine)-1])))
	for i := len(spine) - 1; i >= 0; i-- {
		b := spine[i]
		w.put(" ", string(b.Op), " ")
		w.expr(b.Right, precOf(b)+1)
	}
}

func (w *printer) match(m *Match) {
	w.expr(m.X, precLike)
	w.put(" ", notText(m.Not), string(m.Kind), " ")
	w.expr(m.Pattern, precLike+1)
	if m.Escape != nil {
		w.put(" ESCAPE ")
		w.expr(m.Escape, precLike+1)
	}
}

func (w *printer) in(in *In) {
	w.expr(in.X, precLike)
	w.put(" ", notText(in.Not), "IN ")
	switch {
	case in.Query != nil:
		w.parenQuery(in.Query)
	case in.Set != nil:
		w.expr(in.Set, precPostfix)
	default:
		w.put("(")
		w.exprs(in.List)
		w.put(")")
	}
}

func (w *printer) quantified(q *Quantified) {
	w.expr(q.X, leftMin(precOf(q)))
	w.put(" ", string(q.Op), " ")
	if q.All {
		w.put("ALL ")
	} else {
		w.put("ANY ")
	}
	if q.Query != nil {
		w.parenQuery(q.Query)
		return
	}
	w.put("(")
	w.expr(q.Set, 0)
	w.put(")")
}

func (w *printer) caseExpr(c *Case) {
	w.put("CASE")
	if c.Operand != nil {
		w.put(" ")
		w.expr(c.Operand, 0)
	}
	for _, when := range c.Whens {
		w.put(" WHEN ")
		w.expr(when.Cond, 0)
		w.put(" THEN ")
		w.expr(when.Then, 0)
	}
	if c.Else != nil {
		w.put(" ELSE ")
		w.expr(c.Else, 0)
	}
	w.put(" END")
}

// base writes what a subscript or a field is taken of. A column before a dot
// needs parentheses, or the field would be a part of its name; a number needs a
// space, or the dot would be a part of it.
func (w *printer) base(x Expr, dot bool) {
	if _, column := x.(*ColumnRef); column && dot {
		w.put("(")
		w.expr(x, 0)
		w.put(")")
		return
	}
	w.expr(x, precPostfix)
	if l, ok := x.(*Literal); ok && dot && l.Kind >= LitInt && l.Kind <= LitDouble {
		w.put(" ")
	}
}

func (w *printer) slice(s *Slice) {
	part := func(e Expr) {
		if e == nil {
			w.put("-") // without it `::` and `:]` would run together
			return
		}
		w.expr(e, 0)
	}
	w.base(s.X, false)
	w.put("[")
	part(s.Lo)
	w.put(" : ")
	part(s.Hi)
	if s.Step != nil {
		w.put(" : ")
		w.expr(s.Step, 0)
	}
	w.put("]")
}

func (w *printer) lambda(l *Lambda) {
	if !l.Arrow {
		w.put("LAMBDA ")
		w.list(len(l.Params), func(i int) { w.ident(l.Params[i]) })
		w.put(": ")
		w.expr(l.Body, 0)
		return
	}
	if len(l.Params) == 1 {
		w.ident(l.Params[0])
	} else {
		w.idents(l.Params)
	}
	w.put(" -> ")
	w.expr(l.Body, precArrow+1)
}

func (w *printer) function(f *Function) {
	for i, part := range f.Name {
		w.putIf(i > 0, ".")
		if len(f.Name) == 1 && plainFunction(part.Name) {
			w.put(part.Name)
		} else {
			w.ident(part)
		}
	}
	w.put("(")
	w.putIf(f.Distinct, "DISTINCT ")
	first := 0
	if strings.EqualFold(f.Name.String(), "position") {
		first = precLike + 1 // position(a IN b) is the standard's form
	}
	w.args(f.Args, first)
	w.putIf(f.OrderBy != nil && len(f.Args) > 0, " ")
	w.orderBy(f.OrderBy)
	w.putIf(f.Nulls == IgnoreNulls && len(f.Args) > 0, " IGNORE NULLS")
	w.putIf(f.Nulls == RespectNulls && len(f.Args) > 0, " RESPECT NULLS")
	w.put(")")
	if f.WithinGroup != nil {
		w.put(" WITHIN GROUP (")
		w.orderBy(f.WithinGroup)
		w.put(")")
	}
	if f.Filter != nil {
		w.put(" FILTER (WHERE ")
		w.expr(f.Filter, 0)
		w.put(")")
	}
	w.putIf(f.Nulls == IgnoreNulls && len(f.Args) == 0, " IGNORE NULLS")
	w.putIf(f.Nulls == RespectNulls && len(f.Args) == 0, " RESPECT NULLS")
	if f.Over != nil {
		w.put(" OVER ")
		w.window(f.Over, true)
	}
}

// args writes arguments; the first must hold at least as tightly as min.
func (w *printer) args(list []Arg, min int) {
	w.list(len(list), func(i int) {
		if !list[i].Name.IsZero() {
			w.ident(list[i].Name)
			w.put(" := ")
		}
		if i > 0 {
			min = 0
		}
		w.expr(list[i].Value, min)
	})
}

// window writes a window; bareName allows OVER w without parentheses.
func (w *printer) window(win *Window, bareName bool) {
	var parts []func()
	if !win.Base.IsZero() {
		if bareName && win.PartitionBy == nil && win.OrderBy == nil && win.Frame == nil {
			w.ident(win.Base)
			return
		}
		parts = append(parts, func() {
			if windowWords[strings.ToUpper(win.Base.Name)] {
				w.put(quoteName(win.Base.Name))
			} else {
				w.ident(win.Base)
			}
		})
	}
	if win.PartitionBy != nil {
		parts = append(parts, func() {
			w.put("PARTITION BY ")
			w.exprs(win.PartitionBy)
		})
	}
	if win.OrderBy != nil {
		parts = append(parts, func() { w.orderBy(win.OrderBy) })
	}
	if win.Frame != nil {
		parts = append(parts, func() { w.frame(win.Frame) })
	}
	w.put("(")
	for i, part := range parts {
		w.putIf(i > 0, " ")
		part()
	}
	w.put(")")
}

func (w *printer) frame(f *Frame) {
	w.put(string(f.Mode), " BETWEEN ")
	w.bound(f.Start)
	w.put(" AND ")
	w.bound(f.End)
	w.putIf(f.Exclude != "", " EXCLUDE ", f.Exclude)
}

func (w *printer) bound(b Bound) {
	switch b.Offset.(type) {
	case nil:
	case *Literal, *Interval:
		w.expr(b.Offset, 0)
		w.put(" ")
	default: // a column may be called unbounded
		w.put("(")
		w.expr(b.Offset, 0)
		w.put(") ")
	}
	w.put(string(b.Kind))
}

func (w *printer) orderBy(items []OrderItem) {
	if items == nil {
		return
	}
	w.put("ORDER BY ")
	w.list(len(items), func(i int) {
		o := items[i]
		if o.All {
			w.put("ALL")
		} else {
			w.expr(o.Expr, 0)
		}
		w.putIf(o.Asc, " ASC")
		w.putIf(o.Desc, " DESC")
		w.putIf(o.Nulls == NullsFirst, " NULLS FIRST")
		w.putIf(o.Nulls == NullsLast, " NULLS LAST")
	})
}
