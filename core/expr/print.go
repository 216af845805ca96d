package expr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/types"
)

// String prints e much as it would be written in SQL, for EXPLAIN and messages.
func String(e Expr) string {
	p := printer{}
	p.expr(e, 0)
	return p.b.String()
}

// Key is a fingerprint: two expressions have the same key when they compute the same value from the same columns.
func Key(e Expr) string {
	p := printer{exact: true}
	p.expr(e, 0)
	return p.b.String()
}

// Equal reports whether two expressions compute the same value from the same columns.
func Equal(a, b Expr) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a == b || Key(a) == Key(b)
}

// printer writes expressions; exact adds what a reader need not see: column numbers and types.
type printer struct {
	b      strings.Builder
	exact  bool
	params []ColID // of the lambdas around; exact prints their numbers, so that IDs and names make no difference
}

// Binding strengths, weakest first.
const (
	precOr = iota + 1
	precAnd
	precNot
	precCompare
	precOther
	precAdd
	precMul
	precPow
	precUnary
	precAtom
)

var infix = map[string]int{
	"=": precCompare, "<>": precCompare, "<": precCompare, "<=": precCompare, ">": precCompare, ">=": precCompare,
	"is distinct from": precCompare, "is not distinct from": precCompare,
	"like": precCompare, "not like": precCompare, "ilike": precCompare, "not ilike": precCompare, "similar to": precCompare, "glob": precCompare,
	"||": precOther, "&": precOther, "|": precOther, "<<": precOther, ">>": precOther, "->": precOther, "->>": precOther,
	"+": precAdd, "-": precAdd, "*": precMul, "/": precMul, "//": precMul, "%": precMul, "^": precPow,
}

func (p *printer) write(s ...string) {
	for _, x := range s {
		p.b.WriteString(x)
	}
}

func (p *printer) group(outer, own int, body func()) {
	if own < outer {
		p.write("(")
		defer p.write(")")
	}
	body()
}

func (p *printer) list(sep string, es []Expr, prec int) {
	for i, e := range es {
		if i > 0 {
			p.write(sep)
		}
		p.expr(e, prec)
	}
}

func (p *printer) expr(e Expr, outer int) {
	switch e := e.(type) {
	case nil:
		p.write("?")
	case *Col:
		if p.exact {
			p.write("#", strconv.Itoa(int(e.ID)))
		} else {
			p.write(e.Name)
		}
	case *Lit:
		p.literal(e)
	case *Call:
		p.call(e, outer)
	case *Cast:
		name := "CAST("
		if e.Try {
			name = "TRY_CAST("
		}
		p.write(name)
		p.expr(e.Arg, 0)
		p.write(" AS ", e.T.String(), ")")
	case *And:
		p.group(outer, precAnd, func() { p.list(" AND ", e.Args, precAnd+1) })
	case *Or:
		p.group(outer, precOr, func() { p.list(" OR ", e.Args, precOr+1) })
	case *Not:
		p.group(outer, precNot, func() {
			p.write("NOT ")
			p.expr(e.Arg, precNot)
		})
	case *IsNull:
		p.group(outer, precCompare, func() {
			p.expr(e.Arg, precCompare+1)
			if e.Negate {
				p.write(" IS NOT NULL")
			} else {
				p.write(" IS NULL")
			}
		})
	case *Case:
		p.write("CASE")
		for _, w := range e.Whens {
			p.write(" WHEN ")
			p.expr(w.Cond, 0)
			p.write(" THEN ")
			p.expr(w.Then, 0)
		}
		if e.Else != nil {
			p.write(" ELSE ")
			p.expr(e.Else, 0)
		}
		p.write(" END")
	case *Coalesce:
		p.write("coalesce(")
		p.list(", ", e.Args, 0)
		p.write(")")
	case *In:
		p.group(outer, precCompare, func() {
			p.expr(e.Arg, precCompare+1)
			if e.Negate {
				p.write(" NOT")
			}
			p.write(" IN (")
			p.list(", ", e.List, 0)
			p.write(")")
		})
	case *Subquery:
		p.subquery(e)
	case *Param:
		if n := slices.Index(p.params, e.ID); n >= 0 && p.exact {
			p.write("$", strconv.Itoa(n))
		} else {
			p.write(e.Name)
		}
	case *Lambda:
		p.lambda(e)
	default:
		p.write("?")
	}
}

func (p *printer) literal(e *Lit) {
	switch {
	case e.V == nil && p.exact:
		p.write("NULL::", e.T.String())
	case e.V == nil:
		p.write("NULL")
	case e.T.Kind == types.Varchar:
		p.write(quote(e.V.(string)))
	case e.T.Kind == types.Boolean || e.T.IsNumeric() && !p.exact:
		p.write(types.Format(e.V, e.T))
	case e.T.IsNested() && !p.exact:
		p.write(types.Format(e.V, e.T))
	default:
		p.write(e.T.String(), " ", quote(types.Format(e.V, e.T)))
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (p *printer) call(e *Call, outer int) {
	prec, ok := infix[e.Fn.Name]
	switch {
	case ok && e.Fn.Operator && len(e.Args) == 2:
		p.group(outer, prec, func() {
			p.expr(e.Args[0], prec)
			p.write(" ", strings.ToUpper(e.Fn.Name), " ")
			p.expr(e.Args[1], prec+1)
		})
	case e.Fn.Operator && len(e.Args) == 1:
		p.group(outer, precUnary, func() {
			p.write(e.Fn.Name)
			p.expr(e.Args[0], precUnary+1)
		})
	default:
		p.write(e.Fn.Name, "(")
		p.list(", ", e.Args, 0)
		p.write(")")
	}
	if p.exact {
		p.write("::", e.Sig.Returns.String())
	}
}

func (p *printer) lambda(e *Lambda) {
	around := p.params
	defer func() { p.params = around }()
	p.write("lambda ")
	for i, x := range e.Params {
		if i > 0 {
			p.write(", ")
		}
		p.params = append(p.params[:len(p.params):len(p.params)], x.ID)
		p.expr(x, 0)
		if p.exact {
			p.write(" ", x.T.String())
		}
	}
	p.write(": ")
	p.expr(e.Body, 0)
}

func (p *printer) subquery(e *Subquery) {
	if e.Negate {
		p.write("NOT ")
	}
	p.list(", ", e.Args, 0)
	switch e.Kind {
	case ExistsSub:
		p.write("EXISTS ")
	case InSub:
		p.write(" IN ")
	case AnySub:
		p.write(" ", e.Op, " ANY ")
	case AllSub:
		p.write(" ", e.Op, " ALL ")
	}
	p.write("(subquery")
	if p.exact {
		p.write(" at ", strconv.Itoa(e.Pos.Offset))
	}
	p.write(")")
}
