// Package expr holds bound expressions and evaluates them over batches.
//
// Invariant: an expression names columns by ColID, never by position, so that rules can move it
// anywhere its columns are visible. Compile fixes positions once the plan is settled.
package expr

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// ColID names one column of one relation instance, unique within a plan.
type ColID int32

// Expr is a bound expression.
type Expr interface {
	Type() types.Type
	// Children are the sub-expressions, in order; With returns a copy that has others.
	Children() []Expr
	With(children []Expr) Expr
}

// Col reads a column.
type Col struct {
	ID   ColID
	Name string // for messages and EXPLAIN
	T    types.Type
}

// Lit is a constant. V is nil for NULL.
type Lit struct {
	V types.Value
	T types.Type
	// Meant says that T was written, as in 2::INTEGER, or computed: the constant does not adapt to what stands beside it.
	Meant bool
}

// Const is the constant as the coercion table takes it.
func (e *Lit) Const() types.Value {
	if e.Meant && e.T.IsInteger() && e.V != nil {
		return types.Meant{V: e.V}
	}
	return e.V
}

// Call applies a scalar function. Arguments already have the types of Sig.Args.
type Call struct {
	Fn   *fn.Scalar
	Sig  fn.Resolved // with Kernel set
	Args []Expr
	Pos  errs.Pos
	// Fallible is the overload's: a row may fail.
	Fallible bool
}

// Cast converts; a Try cast gives NULL where a plain one fails.
type Cast struct {
	Arg Expr
	T   types.Type
	Try bool
	Pos errs.Pos
}

// And and Or are n-ary, with SQL's three-valued logic. An argument is not evaluated for rows already decided, if it may fail.
type And struct{ Args []Expr }
type Or struct{ Args []Expr }

// Not negates a boolean.
type Not struct{ Arg Expr }

// IsNull tests for NULL; Negate makes it IS NOT NULL.
type IsNull struct {
	Arg    Expr
	Negate bool
}

// Case is CASE WHEN; simple CASE is bound to this form. Else may be nil.
type Case struct {
	Whens []When
	Else  Expr
	T     types.Type
}

// When is one branch.
type When struct{ Cond, Then Expr }

// Coalesce gives the first argument that is not NULL.
type Coalesce struct {
	Args []Expr
	T    types.Type
}

// In tests membership in a list of expressions, with SQL's NULL rules; Negate makes it NOT IN.
type In struct {
	Arg    Expr
	List   []Expr
	Negate bool
}

// SubqueryKind tells what a subquery stands for.
type SubqueryKind uint8

const (
	ScalarSub SubqueryKind = iota + 1
	ExistsSub
	InSub  // Args[…] IN (subquery); quantified = ANY
	AnySub // Arg op ANY (subquery)
	AllSub
)

// Node stands for plan.Node, which lies to the right of this package.
type Node interface{ IsPlanNode() }

// Subquery is a subquery in an expression. It exists between the binder and the rule that decorrelates; no operator evaluates it.
type Subquery struct {
	Kind   SubqueryKind
	Plan   Node    // a plan.Node
	Args   []Expr  // left side of IN, ANY, ALL; several for a row value
	Op     string  // comparison of ANY and ALL
	Negate bool    // NOT IN, NOT EXISTS
	Outer  []ColID // columns of outer queries that the plan uses
	T      types.Type
	Pos    errs.Pos
	Source any // comparable: subqueries of equal sources that take the same columns from outside are equal; nil is equal to none
}

func (e *Col) Type() types.Type      { return e.T }
func (e *Lit) Type() types.Type      { return e.T }
func (e *Call) Type() types.Type     { return e.Sig.Returns }
func (e *Cast) Type() types.Type     { return e.T }
func (e *And) Type() types.Type      { return types.Bool }
func (e *Or) Type() types.Type       { return types.Bool }
func (e *Not) Type() types.Type      { return types.Bool }
func (e *IsNull) Type() types.Type   { return types.Bool }
func (e *Case) Type() types.Type     { return e.T }
func (e *Coalesce) Type() types.Type { return e.T }
func (e *In) Type() types.Type       { return types.Bool }
func (e *Subquery) Type() types.Type { return e.T }

