package fn

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// moreNested is lists as sets, and parts of structs and maps.
var moreNested = []*Scalar{
	{Name: "list_has_any", Category: Nested, Summary: "Whether two lists have an element in common; NULLs do not count.", Aliases: []string{"array_has_any"}, Overloads: []Overload{twoLists(types.Bool, func(a, b []types.Value, t types.Type) types.Value {
		return slices.ContainsFunc(b, func(v types.Value) bool { return v != nil && holds(a, v, t) })
	})}, Examples: []Example{ex("list_has_any([1, 2], [2, 3])", "true")}},
	{Name: "list_has_all", Category: Nested, Summary: "Whether a list has all elements of another; NULLs do not count.", Aliases: []string{"array_has_all"}, Overloads: []Overload{twoLists(types.Bool, func(a, b []types.Value, t types.Type) types.Value {
		return !slices.ContainsFunc(b, func(v types.Value) bool { return v != nil && !holds(a, v, t) })
	})}, Examples: []Example{ex("list_has_all([1, 2], [2])", "true")}},
	{Name: "list_intersect", Category: Nested, Nulls: NullAware, Summary: "The distinct elements that two lists have in common, in the order of the first; NULL as the second counts as empty.", Aliases: []string{"array_intersect"}, Overloads: []Overload{twoLists(types.AnyType, func(a, b []types.Value, t types.Type) types.Value {
		return slices.DeleteFunc(distinctValues(a, t), func(v types.Value) bool { return !holds(b, v, t) })
	})}, Examples: []Example{ex("list_intersect([1, 2], [2, 3])", "[2]")}, Differs: "DuckDB's order is that of its hash table."},
	{Name: "list_select", Category: Nested, Summary: "The elements at the positions in a second list, NULL outside.", Aliases: []string{"array_select"}, Overloads: []Overload{
		pickOverload(types.Int64, func(c *Call, i int, l, at []types.Value) types.Value {
			out := make([]types.Value, len(at))
			for k, p := range at {
				if n := p.(int64); n >= 1 && n <= int64(len(l)) {
					out[k] = l[n-1]
				}
			}
			return out
		})}, Examples: []Example{ex("list_select(['a', 'b', 'c'], [3, 1])", "[c, a]")}},
	{Name: "list_where", Category: Nested, Summary: "The elements at the places where a second list is true.", Aliases: []string{"array_where"}, Overloads: []Overload{
		pickOverload(types.Bool, func(c *Call, i int, l, mask []types.Value) types.Value {
			out := []types.Value{}
			for k, keep := range mask {
				switch {
				case !keep.(bool):
				case k < len(l):
					out = append(out, l[k])
				default:
					out = append(out, nil)
				}
			}
			return out
		})}, Examples: []Example{ex("list_where([1, 2, 3], [true, false, true])", "[1, 3]")}},
	{Name: "list_grade_up", Category: Nested, Summary: "The positions of the elements in ascending order: list_select(l, list_grade_up(l)) is sorted.", Aliases: []string{"grade_up", "array_grade_up"}, Overloads: []Overload{
		listOverload(Types{anyList}, func(types.Type) types.Type { return types.ListOf(types.Int64) }, func(c *Call) (arrow.Array, error) {
			t := *c.Types[0].Elem
			return values(c, func(i int) types.Value {
				l := valueAt(c, 0, i).([]types.Value)
				out := make([]types.Value, len(l))
				for k := range out {
					out[k] = int64(k + 1)
				}
				slices.SortStableFunc(out, func(a, b types.Value) int { return types.Compare(l[a.(int64)-1], l[b.(int64)-1], t) })
				return out
			})
		})}, Examples: []Example{ex("list_grade_up([3, 1, 2])", "[2, 3, 1]")}},
	{Name: "list_resize", Category: Nested, Nulls: NullAware, Summary: "A list of another length: cut, or filled up with a value or NULL.", Aliases: []string{"array_resize"}, Overloads: []Overload{
		resizeOverload(2), resizeOverload(3)}, Examples: []Example{ex("list_resize([1], 3, 0)", "[1, 0, 0]"), ex("list_resize([1, 2], 1)", "[1]")}},

	{Name: "struct_concat", Category: Nested, Nulls: NullAware, Summary: "One struct of the fields of several.", Overloads: []Overload{{Args: Types{anyStruct, anyStruct}, Variadic: true, Resolve: resolveStructConcat}},
		Examples: []Example{ex("struct_concat({'a': 1}, {'b': 2})", "{'a': 1, 'b': 2}")}},
	{Name: "struct_keys", Category: Nested, Summary: "The names of a struct's fields.", Overloads: []Overload{{Args: Types{anyStruct}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		var names []types.Value
		for _, f := range args[0].Fields {
			names = append(names, f.Name)
		}
		return Resolved{Args: args, Returns: types.ListOf(str), Kernel: func(c *Call) (arrow.Array, error) {
			return values(c, func(int) types.Value { return names })
		}}, nil
	}}}, Examples: []Example{ex("struct_keys({'a': 1, 'b': 2})", "[a, b]")}},
	{Name: "struct_extract_at", Category: Nested, Summary: "A field of a struct by its position, from 1.", Overloads: []Overload{{Args: Types{anyStruct, types.Int64}, Resolve: resolveField}},
		Examples: []Example{ex("struct_extract_at({'a': 1}, 1)", "1")}},

	{Name: "map_entries", Category: Nested, Summary: "The entries of a map, as a list of structs of key and value.", Overloads: []Overload{mapOverload(entriesOf, false, mapPart(func(e types.MapEntry) types.Value { return []types.Value{e.Key, e.Value} }))},
		Examples: []Example{ex("map_entries(MAP {'a': 1})", "[{'key': a, 'value': 1}]")}},
	{Name: "map_from_entries", Category: Nested, Summary: "A map of a list of structs of a key and a value.", Overloads: []Overload{{Args: Types{anyList}, Fallible: true, Resolve: resolveFromEntries}},
		Examples: []Example{ex("map_from_entries([{'k': 'a', 'v': 1}])", "{a=1}")}},
	{Name: "map_concat", Category: Nested, Nulls: NullAware, Summary: "One map of the entries of several; of a key that occurs twice the last value stays.", Overloads: []Overload{{Args: Types{anyMap, anyMap}, Variadic: true, Resolve: commonArgs(concatMaps)}},
		Examples: []Example{ex("map_concat(MAP {'a': 1}, MAP {'a': 2, 'b': 3})", "{a=2, b=3}")}},
	{Name: "map_contains_value", Category: Nested, Summary: "Whether a map has a value.", Overloads: []Overload{{Args: Types{anyMap, types.AnyType}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		if args[0].Kind != types.Map {
			return Resolved{}, badType("map_contains_value", args[0])
		}
		t, m := *args[0].Elem, args[0]
		if t.Kind == types.Null {
			t, m = args[1], types.MapOf(*m.Key, args[1])
		}
		return Resolved{Args: Types{m, t}, Returns: types.Bool, Kernel: func(c *Call) (arrow.Array, error) {
			return bools(c, func(i int) bool {
				want := valueAt(c, 1, i)
				return slices.ContainsFunc(valueAt(c, 0, i).([]types.MapEntry), func(e types.MapEntry) bool { return e.Value != nil && types.Compare(e.Value, want, t) == 0 })
			})
		}}, nil
	}}}, Examples: []Example{ex("map_contains_value(MAP {'a': 1}, 1)", "true")}},
	{Name: "map_contains_entry", Category: Nested, Summary: "Whether a map has a key with a value.", Overloads: []Overload{{Args: Types{anyMap, types.AnyType, types.AnyType}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		if args[0].Kind != types.Map {
			return Resolved{}, badType("map_contains_entry", args[0])
		}
		t, m := *args[0].Elem, args[0]
		if t.Kind == types.Null && m.Key.Kind == types.Null {
			t, m = args[2], types.MapOf(args[1], args[2])
		}
		return Resolved{Args: Types{m, *m.Key, t}, Returns: types.Bool, Kernel: func(c *Call) (arrow.Array, error) {
			return bools(c, func(i int) bool {
				v, ok := lookUp(c, i)
				return ok && v != nil && types.Compare(v, valueAt(c, 2, i), t) == 0
			})
		}}, nil
	}}}, Examples: []Example{ex("map_contains_entry(MAP {'a': 1}, 'a', 1)", "true")}},
}

