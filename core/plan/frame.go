package plan

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
)

// FrameMode is what the bounds of a frame count.
type FrameMode uint8

// The modes: rows, values of the ORDER BY key, groups of peers.
const (
	FrameRows FrameMode = iota + 1
	FrameRange
	FrameGroups
)

func (m FrameMode) String() string { return [...]string{"", "ROWS", "RANGE", "GROUPS"}[m] }

// BoundKind is one end of a frame, in the order in which ends may follow each other.
type BoundKind uint8

// The ends of a frame.
const (
	UnboundedPreceding BoundKind = iota + 1
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

func (k BoundKind) String() string {
	return [...]string{"", "UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"}[k]
}

// FrameBound is one end of a frame.
type FrameBound struct {
	Kind BoundKind
	// Offset, for PRECEDING and FOLLOWING: a BIGINT of rows or groups; of a RANGE what is added to the key.
	Offset expr.Expr
	// Key and Limit, of a RANGE with an offset: the ORDER BY key, and the value of it up to which the frame goes, of one type.
	Key, Limit expr.Expr
}

// Exclusion is what EXCLUDE takes out of a frame.
type Exclusion uint8

// The exclusions.
const (
	ExcludeNothing Exclusion = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

func (x Exclusion) String() string {
	return [...]string{"NO OTHERS", "CURRENT ROW", "GROUP", "TIES"}[x]
}

// Frame is the rows that a window function sees from a row. A nil frame is the default: from the start of the partition to
// the last peer of the row, so the whole partition where there is no ORDER BY.
type Frame struct {
	Mode       FrameMode
	Start, End FrameBound
	Exclude    Exclusion
}

func (b FrameBound) String() string {
	if b.Offset == nil {
		return b.Kind.String()
	}
	return ExprString(b.Offset) + " " + b.Kind.String()
}

func (f *Frame) String() string {
	s := f.Mode.String() + " BETWEEN " + f.Start.String() + " AND " + f.End.String()
	if f.Exclude != ExcludeNothing {
		s += " EXCLUDE " + f.Exclude.String()
	}
	return s
}

// Steps returns the constant offset of a bound that counts rows or groups; before the row it is negative. ok is false for
// bounds without end and for those that differ from row to row.
func (b FrameBound) Steps() (n int64, ok bool) {
	if b.Kind == CurrentRow {
		return 0, true
	}
	l, isLit := b.Offset.(*expr.Lit)
	if !isLit {
		return 0, false
	}
	n, ok = l.V.(int64)
	if b.Kind == Preceding {
		n = -n
	}
	return n, ok
}

func (x *exprs) frame(f *Frame) *Frame {
	if f == nil {
		return nil
	}
	g := *f
	for _, b := range []*FrameBound{&g.Start, &g.End} {
		b.Offset, b.Key, b.Limit = x.one(b.Offset), x.one(b.Key), x.one(b.Limit)
	}
	return &g
}

// Spec is how the rows of a node are to stand: its functions' PARTITION BY, and the longest of their ORDER BYs.
func (n *Window) Spec() WindowItem {
	best := n.Funcs[0]
	for _, f := range n.Funcs[1:] {
		if len(f.Order) > len(best.Order) {
			best = f
		}
	}
	return WindowItem{Part: best.Part, Order: best.Order, Tie: best.Tie}
}

// Tied says that what the function gives depends on the order of peers.
func (f *WindowItem) Tied() bool {
	switch f.Name {
	case "rank", "dense_rank", "percent_rank", "cume_dist":
		return false
	case "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value":
		return true
	}
	// An aggregate that takes an order has one of its own.
	return f.Frame != nil && f.Frame.Mode == FrameRows &&
		!(f.Frame.Start.Kind == UnboundedPreceding && f.Frame.End.Kind == UnboundedFollowing)
}

// commonPart are the columns by which all functions of a node partition.
func (n *Window) commonPart() []expr.Expr {
	var out []expr.Expr
	for _, e := range n.Funcs[0].Part {
		c, ok := e.(*expr.Col)
		all := ok
		for _, f := range n.Funcs[1:] {
			all = all && slices.ContainsFunc(f.Part, func(x expr.Expr) bool {
				d, ok := x.(*expr.Col)
				return ok && d.ID == c.ID
			})
		}
		if all {
			out = append(out, e)
		}
	}
	return out
}

// times are the columns that stay bound to the watermark: rows of a partition change as long as others join it, so that only what the
// partition says of time holds.
func (n *Window) times(out map[expr.ColID]TimeColumn) {
	in := TimeColumns(n.Input)
	for _, e := range n.commonPart() {
		id := e.(*expr.Col).ID
		t, ok := in[id]
		if !ok {
			continue
		}
		out[id] = t
		for other, o := range in {
			if t.Window != 0 && o.Window == t.Window {
				out[other] = o
			}
		}
	}
}

func windowState(n *Window) []StateUse {
	if c, ok := ClosingColumn(n); ok {
		return []StateUse{{"over_rows", true, closedBy(c) + "; " + ReachOf(n).String()}}
	}
	return []StateUse{{"over_rows", false, "all rows, for ever; " + ReachOf(n).String()}}
}
