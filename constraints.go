package riverbed

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// A generated column is computed when its row is written, so views and scans find it like any other; what it is computed
// of is in the row. A CHECK is looked at for every row that a statement writes.

// addRules declares the generated columns and the checks of a new table.
func (s *Session) addRules(t *memTable, r *sql.Relation, text string) error {
	for i, c := range r.Columns {
		if c.Generated != nil {
			t.generated[i] = c.Generated
		}
		for _, x := range c.Checks {
			if err := s.addCheck(t, x, text); err != nil {
				return err
			}
		}
	}
	for _, c := range r.Constraints {
		if c.Kind == sql.Check {
			if err := s.addCheck(t, c.Check, text); err != nil {
				return err
			}
		}
	}
	var err error
	t.inTurn, err = t.generationOrder()
	return err
}

func (s *Session) addCheck(t *memTable, x sql.Expr, text string) error {
	if err := ofOneRow(x, "a CHECK"); err != nil {
		return err
	}
	if _, err := bind.New(s.scope(), bind.Options{SQL: text}).Expr(x, t.columns, types.Bool); err != nil {
		return err
	}
	t.checks = append(t.checks, x)
	return nil
}

// ofOneRow refuses what does not depend on the row alone.
func ofOneRow(x sql.Expr, what string) error {
	var err error
	sql.Inspect(x, func(n sql.Node) bool {
		switch n := n.(type) {
		case *sql.Subquery, *sql.Exists, *sql.Query:
			err = errs.E(errs.Schema, "create table", n.Position(), "%s looks at one row; it cannot contain a subquery", what)
		case *sql.Param:
			err = errs.E(errs.Schema, "create table", n.Pos, "%s cannot contain a parameter", what)
		}
		return err == nil
	})
	return err
}

// generatedTypes gives columns without a type the one of their expression.
func (s *Session) generatedTypes(r *sql.Relation, text string) error {
	for again := true; again; {
		again = false
		var known []types.Field
		for _, c := range r.Columns {
			if c.Type == nil {
				continue
			}
			t, err := bind.Type(c.Type)
			if err != nil {
				return err
			}
			known = append(known, types.Field{Name: c.Name.Name, Type: t})
		}
		var failed error
		for i := range r.Columns {
			c := &r.Columns[i]
			if c.Type != nil || c.Generated == nil {
				continue
			}
			x, err := bind.New(s.scope(), bind.Options{SQL: text}).Expr(c.Generated, known, types.Type{})
			if err != nil {
				failed = err
				continue
			}
			c.Type, again = typeNameOf(x.Type()), true
		}
		if !again && failed != nil {
			return failed
		}
	}
	return nil
}

// generationOrder lists the generated columns so that each stands behind those that it reads.
func (t *memTable) generationOrder() ([]int, error) {
	var order []int
	state := make([]int, len(t.columns)) // 1: being visited, 2: done
	var visit func(i int) error
	visit = func(i int) error {
		if t.generated[i] == nil || state[i] == 2 {
			return nil
		}
		if state[i] == 1 {
			return errs.E(errs.Schema, "create table", t.generated[i].Position(), "the generated column %q is computed of itself", t.columns[i].Name)
		}
		state[i] = 1
		for _, j := range t.readBy(t.generated[i]) {
			if err := visit(j); err != nil {
				return err
			}
		}
		state[i] = 2
		order = append(order, i)
		return nil
	}
	for i := range t.columns {
		if t.generated[i] != nil {
			if err := ofOneRow(t.generated[i], "a generated column"); err != nil {
				return nil, err
			}
		}
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// readBy are the columns of the table that an expression over it reads.
func (t *memTable) readBy(x sql.Expr) []int {
	var out []int
	sql.Inspect(x, func(n sql.Node) bool {
		if c, ok := n.(*sql.ColumnRef); ok {
			for i, f := range t.columns {
				if slices.ContainsFunc(c.Parts, func(p sql.Ident) bool { return strings.EqualFold(p.Name, f.Name) }) {
					out = append(out, i)
				}
			}
		}
		return true
	})
	return out
}

// plain are the columns that a statement may write.
func (t *memTable) plain() []int {
	var out []int
	for i := range t.columns {
		if t.generated[i] == nil {
			out = append(out, i)
		}
	}
	return out
}

func (t *memTable) notGenerated(i int, pos errs.Pos) error {
	if t.generated[i] != nil {
		return errs.E(errs.Schema, "bind", pos, "column %q of table %q is generated; it cannot be written", t.columns[i].Name, t.name)
	}
	return nil
}

// generate computes the generated columns of rows.
func (s *Session) generate(env *fn.Env, t *memTable, cols []arrow.Array, n int) error {
	for _, i := range t.inTurn {
		out, err := s.overRow(env, t, t.generated[i], t.columns[i].Type, cols, n)
		if err != nil {
			return err
		}
		cols[i] = out
	}
	return nil
}

// check looks at rows that are about to be written.
func (s *Session) check(env *fn.Env, t *memTable, cols []arrow.Array, n int) error {
	for _, x := range t.checks {
		out, err := s.overRow(env, t, x, types.Bool, cols, n)
		if err != nil {
			return err
		}
		held := out.(*array.Boolean)
		for r := range n {
			if held.IsValid(r) && !held.Value(r) {
				return errs.New(errs.Data, "insert", "a row of table %q does not fulfil CHECK (%s)", t.name, sql.Print(x))
			}
		}
	}
	return nil
}

// overRow evaluates an expression over rows of the table's columns; those that are not there yet are not read.
func (s *Session) overRow(env *fn.Env, t *memTable, x sql.Expr, want types.Type, cols []arrow.Array, n int) (arrow.Array, error) {
	e, err := bind.New(s.scope(), bind.Options{}).Expr(x, t.columns, want)
	if err != nil {
		return nil, err
	}
	at, given := map[expr.ColID]int{}, []arrow.Array{}
	for i, c := range cols {
		if c != nil {
			at[expr.ColID(i)] = len(given)
			given = append(given, c)
		}
	}
	p, err := expr.Compile(e, at)
	if err != nil {
		return nil, err
	}
	return p.EvalArray(env, given, n)
}

// anyType asks for no conversion.
var anyType = types.Type{}

// typeNameOf writes a type as a statement would.
func typeNameOf(t types.Type) *sql.TypeName {
	x, err := sql.ParseExpr("CAST(NULL AS " + t.String() + ")")
	if err != nil {
		panic(errs.Bug("plan", "the type %s cannot be written", t))
	}
	return x.(*sql.Cast).Type
}
