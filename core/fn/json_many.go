package fn

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// A path with *, [*] or ..key leads to any number of values; the result is a list. So it is with a list of paths.

// manyPaths adds to pathOverloads what gives a list: a constant path with a wildcard, and a list of paths.
func manyPaths(overloads []Overload, ret types.Type, text bool) []Overload {
	one := overloads[0]
	overloads[0].Resolve = func(args []types.Type, consts []types.Value) (Resolved, error) {
		r := Resolved{Args: one.Args, Returns: ret, Kernel: one.Kernel}
		if p, ok := constAt(consts, 1).(string); ok {
			if steps, err := parsePath(p); err == nil && slices.ContainsFunc(steps, pathStep.many) {
				r.Returns, r.Kernel = types.ListOf(ret), allAtPath(steps, text)
			}
		}
		return r, nil
	}
	return append(overloads, fallible(Types{types.JSONType, types.ListOf(str)}, types.ListOf(ret), func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return values(c, func(i int) types.Value {
			b, out := s.at(i), []types.Value{}
			if !validJSON(c, i, b) {
				return nil
			}
			for _, p := range valueAt(c, 1, i).([]types.Value) {
				if p == nil {
					out = append(out, nil)
					continue
				}
				steps, err := parsePath(p.(string))
				if err != nil {
					c.Fail(i, err)
					return nil
				}
				v, ok := walkJSON(b, steps)
				if !ok {
					out = append(out, nil)
				} else {
					out = append(out, jsonResult(v, text))
				}
			}
			return out
		})
	}))
}

func allAtPath(steps []pathStep, text bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return values(c, func(i int) types.Value {
			out := []types.Value{}
			if !validJSON(c, i, s.at(i)) {
				return nil
			}
			walkAll(s.at(i), steps, func(v []byte) { out = append(out, jsonResult(v, text)) })
			return out
		})
	}
}

func validJSON(c *Call, i int, b []byte) bool {
	if json.Valid(b) {
		return true
	}
	c.Fail(i, types.CheckJSON(string(b)))
	return false
}

// jsonResult is a found value as JSON or text.
func jsonResult(v []byte, text bool) types.Value {
	switch {
	case text && string(v) == "null":
		return nil
	case text && len(v) > 0 && v[0] == '"':
		return unquoteJSON(v)
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// walkAll finds every value at a path, from the top down and from the left.
func walkAll(b []byte, steps []pathStep, found func(v []byte)) {
	b = bytes.TrimSpace(b)
	if len(steps) == 0 {
		found(b)
		return
	}
	step, rest := steps[0], steps[1:]
	nested := len(b) > 0 && (b[0] == '{' || b[0] == '[')
	switch {
	case step.deep:
		exact := step
		exact.deep = false
		walkAll(b, append([]pathStep{exact}, rest...), found)
		if nested {
			eachItem(b, func(_ int, _, v []byte) bool { walkAll(v, steps, found); return true })
		}
	case step.any:
		if nested && (b[0] == '[') == step.isIndex {
			eachItem(b, func(_ int, _, v []byte) bool { walkAll(v, rest, found); return true })
		}
	default:
		if v, ok := walkJSON(b, []pathStep{step}); ok {
			walkAll(v, rest, found)
		}
	}
}
