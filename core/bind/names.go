package bind

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// outputName is the name of a column without an alias: a column keeps its own, as its table spells it; anything else is
// its text as DuckDB prints it.
func (bl *block) outputName(x sql.Expr) string {
	c, ok := x.(*sql.ColumnRef)
	if !ok {
		return displayName(x, bl.windowSpec)
	}
	if h, used := bl.scope.lookup(c.Parts); used == len(c.Parts) {
		return h.name(c.Parts.Last().Name)
	}
	return c.Parts.Last().Name
}

var plainIdent = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func quoted(name string) string {
	if plainIdent.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// namer prints expressions of one SELECT; OVER w is printed as what w stands for.
type namer struct{ spec func(*sql.Window) sql.Window }

func (n namer) displayAll(xs []sql.Expr) string {
	parts := make([]string, len(xs))
	for i, x := range xs {
		parts[i] = n.display(x)
	}
	return strings.Join(parts, ", ")
}

// maxName bounds the name of a column; a longer text helps nobody.
const maxName = 1 << 16

// displayName prints an expression as DuckDB does in column names: every operator in parentheses, functions in lower
// case, names as written.
func displayName(x sql.Expr, spec func(*sql.Window) sql.Window) string {
	s := namer{spec}.display(x)
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "")
	}
	return s
}

func (n namer) display(x sql.Expr) string {
	switch x := x.(type) {
	case *sql.Literal:
		switch x.Kind {
		case sql.LitNull:
			return "NULL"
		case sql.LitString:
			return text(x.Text)
		}
		return x.Text
	case *sql.TypedLiteral:
		return "CAST(" + text(x.Text) + " AS " + typeText(x.Type) + ")"
	case *sql.Interval:
		if l, ok := x.Value.(*sql.Literal); ok && x.Unit == "" {
			return "CAST(" + text(l.Text) + " AS INTERVAL)"
		}
		return "to_" + lower(x.Unit) + "s(CAST(trunc(CAST(" + n.display(x.Value) + " AS DOUBLE)) AS INTEGER))"
	case *sql.ColumnRef:
		parts := make([]string, len(x.Parts))
		for i, p := range x.Parts {
			parts[i] = quoted(p.Name)
		}
		return strings.Join(parts, ".")
	case *sql.Unary:
		if l, negative := signed(x); l != nil {
			return map[bool]string{true: "-", false: ""}[negative] + l.Text
		}
		return "(" + x.Op + "(" + n.display(x.X) + "))"
	case *sql.Binary:
		return n.displayBinary(x)
	case *sql.Not:
		return "(NOT " + n.display(x.X) + ")"
	case *sql.Is:
		not := ""
		if x.Not {
			not = "NOT "
		}
		if x.What == sql.IsNull {
			return "(" + n.display(x.X) + " IS " + not + "NULL)"
		}
		if x.What == sql.IsUnknown {
			return "(" + n.display(x.X) + " IS " + not + "NULL)"
		}
		not = map[bool]string{true: "", false: "NOT "}[x.Not]
		return "(CAST(" + n.display(x.X) + " AS BOOLEAN) IS " + not + "DISTINCT FROM " + lower(string(x.What)) + ")"
	case *sql.Match:
		return n.displayMatch(x)
	case *sql.Between:
		return negated(x.Not, "("+n.display(x.X)+" BETWEEN "+n.display(x.Lo)+" AND "+n.display(x.Hi)+")")
	case *sql.In:
		switch {
		case x.Query != nil:
			return negated(x.Not, "("+n.display(x.X)+" = ANY("+n.displayQuery(x.Query)+"))")
		case x.Set != nil:
			return negated(x.Not, "("+n.display(x.X)+" IN "+n.display(x.Set)+")")
		}
		return negated(x.Not, "("+n.display(x.X)+" IN ("+n.displayAll(x.List)+"))")
	case *sql.Exists:
		return "EXISTS(" + n.displayQuery(x.Query) + ")"
	case *sql.Subquery:
		return "(" + n.displayQuery(x.Query) + ")"
	case *sql.Quantified:
		word := "ANY"
		if x.All {
			word = "ALL"
		}
		if x.Query == nil {
			return "(" + n.display(x.X) + " " + string(x.Op) + " " + word + "(" + n.display(x.Set) + "))"
		}
		return "(" + n.display(x.X) + " " + string(x.Op) + " " + word + "(" + n.displayQuery(x.Query) + "))"
	case *sql.Case:
		return n.displayCase(x)
	case *sql.Cast:
		word := "CAST("
		if x.Try {
			word = "TRY_CAST("
		}
		return word + n.display(x.X) + " AS " + typeText(x.Type) + ")"
	case *sql.Function:
		return n.displayFunction(x)
	case *sql.List:
		return "list_value(" + n.displayAll(x.Items) + ")"
	case *sql.Struct:
		parts := make([]string, len(x.Fields))
		for i, f := range x.Fields {
			parts[i] = quoted(f.Name.Name) + " := " + n.display(f.Value)
		}
		return "struct_pack(" + strings.Join(parts, ", ") + ")"
	case *sql.Row:
		return `"row"(` + n.displayAll(x.Items) + ")"
	case *sql.Subscript:
		return n.display(x.X) + "[" + n.display(x.Index) + "]"
	case *sql.Field:
		return "(" + n.display(x.X) + ")." + quoted(x.Name.Name)
	case *sql.Star:
		return "*"
	}
	return sql.Print(x)
}

