package fn

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// lambdas are the functions that apply a lambda to the elements of lists. The lambda is evaluated over the elements of all lists
// of a batch at once, or, where each evaluation needs the one before, over one element of every list at a time.
var lambdas = []*Scalar{
	{Name: "list_transform", Category: Nested, Summary: "The results of a lambda for the elements of a list. The lambda may take the position, too; [f(x) for x in l].",
		Aliases: []string{"array_transform", "list_apply", "array_apply", "apply"}, Lambda: &LambdaForm{Min: 1, Max: 2, Resolve: resolveTransform},
		Overloads: lambdaSignature(1), Examples: []Example{ex("list_transform([1, 2, NULL], lambda x: x + 1)", "[2, 3, NULL]"),
			ex("list_transform(['a', 'b'], lambda x, i: x || i)", "[a1, b2]"), ex("[x * x for x in [1, 2, 3] if x > 1]", "[4, 9]")}},
	{Name: "list_filter", Category: Nested, Summary: "The elements of a list for which a lambda is true. The lambda may take the position, too.",
		Aliases: []string{"array_filter", "filter"}, Lambda: &LambdaForm{Min: 1, Max: 2, Resolve: resolveFilter},
		Overloads: lambdaSignature(1), Examples: []Example{ex("list_filter([1, 2, NULL, 3], lambda x: x > 1)", "[2, 3]"), ex("list_filter([5, 6, 7], lambda x, i: i <> 2)", "[5, 7]")}},
	{Name: "list_reduce", Category: Nested, Nulls: NullAware, Summary: "One value of a list: a lambda of the value so far and the next element, beginning with the first element or an initial value. The lambda may take the position, too.",
		Aliases: []string{"array_reduce", "reduce"}, Lambda: &LambdaForm{Min: 2, Max: 3, Resolve: resolveReduce},
		Overloads: lambdaSignature(2), Examples: []Example{ex("list_reduce([1, 2, 3], lambda acc, x: acc + x)", "6"), ex("list_reduce(['b', 'c'], lambda acc, x: acc || x, 'a')", "abc")}},
}

// LambdaForm says how a function takes a lambda, as the second of its arguments.
type LambdaForm struct {
	Min, Max int // how many parameters a lambda has; the last of Max is the position of the element
	// Resolve is asked with the types of the other arguments, and again with that of the lambda's body, until the types of the
	// parameters stay; body is nil the first time. The body's constant counts like that of an argument.
	Resolve func(args []types.Type, consts []types.Value, body *types.Type, bodyConst types.Value) (LambdaTypes, error)
}

// LambdaTypes are the types of a call with a lambda. Args and Returns concern the arguments without it.
type LambdaTypes struct {
	Resolved
	Params   []types.Type // Max of them
	Body     types.Type   // what the body is cast to
	Fallible bool
}

// Lambda is a lambda as kernels see it: something to be evaluated over any number of elements.
type Lambda struct {
	Params int // how many parameters it reads: the last of LambdaForm.Max may be missing
	// Eval evaluates the body over n elements. rows says of which row of the call each of them is, for what the body reads there.
	Eval func(n int, params []arrow.Array, rows []int32) (Arg, []RowError, error)
}

// lambdaSignature is for messages and the reference; calls are resolved by LambdaForm.
func lambdaSignature(forms int) []Overload {
	return []Overload{{Args: Types{anyList, types.AnyType}}, {Args: Types{anyList, types.AnyType, types.AnyType}}}[:forms]
}

// lambdaList is the type of the elements of a lambda function's list.
func lambdaList(args []types.Type) (types.Type, error) {
	if args[0].Kind != types.List {
		return types.Type{}, errs.New(errs.Schema, "bind", "a lambda is applied to a list, not to a value of type %s", args[0])
	}
	return *args[0].Elem, nil
}

// plainArgs refuses what a lambda function does not take beside its list and lambda.
func plainArgs(name string, args []types.Type, most int) error {
	if len(args) > most {
		return errs.New(errs.Schema, "bind", "%s takes %s", name, []string{"", "a list and a lambda", "a list, a lambda and an initial value"}[most])
	}
	return nil
}

