package riverbed

import (
	"strings"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
)

// What planning in the calling thread may cost at most, see promptQuery.
const (
	promptBytes     = 1 << 10
	promptRelations = 8
)

// Prepare looks at a text before it is run. unknown lists the relations that it names and the session does not have, so that
// a host language can look for variables of these names. prompt reports whether planning and starting it waits for nothing and
// is done at once, so that the calling thread may do it: it is one short query over tables in memory that calls no function of
// the host and none whose value planning might compute. Text that does not parse names nothing.
func (s *Session) Prepare(text string) (unknown []string, prompt bool) {
	stmts, err := sql.Parse(text)
	if err != nil {
		return nil, false
	}
	cat := s.cat.Load()
	seen := map[string]bool{}
	prompt = len(text) <= promptBytes && len(stmts) == 1 && len(cat.udfs) == 0 && promptQuery(stmts[0])
	for _, st := range stmts {
		for _, name := range sql.TableNames(st) {
			e := cat.get(name)
			prompt = prompt && e != nil && e.table != nil
			if low := strings.ToLower(name); !seen[low] && !strings.Contains(name, ".") && e == nil {
				seen[low] = true
				unknown = append(unknown, name)
			}
		}
	}
	return unknown, prompt
}

// promptQuery reports whether a statement is a query whose relations are all names and that is planned at once. Planning
// computes what depends on no row, so each expression must cost no more than its text is long, and no value may outgrow the
// text: calls, texts and lists that are put together, and patterns are left out. CTEs and sets of groups multiply, so there
// are few relations and no such sets.
func promptQuery(st sql.Statement) bool {
	q, prompt := st.(*sql.Query)
	if !prompt {
		return false
	}
	relations := 0
	sql.Inspect(q, func(n sql.Node) bool {
		switch n := n.(type) {
		case *sql.Table:
			relations++
			prompt = prompt && relations <= promptRelations
		case *sql.WindowTable, *sql.SubqueryTable, *sql.Join:
		case sql.TableRef:
			prompt = false
		case *sql.Select:
			if n.GroupBy != nil {
				for _, g := range n.GroupBy.Items {
					prompt = prompt && g.Kind == sql.GroupSet
				}
			}
		case sql.Expr:
			prompt = prompt && promptExpr(n)
		}
		return prompt
	})
	return prompt
}

// promptExpr looks at one expression, not at those in it.
func promptExpr(e sql.Expr) bool {
	switch e := e.(type) {
	case *sql.Literal, *sql.TypedLiteral, *sql.Interval, *sql.ColumnRef, *sql.Star, *sql.Unary, *sql.Not, *sql.Is, *sql.Between,
		*sql.In, *sql.Exists, *sql.Subquery, *sql.Quantified, *sql.Case, *sql.Cast:
		return true
	case *sql.Binary:
		switch e.Op {
		case sql.OpAnd, sql.OpOr, sql.OpEq, sql.OpNe, sql.OpLt, sql.OpLe, sql.OpGt, sql.OpGe, sql.OpDistinct, sql.OpNotDistinct,
			sql.OpAdd, sql.OpSub, sql.OpMul, sql.OpDiv, sql.OpIntDiv, sql.OpMod:
			return true
		}
	case *sql.Function: // planning computes none of rows
		_, aggregate := fn.LookupAggregate(e.Name.Last().Name)
		return aggregate || e.Over != nil
	}
	return false
}
