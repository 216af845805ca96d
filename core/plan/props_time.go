package plan

import (
	"fmt"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/types"
)

// TimeKind says how a column is bound to the watermark W of its node.
type TimeKind uint8

const (
	EventTime   TimeKind = iota + 1 // future rows have a value of at least W
	WindowStart                     // the start of a window that ends later than W in future rows
	WindowEnd                       // future rows have a value above W
)

func (k TimeKind) String() string {
	return [...]string{"", "event time", "window start", "window end"}[k]
}

// TimeColumn is a column by which rows can be known to be complete.
type TimeColumn struct {
	Kind TimeKind
	// SizeUS is how far a window's end may lie behind its start; 0 for the other kinds.
	SizeUS int64
	// Window tells which TimeWindow made the column, by its Start column; 0 for event times.
	Window expr.ColID
}

// TimeColumns returns the columns of n's output that are bound to its watermark.
func TimeColumns(n Node) map[expr.ColID]TimeColumn {
	out := map[expr.ColID]TimeColumn{}
	visible := SetOf(n.Columns())
	keep := func(from Node) {
		for id, t := range TimeColumns(from) {
			if visible[id] {
				out[id] = t
			}
		}
	}
	items := func(from Node, items []Item) {
		in := TimeColumns(from)
		for _, it := range items {
			if t, ok := timeOf(it.Expr, in); ok {
				out[it.Col.ID] = t
			}
		}
	}
	switch n := n.(type) {
	case *Scan:
		if w := n.Source.Watermark; w != nil && n.Source.Stream != nil {
			for i, pos := range n.At {
				if pos == w.Column {
					out[n.Cols[i].ID] = TimeColumn{Kind: EventTime}
				}
			}
		}
	case *Filter:
		if !TemporalFilter(n) { // the clock takes rows back whatever the watermark has passed
			keep(n.Input)
		}
	case *Project:
		items(n.Input, n.Items)
	case *Aggregate:
		items(n.Input, inAllSets(n))
	case *TimeWindow:
		if n.Kind == Session {
			sessionTimes(n, out)
			break
		}
		keep(n.Input)
		if c, ok := n.Time.(*expr.Col); ok {
			// A window over windows (two-step aggregation) works too: what ends after W falls in windows that end after W.
			if t, ok := out[c.ID]; ok && (t.Kind == EventTime || t.Kind == WindowEnd) {
				out[n.Start.ID] = TimeColumn{WindowStart, longest(n.Size), n.Start.ID}
				out[n.End.ID] = TimeColumn{WindowEnd, 0, n.Start.ID}
			} else if ok { // of windows known by their starts
				out[n.Start.ID] = TimeColumn{WindowStart, longest(n.Size) + t.SizeUS, n.Start.ID}
				out[n.End.ID] = TimeColumn{WindowStart, t.SizeUS, n.Start.ID}
			}
		}
	case *Join:
		joinTimes(n, out)
	case *SetOp:
		l, r := TimeColumns(n.Left), TimeColumns(n.Right)
		lc, rc := n.Left.Columns(), n.Right.Columns()
		for i, c := range n.Cols {
			a, okA := l[lc[i].ID]
			b, okB := r[rc[i].ID]
			if okA && okB && a.Kind == b.Kind {
				out[c.ID] = TimeColumn{a.Kind, max(a.SizeUS, b.SizeUS), 0}
			}
		}
	case *Window:
		n.times(out)
	case *Values, *Limit, *TopN, *Apply:
	default:
		for _, c := range n.Children() {
			keep(c)
		}
	}
	return out
}

// inAllSets are the keys that every group has.
func inAllSets(n *Aggregate) []Item {
	if n.Sets == nil {
		return n.Keys
	}
	var out []Item
	for i, k := range n.Keys {
		if !slices.ContainsFunc(n.Sets, func(set []int) bool { return !slices.Contains(set, i) }) {
			out = append(out, k)
		}
	}
	return out
}

