package fn

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// jsonEdits change, compare and rewrite whole JSON values.
var jsonEdits = []*Scalar{
	{Name: "json_merge_patch", Category: JSONs, Nulls: NullAware, Summary: "A JSON object changed by another, as RFC 7396 says: null takes a key away, objects are merged, anything else stands in its place.",
		Overloads: []Overload{{Args: Types{types.JSONType, types.JSONType, types.JSONType}, Variadic: true, Returns: types.JSONType, Fallible: true, Kernel: foldJSON(mergePatch)}},
		Examples:  []Example{ex(`json_merge_patch('{"a": 1, "b": 2}', '{"a": null, "c": 3}')`, `{"b":2,"c":3}`), ex(`json_merge_patch('{"a": 1}', NULL)`, "NULL")}},
	{Name: "json_deep_merge", Category: JSONs, Nulls: NullAware, Summary: "A JSON object changed by another: objects are merged, null changes nothing, anything else stands in its place.",
		Overloads: []Overload{{Args: Types{types.JSONType, types.JSONType, types.JSONType}, Variadic: true, Returns: types.JSONType, Fallible: true, Kernel: foldJSON(deepMerge)}},
		Examples:  []Example{ex(`json_deep_merge('{"a": {"b": 1}}', '{"a": {"b": null, "c": 2}}')`, `{"a":{"b":1,"c":2}}`)}},
	{Name: "json_merge_patch_diff", Category: JSONs, Nulls: NullAware, Summary: "The patch that json_merge_patch takes from one JSON value to another.",
		Overloads: []Overload{fallible(Types{types.JSONType, types.JSONType}, types.JSONType, foldJSON(patchBetween))},
		Examples:  []Example{ex(`json_merge_patch_diff('{"a": 1, "b": 2}', '{"a": 2}')`, `{"b":null,"a":2}`)}},
	jsonEdit("json_set", "A JSON value with another one at a path, which is made if it is not there.", jsonPut{insert: true, replace: true}, `json_set('{"a": 1}', '$.b', '2'::JSON)`, `{"a":1,"b":2}`),
	jsonEdit("json_insert", "A JSON value with another one at a path where there is nothing yet.", jsonPut{insert: true}, `json_insert('{"a": 1}', '$.a', '2'::JSON)`, `{"a":1}`),
	jsonEdit("json_replace", "A JSON value with another one in place of what is at a path.", jsonPut{replace: true}, `json_replace('{"a": 1}', '$.a', '2'::JSON)`, `{"a":2}`),
	{Name: "json_remove", Category: JSONs, Summary: "A JSON value without what is at a path.", Overloads: []Overload{fallible(Types{types.JSONType, str}, types.JSONType, editJSON(jsonPut{remove: true}))},
		Examples: []Example{ex(`json_remove('{"a": 1, "b": [1, 2]}', '$.b[0]')`, `{"a":1,"b":[2]}`)}},
	jsonRewrite("json_pretty", "A JSON value over several lines, indented.", str, func(n *jsonNode, dst []byte) []byte { return n.pretty(dst, 0) }, `json_pretty('[1]')`, "[\n    1\n]"),
	jsonRewrite("json_normalize", "A JSON value in one form: keys sorted, no spaces, numbers and texts as short as they can be.", str, func(n *jsonNode, dst []byte) []byte { return n.sorted().append(dst) },
		`json_normalize('{ "b": 1e2, "a": 1 }')`, `{"a":1,"b":100.0}`),
	jsonRewrite("json_strip_nulls", "A JSON value without the keys of objects that are null.", types.JSONType, func(n *jsonNode, dst []byte) []byte { return n.stripped().append(dst) },
		`json_strip_nulls('{"a": null, "b": [null]}')`, `{"b":[null]}`),
	{Name: "json_contains", Category: JSONs, Summary: "Whether a JSON value is another one or has it in itself: of arrays and objects all parts somewhere in one.",
		Overloads: []Overload{fallible(Types{types.JSONType, types.JSONType}, types.Bool, func(c *Call) (arrow.Array, error) {
			a, b := textCol(c, 0), textCol(c, 1)
			return bools(c, func(i int) bool {
				hay, ok1 := nodeOf(c, i, a.at(i))
				needle, ok2 := nodeOf(c, i, b.at(i))
				return ok1 && ok2 && hay.contains(needle)
			})
		})}, Examples: []Example{ex(`json_contains('{"a": [1, 2]}', '[1]')`, "true")}},
	{Name: "json_value", Category: JSONs, Summary: "The value at a path as JSON text, if it is neither array nor object nor null.", Overloads: scalarAt(),
		Examples: []Example{ex(`json_value('{"a": "x"}', '$.a')`, `"x"`), ex(`json_value('{"a": [1]}', '$.a')`, "NULL")}},
}

