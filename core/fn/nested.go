package fn

import (
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// nested is lists, structs and maps. Positions count from 1, and from the end when negative.
var nested = []*Scalar{
	{Name: "list_value", Category: Nested, Nulls: NullAware, Summary: "A list of the arguments; [a, b].", Aliases: []string{"list_pack"}, Overloads: []Overload{
		{Args: Types{types.AnyType}, Variadic: true, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			t := types.NullType
			if len(args) > 0 {
				var err error
				if t, err = commonOf(args, consts); err != nil {
					return Resolved{}, err
				}
			}
			return Resolved{Args: same(t, len(args)), Returns: types.ListOf(t), Kernel: listValue}, nil
		}}}, Examples: []Example{ex("list_value(1, 2)", "[1, 2]"), ex("[1, NULL]", "[1, NULL]")}},
	{Name: "list_extract", Category: Nested, Summary: "The element at a position, NULL outside; of a text the character.", Aliases: []string{"list_element", "array_extract"}, Overloads: []Overload{
		listOverload(Types{anyList, types.Int64}, func(elem types.Type) types.Type { return elem }, listExtract),
		strict(Types{str, types.Int64}, str, func(c *Call) (arrow.Array, error) {
			s, n := textCol(c, 0), col[int64](c, 1)
			return texts(c, func(dst []byte, i int) []byte {
				if n.at(i) == 0 {
					return dst
				}
				return append(dst, kernels.Substring(s.at(i), n.at(i), 1)...)
			})
		}),
		{Args: Types{anyStruct, str}, Resolve: resolveField}, {Args: Types{anyStruct, types.Int64}, Resolve: resolveField},
		mapGet}, Examples: []Example{ex("list_extract([1, 2, 3], 2)", "2"), ex("[1, 2, 3][-1]", "3")}},
	{Name: "list_slice", Category: Nested, Summary: "The elements from one position to another, both included, down from it with a negative step. x[from:to:step]; x[from:] and x[:to] leave an end open.", Aliases: []string{"array_slice"}, Overloads: []Overload{
		listOverload(Types{anyList, types.Int64, types.Int64}, types.ListOf, sliceList),
		fallibly(listOverload(Types{anyList, types.Int64, types.Int64, types.Int64}, types.ListOf, sliceList)),
		strict(Types{str, types.Int64, types.Int64}, str, sliceText), strict(Types{types.Binary, types.Int64, types.Int64}, types.Binary, sliceText)},
		Examples: []Example{ex("list_slice([1, 2, 3], 2, 3)", "[2, 3]"), ex("'abc'[1:2]", "ab"), ex("[1, 2, 3][:2]", "[1, 2]"), ex("[1, 2, 3, 4, 5][5:1:-2]", "[5, 3, 1]")}},
	{Name: "list_contains", Category: Nested, Summary: "Whether a list holds a value.", Aliases: []string{"array_contains", "list_has", "array_has"}, Overloads: listContains[:1],
		Examples: []Example{ex("list_contains([1, 2], 2)", "true")}},
	{Name: "list_position", Category: Nested, Summary: "The position of the first element equal to a value, NULL if there is none.", Aliases: []string{"list_indexof", "array_position", "array_indexof"}, Overloads: []Overload{elementOverload(types.Int32, func(c *Call) (arrow.Array, error) {
		return fixedOrNull(c, func(i int) (int32, bool) {
			at := indexIn(c, i)
			return int32(at + 1), at >= 0
		})
	})}, Examples: []Example{ex("list_position([1, 2], 2)", "2")}},
	{Name: "list_concat", Category: Nested, Nulls: NullAware, Summary: "Join lists; NULL counts as empty.", Aliases: []string{"list_cat", "array_concat", "array_cat"}, Overloads: []Overload{
		{Args: Types{anyList, anyList}, Variadic: true, Resolve: commonArgs(listConcat)}}, Examples: []Example{ex("list_concat([1], [2, 3])", "[1, 2, 3]")}},
	{Name: "list_append", Category: Nested, Nulls: NullAware, Summary: "A list with one more element.", Aliases: []string{"array_append", "array_push_back"}, Overloads: []Overload{appendOverload(false)}, Examples: []Example{ex("list_append([1], 2)", "[1, 2]")}},
	{Name: "list_prepend", Category: Nested, Nulls: NullAware, Summary: "A list with one element before.", Aliases: []string{"array_prepend"}, Overloads: []Overload{appendOverload(true)}, Examples: []Example{ex("list_prepend(1, [2])", "[1, 2]")}},
	listToList("list_reverse", "The elements in reverse order.", []string{"array_reverse"}, func(l []types.Value, _ types.Type) []types.Value {
		slices.Reverse(l)
		return l
	}, "list_reverse([1, 2, 3])", "[3, 2, 1]"),
	sortFn("list_sort", "The elements in ascending order, NULLs last, or as told: list_sort(l, 'DESC', 'NULLS FIRST').", []string{"array_sort"}, false, ex("list_sort([3, 1, 2])", "[1, 2, 3]"), ex("list_sort([1, NULL, 2], 'DESC', 'NULLS FIRST')", "[NULL, 2, 1]")),
	sortFn("list_reverse_sort", "The elements in descending order, NULLs last, or as told.", []string{"array_reverse_sort"}, true, ex("list_reverse_sort([3, 1, 2])", "[3, 2, 1]")),
	listToList("list_distinct", "The distinct elements that are not NULL, in the order of their first appearance.", []string{"array_distinct"}, distinctValues, "list_distinct([1, 1, 2])", "[1, 2]").
		differs("DuckDB's order is that of its hash table."),
	{Name: "list_unique", Category: Nested, Summary: "The number of distinct elements that are not NULL.", Aliases: []string{"array_unique"}, Overloads: []Overload{
		listOverload(Types{anyList}, func(types.Type) types.Type { return types.Uint64 }, func(c *Call) (arrow.Array, error) {
			return fixed(c, func(i int) uint64 {
				return uint64(len(distinctValues(valueAt(c, 0, i).([]types.Value), *c.Types[0].Elem)))
			})
		})}, Examples: []Example{ex("list_unique([1, 1, 2])", "2")}},
	{Name: "flatten", Category: Nested, Summary: "Join the lists inside a list.", Overloads: []Overload{{Args: Types{anyList}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		if args[0].Kind != types.List || args[0].Elem.Kind != types.List {
			return Resolved{}, badType("flatten", args[0])
		}
		return Resolved{Args: args, Returns: *args[0].Elem, Kernel: func(c *Call) (arrow.Array, error) {
			return values(c, func(i int) types.Value {
				out := []types.Value{}
				for _, l := range valueAt(c, 0, i).([]types.Value) {
					if l != nil {
						out = append(out, l.([]types.Value)...)
					}
				}
				return out
			})
		}}, nil
	}}}, Examples: []Example{ex("flatten([[1], [2]])", "[1, 2]")}},
	{Name: "array_to_string", Category: Nested, Nulls: NullAware, Summary: "Join the texts of a list's elements with a separator; NULLs are left out.", Aliases: []string{"list_to_string"}, Overloads: []Overload{{Args: Types{anyList, str}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		return Resolved{Args: Types{types.ListOf(str), str}, Returns: str, Kernel: func(c *Call) (arrow.Array, error) {
			sep := textCol(c, 1)
			return textsOrNull(c.without(0, 1), func(dst []byte, i int) ([]byte, bool) {
				l, ok := valueAt(c, 0, i).([]types.Value)
				between, n := []byte(","), 0 // what NULL stands for, as in DuckDB
				if !c.Args[1].IsNull(i & maskOf(c.Args[1])) {
					between = sep.at(i)
				}
				for _, v := range l {
					if v == nil {
						continue
					}
					if n++; n > 1 {
						dst = append(dst, between...)
					}
					dst = append(dst, v.(string)...)
				}
				return dst, ok && (n > 0 || len(l) == 0)
			})
		}}, nil
	}}}, Examples: []Example{ex("array_to_string([1, 2], ',')", "1,2")}},
	series("range", "The whole numbers, or the times by an interval, from a start up to, not including, an end.", false, "range(3)", "[0, 1, 2]"),
	series("generate_series", "The whole numbers, or the times by an interval, from a start up to and including an end.", true, "generate_series(1, 3)", "[1, 2, 3]"),
	{Name: "struct_pack", Category: Nested, Nulls: NullAware, Summary: "A struct of named values: struct_pack(a := 1), or {'a': 1}.", Overloads: []Overload{
		{Args: Types{types.AnyType}, Variadic: true, Resolve: resolveStruct}}, Examples: []Example{ex("{'a': 1, 'b': 'x'}", "{'a': 1, 'b': x}")}},
	{Name: "struct_extract", Category: Nested, Summary: "A field of a struct, by its name or position.", Overloads: []Overload{
		{Args: Types{anyStruct, str}, Resolve: resolveField}, {Args: Types{anyStruct, types.Int64}, Resolve: resolveField}},
		Examples: []Example{ex("struct_extract({'a': 1}, 'a')", "1")}},
	{Name: "map", Category: Nested, Nulls: NullAware, Summary: "A map of a list of keys and a list of values; MAP {k: v}.", Overloads: []Overload{
		{Args: Types{anyList, anyList}, Fallible: true, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
			if args[0].Kind != types.List || args[1].Kind != types.List {
				return Resolved{}, badType("map", args[0])
			}
			return Resolved{Args: args, Returns: types.MapOf(*args[0].Elem, *args[1].Elem), Kernel: makeMap}, nil
		}}}, Examples: []Example{ex("map([1, 2], ['a', 'b'])", "{1=a, 2=b}")}},
	{Name: "element_at", Category: Nested, Nulls: NullAware, Summary: "The value of a key, as a list of one element or none.", Aliases: []string{"map_extract"}, Overloads: []Overload{
		mapOverload(func(t types.Type) types.Type { return types.ListOf(*t.Elem) }, true, func(c *Call) (arrow.Array, error) {
			return valuesAware(c, func(i int) types.Value {
				if valueAt(c, 0, i) == nil {
					return nil
				}
				if v, ok := lookUp(c, i); ok {
					return []types.Value{v}
				}
				return []types.Value{}
			})
		})}, Examples: []Example{ex("element_at(MAP {'a': 1}, 'a')", "[1]")}},
	{Name: "map_extract_value", Category: Nested, Summary: "The value of a key, NULL if there is none; m[key].", Overloads: []Overload{mapGet}, Examples: []Example{ex("map_extract_value(MAP {'a': 1}, 'a')", "1")}},
	{Name: "map_contains", Category: Nested, Summary: "Whether a map has a key.", Overloads: listContains[1:], Examples: []Example{ex("map_contains(MAP {'a': 1}, 'a')", "true")}},
	{Name: "map_keys", Category: Nested, Summary: "The keys of a map.", Overloads: []Overload{mapOverload(func(t types.Type) types.Type { return types.ListOf(*t.Key) }, false, mapPart(func(e types.MapEntry) types.Value { return e.Key }))},
		Examples: []Example{ex("map_keys(MAP {'a': 1})", "[a]")}},
	{Name: "map_values", Category: Nested, Summary: "The values of a map.", Overloads: []Overload{mapOverload(func(t types.Type) types.Type { return types.ListOf(*t.Elem) }, false, mapPart(func(e types.MapEntry) types.Value { return e.Value }))},
		Examples: []Example{ex("map_values(MAP {'a': 1})", "[1]")}},
	{Name: "cardinality", Category: Nested, Summary: "The number of entries of a map.", Overloads: []Overload{mapOverload(func(types.Type) types.Type { return types.Uint64 }, false, func(c *Call) (arrow.Array, error) {
		return fixed(c, func(i int) uint64 { return uint64(len(valueAt(c, 0, i).([]types.MapEntry))) })
	})}, Examples: []Example{ex("cardinality(MAP {'a': 1})", "1")}},
}