func resolveTransform(args []types.Type, _ []types.Value, body *types.Type, _ types.Value) (LambdaTypes, error) {
	elem, err := lambdaList(args)
	if err == nil {
		err = plainArgs("list_transform", args, 1)
	}
	out := LambdaTypes{Params: Types{elem, types.Int64}}
	if body != nil {
		out.Body, out.Resolved = *body, Resolved{Args: args, Returns: types.ListOf(*body), Kernel: transformLists}
	}
	return out, err
}

func resolveFilter(args []types.Type, _ []types.Value, _ *types.Type, _ types.Value) (LambdaTypes, error) {
	elem, err := lambdaList(args)
	if err == nil {
		err = plainArgs("list_filter", args, 1)
	}
	return LambdaTypes{Params: Types{elem, types.Int64}, Body: types.Bool, Resolved: Resolved{Args: args, Returns: args[0], Kernel: filterLists}}, err
}

// resolveReduce: the value so far has the common type of what it begins with and of the body. Without an initial value it begins
// with an element, and all elements are cast.
func resolveReduce(args []types.Type, consts []types.Value, body *types.Type, bodyConst types.Value) (LambdaTypes, error) {
	elem, err := lambdaList(args)
	if err == nil {
		err = plainArgs("list_reduce", args, 2)
	}
	if err != nil {
		return LambdaTypes{}, err
	}
	acc, accConst, begins := elem, types.Value(nil), "the list's elements are"
	if len(args) == 2 {
		acc, accConst, begins = args[1], constAt(consts, 1), "the initial value is"
	}
	if body != nil {
		t, ok := types.CommonOf(acc, accConst, *body, bodyConst)
		if !ok {
			return LambdaTypes{}, errs.New(errs.Schema, "bind", "%s %s, and the lambda gives %s; they have no common type", begins, acc, *body).WithHint("cast one of them")
		}
		acc = t
	}
	out := LambdaTypes{Body: acc, Resolved: Resolved{Returns: acc, Kernel: reduceLists}}
	if len(args) == 2 {
		out.Args, out.Params = Types{args[0], acc}, Types{acc, elem, types.Int64}
	} else {
		out.Args, out.Params, out.Fallible = Types{types.ListOf(acc)}, Types{acc, acc, types.Int64}, true
	}
	return out, nil
}

// elements are the elements of the lists of a batch that are not NULL, one after the other.
type elements struct {
	offs []int32 // where the elements of each row begin; one more than there are rows
	rows []int32 // of each element its row
	at   []int32 // of each element its place in the child; nil: they lie there without gaps from first on
	from int32
	vals arrow.Array // the child
}

func elementsOf(c *Call) *elements {
	list := c.Args[0].Array
	src, valid, mask := listOffsets(list), kernels.Valid(list), maskOf(c.Args[0])
	e := &elements{offs: make([]int32, c.N+1), vals: list.(array.ListLike).ListValues(), from: src[0]}
	dense := mask != 0 || c.N == 1
	for i := range c.N {
		j := i & mask
		n := src[j+1] - src[j]
		if valid != nil && !kernels.Bit(valid, j) {
			dense = dense && n == 0
			n = 0
		}
		e.offs[i+1] = e.offs[i] + n
	}
	e.rows = make([]int32, e.offs[c.N])
	if !dense {
		e.at = make([]int32, len(e.rows))
	}
	for i := range c.N {
		for k := e.offs[i]; k < e.offs[i+1]; k++ {
			e.rows[k] = int32(i)
			if !dense {
				e.at[k] = src[i&mask] + k - e.offs[i]
			}
		}
	}
	return e
}

// values are the elements as one array.
func (e *elements) values() arrow.Array {
	if e.at == nil {
		return kernels.Slice(e.vals, int(e.from), int(e.from)+len(e.rows))
	}
	return kernels.Take(e.vals, e.at)
}

// place is where element k lies in the child.
func (e *elements) place(k int32) int32 {
	if e.at == nil {
		return e.from + k
	}
	return e.at[k]
}

// positions count the elements of each list from 1.
func (e *elements) positions() arrow.Array {
	out := make([]int64, len(e.rows))
	for k, row := range e.rows {
		out[k] = int64(int32(k)-e.offs[row]) + 1
	}
	return kernels.NewFixed(types.Int64.Arrow(), out, nil)
}

