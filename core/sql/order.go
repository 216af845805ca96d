package sql

// Order is what ORDER BY means where it does not say: the settings default_order and default_null_order.
type Order struct {
	Desc           bool
	NullsFirst     bool // in ascending order
	NullsFirstDesc bool // in descending order
}

// State writes the order out wherever a statement leaves it open, so that its meaning no longer depends on settings: a
// view keeps it, and a checkpoint knows it. DuckDB's own defaults are left open.
func (o Order) State(n Node) {
	if o == (Order{}) {
		return
	}
	Inspect(n, func(n Node) bool {
		switch n := n.(type) {
		case *Query:
			o.state(n.OrderBy)
		case *Select:
			for _, w := range n.Windows {
				o.state(w.Window.OrderBy)
			}
		case *MatchRecognize:
			o.state(n.OrderBy)
		case *Function:
			o.state(n.OrderBy)
			o.state(n.WithinGroup)
			if n.Over != nil {
				o.state(n.Over.OrderBy)
			}
			o.list(n)
		}
		return true
	})
}

func (o Order) state(items []OrderItem) {
	for i := range items {
		it := &items[i]
		if !it.Asc && !it.Desc {
			it.Desc = o.Desc
		}
		first := o.NullsFirst
		if it.Desc {
			first = o.NullsFirstDesc
		}
		if it.Nulls == NullsDefault {
			it.Nulls = NullsLast
			if first {
				it.Nulls = NullsFirst
			}
		}
	}
}

// list gives list_sort the arguments that it leaves out.
func (o Order) list(f *Function) {
	switch keyOf(f.Name.Last().Name) {
	case "LIST_SORT", "ARRAY_SORT":
	default:
		return
	}
	if len(f.Args) != 1 {
		return
	}
	direction, nulls, first := "ASC", "NULLS LAST", o.NullsFirst
	if o.Desc {
		direction, first = "DESC", o.NullsFirstDesc
	}
	if first {
		nulls = "NULLS FIRST"
	}
	for _, text := range []string{direction, nulls} {
		f.Args = append(f.Args, Arg{Value: &Literal{At: f.At, Kind: LitString, Text: text}})
	}
}