func fallibly(o Overload) Overload {
	o.Fallible = true
	return o
}

// listOverload resolves a function of a list whose result depends on the type of its elements.
func listOverload(args Types, ret func(elem types.Type) types.Type, k Kernel) Overload {
	return Overload{Args: args, Resolve: func(ts []types.Type, _ []types.Value) (Resolved, error) {
		l := ts[0]
		if l.Kind != types.List {
			l = types.ListOf(types.NullType)
		}
		return Resolved{Args: append(Types{l}, args[1:]...), Returns: ret(*l.Elem), Kernel: k}, nil
	}}
}

func listToList(name, about string, aliases []string, f func([]types.Value, types.Type) []types.Value, sql, want string) *Scalar {
	return &Scalar{Name: name, Category: Nested, Summary: about, Aliases: aliases, Examples: []Example{ex(sql, want)},
		Overloads: []Overload{listOverload(Types{anyList}, types.ListOf, func(c *Call) (arrow.Array, error) {
			return values(c, func(i int) types.Value { return f(valueAt(c, 0, i).([]types.Value), *c.Types[0].Elem) })
		})}}
}

// sortFn sorts a list. list_sort also takes the direction and where NULLs go, list_reverse_sort the latter, as constants.
func sortFn(name, about string, aliases []string, desc bool, examples ...Example) *Scalar {
	var out []Overload
	for extra := range 3 {
		if desc && extra == 2 {
			break
		}
		args := append(Types{anyList}, same(str, extra)...)
		out = append(out, Overload{Args: args, Resolve: func(ts []types.Type, consts []types.Value) (Resolved, error) {
			key := SortKey{Desc: desc}
			for i := 1; i < len(ts); i++ {
				word, _ := constAt(consts, i).(string)
				switch strings.ToUpper(word) {
				case "ASC", "ASCENDING", "DESC", "DESCENDING":
					if i == 1 && !desc {
						key.Desc = strings.ToUpper(word)[0] == 'D'
						continue
					}
				case "NULLS FIRST", "NULLS LAST":
					if i == 2 || desc {
						key.NullsFirst = strings.ToUpper(word) == "NULLS FIRST"
						continue
					}
				}
				return Resolved{}, errs.New(errs.Schema, "bind", "%s cannot sort by '%s'", name, word).WithHint("the order is 'ASC' or 'DESC', then 'NULLS FIRST' or 'NULLS LAST'")
			}
			l := ts[0]
			if l.Kind != types.List {
				l = types.ListOf(types.NullType)
			}
			return Resolved{Args: append(Types{l}, args[1:]...), Returns: l, Kernel: func(c *Call) (arrow.Array, error) {
				return values(c, func(i int) types.Value {
					l := valueAt(c, 0, i).([]types.Value)
					slices.SortStableFunc(l, func(a, b types.Value) int { return key.compare(a, b, *c.Types[0].Elem) })
					return l
				})
			}}, nil
		}})
	}
	return &Scalar{Name: name, Category: Nested, Summary: about, Aliases: aliases, Overloads: out, Examples: examples}
}

