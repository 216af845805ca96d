package fn

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// jsonRow is a row of json_each and json_tree, the functions in FROM: an element, where it stands, and numbers that tell the
// elements of a value apart, in the order of its text.
var jsonRow = types.StructOf(
	types.Field{Name: "key", Type: str}, types.Field{Name: "value", Type: types.JSONType}, types.Field{Name: "type", Type: str},
	types.Field{Name: "atom", Type: types.JSONType}, types.Field{Name: "id", Type: types.Uint64}, types.Field{Name: "parent", Type: types.Uint64},
	types.Field{Name: "fullkey", Type: str}, types.Field{Name: "path", Type: str})

// jsonRows are what FROM json_each(…) and FROM json_tree(…) unnest.
var jsonRows = []*Scalar{
	jsonRowsOf("json_each_rows", "The elements of a JSON array or object as a list of rows; FROM json_each(value, path) unnests it.", false),
	jsonRowsOf("json_tree_rows", "A JSON value and all in it as a list of rows; FROM json_tree(value, path) unnests it.", true),
}

func jsonRowsOf(name, about string, tree bool) *Scalar {
	k := func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return values(c, func(i int) types.Value {
			text := s.at(i)
			if !json.Valid(text) {
				c.Fail(i, types.CheckJSON(string(text)))
				return nil
			}
			w := jsonWalk{tree: tree, out: []types.Value{}}
			var steps []pathStep
			if len(c.Args) == 2 {
				p := textCol(c, 1)
				path := p.str(i)
				if len(path) > 0 && path[0] == '/' {
					c.Fail(i, errs.New(errs.Data, "evaluate", "the path of json_each and json_tree begins with '$'"))
					return nil
				}
				var err error
				if steps, err = parsePath(path); err != nil {
					c.Fail(i, err)
					return nil
				}
				for _, st := range steps {
					if st.many() {
						c.Fail(i, errs.New(errs.Data, "evaluate", "the path '%s' leads to many values", path))
						return nil
					}
				}
			}
			w.find(bytes.TrimSpace(text), 0, steps, "$")
			return w.out
		})
	}
	l := types.ListOf(jsonRow)
	return &Scalar{Name: name, Category: JSONs, Summary: about, Overloads: []Overload{
		fallible(Types{types.JSONType}, l, k), fallible(Types{types.JSONType, str}, l, k)},
		Examples: []Example{ex(`len(`+name+`('[1, 2]'))`, map[bool]string{true: "3", false: "2"}[tree])}}
}

// jsonWalk gathers rows. The number of an element is its place among all keys and values of the text.
type jsonWalk struct {
	tree bool
	out  []types.Value
}

// jsonSize counts the keys and values that a value consists of.
func jsonSize(b []byte) uint64 {
	n := uint64(1)
	if b[0] == '{' || b[0] == '[' {
		eachItem(b, func(_ int, key, value []byte) bool {
			if key != nil {
				n++
			}
			n += jsonSize(value)
			return true
		})
	}
	return n
}

// find goes to the value at the path, whose number is counted on the way.
func (w *jsonWalk) find(b []byte, id uint64, steps []pathStep, path string) {
	if len(steps) == 0 {
		w.start(b, id, path)
		return
	}
	step := steps[0]
	object := len(b) > 0 && b[0] == '{'
	if !object && (len(b) == 0 || b[0] != '[' || !step.isIndex) || object && step.isIndex && step.key == "" {
		return
	}
	want := step.index
	if !object && want < 0 {
		eachItem(b, func(int, []byte, []byte) bool { want++; return true })
	}
	next := id + 1
	eachItem(b, func(i int, key, value []byte) bool {
		if key != nil {
			next++
		}
		if object && unquoteJSON(key) == step.key || !object && i == want {
			w.find(value, next, steps[1:], path+jsonStep(key, i))
			return false
		}
		next += jsonSize(value)
		return true
	})
}

func jsonStep(key []byte, i int) string {
	if key == nil {
		return "[" + strconv.Itoa(i) + "]"
	}
	name := unquoteJSON(key)
	plain := name != ""
	for _, r := range name {
		plain = plain && (r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if plain {
		return "." + name
	}
	return "." + string(key)
}

func (w *jsonWalk) start(b []byte, id uint64, path string) {
	inside := b[0] == '{' || b[0] == '['
	if w.tree || !inside {
		w.add(nil, b, id, nil, path, path)
	}
	if inside {
		var parent types.Value
		if w.tree {
			parent = id
		}
		w.below(b, id, parent, path)
	}
}

func (w *jsonWalk) below(b []byte, id uint64, parent types.Value, path string) {
	next := id + 1
	eachItem(b, func(i int, key, value []byte) bool {
		name := strconv.Itoa(i)
		if key != nil {
			name = unquoteJSON(key)
			next++
		}
		at := path + jsonStep(key, i)
		w.add(name, value, next, parent, at, path)
		if w.tree && (value[0] == '{' || value[0] == '[') {
			w.below(value, next, next, at)
		}
		next += jsonSize(value)
		return true
	})
}

func (w *jsonWalk) add(key types.Value, b []byte, id uint64, parent types.Value, full, path string) {
	var compact bytes.Buffer
	text := string(b)
	if json.Compact(&compact, b) == nil {
		text = compact.String()
	}
	var atom types.Value
	if b[0] != '{' && b[0] != '[' && b[0] != 'n' {
		atom = text
	}
	w.out = append(w.out, []types.Value{key, text, jsonKind(b), atom, id, parent, full, path})
}
