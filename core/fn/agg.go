package fn

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Aggregates lists every aggregate function once, topic by topic.
var Aggregates = slices.Concat(countAggregates, sumAggregates, varianceAggregates, pairAggregates, extremeAggregates, logicAggregates,
	orderedAggregates, quantileAggregates, shapeAggregates)

var aggregateByName = indexAggregates(Aggregates)

func indexAggregates(list []*Aggregate) map[string]*Aggregate {
	m := make(map[string]*Aggregate, 2*len(list))
	for _, f := range list {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			if m[name] != nil {
				panic(errs.Bug("fn", "aggregate %q is declared twice", name)) // AIDEV-NOTE: panics at start, on a mistake in the lists
			}
			m[name] = f
		}
	}
	return m
}

// LookupAggregate finds an aggregate function by its name or an alias, in any case.
func LookupAggregate(name string) (*Aggregate, bool) {
	f, ok := aggregateByName[strings.ToLower(name)]
	return f, ok
}

// AggregateNames lists the names of all aggregate functions, aliases included, sorted.
func AggregateNames() []string {
	out := make([]string, 0, len(aggregateByName))
	for name := range aggregateByName {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// ResolveAggregate chooses the overload for arguments of these types, as Resolve does for scalar functions. count(*) has
// no arguments.
func ResolveAggregate(name string, args []types.Type, consts []types.Value) (*Aggregate, Resolved, *AggOverload, error) {
	f, ok := LookupAggregate(name)
	if !ok {
		e := errs.New(errs.Schema, "bind", "there is no aggregate function %s", display(name, args))
		if hint := errs.DidYouMean(name, AggregateNames()); hint != "" {
			e = e.WithHint("%s", hint)
		}
		return nil, Resolved{}, nil, e
	}
	if consts == nil {
		consts = make([]types.Value, len(args))
	}
	best, bestCost := -1, 0
	for i, o := range f.Overloads {
		sig := Overload{Args: o.Args}
		if c := sig.cost(args, consts); c >= 0 && (best < 0 || c < bestCost) {
			best, bestCost = i, c
		}
	}
	if best < 0 {
		var b strings.Builder
		for i, o := range f.Overloads {
			if i == 12 {
				b.WriteString("\n  …")
				break
			}
			sig := Overload{Args: o.Args}
			b.WriteString("\n  " + sig.signature(f.Name))
		}
		return nil, Resolved{}, nil, errs.New(errs.Schema, "bind", "%s does not take these arguments: %s", f.Name, display(f.Name, args)).
			WithHint("it takes:%s", b.String())
	}
	o := &f.Overloads[best]
	sig := Overload{Args: o.Args, Returns: o.Returns, Resolve: o.Resolve}
	r, err := sig.resolve(args, consts)
	if err != nil {
		return nil, Resolved{}, nil, err
	}
	return f, r, o, nil
}

// rowsOf is an argument with one value per row.
func rowsOf(a Arg, n int) arrow.Array {
	if a.Const {
		return kernels.Repeat(a.Array, 0, n)
	}
	return a.Array
}

// maskOfArgs is the rows in which no argument is NULL; nil: all.
func maskOfArgs(args []arrow.Array) []byte {
	var m []byte
	for _, a := range args {
		m = kernels.AndBits(m, kernels.Valid(a))
	}
	return m
}

// weightOf is the weight of row i.
func weightOf(weights []int64, i int) int64 {
	if weights == nil {
		return 1
	}
	return weights[i]
}

// grow lengthens a slice to n elements, the new ones zero. It doubles the room, unless far more is asked for: append's quarter copies many groups five times.
func grow[T any](s []T, n int) []T { return kernels.GrownTo(s, n) }

// Together is an accumulator that brings all its groups in order before it saves one of them, so that few at a time would cost as much each time.
type Together interface{ SavesTogether() }

// saveBytes writes each group, or what is held of it, as a BLOB.
func saveBytes[T any](groups []T, save func(dst []byte, of T) []byte) arrow.Array {
	offs := make([]int32, len(groups)+1)
	var data []byte
	for i, g := range groups {
		data = save(data, g)
		if i == 0 { // what groups save is often as long as each other
			data = kernels.Ahead(data, len(groups))
		}
		offs[i+1] = int32(len(data))
	}
	return kernels.NewBytes(arrow.BinaryTypes.Binary, offs, data, nil)
}

// loadBytes reads what saveBytes wrote.
func loadBytes(groups []uint32, saved arrow.Array, load func(g uint32, b []byte)) {
	offs, data := kernels.Spans(saved)
	for i, g := range groups {
		load(g, data[offs[i]:offs[i+1]])
	}
}

// validBits gathers the validity of a result.
type validBits struct {
	bits []byte
	n    int
}

func newValidBits(n int) *validBits { return &validBits{n: n} }

// null marks row i.
func (v *validBits) null(i int) {
	if v.bits == nil {
		v.bits = kernels.Ones(v.n)
	}
	kernels.ClearBit(v.bits, i)
}