// compare orders two values by the key; NULLs go last unless it says otherwise.
func (k SortKey) compare(a, b types.Value, t types.Type) int {
	switch {
	case (a == nil) != (b == nil):
		if (a == nil) == k.NullsFirst {
			return -1
		}
		return 1
	case k.Desc:
		return types.Compare(b, a, t)
	}
	return types.Compare(a, b, t)
}

// listValue interleaves the arguments' rows.
func listValue(c *Call) (arrow.Array, error) {
	n, k := c.N, len(c.Args)
	offs := make([]int32, n+1)
	for i := range offs {
		offs[i] = int32(i * k)
	}
	child := kernels.Nulls(c.Ret.Elem.Arrow(), 0)
	if k > 0 {
		parts := make([]arrow.Array, k)
		base := make([]int32, k)
		total := int32(0)
		for a, x := range c.Args {
			parts[a], base[a] = x.Array, total
			total += int32(x.Len())
		}
		idx := make([]int32, n*k)
		for i := range n {
			for a := range c.Args {
				idx[i*k+a] = base[a] + int32(i&maskOf(c.Args[a]))
			}
		}
		child = kernels.Take(kernels.Concat(parts), idx)
	}
	return newList(c.Ret, n, offs, child), nil
}

func newList(t types.Type, n int, offs []int32, child arrow.Array) arrow.Array {
	return array.MakeFromData(array.NewData(t.Arrow(), n, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(offs))}, []arrow.ArrayData{child.Data()}, 0, 0))
}