// timeOf tells how an expression is bound to the watermark: a column as it is, and one that is moved by a fixed time as far behind it.
func timeOf(e expr.Expr, in map[expr.ColID]TimeColumn) (TimeColumn, bool) {
	if c, ok := e.(*expr.Col); ok {
		t, ok := in[c.ID]
		return t, ok
	}
	c, ok := e.(*expr.Call)
	if !ok || len(c.Args) != 2 || c.Fn.Name != "+" && c.Fn.Name != "-" || c.Type().Kind != types.Timestamp || c.Args[0].Type().Kind != types.Timestamp {
		return TimeColumn{}, false
	}
	id, by, ok := shifted(e)
	t, known := in[id]
	if _, plain := c.Args[0].(*expr.Col); !plain || !ok || !known {
		return TimeColumn{}, false
	}
	return TimeColumn{WindowStart, 1 - t.least() - by, 0}, true
}

// sessionTimes: a row may still change sessions that end at its time or later, so their ends are bound as the times of rows are.
// Nothing else is: a session's start moves while it grows, and its rows are shown again with other edges, or late.
func sessionTimes(n *TimeWindow, out map[expr.ColID]TimeColumn) {
	if c, ok := n.Time.(*expr.Col); ok {
		if t, ok := TimeColumns(n.Input)[c.ID]; ok {
			if t.Kind == WindowEnd { // one rule for all: a session is settled when the watermark has passed its end
				t.Kind = EventTime
			}
			out[n.End.ID] = TimeColumn{t.Kind, t.SizeUS, n.Start.ID}
		}
	}
}

// SessionEnds reports how the ends of sessions are bound to the watermark, when they are.
func SessionEnds(n *TimeWindow) (TimeColumn, bool) {
	t, ok := TimeColumns(n)[n.End.ID]
	return t, ok
}

// joinTimes keeps the times that stay bound to the watermark. A new row of one side may meet an old row of the
// other, and then the old row's time lies behind W, unless the condition keeps the two times together.
func joinTimes(j *Join, out map[expr.ColID]TimeColumn) {
	lt, rt := TimeColumns(j.Left), TimeColumns(j.Right)
	bounds, bounded := joinBounds(j, lt, rt)
	if !bounded { // then only a side whose other is complete keeps its times
		bounds = Bounds{Left: -1, Right: -1}
	}
	l, r := lt[bounds.Left], rt[bounds.Right]
	side := func(times map[expr.ColID]TimeColumn, other Node, own expr.ColID, holds bool) {
		for id, t := range times {
			same := id == own || t.Window != 0 && t.Window == times[own].Window
			if !Live(other) || holds && same {
				out[id] = t
			}
		}
	}
	// left = right + d with Low ≤ d ≤ High, so a new right row meets left rows of its time + Low and later.
	if j.Kind != Right && j.Kind != Full {
		side(lt, j.Right, bounds.Left, bounds.Low != nil && r.least()+*bounds.Low >= l.least())
	}
	if j.Kind == Inner || j.Kind == Right {
		side(rt, j.Left, bounds.Right, bounds.High != nil && l.least()-*bounds.High >= r.least())
	}
}

// least is how far above the watermark the column lies in future rows, at least, in microseconds.
func (t TimeColumn) least() int64 {
	switch t.Kind {
	case WindowEnd:
		return 1
	case WindowStart:
		return 1 - t.SizeUS
	}
	return 0
}

// longest is an upper bound of an interval in microseconds: a month has at most 31 days.
func longest(v types.IntervalValue) int64 {
	return (int64(v.Months)*31+int64(v.Days))*86_400_000_000 + v.Micros
}

// ClosingColumn returns the column by which the watermark closes the node's groups, if there is one: a window
// bound or an event time among the columns that name the group.
func ClosingColumn(n Node) (Column, bool) {
	var group []expr.Expr
	var input Node
	switch n := n.(type) {
	case *Aggregate:
		for _, k := range inAllSets(n) {
			group = append(group, k.Expr)
		}
		input = n.Input
	case *GroupTopN:
		group, input = n.Part, n.Input
	case *Window:
		group, input = n.commonPart(), n.Input
	case *Distinct:
		for _, c := range n.Columns() {
			group = append(group, c.Ref())
		}
		input = n.Input
	default:
		return Column{}, false
	}
	times := TimeColumns(input)
	best, found := Column{}, false
	for _, e := range group {
		c, ok := e.(*expr.Col)
		if !ok {
			continue
		}
		t, ok := times[c.ID]
		if !ok {
			continue
		}
		if !found || t.Kind == WindowEnd {
			best, found = Column{ID: c.ID, Name: c.Name, Type: c.T}, true
		}
	}
	return best, found
}

