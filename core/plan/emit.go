package plan

import (
	"github.com/riverbed/riverbed/core/errs"
)

// EmitFor decides when the results of an incremental run are shown, and says why. The default is ON WATERMARK where
// every live input declares a watermark and every group carries a window or event-time bound, IMMEDIATE otherwise.
func EmitFor(q *Query) (EmitPolicy, string, error) {
	switch q.Emit {
	case EmitImmediate:
		return EmitImmediate, "the query says so", nil
	case EmitEvery:
		return EmitEvery, "the query says so", nil
	case EmitOnWatermark:
		if why := notClosed(q.Root); why != "" {
			return 0, "", errs.New(errs.Unsupported, "plan", "EMIT ON WATERMARK is not possible in incremental mode: %s", why).
				WithHint("use EMIT IMMEDIATE, or group by a window over the event time of a stream that declares a watermark")
		}
		return EmitOnWatermark, "the query says so", nil
	}
	if !grouped(q.Root) {
		return EmitImmediate, "nothing in the query waits for a watermark", nil
	}
	if why := notClosed(q.Root); why != "" {
		return EmitImmediate, why, nil
	}
	return EmitOnWatermark, "every input declares a watermark and every group carries a window or event-time bound", nil
}

// grouped reports whether some operator could wait for a group to be complete.
func grouped(n Node) bool {
	found := false
	Walk(n, func(m Node) bool {
		switch m := m.(type) {
		case *Aggregate, *GroupTopN:
			found = found || Live(m)
		case *TimeWindow:
			found = found || m.Kind == Session && Live(m)
		}
		return !found
	})
	return found
}

// notClosed says why the watermark does not settle every row of the output once and for all; empty when it does.
func notClosed(root Node) string {
	why := ""
	var visit func(n Node)
	visit = func(n Node) {
		for _, c := range n.Children() {
			if why == "" {
				visit(c)
			}
		}
		if why != "" || !Live(n) {
			return
		}
		switch n := n.(type) {
		case *Scan:
			switch {
			case n.Source.Watermark == nil:
				why = n.Source.Name + " declares no watermark"
			case n.Source.Stream != nil && n.Source.Stream.Updating():
				why = n.Source.Name + " is an updating stream, so old rows may still change"
			}
		case *Aggregate:
			if _, ok := ClosingColumn(n); !ok {
				why = "a group of the aggregate carries no window and no event-time bound"
			}
		case *GroupTopN:
			if _, ok := ClosingColumn(n); !ok {
				why = "a partition of the top-N carries no window and no event-time bound"
			}
		}
	}
	visit(root)
	if why == "" && Updating(root, EmitOnWatermark) {
		why = "the result of " + OpOf(changing(root)).Name + " may change after it was shown"
	}
	return why
}

// changing finds the lowest node whose output is updating.
func changing(n Node) Node {
	for _, c := range n.Children() {
		if Updating(c, EmitOnWatermark) {
			return changing(c)
		}
	}
	return n
}