func listExtract(c *Call) (arrow.Array, error) {
	l := c.Args[0].Array
	offs, n := listOffsets(l), col[int64](c, 1)
	idx := make([]int32, c.N)
	for i := range idx {
		j := i & maskOf(c.Args[0])
		size, at := int64(offs[j+1]-offs[j]), n.at(i)
		if at < 0 {
			at += size + 1
		}
		idx[i] = -1
		if at >= 1 && at <= size {
			idx[i] = offs[j] + int32(at) - 1
		}
	}
	return kernels.Take(l.(array.ListLike).ListValues(), idx), nil
}

// Open ends of a slice: x[:to] and x[from:]. Which end is meant follows from the sign of the step.
const (
	OpenLow  = math.MinInt64
	OpenHigh = math.MaxInt64
)

// sliceSteps picks the elements of a slice of n elements: from a place on, how many, how far apart. Positions are both included,
// and those before the first and behind the last are cut. With a negative step the slice goes down, from lo to hi.
func sliceSteps(n int, lo, hi, step int64) (from int, count int) {
	if lo == OpenLow && step < 0 {
		lo = -1
	}
	if hi == OpenHigh && step < 0 {
		hi = 1
	}
	at := func(p int64) int64 {
		if p < 0 && p != OpenLow {
			return p + int64(n) + 1
		}
		return p
	}
	lo, hi = at(lo), at(hi)
	size := step
	if step > 0 {
		lo, hi = max(lo, 1), min(hi, int64(n))
	} else {
		lo, hi, size = min(lo, int64(n)), max(hi, 1), -step
		lo, hi = hi, lo // counted upwards
	}
	if lo > hi {
		return 0, 0
	}
	count = int((hi-lo)/size) + 1
	if step < 0 {
		return int(hi) - 1, count
	}
	return int(lo) - 1, count
}

