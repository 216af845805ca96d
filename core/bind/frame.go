package bind

import (
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

var frameModes = map[sql.FrameMode]plan.FrameMode{sql.Rows: plan.FrameRows, sql.Range: plan.FrameRange, sql.Groups: plan.FrameGroups}

var boundKinds = map[sql.BoundKind]plan.BoundKind{
	sql.UnboundedPreceding: plan.UnboundedPreceding, sql.Preceding: plan.Preceding, sql.CurrentRow: plan.CurrentRow,
	sql.Following: plan.Following, sql.UnboundedFollowing: plan.UnboundedFollowing,
}

var exclusions = map[string]plan.Exclusion{"CURRENT ROW": plan.ExcludeCurrentRow, "GROUP": plan.ExcludeGroup, "TIES": plan.ExcludeTies}

// frame binds a frame clause over a window's order; nil is the default frame.
func (e *env) frame(f *sql.Frame, order []plan.SortItem) *plan.Frame {
	if f == nil {
		return nil
	}
	start, end := boundKinds[f.Start.Kind], boundKinds[f.End.Kind]
	switch {
	case start == plan.UnboundedFollowing:
		fail(f.Pos, "a frame cannot start at UNBOUNDED FOLLOWING")
	case end == plan.UnboundedPreceding:
		fail(f.Pos, "a frame cannot end at UNBOUNDED PRECEDING")
	case start == plan.CurrentRow && end == plan.Preceding:
		fail(f.Pos, "a frame that starts at the current row cannot end before it")
	case start == plan.Following && end < plan.Following:
		failHint(f.Pos, "write BETWEEN … FOLLOWING AND … FOLLOWING", "a frame that starts after the current row must end after it too")
	}
	out := &plan.Frame{Mode: frameModes[f.Mode], Exclude: exclusions[f.Exclude]}
	out.Start = e.frameBound(f, f.Start, order)
	out.End = e.frameBound(f, f.End, order)
	if out.Mode == plan.FrameRange && start == plan.UnboundedPreceding && end == plan.CurrentRow && out.Exclude == plan.ExcludeNothing {
		return nil
	}
	return out
}

func (e *env) frameBound(f *sql.Frame, b sql.Bound, order []plan.SortItem) plan.FrameBound {
	out := plan.FrameBound{Kind: boundKinds[b.Kind]}
	if b.Offset == nil {
		return out
	}
	pos := b.Offset.Position()
	offset := e.bind(b.Offset)
	if f.Mode != sql.Range {
		out.Offset = expr.Fold(e.cast(offset, types.Int64, pos))
		if l, ok := out.Offset.(*expr.Lit); ok {
			n, isInt := l.V.(int64)
			if !isInt {
				fail(pos, "the offset of a frame cannot be NULL")
			}
			if n < 0 {
				fail(pos, "the offset of a frame cannot be negative")
			}
		}
		return out
	}
	if len(order) != 1 {
		failHint(f.Pos, "order by one expression, or use ROWS or GROUPS", "a RANGE frame with an offset needs an ORDER BY of one expression, not %d", len(order))
	}
	if l, ok := e.constantOf(offset); ok && l.V == nil {
		fail(pos, "the offset of a frame cannot be NULL")
	}
	key := order[0].Expr
	op := "+"
	if (out.Kind == plan.Preceding) != order[0].Key.Desc {
		op = "-"
	}
	limit := e.call(pos, op, key, offset)
	pair := e.comparable([]expr.Expr{key, limit}, pos, "RANGE")
	out.Offset, out.Key, out.Limit = offset, pair[0], pair[1]
	return out
}

func sameFrame(a, b *plan.Frame) bool {
	if a == nil || b == nil {
		return a == b
	}
	bound := func(x, y plan.FrameBound) bool {
		return x.Kind == y.Kind && (x.Offset == nil) == (y.Offset == nil) && (x.Offset == nil || same(x.Offset, y.Offset))
	}
	return a.Mode == b.Mode && a.Exclude == b.Exclude && bound(a.Start, b.Start) && bound(a.End, b.End)
}
