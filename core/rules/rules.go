// Package rules rewrites plans: one rewrite a file, their order below.
//
// Invariant: a rewritten plan gives the same rows, under the same output columns (ID, type, order), in both modes;
// after Optimize no Apply and no Subquery is left.
package rules

import (
	"fmt"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// Mode is how the plan will run.
type Mode = plan.Mode

// The modes.
const (
	Batch       = plan.Batch
	Incremental = plan.Incremental
)

// Options are what a rewrite may depend on besides the plan.
type Options struct {
	// Env, in batch mode, fixes now() and the time zone so that they fold; nil leaves them to the run.
	Env *fn.Env
	// Divert lets scans judge their rows (on_error = 'bad').
	Divert bool
}

// Applied says that a rule changed the plan, or what it did that a user should know.
type Applied struct {
	Rule string
	Note string
}

func (a Applied) String() string {
	if a.Note == "" {
		return a.Rule
	}
	return a.Rule + ": " + a.Note
}

// Rule is one rewrite of a whole plan. It returns its argument when nothing changed.
type Rule struct {
	Name  string
	About string
	Modes []Mode
	run   func(c *rewriter, n plan.Node) (plan.Node, error)
}

var both = []Mode{Batch, Incremental}

// All lists the rules in the order in which they run. Some run twice: what one makes, an earlier one can use.
var All = []Rule{
	{"first rows", "Let a LIMIT without ORDER BY at the top take the first rows of the total order.", []Mode{Incremental}, firstRows},
	{"simplify", "Fold constants, flatten AND and OR, take common factors out of OR.", both, simplify},
	{"decorrelate", "Turn subqueries into joins.", both, decorrelate},
	{"set operations", "Turn UNION, INTERSECT and EXCEPT into union all, distinct, semi and anti joins.", both, setOps},
	{"simplify", "As above, for what decorrelation made.", both, simplify},
	{"push filters", "Move conditions towards the sources.", both, pushFilters},
	{"top-N per group", "Recognise ROW_NUMBER() … <= k.", both, groupTopN},
	{"push filters", "As above, below a top-N per group.", both, pushFilters},
	{"best rows", "Find the rows at the extreme of their group without a join.", both, bestRows},
	{"guard rows", "With on_error = 'bad', let scans judge what may fail on their rows.", both, guardRows},
	{"join order", "Order inner joins by cost.", []Mode{Batch}, joinOrder},
	{"join order", "Keep the written order, but avoid products.", []Mode{Incremental}, joinOrder},
	{"reduce groups", "Semi-join an aggregate's input where a join drops most groups.", []Mode{Batch}, reduceGroups},
	{"mark joins", "Give mark joins a form that the mode has.", both, markJoins},
	{"push filters", "As above, for the joins just made.", both, pushFilters},
	{"drop empty", "Drop what a condition that is never true has emptied.", both, dropEmpty},
	{"drop sort", "Drop orders that nobody can see.", both, dropSort},
	{"top-N", "Make one operator of ORDER BY and LIMIT.", both, topN},
	{"push limit", "Stop scans early.", []Mode{Batch}, pushLimit},
	{"trim ties", "Leave out tie-breaks that a unique key makes idle.", both, trimTies},
	{"split windows", "Sort once for the window functions that one order serves.", both, splitWindows},
	{"prune columns", "Read and compute only what is used.", both, prune},
	{"merge projections", "Make one projection of two.", both, mergeProjects},
	{"prune columns", "As above, for what merging left unused.", both, prune},
	{"temporal filters", "Keep the rows of a condition that reads the clock.", []Mode{Incremental}, temporalFilters},
	{"from statistics", "Answer COUNT, MIN and MAX of whole files from their statistics.", []Mode{Batch}, fromStatistics},
	{"build sides", "Put the smaller input of a join on the right.", []Mode{Batch}, buildSides},
	{"share subplans", "Compute once what stands in the query more than once.", []Mode{Batch}, shareSubplans},
}

// rewriter is shared by the rules of one Optimize.
type rewriter struct {
	mode  Mode
	opts  Options
	next  expr.ColID
	facts *plan.Facts
	est   *plan.Estimator
	notes []string
}

func (c *rewriter) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// column makes a new column.
func (c *rewriter) column(name string, t types.Type) plan.Column {
	c.next++
	return plan.Column{ID: c.next, Name: name, Type: t}
}

// copyOf returns n with new columns everywhere, and the new column of each old one.
func (c *rewriter) copyOf(n plan.Node) (plan.Node, map[expr.ColID]expr.ColID) {
	made := plan.Produced(n)
	to := make(map[expr.ColID]expr.ColID, len(made))
	for _, id := range plan.IDs(made) {
		c.next++
		to[id] = c.next
	}
	return plan.Map(n, func(id expr.ColID) expr.ColID {
		if m, ok := to[id]; ok {
			return m
		}
		return id
	}), to
}

// renamed moves an expression onto the columns of a copy.
func renamed(e expr.Expr, to map[expr.ColID]expr.ColID) expr.Expr {
	return expr.Transform(e, func(x expr.Expr) expr.Expr {
		if col, ok := x.(*expr.Col); ok {
			if id, ok := to[col.ID]; ok {
				return &expr.Col{ID: id, Name: col.Name, T: col.T}
			}
		}
		return x
	})
}

// Optimize rewrites a bound query for a mode. It does not change its argument.
func Optimize(q *plan.Query, mode Mode, opts Options) (*plan.Query, []Applied, error) {
	c := &rewriter{mode: mode, opts: opts, next: plan.MaxID(q.Root), facts: plan.NewFacts()}
	c.est = plan.NewEstimator(c.facts)
	root := q.Root
	want := q.Root.Columns()
	var applied []Applied
	for _, r := range All {
		if !slices.Contains(r.Modes, mode) {
			continue
		}
		n, err := r.run(c, root)
		if err != nil {
			return nil, nil, err
		}
		if n != root || len(c.notes) > 0 {
			if len(c.notes) == 0 {
				c.notes = []string{""}
			}
			for _, note := range c.notes {
				if a := (Applied{r.Name, note}); !slices.Contains(applied, a) {
					applied = append(applied, a)
				}
			}
			c.notes = nil
		}
		root = n
	}
	if root = exactly(root, want); opts.Divert {
		root = tellOnce(root)
	}
	if err := finished(root); err != nil {
		return nil, nil, err
	}
	if err := plan.Check(root, mode); err != nil {
		return nil, nil, err
	}
	out := *q
	out.Root = root
	return &out, applied, nil
}

// exactly gives n the wanted columns in the wanted order.
func exactly(n plan.Node, want []plan.Column) plan.Node {
	have := n.Columns()
	if slices.EqualFunc(have, want, func(a, b plan.Column) bool { return a.ID == b.ID }) {
		return n
	}
	items := make([]plan.Item, len(want))
	for i, c := range want {
		items[i] = plan.Item{Expr: c.Ref(), Col: c}
	}
	return &plan.Project{Input: n, Items: items}
}

// finished checks that every column an operator reads is there and no subquery is left.
func finished(root plan.Node) error {
	var err error
	plan.Walk(root, func(n plan.Node) bool {
		have := plan.ColSet{}
		for _, c := range n.Children() {
			for _, col := range c.Columns() {
				have[col.ID] = true
			}
		}
		if s, ok := n.(*plan.Scan); ok {
			have = plan.SetOf(s.Cols)
		}
		for _, id := range plan.IDs(plan.Reads(n)) {
			if !have[id] && err == nil {
				err = errs.Bug("plan", "after rewriting, column #%d is not visible at: %s", id, plan.Describe(n))
			}
		}
		for _, e := range n.Exprs() {
			expr.Walk(e, func(x expr.Expr) bool {
				if s, ok := x.(*expr.Subquery); ok && err == nil {
					err = errs.E(errs.Unsupported, "plan", s.Pos, "a subquery is not supported in this place in batch and incremental mode")
				}
				return true
			})
		}
		return err == nil
	})
	return err
}

// where puts a filter of some conditions over n; conditions that are there already are left out.
func where(n plan.Node, conds []expr.Expr) plan.Node {
	var have []expr.Expr
	if f, ok := n.(*plan.Filter); ok {
		have = expr.Conjuncts(f.Cond)
		n = f.Input
	}
	conds = distinctExprs(append(slices.Clone(have), conds...))
	if len(conds) == 0 {
		return n
	}
	for _, e := range conds {
		if plan.IsBool(e, false) || plan.IsNullLit(e) {
			return &plan.Values{Cols: n.Columns()}
		}
	}
	return &plan.Filter{Input: n, Cond: expr.Conjunction(conds)}
}

// distinctExprs drops conditions that repeat an earlier one, and TRUE.
func distinctExprs(conds []expr.Expr) []expr.Expr {
	seen := map[string]bool{}
	var out []expr.Expr
	for _, e := range conds {
		k := expr.Key(e)
		if plan.IsBool(e, true) || seen[k] && !expr.Volatile(e) {
			continue
		}
		seen[k] = true
		out = append(out, e)
	}
	return out
}

// stuck reports whether a condition must see no rows but those it sees now: it may fail, or differs each time.
func stuck(e expr.Expr) bool { return expr.Fallible(e) || expr.Purity(e) == fn.Volatile }

// pass returns items that hand columns on as they are.
func pass(cols []plan.Column) []plan.Item {
	items := make([]plan.Item, len(cols))
	for i, c := range cols {
		items[i] = plan.Item{Expr: c.Ref(), Col: c}
	}
	return items
}