// sliceList gathers the elements of all slices at once.
func sliceList(c *Call) (arrow.Array, error) {
	list := c.Args[0].Array
	offs, lo, hi, alive := listOffsets(list), col[int64](c, 1), col[int64](c, 2), live(c)
	out, idx := make([]int32, c.N+1), []int32{}
	for i := range c.N {
		if alive == nil || kernels.Bit(alive, i) {
			j, step := i&maskOf(c.Args[0]), int64(1)
			if len(c.Args) == 4 {
				step = col[int64](c, 3).at(i)
			}
			if step == 0 || step == math.MinInt64 {
				c.failf(i, "the step of a slice is %d", step)
				step = 1
			}
			from, count := sliceSteps(int(offs[j+1]-offs[j]), lo.at(i), hi.at(i), step)
			for k := range count {
				idx = append(idx, offs[j]+int32(from+k*int(step)))
			}
		}
		out[i+1] = int32(len(idx))
	}
	return newList(c.Ret, c.N, out, kernels.Take(list.(array.ListLike).ListValues(), idx)), nil
}

func sliceText(c *Call) (arrow.Array, error) {
	s, lo, hi := textCol(c, 0), col[int64](c, 1), col[int64](c, 2)
	return texts(c, func(dst []byte, i int) []byte {
		if c.Types[0].Kind == types.Blob { // of bytes, not of characters
			b := s.at(i)
			from, count := sliceSteps(len(b), lo.at(i), hi.at(i), 1)
			return append(dst, b[from:from+count]...)
		}
		from, count := sliceSteps(kernels.Chars(s.at(i)), lo.at(i), hi.at(i), 1)
		return append(dst, kernels.Substring(s.at(i), int64(from)+1, int64(count))...)
	})
}

