package plan

import (
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
)

// Mode is how a query runs.
type Mode uint8

const (
	Batch Mode = iota + 1
	Incremental
)

func (m Mode) String() string { return [...]string{"", "batch", "incremental"}[m] }

// Support says whether a mode has an operator; Why is the reason when it has not.
type Support struct {
	Yes bool
	Why string
}

var yes = Support{Yes: true}

func no(why string) Support { return Support{Why: why} }

// StateTable names a state table of the incremental form. The name is written to disk and never reused; the
// declaration of its columns stands beside the operator, and a test ties the two.
type StateTable struct {
	Name  string
	About string
}

// Op is the declaration of one operator.
type Op struct {
	Name        string // as EXPLAIN and messages call it
	Summary     string
	Batch       Support
	Incremental Support
	State       []StateTable
	// SQL shows a query that uses the operator.
	SQL string
}

// Supports returns the support in a mode.
func (o *Op) Supports(m Mode) Support {
	if m == Incremental {
		return o.Incremental
	}
	return o.Batch
}

// Ops lists every operator once.
var Ops = []*Op{
	{Name: "scan", Summary: "Read a source.", Batch: yes, Incremental: yes, SQL: "SELECT * FROM t"},
	{Name: "normalize", Summary: "Make rows of a stream without old images: the last row of each key.", Batch: yes, Incremental: yes,
		State: []StateTable{
			{"normalize_rows", "key → row, its split, how many splits have a row below it"},
			{"normalize_covered", "key, split → row, of keys that a later split has too"},
		}, SQL: "SELECT * FROM latest"},
	{Name: "values", Summary: "Give rows of constants.", Batch: yes, Incremental: yes, SQL: "VALUES (1, 'a')"},
	{Name: "filter", Summary: "Keep rows whose condition is true.", Batch: yes, Incremental: yes, SQL: "SELECT * FROM t WHERE v > 1"},
	{Name: "temporal filter", Summary: "Keep rows whose time compares with now() as asked; they come and go as time passes.", Batch: yes, Incremental: yes,
		State: []StateTable{{"temporal_rows", "row → weight, weight shown; of rows that the clock may still pass"}}, SQL: "SELECT * FROM t WHERE ts > now() - INTERVAL '1 hour'"},
	{Name: "project", Summary: "Compute columns.", Batch: yes, Incremental: yes, SQL: "SELECT v + 1 FROM t"},
	{Name: "aggregate", Summary: "Group rows and aggregate them.", Batch: yes, Incremental: yes,
		State: []StateTable{
			{"aggregate_groups", "group key → row count, accumulators"},
			{"aggregate_distinct", "group key, value → weight (over inserts above zero, no more), for DISTINCT aggregates"},
			{"aggregate_slices", "group key without the window, slice of a hopping window → row count, accumulators"},
		}, SQL: "SELECT k, sum(v) FROM t GROUP BY k"},
	{Name: "grouping sets", Summary: "Group by several sets of keys at once.", Batch: yes, Incremental: yes,
		State: []StateTable{
			{"aggregate_groups_set", "group key of one set → row count, accumulators; `aggregate_groups_set_0` and so on"},
			{"aggregate_distinct_set", "group key of one set, value → weight, for DISTINCT aggregates"},
		}, SQL: "SELECT k, sum(v) FROM t GROUP BY ROLLUP (k)"},
	{Name: "tumbling window", Summary: "Cut time into windows that do not overlap.", Batch: yes, Incremental: yes,
		SQL: "SELECT count(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1 minute')"},
	{Name: "hopping window", Summary: "Cut time into windows that overlap.", Batch: yes, Incremental: yes,
		SQL: "SELECT count(*) FROM t GROUP BY HOP(ts, INTERVAL '1 minute', INTERVAL '5 minutes')"},
	{Name: "session window", Summary: "Gather rows that are at most a gap apart.", Batch: yes, Incremental: yes,
		State: []StateTable{{"session_rows", "row → weight, in the key group of its key"}}, SQL: "SELECT count(*) FROM t GROUP BY SESSION(ts, INTERVAL '5 minutes')"},
	{Name: "cumulating window", Summary: "Windows that grow by a step up to a size.", Batch: yes, Incremental: yes,
		SQL: "SELECT count(*) FROM t GROUP BY CUMULATE(ts, INTERVAL '1 minute', INTERVAL '1 hour')"},
	{Name: "inner join", Summary: "Pair the rows of two inputs.", Batch: yes, Incremental: yes, State: joinState,
		SQL: "SELECT * FROM a JOIN b ON a.k = b.k"},
	{Name: "left join", Summary: "Pair rows; left rows without a partner get NULLs.", Batch: yes, Incremental: yes, State: joinState,
		SQL: "SELECT * FROM a LEFT JOIN b ON a.k = b.k"},
	{Name: "right join", Summary: "Pair rows; right rows without a partner get NULLs.", Batch: yes, Incremental: yes, State: joinState,
		SQL: "SELECT * FROM a RIGHT JOIN b ON a.k = b.k"},
	{Name: "full join", Summary: "Pair rows; rows of either side without a partner get NULLs.", Batch: yes, Incremental: yes, State: joinState,
		SQL: "SELECT * FROM a FULL JOIN b ON a.k = b.k"},
	{Name: "semi join", Summary: "Keep left rows that have a partner.", Batch: yes, Incremental: yes, State: joinState,
		SQL: "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k)"},
	{Name: "anti join", Summary: "Keep left rows that have no partner.", Batch: yes, Incremental: yes, State: joinState,
		SQL: "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)"},
	{Name: "mark join", Summary: "Say of each left row whether it is IN the right side: true, false or NULL.", Batch: yes,
		Incremental: no("the rules give it other forms"), SQL: "SELECT k IN (SELECT k FROM b) FROM a"},
	{Name: "scalar subquery", Summary: "Join a subquery used as a value; a second match is an error.", Batch: yes,
		Incremental: no("whether it has more than one row depends on when one looks; use an aggregate, or ORDER BY and LIMIT 1, in the subquery"),
		SQL:         "SELECT (SELECT v FROM b WHERE a.k = b.k) FROM a"},
	{Name: "sort", Summary: "Order rows.", Batch: yes, Incremental: no("rows have no order in a changelog; add LIMIT"), SQL: "SELECT * FROM t ORDER BY v"},
	{Name: "limit", Summary: "Take the first rows.", Batch: yes,
		Incremental: no("without ORDER BY the rows that it takes depend on how the input is cut; add ORDER BY, or put it at the top, where it takes the first rows of their total order"), SQL: "SELECT * FROM t LIMIT 3"},
	{Name: "top-N", Summary: "Keep the first rows of an order.", Batch: yes, Incremental: yes,
		State: []StateTable{
			{"topn_rows", "row → weight"},
			{"first_rows", "rows of the first few places; instead of `topn_rows`, over inserts"},
		}, SQL: "SELECT * FROM t ORDER BY v LIMIT 3"},
	{Name: "top-N per group", Summary: "Keep the first rows of an order in each group.", Batch: yes, Incremental: yes,
		State: []StateTable{
			{"group_topn_rows", "row → weight, in the key group of its partition"},
			{"group_first_rows", "rows of the first few places, in the key group of their partition; instead of `group_topn_rows`, over inserts"},
			{"group_best_rows", "row → weight, of the rows that none precedes, in the key group of their partition; instead of `group_topn_rows`, for rank() = 1 over what only gets better"},
		}, SQL: "SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 3"},
	{Name: "distinct", Summary: "Remove equal rows.", Batch: yes, Incremental: yes,
		State: []StateTable{{"distinct_seen", "row → weight"}}, SQL: "SELECT DISTINCT k FROM t"},
	{Name: "union all", Summary: "Give the rows of both inputs.", Batch: yes, Incremental: yes, SQL: "SELECT k FROM a UNION ALL SELECT k FROM b"},
	{Name: "set operation", Summary: "INTERSECT and EXCEPT.", Batch: yes, Incremental: yes,
		State: []StateTable{{"setop_rows", "row → weight on each side, weight shown"}}, SQL: "SELECT k FROM a EXCEPT SELECT k FROM b"},
	{Name: "window function", Summary: "Functions with OVER that are no top-N.", Batch: yes, Incremental: yes,
		State: []StateTable{{"over_rows", "row → weight, in the key group of its partition"}}, SQL: "SELECT sum(v) OVER (PARTITION BY k) FROM t"},
	{Name: "recursive query", Summary: "Add rows that follow from rows, until there are no more.", Batch: yes,
		Incremental: no("how far a change goes is known only when the recursion has run again"),
		SQL:         "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT * FROM r"},
	{Name: "unnest", Summary: "Make a row of each item of lists.", Batch: yes, Incremental: yes,
		SQL: "SELECT k, unnest([v, v + 1]) FROM t"},
	{Name: "dependent join", Summary: "A subquery for each row. The rules turn it into joins.", Batch: no("the rules give it other forms"),
		Incremental: no("the rules give it other forms"), SQL: "SELECT * FROM a, LATERAL (SELECT a.k + 1)"},
}