func (e *Col) Children() []Expr      { return nil }
func (e *Lit) Children() []Expr      { return nil }
func (e *Call) Children() []Expr     { return e.Args }
func (e *Cast) Children() []Expr     { return []Expr{e.Arg} }
func (e *And) Children() []Expr      { return e.Args }
func (e *Or) Children() []Expr       { return e.Args }
func (e *Not) Children() []Expr      { return []Expr{e.Arg} }
func (e *IsNull) Children() []Expr   { return []Expr{e.Arg} }
func (e *Coalesce) Children() []Expr { return e.Args }
func (e *Subquery) Children() []Expr { return e.Args }
func (e *In) Children() []Expr       { return append([]Expr{e.Arg}, e.List...) }
func (e *Case) Children() []Expr {
	out := make([]Expr, 0, 2*len(e.Whens)+1)
	for _, w := range e.Whens {
		out = append(out, w.Cond, w.Then)
	}
	if e.Else != nil {
		out = append(out, e.Else)
	}
	return out
}

func (e *Col) With([]Expr) Expr { return e }
func (e *Lit) With([]Expr) Expr { return e }
func (e *Call) With(c []Expr) Expr {
	n := *e
	n.Args = c
	return &n
}
func (e *Cast) With(c []Expr) Expr {
	n := *e
	n.Arg = c[0]
	return &n
}
func (e *And) With(c []Expr) Expr    { return &And{c} }
func (e *Or) With(c []Expr) Expr     { return &Or{c} }
func (e *Not) With(c []Expr) Expr    { return &Not{c[0]} }
func (e *IsNull) With(c []Expr) Expr { return &IsNull{c[0], e.Negate} }
func (e *Coalesce) With(c []Expr) Expr {
	return &Coalesce{c, e.T}
}
func (e *In) With(c []Expr) Expr { return &In{c[0], c[1:], e.Negate} }
func (e *Subquery) With(c []Expr) Expr {
	n := *e
	n.Args = c
	return &n
}
func (e *Case) With(c []Expr) Expr {
	n := &Case{Whens: make([]When, len(e.Whens)), T: e.T}
	for i := range e.Whens {
		n.Whens[i] = When{c[2*i], c[2*i+1]}
	}
	if e.Else != nil {
		n.Else = c[len(c)-1]
	}
	return n
}

// Walk visits e and everything below it; visit returns false to stay out of a node's children.
func Walk(e Expr, visit func(Expr) bool) {
	if e == nil || !visit(e) {
		return
	}
	for _, c := range e.Children() {
		Walk(c, visit)
	}
}

// Transform rebuilds e bottom-up; f returns its argument to keep a node.
func Transform(e Expr, f func(Expr) Expr) Expr {
	children := e.Children()
	var changed []Expr
	for i, c := range children {
		if n := Transform(c, f); n != c {
			if changed == nil {
				changed = append([]Expr{}, children...)
			}
			changed[i] = n
		}
	}
	if changed != nil {
		e = e.With(changed)
	}
	return f(e)
}

// Columns adds the columns that e reads, those its subqueries take from outside included, to set.
func Columns(e Expr, set map[ColID]bool) {
	Walk(e, func(x Expr) bool {
		switch x := x.(type) {
		case *Col:
			set[x.ID] = true
		case *Subquery:
			for _, id := range x.Outer {
				set[id] = true
			}
		}
		return true
	})
}

// Conjuncts splits e at AND.
func Conjuncts(e Expr) []Expr {
	if e == nil {
		return nil
	}
	if a, ok := e.(*And); ok {
		var out []Expr
		for _, x := range a.Args {
			out = append(out, Conjuncts(x)...)
		}
		return out
	}
	return []Expr{e}
}

// Conjunction joins with AND; nil for none.
func Conjunction(es []Expr) Expr {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return &And{es}
}

// Substitute replaces columns by expressions.
func Substitute(e Expr, m map[ColID]Expr) Expr {
	return Transform(e, func(x Expr) Expr {
		if c, ok := x.(*Col); ok {
			if r, ok := m[c.ID]; ok {
				return r
			}
		}
		return x
	})
}