func negated(not bool, s string) string {
	if not {
		return "(NOT " + s + ")"
	}
	return s
}

// displayBinary prints a spine from the left, in a loop. A chain of one logical operator has one pair of parentheses.
func (n namer) displayBinary(x *sql.Binary) string {
	var spine []*sql.Binary
	var first sql.Expr = x
	for {
		b, ok := first.(*sql.Binary)
		if !ok {
			break
		}
		spine = append(spine, b)
		first = b.Left
	}
	logical := func(op sql.Op) bool { return op == sql.OpAnd || op == sql.OpOr }
	opens := 0 // parentheses to write before the first operand
	var b strings.Builder
	b.WriteString(n.display(first))
	for i := len(spine) - 1; i >= 0; i-- {
		op := spine[i].Op
		b.WriteString(" " + string(op) + " " + n.display(spine[i].Right))
		if i > 0 && logical(op) && spine[i-1].Op == op {
			continue
		}
		b.WriteString(")")
		opens++
	}
	return strings.Repeat("(", opens) + b.String()
}

func (n namer) displayMatch(x *sql.Match) string {
	op := map[sql.LikeKind]string{sql.Like: "~~", sql.ILike: "~~*", sql.Glob: "~~~"}[x.Kind]
	switch {
	case x.Kind == sql.Similar:
		return negated(x.Not, "regexp_full_match("+n.display(x.X)+", "+n.display(x.Pattern)+")")
	case x.Escape != nil:
		not := map[bool]string{true: "not_", false: ""}[x.Not]
		return not + lower(string(x.Kind)) + "_escape(" + n.display(x.X) + ", " + n.display(x.Pattern) + ", " + n.display(x.Escape) + ")"
	case x.Not:
		op = "!" + op
	}
	return "(" + n.display(x.X) + " " + op + " " + n.display(x.Pattern) + ")"
}

func (n namer) displayCase(x *sql.Case) string {
	var b strings.Builder
	b.WriteString("CASE ")
	for _, w := range x.Whens {
		cond := n.display(w.Cond)
		if x.Operand != nil {
			cond = "(" + n.display(x.Operand) + " = " + cond + ")"
		}
		b.WriteString(" WHEN (" + cond + ") THEN (" + n.display(w.Then) + ")")
	}
	b.WriteString(" ELSE ")
	if x.Else != nil {
		b.WriteString(n.display(x.Else))
	} else {
		b.WriteString("NULL")
	}
	return b.String() + " END"
}

