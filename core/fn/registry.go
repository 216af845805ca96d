package fn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// All lists every scalar function once, topic by topic.
var All = slices.Concat(arithmetic, comparisons, bitwise, mathematics, textFunctions, textForms, formats, patterns, encodings,
	dates, processing, dateParts, nested, lambdas, quantified, listAggregates, moreNested, vectors, jsons, jsonEdits, jsonRows, rows, utilities)

var byName = index(All)

func index(list []*Scalar) map[string]*Scalar {
	m := make(map[string]*Scalar, 2*len(list))
	for _, f := range list {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			if m[name] != nil {
				panic(errs.Bug("fn", "function %q is declared twice", name)) // AIDEV-NOTE: panics at start, on a mistake in the lists
			}
			m[name] = f
		}
	}
	return m
}

// Lookup finds a scalar function or operator by its name or an alias, in any case.
func Lookup(name string) (*Scalar, bool) {
	f, ok := byName[strings.ToLower(name)]
	return f, ok
}

// Names lists the names of all scalar functions, aliases and operators included, sorted.
func Names() []string {
	out := make([]string, 0, len(byName))
	for name := range byName {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Resolve chooses the overload of a function for arguments of these types: the one whose implicit casts cost least, as
// DuckDB ranks them. consts holds the values of constant arguments, nil for others: literals are more willing to be cast.
// The result's Kernel, Args (what to cast the arguments to) and Returns are set.
func Resolve(name string, args []types.Type, consts []types.Value) (*Scalar, Resolved, *Overload, error) {
	f, ok := Lookup(name)
	if !ok {
		e := errs.New(errs.Schema, "bind", "there is no function %s", display(name, args))
		if hint := errs.DidYouMean(name, Names()); hint != "" {
			e = e.WithHint("%s", hint)
		}
		return nil, Resolved{}, nil, e
	}
	r, o, err := f.Resolve(args, consts)
	return f, r, o, err
}

// Resolve is Resolve for a function already found.
func (f *Scalar) Resolve(args []types.Type, consts []types.Value) (Resolved, *Overload, error) {
	if f.Lambda != nil {
		return Resolved{}, nil, errs.New(errs.Schema, "bind", "%s wants a lambda as its second argument", f.Name)
	}
	if consts == nil {
		consts = make([]types.Value, len(args))
	}
	best, tie := -1, -1
	bestCost := 0
	for i := range f.Overloads {
		cost := f.Overloads[i].cost(args, consts)
		switch {
		case cost < 0:
		case best < 0 || cost < bestCost:
			best, tie, bestCost = i, -1, cost
		case cost == bestCost:
			tie = i
		}
	}
	if best < 0 {
		return Resolved{}, nil, f.noMatch(args)
	}
	if tie >= 0 && bestCost > 0 && !slices.ContainsFunc(args, func(t types.Type) bool { return t.Kind == types.Null }) {
		return Resolved{}, nil, errs.New(errs.Schema, "bind", "%s is ambiguous: it could be %s or %s", display(f.Name, args),
			f.Overloads[best].signature(f.Name), f.Overloads[tie].signature(f.Name)).WithHint("cast an argument to the type you mean")
	}
	o := &f.Overloads[best]
	r, err := o.resolve(args, consts)
	if err != nil {
		return Resolved{}, nil, err
	}
	return r, o, nil
}

// resolve fills in what an overload leaves to the defaults.
func (o *Overload) resolve(args []types.Type, consts []types.Value) (Resolved, error) {
	r := Resolved{}
	if o.Resolve != nil {
		var err error
		if r, err = o.Resolve(args, consts); err != nil {
			return r, err
		}
	}
	if r.Args == nil {
		r.Args = make([]types.Type, len(args))
		for i := range args {
			r.Args[i] = o.arg(i)
			if r.Args[i].Kind == types.Any || r.Args[i].Kind == types.Decimal && r.Args[i].Width == 0 {
				r.Args[i] = args[i]
			}
		}
	}
	if r.Returns.Kind == types.Invalid {
		r.Returns = o.Returns
	}
	if r.Kernel == nil {
		r.Kernel = o.Kernel
	}
	return r, nil
}

// arg is the type of the i-th argument in the signature.
func (o *Overload) arg(i int) types.Type {
	if i >= len(o.Args) {
		return o.Args[len(o.Args)-1]
	}
	return o.Args[i]
}

// cost adds up the implicit casts; -1 when the overload does not take these arguments.
func (o *Overload) cost(args []types.Type, consts []types.Value) int {
	if o.Variadic {
		if len(args) < len(o.Args)-1 {
			return -1
		}
	} else if len(args) != len(o.Args) {
		return -1
	}
	sum := 0
	for i, t := range args {
		want := o.arg(i)
		var c int
		switch {
		case want.Kind == types.Any:
			c = 1 // a signature that names the type is preferred
		case nestedAny(want):
			c = nestedAnyCost(t, want)
		default:
			c = types.LiteralCost(t, want, consts[i])
		}
		if c < 0 {
			return -1
		}
		sum += c
	}
	return sum
}

// nestedAny reports whether a signature asks for "any list", "any map" or "any struct".
func nestedAny(t types.Type) bool {
	return t.Kind == types.List && t.Elem.Kind == types.Any || t.Kind == types.Map && t.Key.Kind == types.Any ||
		t.Kind == types.Struct && len(t.Fields) == 0
}

func nestedAnyCost(from, want types.Type) int {
	switch from.Kind {
	case want.Kind:
		return 0
	case types.Null:
		return 160
	}
	return -1
}

// shownOverloads is how many overloads an error lists.
const shownOverloads = 5

// noMatch lists the overloads nearest to the arguments: of as many, and of their types.
func (f *Scalar) noMatch(args []types.Type) error {
	near := make([]*Overload, len(f.Overloads))
	for i := range f.Overloads {
		near[i] = &f.Overloads[i]
	}
	slices.SortStableFunc(near, func(a, b *Overload) int { return cmp.Compare(a.distance(args), b.distance(args)) })
	var b strings.Builder
	shown := 0
	for ; shown < min(len(near), shownOverloads) && (near[shown].takes(len(args)) || !near[0].takes(len(args))); shown++ {
		b.WriteString("\n  " + near[shown].signature(f.Name))
	}
	if rest := len(near) - shown; rest > 0 {
		fmt.Fprintf(&b, "\n  … and %d more", rest)
	}
	return errs.New(errs.Schema, "bind", "%s does not take these arguments: %s", f.Name, display(f.Name, args)).
		WithHint("it takes:%s", b.String())
}

// takes reports whether an overload has a form of n arguments.
func (o *Overload) takes(n int) bool {
	return n == len(o.Args) || o.Variadic && n >= len(o.Args)-1
}

// distance ranks overloads for arguments that none takes.
func (o *Overload) distance(args []types.Type) int {
	if !o.takes(len(args)) {
		return math.MaxInt
	}
	const cast, other = 1, 100 // an argument that becomes what is wanted; one that does not
	sum := 0
	for i, t := range args {
		switch want := o.arg(i); {
		case t.Kind == want.Kind:
		case types.ImplicitCost(t, want) >= 0:
			sum += cast
		default:
			sum += other
		}
	}
	return sum
}

func (o *Overload) signature(name string) string {
	parts := make([]string, len(o.Args))
	for i, t := range o.Args {
		switch {
		case t.Kind == types.Decimal && t.Width == 0:
			parts[i] = "DECIMAL"
		case t.Kind == types.Struct && len(t.Fields) == 0:
			parts[i] = "STRUCT"
		default:
			parts[i] = t.String()
		}
	}
	if o.Variadic {
		parts[len(parts)-1] += "..."
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

func display(name string, args []types.Type) string {
	parts := make([]string, len(args))
	for i, t := range args {
		parts[i] = t.String()
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}