// jsonNode is a JSON value taken apart.
type jsonNode struct {
	kind byte // '{', '[', '"', or '0' for a number; 't', 'f' and 'n'
	text string
	keys []string // of an object
	kids []*jsonNode
}

func nodeOf(c *Call, i int, b []byte) (*jsonNode, bool) {
	if !validJSON(c, i, b) {
		return nil, false
	}
	return parseNode(b), true
}

// parseNode reads valid JSON.
func parseNode(b []byte) *jsonNode {
	b = bytes.TrimSpace(b)
	switch c := b[0]; c {
	case '{', '[':
		n := &jsonNode{kind: c}
		eachItem(b, func(_ int, key, value []byte) bool {
			if c == '{' {
				n.keys = append(n.keys, unquoteJSON(key))
			}
			n.kids = append(n.kids, parseNode(value))
			return true
		})
		return n
	case '"':
		return &jsonNode{kind: c, text: unquoteJSON(b)}
	case 't', 'f', 'n':
		return &jsonNode{kind: c, text: string(b)}
	}
	return &jsonNode{kind: '0', text: jsonNumber(string(b))}
}

// jsonNumber writes a number as short as it can be; whole ones and those beyond DOUBLE stay as they are.
func jsonNumber(s string) string {
	if !strings.ContainsAny(s, ".eE") {
		return s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	short := strconv.FormatFloat(f, 'e', -1, 64)
	digits, exp, _ := strings.Cut(short, "e")
	if e, _ := strconv.Atoi(exp); f != 0 && (e < -6 || e > 20) {
		return digits + "e" + strconv.Itoa(e)
	}
	if short = strconv.FormatFloat(f, 'f', -1, 64); !strings.Contains(short, ".") {
		short += ".0"
	}
	return short
}

func (n *jsonNode) get(key string) *jsonNode {
	if at := slices.Index(n.keys, key); at >= 0 {
		return n.kids[at]
	}
	return nil
}

func (n *jsonNode) add(key string, v *jsonNode) {
	n.keys, n.kids = append(n.keys, key), append(n.kids, v)
}

func (n *jsonNode) append(dst []byte) []byte {
	switch n.kind {
	case '{', '[':
		dst = append(dst, n.kind)
		for i, k := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			if n.kind == '{' {
				dst = append(appendJSONText(dst, n.keys[i]), ':')
			}
			dst = k.append(dst)
		}
		return append(dst, n.kind+2)
	case '"':
		return appendJSONText(dst, n.text)
	}
	return append(dst, n.text...)
}

func (n *jsonNode) pretty(dst []byte, depth int) []byte {
	if len(n.kids) == 0 {
		return n.append(dst)
	}
	line := func(dst []byte, depth int) []byte { return append(append(dst, '\n'), strings.Repeat("    ", depth)...) }
	dst = append(dst, n.kind)
	for i, k := range n.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst = line(dst, depth+1); n.kind == '{' {
			dst = append(appendJSONText(dst, n.keys[i]), ": "...)
		}
		dst = k.pretty(dst, depth+1)
	}
	return append(line(dst, depth), n.kind+2)
}

func (n *jsonNode) sorted() *jsonNode {
	out := &jsonNode{kind: n.kind, text: n.text}
	order := make([]int, len(n.kids))
	for i := range order {
		order[i] = i
	}
	if n.kind == '{' {
		slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(n.keys[a], n.keys[b]) })
	}
	for _, i := range order {
		if out.kids = append(out.kids, n.kids[i].sorted()); n.kind == '{' {
			out.keys = append(out.keys, n.keys[i])
		}
	}
	return out
}

func (n *jsonNode) stripped() *jsonNode {
	out := &jsonNode{kind: n.kind, text: n.text}
	for i, k := range n.kids {
		if n.kind == '[' {
			out.kids = append(out.kids, k.stripped())
		} else if k.kind != 'n' {
			out.add(n.keys[i], k.stripped())
		}
	}
	return out
}

func (n *jsonNode) equal(o *jsonNode) bool {
	if n.kind != o.kind || n.text != o.text || len(n.kids) != len(o.kids) {
		return false
	}
	for i, k := range n.kids {
		p := o.kids[i]
		if n.kind == '{' {
			p = o.get(n.keys[i])
		}
		if p == nil || !k.equal(p) {
			return false
		}
	}
	return true
}

