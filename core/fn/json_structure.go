package fn

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// jsonStructure writes the types found in a JSON value as JSON: objects as objects, arrays as arrays of one type.
var jsonStructure = &Scalar{Name: "json_structure", Category: JSONs, Summary: "The types of a JSON value, as JSON: objects as objects, arrays as an array of the type of all elements.",
	Overloads: []Overload{fallible(Types{types.JSONType}, types.JSONType, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			if err := types.CheckJSON(s.str(i)); err != nil {
				c.Fail(i, err)
				return dst
			}
			return shapeOf(s.at(i)).append(dst)
		})
	})}, Examples: []Example{ex(`json_structure('{"a": 1, "b": ["x"]}')`, `{"a":"UBIGINT","b":["VARCHAR"]}`)}}

// jsonShape is the name of a type, a list of elem, or an object of fields.
type jsonShape struct {
	name string // "" for lists and objects
	elem *jsonShape
	keys []string
	of   []*jsonShape
}

func shapeOf(b []byte) *jsonShape {
	b = bytes.TrimSpace(b)
	switch kind := jsonKind(b); kind {
	case "ARRAY":
		elem := &jsonShape{name: "NULL"}
		eachItem(b, func(_ int, _, v []byte) bool { elem = elem.merge(shapeOf(v)); return true })
		return &jsonShape{elem: elem}
	case "OBJECT":
		s := &jsonShape{}
		eachItem(b, func(_ int, k, v []byte) bool {
			s.keys, s.of = append(s.keys, unquoteJSON(k)), append(s.of, shapeOf(v))
			return true
		})
		return s
	case "UBIGINT", "BIGINT":
		if _, err := strconv.ParseInt(string(b), 10, 64); err != nil && kind == "BIGINT" {
			return &jsonShape{name: "DOUBLE"}
		}
		if _, err := strconv.ParseUint(string(b), 10, 64); err != nil && kind == "UBIGINT" {
			return &jsonShape{name: "DOUBLE"}
		}
		return &jsonShape{name: kind}
	default:
		return &jsonShape{name: kind}
	}
}

// merge is the shape of what has one shape or the other; JSON when they have nothing in common.
func (s *jsonShape) merge(o *jsonShape) *jsonShape {
	numbers := []string{"UBIGINT", "BIGINT", "HUGEINT", "DOUBLE"}
	switch {
	case s.name == "NULL":
		return o
	case o.name == "NULL" || s.name != "" && s.name == o.name:
		return s
	case s.name == "DOUBLE" && slices.Contains(numbers, o.name):
		return s
	case o.name == "DOUBLE" && slices.Contains(numbers, s.name):
		return o
	case slices.Contains(numbers, s.name) && slices.Contains(numbers, o.name):
		return &jsonShape{name: "HUGEINT"}
	case s.name != "" || o.name != "" || (s.elem == nil) != (o.elem == nil):
		return &jsonShape{name: "JSON"}
	case s.elem != nil:
		return &jsonShape{elem: s.elem.merge(o.elem)}
	}
	out := &jsonShape{keys: slices.Clone(s.keys), of: slices.Clone(s.of)}
	for i, k := range o.keys {
		if at := slices.Index(out.keys, k); at >= 0 {
			out.of[at] = out.of[at].merge(o.of[i])
		} else {
			out.keys, out.of = append(out.keys, k), append(out.of, o.of[i])
		}
	}
	return out
}

func (s *jsonShape) append(dst []byte) []byte {
	switch {
	case s.name != "":
		return appendJSONText(dst, s.name)
	case s.elem != nil:
		return append(s.elem.append(append(dst, '[')), ']')
	case len(s.keys) == 0:
		return append(dst, `"JSON"`...)
	}
	dst = append(dst, '{')
	for i, k := range s.keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = s.of[i].append(append(appendJSONText(dst, k), ':'))
	}
	return append(dst, '}')
}
