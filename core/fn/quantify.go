package fn

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// quantified compares a value with the elements of a list: x < ANY (l) is any_of(x, '<', l).
var quantified = []*Scalar{
	quantifier("any_of", "Whether x op e holds for an element e of a list; x op ANY (list).", true,
		ex("any_of(2, '<', [1, 3])", "true"), ex("4 < ANY (list_sort([1, 3]))", "false"), ex("4 < ANY (list_sort([1, NULL]))", "NULL")),
	quantifier("all_of", "Whether x op e holds for all elements e of a list; x op ALL (list).", false,
		ex("all_of(2, '<', [1, 3])", "false"), ex("0 < ALL (list_sort([1, 3]))", "true")),
}

func quantifier(name, about string, any bool, examples ...Example) *Scalar {
	return &Scalar{Name: name, Category: Nested, Nulls: NullAware, Summary: about, Examples: examples,
		Differs: "DuckDB has the spelling with ANY and ALL alone.",
		Overloads: []Overload{{Args: Types{types.AnyType, str, anyList}, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			op, ok := constAt(consts, 1).(string)
			holds := quantifiable[op]
			if !ok || holds == nil {
				return Resolved{}, errs.New(errs.Schema, "bind", "the second argument of %s must be one of = <> < <= > >=, as a constant", name)
			}
			elem := args[0]
			if args[2].Kind == types.List {
				elem = *args[2].Elem
			}
			t, err := comparable2(Types{args[0], elem}, Values{constAt(consts, 0), nil})
			if err != nil {
				return Resolved{}, err
			}
			return Resolved{Args: Types{t, str, types.ListOf(t)}, Returns: types.Bool, Kernel: func(c *Call) (arrow.Array, error) {
				return quantify(c, t, holds, any)
			}}, nil
		}}}}
}

// Values is short for what Resolve gets of constants.
type Values = []types.Value

var quantifiable = map[string]func(order int) bool{
	"=": func(o int) bool { return o == 0 }, "<>": func(o int) bool { return o != 0 },
	"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 },
	">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
}

// quantify: an element that decides wins; else a NULL on either side makes the result NULL. A NULL list has no elements.
func quantify(c *Call, t types.Type, holds func(int) bool, any bool) (arrow.Array, error) {
	out, valid := make([]byte, kernels.BitBytes(c.N)), kernels.Ones(c.N)
	for i := range c.N {
		x := valueAt(c, 0, i)
		l, _ := valueAt(c, 2, i).([]types.Value)
		decided, unknown := false, false
		for _, e := range l {
			if x == nil || e == nil {
				unknown = true
			} else if holds(types.Compare(x, e, t)) == any {
				decided = true
				break
			}
		}
		switch {
		case decided == any && (decided || !unknown):
			kernels.SetBit(out, i)
		case !decided && unknown:
			kernels.ClearBit(valid, i)
		}
	}
	return kernels.NewBools(c.N, out, valid), nil
}