func holds(l []types.Value, v types.Value, t types.Type) bool {
	return slices.ContainsFunc(l, func(w types.Value) bool { return w != nil && types.Compare(v, w, t) == 0 })
}

// twoLists casts two lists to a common type; a result of ANY is a list of it.
func twoLists(ret types.Type, f func(a, b []types.Value, t types.Type) types.Value) Overload {
	return Overload{Args: Types{anyList, anyList}, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
		l, err := commonOf(args, consts)
		if err != nil {
			return Resolved{}, err
		}
		if l.Kind != types.List {
			l = types.ListOf(types.NullType)
		}
		r := Resolved{Args: Types{l, l}, Returns: ret, Kernel: func(c *Call) (arrow.Array, error) {
			return valuesAware(c, func(i int) types.Value { // what NULL as the second counts as is seen by those that look at NULLs
				a, ok := valueAt(c, 0, i).([]types.Value)
				b, _ := valueAt(c, 1, i).([]types.Value)
				if !ok {
					return nil
				}
				return f(a, b, *l.Elem)
			})
		}}
		if ret.Kind == types.Any {
			r.Returns = l
		}
		return r, nil
	}}
}

// pickOverload takes a list and a second one of elem, which must not hold NULL.
func pickOverload(elem types.Type, f func(c *Call, i int, l, by []types.Value) types.Value) Overload {
	o := listOverload(Types{anyList, types.ListOf(elem)}, types.ListOf, func(c *Call) (arrow.Array, error) {
		return values(c, func(i int) types.Value {
			by := valueAt(c, 1, i).([]types.Value)
			if slices.Contains(by, nil) {
				c.failf(i, "the second list holds a NULL")
				return nil
			}
			return f(c, i, valueAt(c, 0, i).([]types.Value), by)
		})
	})
	o.Fallible = true
	return o
}