// covers reports whether n has all parts of o.
func (n *jsonNode) covers(o *jsonNode) bool {
	if n.kind != o.kind || n.kind != '{' && n.kind != '[' {
		return n.equal(o)
	}
	for i, p := range o.kids {
		if n.kind == '{' {
			if k := n.get(o.keys[i]); k == nil || !k.covers(p) {
				return false
			}
		} else if !slices.ContainsFunc(n.kids, func(k *jsonNode) bool { return k.covers(p) }) {
			return false
		}
	}
	return true
}

func (n *jsonNode) contains(o *jsonNode) bool {
	return n.covers(o) || slices.ContainsFunc(n.kids, func(k *jsonNode) bool { return k.contains(o) })
}

// mergePatch keeps the keys that the patch does not name, then has those of the patch.
func mergePatch(n, patch *jsonNode) *jsonNode {
	if patch.kind != '{' || n == nil || n.kind != '{' {
		return patch
	}
	return patched(n, patch)
}

func patched(n, patch *jsonNode) *jsonNode {
	if patch.kind != '{' {
		return patch
	}
	if n == nil || n.kind != '{' {
		n = &jsonNode{kind: '{'}
	}
	out := untouched(n, patch)
	for i, key := range patch.keys {
		if patch.kids[i].kind != 'n' {
			out.add(key, patched(n.get(key), patch.kids[i]))
		}
	}
	return out
}

// untouched has the keys of an object that another does not have.
func untouched(n, patch *jsonNode) *jsonNode {
	out := &jsonNode{kind: '{'}
	for i, key := range n.keys {
		if patch.get(key) == nil {
			out.add(key, n.kids[i])
		}
	}
	return out
}

// deepMerge is mergePatch for which null says nothing.
func deepMerge(n, patch *jsonNode) *jsonNode {
	switch {
	case n == nil:
		return patch
	case patch.kind == 'n':
		return n
	case n.kind != '{' || patch.kind != '{':
		return patch
	}
	out := untouched(n, patch)
	for i, key := range patch.keys {
		if v, was := patch.kids[i], n.get(key); was != nil || v.kind != 'n' {
			out.add(key, deepMerge(was, v))
		}
	}
	return out
}

// patchBetween takes away what is gone, then names what is new or other.
func patchBetween(from, to *jsonNode) *jsonNode {
	if from == nil || from.kind != '{' || to.kind != '{' {
		return to
	}
	out := &jsonNode{kind: '{'}
	for _, key := range from.keys {
		if to.get(key) == nil {
			out.add(key, &jsonNode{kind: 'n', text: "null"})
		}
	}
	for i, key := range to.keys {
		was, is := from.get(key), to.kids[i]
		switch {
		case was != nil && was.equal(is):
		case was != nil && was.kind == '{' && is.kind == '{':
			out.add(key, patchBetween(was, is))
		default:
			out.add(key, is)
		}
	}
	return out
}

// foldJSON applies f from the left. NULL first counts as nothing; behind that the result is NULL until something follows.
func foldJSON(f func(a, b *jsonNode) *jsonNode) Kernel {
	return func(c *Call) (arrow.Array, error) {
		cols := make([]textColumn, len(c.Args))
		for a := range c.Args {
			cols[a] = textCol(c, a)
		}
		all := *c
		all.Args = nil
		out, err := textsOrNull(&all, func(dst []byte, i int) ([]byte, bool) {
			var n *jsonNode
			for a := range cols {
				if c.Args[a].IsNull(i & maskOf(c.Args[a])) {
					n = nil
					continue
				}
				b, ok := nodeOf(&all, i, cols[a].at(i))
				if !ok {
					return dst, false
				}
				if a == 0 {
					n = b
				} else {
					n = f(n, b)
				}
			}
			if n == nil {
				return dst, false
			}
			return n.append(dst), true
		})
		c.failed = append(c.failed, all.failed...)
		return out, err
	}
}

func jsonRewrite(name, about string, ret types.Type, f func(n *jsonNode, dst []byte) []byte, sql, want string) *Scalar {
	return &Scalar{Name: name, Category: JSONs, Summary: about, Examples: []Example{ex(sql, want)}, Overloads: []Overload{fallible(Types{types.JSONType}, ret, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			n, ok := nodeOf(c, i, s.at(i))
			if !ok {
				return dst
			}
			return f(n, dst)
		})
	})}}
}

// jsonPut says what to do with what is at a path, and with what is not.
type jsonPut struct{ insert, replace, remove bool }