// elementOverload takes a list and a value, both cast to a common element type.
func elementOverload(ret types.Type, k Kernel) Overload {
	return Overload{Args: Types{anyList, types.AnyType}, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
		l, e := args[0], args[1]
		if l.Kind != types.List {
			l = types.ListOf(e)
		}
		t, ok := types.CommonOf(*l.Elem, nil, e, constAt(consts, 1))
		if !ok {
			return Resolved{}, errs.New(errs.Schema, "bind", "a %s holds no %s", l, e)
		}
		return Resolved{Args: Types{types.ListOf(t), t}, Returns: ret, Kernel: k}, nil
	}}
}

func indexIn(c *Call, i int) int {
	want, t := valueAt(c, 1, i), *c.Types[0].Elem
	return slices.IndexFunc(valueAt(c, 0, i).([]types.Value), func(v types.Value) bool { return v != nil && types.Compare(v, want, t) == 0 })
}

var listContains = []Overload{
	elementOverload(types.Bool, func(c *Call) (arrow.Array, error) {
		return bools(c, func(i int) bool { return indexIn(c, i) >= 0 })
	}),
	mapOverload(func(types.Type) types.Type { return types.Bool }, true, func(c *Call) (arrow.Array, error) {
		return bools(c, func(i int) bool { _, ok := lookUp(c, i); return ok })
	}),
}

// listConcat is list_concat, which gives an empty list where all are NULL, if they have a type.
func listConcat(c *Call) (arrow.Array, error) {
	if c.Ret.Kind != types.List {
		return concatLists(c)
	}
	return valuesAware(c, func(i int) types.Value {
		out := []types.Value{}
		for a := range c.Args {
			l, _ := valueAt(c, a, i).([]types.Value)
			out = append(out, l...)
		}
		return out
	})
}

func concatLists(c *Call) (arrow.Array, error) {
	return valuesAware(c, func(i int) types.Value {
		out := []types.Value{}
		all := true
		for a := range c.Args {
			if v := valueAt(c, a, i); v != nil {
				out, all = append(out, v.([]types.Value)...), false
			}
		}
		if all {
			return nil
		}
		return out
	})
}

// valuesAware is values without regard to NULL arguments.
func valuesAware(c *Call, f func(i int) types.Value) (arrow.Array, error) {
	out := make([]types.Value, c.N)
	for i := range out {
		out[i] = f(i)
	}
	return types.ArrayOf(out, c.Ret), nil
}

func appendOverload(front bool) Overload {
	list, elem := 0, 1
	args := Types{anyList, types.AnyType}
	if front {
		list, elem = 1, 0
		args = Types{types.AnyType, anyList}
	}
	return Overload{Args: args, Resolve: func(ts []types.Type, consts []types.Value) (Resolved, error) {
		l := ts[list]
		if l.Kind != types.List {
			l = types.ListOf(ts[elem])
		}
		t, ok := types.CommonOf(*l.Elem, nil, ts[elem], constAt(consts, elem))
		if !ok {
			return Resolved{}, errs.New(errs.Schema, "bind", "a %s holds no %s", l, ts[elem])
		}
		r := Resolved{Args: make(Types, 2), Returns: types.ListOf(t), Kernel: func(c *Call) (arrow.Array, error) {
			return valuesAware(c, func(i int) types.Value {
				l, _ := valueAt(c, list, i).([]types.Value)
				e := valueAt(c, elem, i)
				if front {
					return append([]types.Value{e}, l...)
				}
				return append(l, e)
			})
		}}
		r.Args[list], r.Args[elem] = types.ListOf(t), t
		return r, nil
	}}
}