// maxResize bounds list_resize, whose argument may be anything.
const maxResize = 1 << 24

func resizeOverload(n int) Overload {
	args := Types{anyList, types.Int64, types.AnyType}[:n]
	return Overload{Args: args, Fallible: true, Resolve: func(ts []types.Type, consts []types.Value) (Resolved, error) {
		l := ts[0]
		if l.Kind != types.List {
			l = types.ListOf(types.NullType)
		}
		if n == 3 {
			t, ok := types.CommonOf(*l.Elem, nil, ts[2], constAt(consts, 2))
			if !ok {
				return Resolved{}, errs.New(errs.Schema, "bind", "a %s holds no %s", l, ts[2])
			}
			l = types.ListOf(t)
		}
		return Resolved{Args: Types{l, types.Int64, *l.Elem}[:n], Returns: l, Kernel: func(c *Call) (arrow.Array, error) {
			return valuesAware(c, func(i int) types.Value {
				l, ok := valueAt(c, 0, i).([]types.Value)
				size, _ := valueAt(c, 1, i).(int64) // NULL is 0
				if !ok {
					return nil
				}
				if size < 0 || size > maxResize {
					c.failf(i, "list_resize to %d elements; from 0 to %d are allowed", size, maxResize)
					return nil
				}
				var fill types.Value
				if n == 3 {
					fill = valueAt(c, 2, i)
				}
				for int64(len(l)) < size {
					l = append(l, fill)
				}
				return l[:size]
			})
		}}, nil
	}}
}

func resolveStructConcat(args []types.Type, _ []types.Value) (Resolved, error) {
	var fields []types.Field
	for _, a := range args {
		if a.Kind != types.Struct {
			return Resolved{}, badType("struct_concat", a)
		}
		for _, f := range a.Fields {
			if slices.ContainsFunc(fields, func(g types.Field) bool { return strings.EqualFold(f.Name, g.Name) }) {
				return Resolved{}, errs.New(errs.Schema, "bind", "struct_concat: two structs have a field %q", f.Name)
			}
			fields = append(fields, f)
		}
	}
	return Resolved{Args: args, Returns: types.StructOf(fields...), Kernel: func(c *Call) (arrow.Array, error) {
		return valuesAware(c, func(i int) types.Value {
			var out []types.Value
			for a := range c.Args {
				v, ok := valueAt(c, a, i).([]types.Value)
				if !ok {
					v = make([]types.Value, len(c.Types[a].Fields))
				}
				out = append(out, v...)
			}
			return out
		})
	}}, nil
}

func entriesOf(m types.Type) types.Type {
	return types.ListOf(types.StructOf(types.Field{Name: "key", Type: *m.Key}, types.Field{Name: "value", Type: *m.Elem}))
}

func resolveFromEntries(args []types.Type, _ []types.Value) (Resolved, error) {
	l := args[0]
	if l.Kind != types.List || l.Elem.Kind != types.Struct || len(l.Elem.Fields) != 2 {
		return Resolved{}, errs.New(errs.Schema, "bind", "map_from_entries takes a list of structs with two fields, not %s", l)
	}
	key := l.Elem.Fields[0].Type
	return Resolved{Args: args, Returns: types.MapOf(key, l.Elem.Fields[1].Type), Kernel: func(c *Call) (arrow.Array, error) {
		return values(c, func(i int) types.Value {
			out := []types.MapEntry{}
			for _, e := range valueAt(c, 0, i).([]types.Value) {
				pair, ok := e.([]types.Value)
				if !ok || pair[0] == nil {
					c.failf(i, "the key of a map is NULL")
					return nil
				}
				if slices.ContainsFunc(out, func(o types.MapEntry) bool { return types.Compare(o.Key, pair[0], key) == 0 }) {
					c.failf(i, "a map has the key %s twice", types.Format(pair[0], key))
					return nil
				}
				out = append(out, types.MapEntry{Key: pair[0], Value: pair[1]})
			}
			return out
		})
	}}, nil
}

func concatMaps(c *Call) (arrow.Array, error) {
	return valuesAware(c, func(i int) types.Value {
		out, any := []types.MapEntry{}, false
		for a := range c.Args {
			m, ok := valueAt(c, a, i).([]types.MapEntry)
			any = any || ok
			for _, e := range m {
				at := slices.IndexFunc(out, func(o types.MapEntry) bool { return types.Compare(o.Key, e.Key, *c.Ret.Key) == 0 })
				if at >= 0 {
					out[at].Value = e.Value
				} else {
					out = append(out, e)
				}
			}
		}
		if !any {
			return nil
		}
		return out
	})
}