// apply evaluates the call's lambda over all elements. An element that has no value makes its row fail.
func (e *elements) apply(c *Call) (Arg, error) {
	params := []arrow.Array{e.values()}
	if c.Lambda.Params > 1 {
		params = append(params, e.positions())
	}
	out, failed, err := c.Lambda.Eval(len(e.rows), params, e.rows)
	for _, f := range failed {
		c.Fail(int(e.rows[f.Row]), f.Err)
	}
	return out, err
}

func transformLists(c *Call) (arrow.Array, error) {
	e := elementsOf(c)
	out, err := e.apply(c)
	if err != nil {
		return nil, err
	}
	child := out.Array
	if out.Const {
		child = kernels.Repeat(child, 0, len(e.rows))
	}
	return newList(c.Ret, c.N, e.offs, child), nil
}

func filterLists(c *Call) (arrow.Array, error) {
	e := elementsOf(c)
	out, err := e.apply(c)
	if err != nil {
		return nil, err
	}
	bits, valid, mask := kernels.BoolBits(out.Array), kernels.Valid(out.Array), maskOf(out)
	offs, kept := make([]int32, c.N+1), make([]int32, 0, len(e.rows))
	for i := range c.N {
		for k := e.offs[i]; k < e.offs[i+1]; k++ {
			if at := int(k) & mask; kernels.Bit(bits, at) && (valid == nil || kernels.Bit(valid, at)) {
				kept = append(kept, e.place(k))
			}
		}
		offs[i+1] = int32(len(kept))
	}
	return newList(c.Ret, c.N, offs, kernels.Take(e.vals, kept)), nil
}

// reduceLists takes the next element of every list that has one, until none has. Work and memory follow the elements: a row
// whose list has ended is looked at no more.
func reduceLists(c *Call) (arrow.Array, error) {
	e := elementsOf(c)
	list, mask := c.Args[0].Array, maskOf(c.Args[0])
	first, step := e.vals, int32(1) // what the values begin with; the element that comes next
	if len(c.Args) == 2 {
		first, step = c.Args[1].Array, 0
	}
	var rows, at []int32 // rows whose lists go on, and where in now their values stand
	res := results{at: make([]int32, c.N)}
	for i := range c.N {
		n, from := e.offs[i+1]-e.offs[i], int32(-1)
		switch {
		case list.IsNull(i & mask):
		case len(c.Args) == 2:
			from = int32(i & maskOf(c.Args[1]))
		case n == 0:
			c.Fail(i, errs.New(errs.Data, "evaluate", "list_reduce of an empty list has no value").WithHint("give it an initial value: list_reduce(l, lambda …, 0)"))
		default:
			from = e.place(e.offs[i])
		}
		if res.at[i] = from; n > step {
			rows, at = append(rows, int32(i)), append(at, from)
		}
	}
	res.add(first)
	now := kernels.Take(first, at)
	for ; len(rows) > 0; step++ {
		at, positions := make([]int32, len(rows)), make([]int64, len(rows))
		for k, row := range rows {
			at[k], positions[k] = e.place(e.offs[row]+step), int64(step)+1
		}
		params := []arrow.Array{now, kernels.Take(e.vals, at)}
		if c.Lambda.Params > 2 {
			params = append(params, kernels.NewFixed(types.Int64.Arrow(), positions, nil))
		}
		out, failed, err := c.Lambda.Eval(len(rows), params, rows)
		if err != nil {
			return nil, err
		}
		dead := make(map[int]bool, len(failed))
		for _, f := range failed {
			dead[f.Row] = true
			c.Fail(int(rows[f.Row]), f.Err)
		}
		var more, stay []int32
		for k, row := range rows {
			switch {
			case dead[k]:
			case e.offs[row]+step+1 < e.offs[row+1]:
				more, stay = append(more, row), append(stay, int32(k&maskOf(out)))
			default:
				res.at[row] = res.next + int32(k&maskOf(out))
			}
		}
		if len(more) < len(rows) {
			res.add(out.Array)
		}
		rows, now = more, kernels.Take(out.Array, stay)
	}
	return kernels.Take(kernels.Concat(res.parts), res.at), nil
}

// results are values that come in parts.
type results struct {
	at    []int32 // of each row its place in all parts
	parts []arrow.Array
	next  int32 // where the next part begins
}

func (r *results) add(part arrow.Array) {
	r.parts, r.next = append(r.parts, part), r.next+int32(part.Len())
}