func distinctValues(l []types.Value, t types.Type) []types.Value {
	out := []types.Value{}
	for _, v := range l {
		if v != nil && !slices.ContainsFunc(out, func(w types.Value) bool { return types.Compare(v, w, t) == 0 }) {
			out = append(out, v)
		}
	}
	return out
}

const maxSeries = 1 << 24

func series(name, about string, closed bool, sql, want string) *Scalar {
	k := func(c *Call) (arrow.Array, error) {
		at := func(a int) column[int64] { return col[int64](c, a) }
		return values(c, func(i int) types.Value {
			lo, hi, step := int64(0), at(0).at(i), int64(1)
			if len(c.Args) > 1 {
				lo, hi = hi, at(1).at(i)
			}
			if len(c.Args) > 2 {
				step = at(2).at(i)
			}
			out := []types.Value{}
			if step == 0 {
				return out
			}
			for v := lo; step > 0 && (v < hi || closed && v == hi) || step < 0 && (v > hi || closed && v == hi); {
				if len(out) == maxSeries {
					c.failf(i, "%s() of more than %d elements", name, maxSeries)
					return nil
				}
				out = append(out, v)
				next, ok := add64(v, step)
				if !ok {
					break
				}
				v = next
			}
			return out
		})
	}
	l := types.ListOf(types.Int64)
	return &Scalar{Name: name, Category: Nested, Summary: about, Examples: []Example{ex(sql, want)}, Overloads: append([]Overload{
		fallible(Types{types.Int64}, l, k), fallible(Types{types.Int64, types.Int64}, l, k), fallible(Types{types.Int64, types.Int64, types.Int64}, l, k)},
		timeSeries(name, closed)...)}
}

// resolveStruct takes name, value, name, value, …
func resolveStruct(args []types.Type, consts []types.Value) (Resolved, error) {
	if len(args)%2 != 0 {
		return Resolved{}, errs.New(errs.Schema, "bind", "struct_pack takes pairs of a name and a value")
	}
	var fields []types.Field
	for i := 0; i < len(args); i += 2 {
		name, ok := constAt(consts, i).(string)
		if !ok {
			return Resolved{}, errs.New(errs.Schema, "bind", "the name of a struct's field must be a constant text")
		}
		if slices.ContainsFunc(fields, func(f types.Field) bool { return strings.EqualFold(f.Name, name) }) {
			return Resolved{}, errs.New(errs.Schema, "bind", "the struct has two fields %q", name)
		}
		fields = append(fields, types.Field{Name: name, Type: args[i+1]})
	}
	return Resolved{Args: args, Returns: types.StructOf(fields...), Kernel: func(c *Call) (arrow.Array, error) {
		children := make([]arrow.ArrayData, len(fields))
		for i := range fields {
			a := c.Args[2*i+1]
			x := a.Array
			if a.Const && c.N != 1 {
				x = kernels.Repeat(x, 0, c.N)
			}
			children[i] = x.Data()
		}
		return array.MakeFromData(array.NewData(c.Ret.Arrow(), c.N, []*memory.Buffer{nil}, children, 0, 0)), nil
	}}, nil
}

