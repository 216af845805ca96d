package plan

// Updating reports whether n's output carries retractions in an incremental run under the given emit policy.
// Under ON WATERMARK an operator whose groups the watermark closes gives each group once.
func Updating(n Node, emit EmitPolicy) bool {
	in := false
	for _, c := range n.Children() {
		in = in || Updating(c, emit)
	}
	closes := func() bool {
		_, ok := ClosingColumn(n)
		return ok && emit == EmitOnWatermark
	}
	switch n := n.(type) {
	case *Scan:
		if n.Source.Stream != nil {
			return n.Source.Stream.Updating()
		}
		return n.Source.Table
	case *Values:
		return false
	case *Filter:
		return in || TemporalFilter(n)
	case *Normalize:
		return Live(n)
	case *Aggregate:
		if !in && len(n.Aggs) == 0 && len(n.Keys) > 0 {
			return false // groups come and say nothing that may change
		}
		return Live(n) && !closes()
	case *GroupTopN:
		return Live(n) && !closes()
	case *TopN:
		return Live(n)
	case *Limit:
		return in
	case *Join:
		switch n.Kind {
		case Inner, Semi:
			return in
		case Left, Anti, Mark, Single:
			return in || Live(n.Right)
		case Right:
			return in || Live(n.Left)
		}
		return in || Live(n)
	case *SetOp:
		if n.Kind == Except {
			return in || Live(n.Right)
		}
		return in || n.Kind == Intersect && n.All && Live(n)
	case *Window:
		return Live(n) && !closes()
	case *TimeWindow:
		if n.Kind == Session {
			_, ends := SessionEnds(n)
			return Live(n) && (emit != EmitOnWatermark || !ends)
		}
		return in
	}
	return in
}

// Live reports whether rows may still come after the start: below n there is a stream, or a table whose DML makes deltas.
func Live(n Node) bool {
	live := false
	Walk(n, func(m Node) bool {
		if s, ok := m.(*Scan); ok && (s.Source.Stream != nil || s.Source.Table) {
			live = true
		}
		return !live
	})
	return live
}
