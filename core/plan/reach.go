package plan

import (
	"fmt"
	"math"

	"github.com/riverbed/riverbed/core/expr"
)

// Reach says how far window functions look, and how far a change of a row reaches, in rows of its partition. Both decide what of a
// partition an incremental run computes again.
type Reach struct {
	Back, Ahead               int64 // what a row is computed of, beside itself
	AffectsBack, AffectsAhead int64 // which rows a change is seen by
	Peers                     bool  // in whole runs of peers
	Numbers                   bool  // a row's number is needed
}

// Everything is a reach to the end of the partition.
const Everything = math.MaxInt64

// Whole says that a change touches the whole partition.
func (r Reach) Whole() bool { return r.AffectsBack == Everything && r.AffectsAhead == Everything }

func (r Reach) String() string {
	rows := func(n int64, where string) string {
		if n == Everything {
			return "all rows " + where
		}
		return fmt.Sprintf("%d rows %s", n, where)
	}
	if r.Whole() {
		return "a change computes its partition again"
	}
	s := "a change computes it and "
	if r.Peers {
		s = "a change computes its peers and "
	}
	s += rows(r.AffectsBack, "before and ") + rows(r.AffectsAhead, "behind it again")
	if r.Back > 0 || r.Ahead > 0 {
		s += ", of " + rows(r.Back, "before and ") + rows(r.Ahead, "behind each")
	}
	return s
}

// ReachOf is the reach of a node's functions together.
func ReachOf(n *Window) Reach {
	var all Reach
	order := len(n.Spec().Order)
	for i := range n.Funcs {
		r := reachOf(&n.Funcs[i], order)
		all.Back, all.Ahead = max(all.Back, r.Back), max(all.Ahead, r.Ahead)
		all.AffectsBack, all.AffectsAhead = max(all.AffectsBack, r.AffectsBack), max(all.AffectsAhead, r.AffectsAhead)
		all.Peers, all.Numbers = all.Peers || r.Peers, all.Numbers || r.Numbers
	}
	return all
}

var wholePartition = Reach{Back: Everything, Ahead: Everything, AffectsBack: Everything, AffectsAhead: Everything}

func reachOf(f *WindowItem, order int) Reach {
	if len(f.Order) < order { // its peers are more than those of the order
		return wholePartition
	}
	switch f.Name {
	case "row_number":
		return Reach{AffectsAhead: Everything, Numbers: true}
	case "rank":
		return Reach{AffectsAhead: Everything, Numbers: true, Peers: true}
	case "dense_rank":
		return Reach{Back: Everything, AffectsAhead: Everything, Peers: true}
	case "lag", "lead":
		return neighbourReach(f)
	case "percent_rank", "cume_dist", "ntile":
		return wholePartition
	}
	if f.Frame == nil {
		if len(f.Order) == 0 {
			return wholePartition
		}
		return Reach{Back: Everything, AffectsAhead: Everything, Peers: true}
	}
	var r Reach
	start, okStart := f.Frame.Start.near(f.Frame.Mode)
	end, okEnd := f.Frame.End.near(f.Frame.Mode)
	if r.Back, r.AffectsAhead = max(-start, 0), max(-start, 0); !okStart {
		r.Back, r.AffectsAhead = Everything, Everything
	}
	if r.Ahead, r.AffectsBack = max(end, 0), max(end, 0); !okEnd {
		r.Ahead, r.AffectsBack = Everything, Everything
	}
	if f.Frame.Start.Kind > CurrentRow && !okStart || f.Frame.End.Kind < CurrentRow && !okEnd || f.Frame.Exclude > ExcludeCurrentRow {
		return wholePartition
	}
	r.Peers = f.Frame.Mode != FrameRows
	return r
}

// near is how many rows away a bound is, the same for each row; groups of peers have any number of rows.
func (b FrameBound) near(mode FrameMode) (int64, bool) {
	if b.Kind == CurrentRow {
		return 0, true
	}
	if mode != FrameRows || b.Offset == nil {
		return 0, false
	}
	return b.Steps()
}

func neighbourReach(f *WindowItem) Reach {
	n := int64(1)
	if len(f.Args) > 1 {
		l, ok := f.Args[1].(*expr.Lit)
		if !ok {
			return wholePartition
		}
		v, ok := l.V.(int64)
		if !ok {
			v = 0
		}
		n = v
	}
	if f.IgnoreNulls || n == math.MinInt64 {
		return wholePartition
	}
	if f.Name == "lead" {
		n = -n
	}
	if n >= 0 {
		return Reach{Back: n, AffectsAhead: n}
	}
	return Reach{Ahead: -n, AffectsBack: -n}
}