// Bounds says that Left − Right of a join's rows lies between Low and High microseconds; nil is no bound.
type Bounds struct {
	Left, Right expr.ColID
	Low, High   *int64
}

// String is for EXPLAIN.
func (b Bounds) String() string {
	switch {
	case b.Low != nil && b.High != nil && *b.Low == 0 && *b.High == 0:
		return "equal times"
	case b.Low != nil && b.High != nil:
		return fmt.Sprintf("left time − right time between %s and %s", spanText(*b.Low), spanText(*b.High))
	case b.Low != nil:
		return "left time − right time at least " + spanText(*b.Low)
	case b.High != nil:
		return "left time − right time at most " + spanText(*b.High)
	}
	return "no bound"
}

func spanText(us int64) string {
	if us < 0 {
		return "−" + intervalText(types.IntervalValue{Micros: -us})
	}
	return intervalText(types.IntervalValue{Micros: us})
}

// JoinBounds finds what a join's condition says of the distance of its inputs' times: l.ts BETWEEN r.ts − i AND
// r.ts + j, or equal window bounds. A right row can be dropped once the left's watermark has passed its time + High, a left
// row once the right's has passed its time − Low, so each side is bounded only by its own limit.
func JoinBounds(j *Join) (Bounds, bool) {
	return joinBounds(j, TimeColumns(j.Left), TimeColumns(j.Right))
}

// joinBounds is JoinBounds with the times of both sides, which are asked for once: to ask again at each join would double the work
// with every join of a chain.
func joinBounds(j *Join, lt, rt map[expr.ColID]TimeColumn) (Bounds, bool) {
	var out Bounds
	found := false
	note := func(l, r expr.ColID, low, high *int64) {
		if found && (out.Left != l || out.Right != r) {
			return // one pair of times is enough
		}
		out.Left, out.Right, found = l, r, true
		if low != nil && (out.Low == nil || *low > *out.Low) {
			out.Low = low
		}
		if high != nil && (out.High == nil || *high < *out.High) {
			out.High = high
		}
	}
	zero := int64(0)
	for _, k := range j.Keys {
		l, okL := k.Left.(*expr.Col)
		r, okR := k.Right.(*expr.Col)
		if okL && okR {
			a, timeL := lt[l.ID]
			b, timeR := rt[r.ID]
			if timeL && timeR && a.Kind == b.Kind {
				return Bounds{l.ID, r.ID, &zero, &zero}, true
			}
			if timeL && timeR {
				note(l.ID, r.ID, &zero, &zero)
			}
		}
	}
	for _, c := range expr.Conjuncts(j.On) {
		op, a, b, ok := Comparison(c)
		if !ok {
			continue
		}
		l, dl, okL := shifted(a)
		r, dr, okR := shifted(b)
		if !okL || !okR {
			continue
		}
		if _, onRight := rt[l]; onRight {
			l, r, dl, dr, op = r, l, dr, dl, Flip(op)
		}
		if lt[l].Kind == 0 || rt[r].Kind == 0 {
			continue
		}
		d := dr - dl // l + dl op r + dr  ⇒  l − r op dr − dl
		switch op {
		case "=":
			note(l, r, &d, &d)
		case "<", "<=":
			note(l, r, nil, &d)
		case ">", ">=":
			note(l, r, &d, nil)
		}
	}
	return out, found
}

// shifted takes col, col + interval and col − interval apart; intervals with months have no fixed length.
func shifted(e expr.Expr) (expr.ColID, int64, bool) {
	switch e := e.(type) {
	case *expr.Col:
		return e.ID, 0, true
	case *expr.Cast:
		if e.Arg.Type().IsTimestamp() && e.T.IsTimestamp() {
			return shifted(e.Arg)
		}
	case *expr.Call:
		if len(e.Args) != 2 || e.Fn.Name != "+" && e.Fn.Name != "-" {
			return 0, 0, false
		}
		id, d, ok := shifted(e.Args[0])
		lit, isLit := e.Args[1].(*expr.Lit)
		if !ok || !isLit {
			return 0, 0, false
		}
		v, isSpan := lit.V.(types.IntervalValue)
		if !isSpan || v.Months != 0 {
			return 0, 0, false
		}
		by := longest(v)
		if e.Fn.Name == "-" {
			by = -by
		}
		return id, d + by, true
	}
	return 0, 0, false
}