// resolveField finds the field that a constant names.
func resolveField(args []types.Type, consts []types.Value) (Resolved, error) {
	s := args[0]
	at := -1
	switch v := valueOf(consts, 1).(type) {
	case string:
		at = slices.IndexFunc(s.Fields, func(f types.Field) bool { return strings.EqualFold(f.Name, v) })
		if at < 0 {
			names := make([]string, len(s.Fields))
			for i, f := range s.Fields {
				names[i] = f.Name
			}
			e := errs.New(errs.Schema, "bind", "%s has no field %q", s, v)
			if near := errs.DidYouMean(v, names); near != "" {
				e = e.WithHint("%s", near)
			}
			return Resolved{}, e
		}
	case int64:
		at = int(v) - 1
	}
	if at < 0 || at >= len(s.Fields) {
		return Resolved{}, errs.New(errs.Schema, "bind", "the field of a struct must be a constant name, or a position from 1 to %d", len(s.Fields))
	}
	return Resolved{Args: args, Returns: s.Fields[at].Type, Kernel: func(c *Call) (arrow.Array, error) {
		f := c.Args[0].Array.(*array.Struct).Field(at)
		if c.Args[0].Const && c.N != 1 {
			f = kernels.Repeat(f, 0, c.N)
		}
		return f, nil
	}}, nil
}

// mapOverload resolves a function of a map, and of a key when asked.
func mapOverload(ret func(types.Type) types.Type, key bool, k Kernel) Overload {
	args := Types{anyMap}
	if key {
		args = append(args, types.AnyType)
	}
	return Overload{Args: args, Resolve: func(ts []types.Type, _ []types.Value) (Resolved, error) {
		m, err := mapType(ts[0])
		if err != nil {
			return Resolved{}, err
		}
		if key && m.Key.Kind == types.Null {
			m = types.MapOf(ts[1], *m.Elem)
		}
		r := Resolved{Args: Types{m}, Returns: ret(m), Kernel: k}
		if key {
			r.Args = append(r.Args, *m.Key)
		}
		return r, nil
	}}
}

// mapType is the type of an argument that is a map. A map that nothing gives types takes those of what it is asked for.
func mapType(t types.Type) (types.Type, error) {
	switch t.Kind {
	case types.Null:
		return types.MapOf(types.NullType, types.NullType), nil
	case types.Map:
		return t, nil
	}
	return t, badType("a map function", t)
}

var mapGet = mapOverload(func(t types.Type) types.Type { return *t.Elem }, true, func(c *Call) (arrow.Array, error) {
	return values(c, func(i int) types.Value { v, _ := lookUp(c, i); return v })
})

func lookUp(c *Call, i int) (types.Value, bool) {
	want, t := valueAt(c, 1, i), *c.Types[0].Key
	for _, e := range valueAt(c, 0, i).([]types.MapEntry) {
		if want != nil && types.Compare(e.Key, want, t) == 0 {
			return e.Value, true
		}
	}
	return nil, false
}

func mapPart(f func(types.MapEntry) types.Value) Kernel {
	return func(c *Call) (arrow.Array, error) {
		return values(c, func(i int) types.Value {
			out := []types.Value{}
			for _, e := range valueAt(c, 0, i).([]types.MapEntry) {
				out = append(out, f(e))
			}
			return out
		})
	}
}

func makeMap(c *Call) (arrow.Array, error) {
	t := *c.Ret.Key
	return valuesAware(c, func(i int) types.Value {
		ks, ok1 := valueAt(c, 0, i).([]types.Value)
		vs, ok2 := valueAt(c, 1, i).([]types.Value)
		if !ok1 || !ok2 {
			return nil
		}
		if len(ks) != len(vs) {
			c.failf(i, "a map of %d keys and %d values", len(ks), len(vs))
			return nil
		}
		out := make([]types.MapEntry, len(ks))
		for k := range ks {
			if ks[k] == nil {
				c.failf(i, "the key of a map is NULL")
				return nil
			}
			for _, e := range out[:k] {
				if types.Compare(e.Key, ks[k], t) == 0 {
					c.failf(i, "a map has the key %s twice", types.Format(ks[k], t))
					return nil
				}
			}
			out[k] = types.MapEntry{Key: ks[k], Value: vs[k]}
		}
		return out
	})
}
