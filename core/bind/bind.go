// Package bind turns a syntax tree into a logical plan: it resolves names against a Catalog, decides types
// and coercions, and fixes what makes every order total.
//
// Invariant: a bound plan is closed. Every column an expression reads is an output of the node's input or is
// listed as taken from outside (expr.Subquery.Outer, plan.Apply.Outer), and has a ColID that is unique in the plan.
package bind

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// Options are what binding depends on besides the catalog.
type Options struct {
	// SQL is the statement's text; errors draw their caret in it.
	SQL string
	// Values are the types of the columns that the statement's own VALUES fill (INSERT INTO t VALUES …): each value is
	// converted to its column's type by itself, so that 2.5 and 'NaN' may stand in one column of DOUBLE.
	Values []types.Type
	// Params are the values of $1, ? and :name.
	Params Params
}

// Binder binds statements. The ColIDs of all plans that one Binder makes are distinct. It is not safe for
// use by several goroutines.
type Binder struct {
	cat   Catalog
	opts  Options
	next  expr.ColID
	views []string            // views being bound, outermost first, to find one that reads itself
	whole map[plan.Node]bool  // roots whose every column counts as used, see ties.go
	rowID map[expr.ColID]bool // hidden columns: found by name, left out of *
	refs  map[*expr.Col]ref   // where columns were written
	busy  map[*cte]bool       // CTEs whose query is being bound
	size  int                 // relations bound so far

	params Params            // of the text that is being bound: the statement's, or a view's
	macros map[string]*Macro // that the view which is being bound was made with
	text   string            // that is being bound: the statement's, or a macro's

	filling *sql.Values // the VALUES that Options.Values concern
}

// New makes a binder.
func New(cat Catalog, opts Options) *Binder {
	return &Binder{cat: cat, opts: opts, whole: map[plan.Node]bool{}, rowID: map[expr.ColID]bool{},
		refs: map[*expr.Col]ref{}, busy: map[*cte]bool{}, params: opts.Params, text: opts.SQL}
}

// Query binds a SELECT, VALUES, set operation or FROM-first query.
func (b *Binder) Query(q *sql.Query) (out *plan.Query, err error) {
	err = b.guard(func() { out = b.topQuery(q) })
	return out, err
}

func (b *Binder) topQuery(q *sql.Query) *plan.Query {
	b.filling, _ = q.Body.(*sql.Values)
	root := b.query(q, nil, nil)
	out := &plan.Query{SQL: b.opts.SQL}
	out.Emit, out.EveryUS = b.emit(q)
	for _, c := range root.Columns() {
		out.Names = append(out.Names, c.Name)
	}
	out.Root = b.completeOrders(root)
	return out
}

// Expr binds an expression over the given columns, whose ColIDs are their positions: a watermark, a default, a check.
// With a target type the result is cast to it as by assignment; types.Type{} leaves it as it is.
func (b *Binder) Expr(x sql.Expr, fields []types.Field, target types.Type) (out expr.Expr, err error) {
	err = b.guard(func() {
		t := &table{}
		for i, f := range fields {
			t.cols = append(t.cols, plan.Column{ID: expr.ColID(i), Name: f.Name, Type: f.Type})
		}
		if b.next < expr.ColID(len(fields)) {
			b.next = expr.ColID(len(fields))
		}
		e := &env{b: b, scope: &scope{tables: []*table{t}}, clause: clause{name: "an expression"}}
		out = e.bind(x)
		if target.Kind != types.Invalid {
			out = e.assign(out, target, x.Position(), "the expression")
		}
	})
	return out, err
}

// guard runs one binding and turns the panic of fail into an error.
//
// AIDEV-NOTE: the binder leaves by panic(*errs.Error). Anything else is a bug of the binder and is reported
// as one; it must not end the host's process.
func (b *Binder) guard(bind func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.Recovered("bind", r).WithSQL(b.opts.SQL)
		}
	}()
	bind()
	return nil
}

// id returns a fresh column ID.
func (b *Binder) id() expr.ColID {
	b.next++
	return b.next - 1
}

func (b *Binder) column(name string, t types.Type) plan.Column {
	return plan.Column{ID: b.id(), Name: name, Type: t}
}