// quotedFunctions are names that DuckDB's printer quotes because its grammar has them as keywords.
var quotedFunctions = func() map[string]bool {
	set := map[string]bool{}
	for _, n := range strings.Fields(`substring position trim overlay row extract first last left right replace nullif map
		year quarter month week day hour minute second millisecond microsecond decade century millennium if`) {
		set[n] = true
	}
	return set
}()

func (n namer) displayFunction(x *sql.Function) string {
	name := lower(x.Name.Last().Name)
	switch {
	case name == "count" && (len(x.Args) == 0 || len(x.Args) == 1 && isStar(x.Args[0].Value)):
		if x.Over != nil {
			return "count()" + n.displayTail(x)
		}
		return "count_star()" + n.displayTail(x)
	case name == "ifnull":
		name = "COALESCE"
	case name == "coalesce" || name == "grouping":
		name = strings.ToUpper(name)
	case len(x.Args) == 0 && strings.HasPrefix(name, "current_"):
		return name
	case quotedFunctions[name]:
		name = `"` + name + `"`
	default:
		name = quoted(name)
	}
	parts := make([]string, len(x.Args))
	for i, a := range x.Args {
		parts[i] = n.display(a.Value)
		if !a.Name.IsZero() {
			parts[i] = quoted(a.Name.Name) + " := " + parts[i]
		}
	}
	s := name + "("
	if x.Distinct {
		s += "DISTINCT "
	}
	s += strings.Join(parts, ", ")
	if len(x.OrderBy) > 0 {
		s += " " + n.displayOrder(x.OrderBy)
	}
	return s + ")" + n.displayTail(x)
}

// displayTail prints FILTER and OVER.
func (n namer) displayTail(x *sql.Function) string {
	s := ""
	if x.Filter != nil {
		s = " FILTER (WHERE " + n.display(x.Filter) + ")"
	}
	if x.Over == nil {
		return s
	}
	w := n.spec(x.Over)
	var over []string
	if len(w.PartitionBy) > 0 {
		over = append(over, "PARTITION BY "+n.displayAll(w.PartitionBy))
	}
	if len(w.OrderBy) > 0 {
		over = append(over, n.displayOrder(w.OrderBy))
	}
	if f := w.Frame; f != nil {
		bound := func(b sql.Bound) string {
			if b.Offset == nil {
				return string(b.Kind)
			}
			return n.display(b.Offset) + " " + string(b.Kind)
		}
		over = append(over, string(f.Mode)+" BETWEEN "+bound(f.Start)+" AND "+bound(f.End))
	}
	return s + " OVER (" + strings.Join(over, " ") + ")"
}

func (n namer) displayOrder(order []sql.OrderItem) string {
	parts := make([]string, len(order))
	for i, o := range order {
		if o.All {
			parts[i] = "ALL"
		} else {
			parts[i] = n.display(o.Expr)
		}
		if o.Desc {
			parts[i] += " DESC"
		}
		switch o.Nulls {
		case sql.NullsFirst:
			parts[i] += " NULLS FIRST"
		case sql.NullsLast:
			parts[i] += " NULLS LAST"
		}
	}
	return "ORDER BY " + strings.Join(parts, ", ")
}

// typeText prints a type as DuckDB does; a name that it does not know stays as written.
func typeText(t *sql.TypeName) string {
	known, err := Type(t)
	switch {
	case err != nil:
		return t.Name
	case known.Kind == types.Decimal && len(t.Mods) == 0:
		return "DECIMAL"
	case known.Kind == types.Varchar && len(t.Mods) == 1:
		return fmt.Sprintf("VARCHAR(%d)", t.Mods[0])
	}
	return strings.ReplaceAll(known.String(), ",", ", ")
}