func jsonEdit(name, about string, put jsonPut, sql, want string) *Scalar {
	return &Scalar{Name: name, Category: JSONs, Summary: about, Examples: []Example{ex(sql, want)},
		Overloads: []Overload{fallible(Types{types.JSONType, str, types.JSONType}, types.JSONType, editJSON(put))}}
}

func editJSON(put jsonPut) Kernel {
	return func(c *Call) (arrow.Array, error) {
		s, p := textCol(c, 0), textCol(c, 1)
		var v textColumn
		if !put.remove {
			v = textCol(c, 2)
		}
		return textsOrNull(c, func(dst []byte, i int) ([]byte, bool) {
			n, ok := nodeOf(c, i, s.at(i))
			if !ok {
				return dst, false
			}
			steps, err := parsePath(strings.ReplaceAll(p.str(i), "[#]", "[#-0]"))
			if err == nil && slices.ContainsFunc(steps, pathStep.many) {
				err = errs.New(errs.Data, "evaluate", "the path '%s' leads to many values; it must lead to one", p.str(i))
			}
			if err != nil {
				c.Fail(i, err)
				return dst, false
			}
			var to *jsonNode
			if !put.remove {
				if to, ok = nodeOf(c, i, v.at(i)); !ok {
					return dst, false
				}
			}
			if n = put.at(n, steps, to, strings.Contains(p.str(i), "[#]")); n == nil {
				return dst, false
			}
			return n.append(dst), true
		})
	}
}

// at puts v at a path below n; the result is nil where n itself is taken away. end: the path's last step is behind the end.
func (put jsonPut) at(n *jsonNode, steps []pathStep, v *jsonNode, end bool) *jsonNode {
	if len(steps) == 0 {
		switch {
		case put.remove:
			return nil
		case put.replace:
			return v
		}
		return n
	}
	step, rest := steps[0], steps[1:]
	var at int
	switch {
	case n.kind == '{' && (!step.isIndex || step.key != ""):
		at = slices.Index(n.keys, step.key)
	case n.kind == '[' && step.isIndex:
		if at = step.index; at < 0 {
			at += len(n.kids)
		} else if end && step.index == 0 && len(rest) == 0 {
			at = len(n.kids)
		}
		if at < 0 || at > len(n.kids) {
			return n
		}
	default:
		return n
	}
	out := &jsonNode{kind: n.kind, keys: slices.Clone(n.keys), kids: slices.Clone(n.kids)}
	switch {
	case at >= 0 && at < len(n.kids):
		if k := put.at(n.kids[at], rest, v, end); k != nil {
			out.kids[at] = k
			return out
		}
		if out.kids = slices.Delete(out.kids, at, at+1); n.kind == '{' {
			out.keys = slices.Delete(out.keys, at, at+1)
		}
	case put.insert:
		for i := len(rest) - 1; i >= 0; i-- { // what the path names on the way is made
			made := &jsonNode{kind: '{', keys: []string{rest[i].key}, kids: []*jsonNode{v}}
			if rest[i].isIndex && rest[i].key == "" {
				if rest[i].index != 0 {
					return n
				}
				made = &jsonNode{kind: '[', kids: []*jsonNode{v}}
			}
			v = made
		}
		if out.kids = append(out.kids, v); n.kind == '{' {
			out.keys = append(out.keys, step.key)
		}
	}
	return out
}

// scalarAt is json_value: by a path, an index, or a list of paths.
func scalarAt() []Overload {
	plain := func(v []byte) bool { return len(v) > 0 && v[0] != '{' && v[0] != '[' && v[0] != 'n' }
	one := func(c *Call) (arrow.Array, error) {
		at := pathFinder(c)
		return textsOrNull(c, func(dst []byte, i int) ([]byte, bool) {
			v, ok := at(i)
			if !ok || !plain(v) {
				return dst, false
			}
			return append(dst, v...), true
		})
	}
	many := func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return values(c, func(i int) types.Value {
			if !json.Valid(s.at(i)) {
				c.Fail(i, types.CheckJSON(s.str(i)))
				return nil
			}
			out := []types.Value{}
			for _, p := range valueAt(c, 1, i).([]types.Value) {
				out = append(out, nil)
				if p == nil {
					continue
				}
				steps, err := parsePath(p.(string))
				if err != nil {
					c.Fail(i, err)
					return nil
				}
				if v, ok := walkJSON(s.at(i), steps); ok && plain(v) {
					out[len(out)-1] = string(v)
				}
			}
			return out
		})
	}
	return []Overload{fallible(Types{types.JSONType, str}, str, one), fallible(Types{types.JSONType, types.Int64}, str, one), fallible(Types{types.JSONType, types.ListOf(str)}, types.ListOf(str), many)}
}