var joinState = []StateTable{
	{"join_left", "left row by join key → weight, partners, weight shown"},
	{"join_left_rows", "left rows as they came; instead of `join_left`, over inserts of which only partners are asked"},
	{"join_right", "right row by join key → weight, partners, weight shown"},
	{"join_right_rows", "right rows as they came; instead of `join_right`, over inserts of which only partners are asked"},
}

var opByName = func() map[string]*Op {
	m := make(map[string]*Op, len(Ops))
	for _, o := range Ops {
		if m[o.Name] != nil {
			panic("plan: operator declared twice: " + o.Name)
		}
		m[o.Name] = o
	}
	return m
}()

var joinOps = [...]string{"", "inner join", "left join", "right join", "full join", "semi join", "anti join", "mark join", "scalar subquery"}
var windowOps = [...]string{"", "tumbling window", "hopping window", "session window", "cumulating window"}

// OpOf returns the declaration of a node's operator.
func OpOf(n Node) *Op { return opByName[opName(n)] }

func opName(n Node) string {
	switch n := n.(type) {
	case *Scan:
		return "scan"
	case *Normalize:
		return "normalize"
	case *Values:
		return "values"
	case *Filter:
		if TemporalFilter(n) {
			return "temporal filter"
		}
		return "filter"
	case *Project:
		return "project"
	case *Aggregate:
		if n.Sets != nil {
			return "grouping sets"
		}
		return "aggregate"
	case *TimeWindow:
		return windowOps[n.Kind]
	case *Join:
		return joinOps[n.Kind]
	case *Sort:
		return "sort"
	case *Limit:
		return "limit"
	case *TopN:
		return "top-N"
	case *GroupTopN:
		return "top-N per group"
	case *Distinct:
		return "distinct"
	case *SetOp:
		if n.Kind == Union && n.All {
			return "union all"
		}
		return "set operation"
	case *Window:
		return "window function"
	case *Unnest:
		return "unnest"
	case *Recursive:
		return "recursive query"
	}
	return "dependent join"
}

