package bind

import (
	"strings"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// structInsert is struct_insert(s, name := value, …): the fields of s and more.
func structInsert(e *env, x *sql.Function) expr.Expr { return e.changedStruct(x, false) }

// structUpdate is struct_update(s, name := value, …): a field that s has gets the value, others come behind.
func structUpdate(e *env, x *sql.Function) expr.Expr { return e.changedStruct(x, true) }

func (e *env) changedStruct(x *sql.Function, replace bool) expr.Expr {
	name := strings.ToLower(x.Name.Last().Name)
	if len(x.Args) < 2 || !x.Args[0].Name.IsZero() {
		failHint(x.Pos, name+"(s, a := 1)", "%s takes a struct and named values", name)
	}
	s := e.bind(x.Args[0].Value)
	if s.Type().Kind != types.Struct {
		fail(x.Pos, "%s takes a STRUCT, not %s", name, s.Type())
	}
	var names []string
	var values []expr.Expr
	for _, f := range s.Type().Fields {
		names = append(names, f.Name)
		values = append(values, e.call(x.Pos, "struct_extract", s, &expr.Lit{V: f.Name, T: types.String}))
	}
	given := map[string]bool{}
	for _, a := range x.Args[1:] {
		if a.Name.IsZero() {
			failHint(a.Value.Position(), name+"(s, a := 1)", "%s wants a name for each value", name)
		}
		if given[strings.ToLower(a.Name.Name)] {
			fail(a.Name.Pos, "%s is given %q twice", name, a.Name.Name)
		}
		given[strings.ToLower(a.Name.Name)] = true
		at := -1
		for i, n := range names {
			if sameName(n, a.Name.Name) {
				at = i
			}
		}
		switch {
		case at < 0:
			names, values = append(names, a.Name.Name), append(values, e.bind(a.Value))
		case replace:
			names[at], values[at] = a.Name.Name, e.bind(a.Value)
		default:
			failHint(a.Name.Pos, "struct_update replaces it", "the struct has a field %q already", a.Name.Name)
		}
	}
	return e.pack(x.Pos, names, values)
}

// jsonGroup writes the aggregates that make JSON of a group by those that the registry has; nil for other functions. So they
// are maintained like these.
func jsonGroup(x *sql.Function, name string) sql.Expr {
	if name != "json_group_array" && name != "json_group_object" && name != "json_group_structure" {
		return nil
	}
	want := map[bool]int{true: 2, false: 1}[name == "json_group_object"]
	if len(x.Args) != want || x.Distinct {
		failHint(x.Pos, map[int]string{1: name + "(value)", 2: name + "(key, value)"}[want], "%s takes %d plain arguments", name, want)
	}
	call := func(f string, args ...sql.Expr) *sql.Function {
		out := &sql.Function{At: x.At, Name: sql.Name{{At: x.At, Name: f}}}
		for _, a := range args {
			out.Args = append(out.Args, sql.Arg{Value: a})
		}
		return out
	}
	text := func(s string) sql.Expr { return &sql.Literal{At: x.At, Kind: sql.LitString, Text: s} }
	value := x.Args[want-1].Value
	item := sql.Expr(call("coalesce", call("to_json", value), &sql.Cast{At: x.At, X: text("null"), Type: &sql.TypeName{At: x.At, Name: "JSON"}}))
	open, shut := "[", "]"
	if want == 2 {
		item = call("concat", call("to_json", &sql.Cast{At: x.At, X: x.Args[0].Value, Type: &sql.TypeName{At: x.At, Name: "VARCHAR"}}), text(":"), item)
		open, shut = "{", "}"
	}
	list := call("string_agg", &sql.Cast{At: x.At, X: item, Type: &sql.TypeName{At: x.At, Name: "VARCHAR"}}, text(","))
	list.OrderBy, list.Filter = x.OrderBy, x.Filter
	joined := sql.Expr(&sql.Binary{At: x.At, Op: sql.OpConcat, Left: &sql.Binary{At: x.At, Op: sql.OpConcat, Left: text(open), Right: list}, Right: text(shut)})
	whole := sql.Expr(&sql.Cast{At: x.At, X: joined, Type: &sql.TypeName{At: x.At, Name: "JSON"}})
	if name == "json_group_structure" {
		return call("json_extract", call("json_structure", whole), &sql.Literal{At: x.At, Kind: sql.LitInt, Text: "0"})
	}
	return whole
}