// ModeOf chooses the mode of a query: bounded inputs run as batch, a live one makes it incremental.
func ModeOf(q *Query) (Mode, string) {
	sources := Sources(q.Root)
	if i := slices.IndexFunc(sources, (*Source).Live); i >= 0 {
		return Incremental, sources[i].Name + " is a live stream"
	}
	return Batch, "every input is bounded"
}

// Check refuses a plan that the mode cannot run, naming the construct.
func Check(root Node, mode Mode) error {
	var err error
	Walk(root, func(n Node) bool {
		if err != nil {
			return false
		}
		op := OpOf(n)
		if s := op.Supports(mode); !s.Yes {
			err = errs.E(errs.Unsupported, "plan", posOf(n), "%s is not supported in %s: %s", construct(n, op), modes(op, mode), s.Why)
		}
		if a, ok := n.(*Aggregate); ok && err == nil && mode == Incremental && Live(a) {
			err = checkAggs(a)
		}
		if w, ok := n.(*Window); ok && err == nil && mode == Incremental && Live(w) {
			err = checkWindowAggs(w)
		}
		return err == nil
	})
	return err
}

func construct(n Node, op *Op) string {
	switch n := n.(type) {
	case *Window:
		if len(n.Funcs) > 0 {
			return "the window function " + n.Funcs[0].Name + "() OVER"
		}
	case *SetOp:
		s := n.Kind.String()
		if n.All {
			s += " ALL"
		}
		return s
	}
	return "a " + op.Name
}

// modes names the mode asked for, and the other one too when it would refuse as well.
func modes(op *Op, mode Mode) string {
	if !op.Batch.Yes && !op.Incremental.Yes {
		return "batch and incremental mode yet"
	}
	return mode.String() + " mode"
}

func posOf(n Node) errs.Pos {
	switch n := n.(type) {
	case *Scan:
		return n.Pos
	case *TimeWindow:
		return n.Pos
	case *Apply:
		return n.Pos
	case *Unnest:
		return n.Pos
	case *Recursive:
		return n.Pos
	case *Window:
		if len(n.Funcs) > 0 {
			return n.Funcs[0].Pos
		}
	}
	return errs.Pos{}
}

func checkWindowAggs(w *Window) error {
	var aggs Aggregate
	for _, f := range w.Funcs {
		if f.Agg != nil {
			aggs.Aggs = append(aggs.Aggs, *f.Agg)
		}
	}
	return checkAggs(&aggs)
}

func checkAggs(a *Aggregate) error {
	for _, x := range a.Aggs {
		if x.Fn.Algebra == fn.BatchOnly {
			return errs.E(errs.Unsupported, "plan", x.Pos, "%s() is not supported in incremental mode: %s", x.Fn.Name, x.Fn.Why)
		}
	}
	return nil
}
