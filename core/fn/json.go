package fn

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// jsons is functions over JSON text. A path is a key ('a'), an index, '$.a.b[0]', or '/a/b/0'; '$.a[*].b', '$.*' and '$..b' lead
// to many values.
var jsons = []*Scalar{
	{Name: "json_extract", Category: JSONs, Summary: "The value at a path, as JSON; NULL if there is none. With [*], .* or ..key in a constant path, or a list of paths, a list.", Aliases: []string{"->", "json_extract_path"}, Overloads: pathOverloads(types.JSONType, false),
		Examples: []Example{ex(`json_extract('{"a": {"b": 1}}', '$.a.b')`, "1"), ex(`'{"a": "x"}'::JSON -> 'a'`, `"x"`), ex(`json_extract('[{"x": 1}, {"x": 2}]', '$[*].x')`, "[1, 2]")}},
	{Name: "json_extract_string", Category: JSONs, Summary: "The value at a path, as text.", Aliases: []string{"->>", "json_extract_path_text"}, Overloads: pathOverloads(str, true),
		Examples: []Example{ex(`json_extract_string('{"a": "x"}', '$.a')`, "x"), ex(`'{"a": "x"}'::JSON ->> 'a'`, "x")}},
	{Name: "json_exists", Category: JSONs, Summary: "Whether there is a value at a path.", Overloads: []Overload{fallible(Types{types.JSONType, str}, types.Bool, func(c *Call) (arrow.Array, error) {
		at := pathFinder(c)
		return bools(c, func(i int) bool { _, ok := at(i); return ok })
	})}, Examples: []Example{ex(`json_exists('{"a": 1}', '$.a')`, "true")}},
	{Name: "json_valid", Category: JSONs, Summary: "Whether a text is JSON.", Overloads: []Overload{strict(Types{str}, types.Bool, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return bools(c, func(i int) bool { return json.Valid(s.at(i)) })
	})}, Examples: []Example{ex(`json_valid('{')`, "false")}},
	{Name: "json_type", Category: JSONs, Summary: "The type of a JSON value: OBJECT, ARRAY, VARCHAR, UBIGINT, BIGINT, DOUBLE, BOOLEAN or NULL.", Overloads: []Overload{strict(Types{types.JSONType}, str, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte { return append(dst, jsonKind(s.at(i))...) })
	})}, Examples: []Example{ex(`json_type('[1]')`, "ARRAY")}},
	{Name: "json_array_length", Category: JSONs, Summary: "The number of elements of a JSON array; 0 for what is none.", Overloads: []Overload{fallible(Types{types.JSONType}, types.Uint64, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return fixed(c, func(i int) uint64 {
			n := uint64(0)
			if b := bytes.TrimSpace(s.at(i)); len(b) > 0 && b[0] == '[' {
				eachItem(b, func(int, []byte, []byte) bool { n++; return true })
			}
			return n
		})
	})}, Examples: []Example{ex(`json_array_length('[1, 2]')`, "2")}},
	{Name: "json_keys", Category: JSONs, Summary: "The keys of a JSON object.", Overloads: []Overload{fallible(Types{types.JSONType}, types.ListOf(str), func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return values(c, func(i int) types.Value {
			out := []types.Value{}
			if b := bytes.TrimSpace(s.at(i)); len(b) > 0 && b[0] == '{' {
				eachItem(b, func(_ int, key, _ []byte) bool { out = append(out, unquoteJSON(key)); return true })
			}
			return out
		})
	})}, Examples: []Example{ex(`json_keys('{"a": 1, "b": 2}')`, "[a, b]")}},
	{Name: "to_json", Category: JSONs, Purity: Stable, Nulls: NullIfAnyNull, Summary: "Any value as JSON.", Aliases: []string{"row_to_json", "array_to_json", "json_quote"}, Overloads: []Overload{{Args: Types{types.AnyType}, Returns: types.JSONType, Kernel: toJSON}},
		Examples: []Example{ex(`to_json({'a': 1})`, `{"a":1}`), ex(`to_json('abc')`, `"abc"`)}},
	{Name: "json_object", Category: JSONs, Purity: Stable, Nulls: NullAware, Summary: "A JSON object of pairs of key and value.", Overloads: []Overload{{Args: Types{types.AnyType}, Variadic: true, Returns: types.JSONType, Fallible: true, Kernel: jsonObject}},
		Examples: []Example{ex(`json_object('a', 1)`, `{"a":1}`)}},
	{Name: "json_array", Category: JSONs, Purity: Stable, Nulls: NullAware, Summary: "A JSON array of the arguments.", Overloads: []Overload{{Args: Types{types.AnyType}, Variadic: true, Returns: types.JSONType, Kernel: jsonArray}},
		Examples: []Example{ex(`json_array(1, 'a')`, `[1,"a"]`)}},
	jsonStructure,
	{Name: "json", Category: JSONs, Summary: "JSON without spaces between its parts.", Overloads: []Overload{fallible(Types{types.JSONType}, types.JSONType, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			var b bytes.Buffer
			if err := json.Compact(&b, s.at(i)); err != nil {
				c.Fail(i, types.CheckJSON(s.str(i)))
				return dst
			}
			return append(dst, b.Bytes()...)
		})
	})}, Examples: []Example{ex(`json('{ "a" : 1 }')`, `{"a":1}`)}},
}

func pathOverloads(ret types.Type, text bool) []Overload {
	k := func(c *Call) (arrow.Array, error) {
		at := pathFinder(c)
		return textsOrNull(c, func(dst []byte, i int) ([]byte, bool) {
			v, ok := at(i)
			switch {
			case !ok:
				return dst, false
			case text && string(v) == "null":
				return dst, false
			case text && len(v) > 0 && v[0] == '"':
				return append(dst, unquoteJSON(v)...), true
			}
			var b bytes.Buffer
			if json.Compact(&b, v) != nil {
				return append(dst, v...), true
			}
			return append(dst, b.Bytes()...), true
		})
	}
	return manyPaths([]Overload{fallible(Types{types.JSONType, str}, ret, k), fallible(Types{types.JSONType, types.Int64}, ret, k)}, ret, text)
}

// pathFinder gives the raw JSON at the path in argument 1.
func pathFinder(c *Call) func(i int) ([]byte, bool) {
	s := textCol(c, 0)
	if c.Types[1].Kind == types.BigInt {
		n := col[int64](c, 1)
		return func(i int) ([]byte, bool) { return walkJSON(s.at(i), []pathStep{{index: int(n.at(i)), isIndex: true}}) }
	}
	p := textCol(c, 1)
	var steps []pathStep
	var err error
	last, known := "", false
	return func(i int) ([]byte, bool) {
		if path := p.at(i); !known || string(path) != last {
			last, known = string(path), true
			steps, err = parsePath(last)
		}
		if err == nil && slices.ContainsFunc(steps, pathStep.many) {
			err = errs.New(errs.Data, "evaluate", "the path '%s' leads to many values", last).WithHint("write such a path as a constant of json_extract")
		}
		if err != nil {
			c.Fail(i, err)
			return nil, false
		}
		if text := s.at(i); !json.Valid(text) {
			c.Fail(i, types.CheckJSON(string(text)))
			return nil, false
		}
		return walkJSON(s.at(i), steps)
	}
}

type pathStep struct {
	key     string
	index   int
	isIndex bool
	any     bool // all members of an object, or with isIndex all elements of an array
	deep    bool // here and in everything below
}

// many reports whether the step may lead to more than one value.
func (s pathStep) many() bool { return s.any || s.deep }

func parsePath(p string) ([]pathStep, error) {
	switch {
	case p == "":
		return nil, nil
	case p[0] == '/':
		var out []pathStep
		for _, part := range strings.Split(p[1:], "/") {
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
			n, err := strconv.Atoi(part)
			out = append(out, pathStep{key: part, index: n, isIndex: err == nil})
		}
		return out, nil
	case p[0] != '$':
		return []pathStep{{key: p}}, nil
	}
	bad := errs.New(errs.Data, "evaluate", "'%s' is no JSON path", p).WithHint("a path is written '$.key[0].\"other key\"'")
	var out []pathStep
	for s := p[1:]; s != ""; {
		deep := strings.HasPrefix(s, "..")
		if deep {
			s = s[1:]
		}
		switch {
		case strings.HasPrefix(s, `."`):
			end := strings.IndexByte(s[2:], '"')
			if end < 0 {
				return nil, bad
			}
			out = append(out, pathStep{key: s[2 : 2+end], deep: deep})
			s = s[3+end:]
		case s[0] == '.':
			end := strings.IndexAny(s[1:], ".[")
			if end < 0 {
				end = len(s) - 1
			}
			if end == 0 {
				return nil, bad
			}
			step := pathStep{key: s[1 : 1+end], deep: deep}
			if step.key == "*" {
				step = pathStep{any: true, deep: deep}
			}
			out = append(out, step)
			s = s[1+end:]
		case s[0] == '[':
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return nil, bad
			}
			text := s[1:end]
			if text == "*" {
				out = append(out, pathStep{any: true, isIndex: true})
				s = s[end+1:]
				continue
			}
			if strings.HasPrefix(text, "#-") {
				text = text[1:]
			}
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, bad
			}
			out = append(out, pathStep{index: n, isIndex: true})
			s = s[end+1:]
		default:
			return nil, bad
		}
	}
	return out, nil
}

// walkJSON follows a path through valid JSON without decoding what lies beside it.
func walkJSON(b []byte, steps []pathStep) ([]byte, bool) {
	b = bytes.TrimSpace(b)
	for _, step := range steps {
		var found []byte
		ok := false
		switch {
		case len(b) > 0 && b[0] == '{' && (!step.isIndex || step.key != ""):
			eachItem(b, func(_ int, key, value []byte) bool {
				if unquoteJSON(key) == step.key {
					found, ok = value, true
				}
				return !ok
			})
		case len(b) > 0 && b[0] == '[' && step.isIndex:
			want := step.index
			if want < 0 {
				n := 0
				eachItem(b, func(int, []byte, []byte) bool { n++; return true })
				want += n
			}
			eachItem(b, func(i int, _, value []byte) bool {
				if i == want {
					found, ok = value, true
				}
				return !ok
			})
		}
		if !ok {
			return nil, false
		}
		b = found
	}
	return b, true
}

// eachItem visits the members of a valid JSON object or array until f returns false.
func eachItem(b []byte, f func(i int, key, value []byte) bool) {
	object := b[0] == '{'
	at := 1
	skip := func() {
		for at < len(b) && (b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r' || b[at] == ',' || b[at] == ':') {
			at++
		}
	}
	for i := 0; ; i++ {
		skip()
		if at >= len(b) || b[at] == '}' || b[at] == ']' {
			return
		}
		var key []byte
		if object {
			end := jsonEnd(b, at)
			key, at = b[at:end], end
			skip()
		}
		end := jsonEnd(b, at)
		if !f(i, key, b[at:end]) {
			return
		}
		at = end
	}
}

// jsonEnd is the end of the value that begins at b[at].
func jsonEnd(b []byte, at int) int {
	depth := 0
	for i := at; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(b))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			} else if depth < 0 {
				return i
			}
		case ',', ' ', '\n', '\t', '\r', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

func unquoteJSON(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return string(b)
	}
	return s
}

func jsonKind(b []byte) string {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return "NULL"
	}
	switch b[0] {
	case '{':
		return "OBJECT"
	case '[':
		return "ARRAY"
	case '"':
		return "VARCHAR"
	case 't', 'f':
		return "BOOLEAN"
	case 'n':
		return "NULL"
	}
	if bytes.ContainsAny(b, ".eE") {
		return "DOUBLE"
	}
	if b[0] == '-' {
		return "BIGINT"
	}
	return "UBIGINT"
}

func checkJSON(c *Call) (arrow.Array, error) {
	s := textCol(c, 0)
	return texts(c, func(dst []byte, i int) []byte {
		if err := types.CheckJSON(s.str(i)); err != nil {
			c.Fail(i, err)
			return dst
		}
		return append(dst, s.at(i)...)
	})
}

func toJSON(c *Call) (arrow.Array, error) {
	return texts(c, func(dst []byte, i int) []byte { return appendJSON(dst, valueAt(c, 0, i), c.Types[0], c) })
}

func jsonObject(c *Call) (arrow.Array, error) {
	if len(c.Args)%2 != 0 {
		return nil, errs.New(errs.Schema, "bind", "json_object takes pairs of key and value")
	}
	return plainTexts(c, func(dst []byte, i int) []byte {
		dst = append(dst, '{')
		for a := 0; a < len(c.Args); a += 2 {
			k := valueAt(c, a, i)
			if k == nil {
				c.failf(i, "the key of a JSON object is NULL")
			}
			if a > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONText(dst, types.Format(k, c.Types[a]))
			dst = appendJSON(append(dst, ':'), valueAt(c, a+1, i), c.Types[a+1], c)
		}
		return append(dst, '}')
	})
}

func jsonArray(c *Call) (arrow.Array, error) {
	return plainTexts(c, func(dst []byte, i int) []byte {
		dst = append(dst, '[')
		for a := range c.Args {
			if a > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, valueAt(c, a, i), c.Types[a], c)
		}
		return append(dst, ']')
	})
}

// plainTexts is texts without regard to NULL arguments.
func plainTexts(c *Call, f func(dst []byte, i int) []byte) (arrow.Array, error) {
	all := *c
	all.Args = nil
	out, err := texts(&all, f)
	c.failed = append(c.failed, all.failed...)
	return out, err
}

func appendJSONText(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func appendJSON(dst []byte, v types.Value, t types.Type, c *Call) []byte {
	switch x := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool, uint64, decimal128.Num:
		return types.AppendText(dst, v, t, nil)
	case float32:
		return appendJSON(dst, float64(x), t, c)
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return appendJSONText(dst, types.Format(x, types.Float64))
		}
		return types.AppendText(dst, v, types.Float64, nil)
	case int64:
		if t.IsInteger() {
			return strconv.AppendInt(dst, x, 10)
		}
	case string:
		if t.Kind == types.JSON {
			return append(dst, x...)
		}
	case []types.MapEntry:
		dst = append(dst, '{')
		for i, e := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONText(dst, types.FormatIn(e.Key, *t.Key, c.Env.TimeZone))
			dst = appendJSON(append(dst, ':'), e.Value, *t.Elem, c)
		}
		return append(dst, '}')
	case []types.Value:
		if t.Kind == types.Struct {
			dst = append(dst, '{')
			for i, e := range x {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = appendJSONText(dst, t.Fields[i].Name)
				dst = appendJSON(append(dst, ':'), e, t.Fields[i].Type, c)
			}
			return append(dst, '}')
		}
		dst = append(dst, '[')
		for i, e := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e, *t.Elem, c)
		}
		return append(dst, ']')
	}
	return appendJSONText(dst, types.FormatIn(v, t, c.Env.TimeZone))
}

// fromJSON reads JSON as a type: numbers, texts and booleans by their text, arrays as lists, objects as structs or maps.
func fromJSON(c *Call) (arrow.Array, error) {
	s := textCol(c, 0)
	return values(c, func(i int) types.Value {
		v, err := jsonValue(bytes.TrimSpace(s.at(i)), c.Ret, c)
		if err != nil {
			c.Fail(i, err)
			return nil
		}
		return v
	})
}

func jsonValue(b []byte, t types.Type, c *Call) (types.Value, error) {
	if string(b) == "null" || len(b) == 0 {
		return nil, nil
	}
	switch {
	case t.Kind == types.JSON:
		return string(b), nil
	case t.IsNested():
		return jsonNested(b, t, c)
	case b[0] == '"':
		return types.ParseValueIn(unquoteJSON(b), t, c.Env.TimeZone)
	}
	return types.ParseValueIn(string(b), t, c.Env.TimeZone)
}

func jsonNested(b []byte, t types.Type, c *Call) (types.Value, error) {
	if want := map[types.Kind]byte{types.List: '[', types.Struct: '{', types.Map: '{'}[t.Kind]; b[0] != want {
		return nil, types.Unreadable(string(b), t)
	}
	items, entries, parts := []types.Value{}, []types.MapEntry{}, make([]types.Value, len(t.Fields))
	var failed error
	eachItem(b, func(_ int, key, value []byte) bool {
		var v types.Value
		switch t.Kind {
		case types.List:
			v, failed = jsonValue(value, *t.Elem, c)
			items = append(items, v)
		case types.Map:
			var k types.Value
			if k, failed = jsonValue(key, *t.Key, c); failed == nil {
				v, failed = jsonValue(value, *t.Elem, c)
				entries = append(entries, types.MapEntry{Key: k, Value: v})
			}
		default:
			for i, f := range t.Fields {
				if strings.EqualFold(f.Name, unquoteJSON(key)) {
					parts[i], failed = jsonValue(value, f.Type, c)
				}
			}
		}
		return failed == nil
	})
	switch t.Kind {
	case types.Map:
		return entries, failed
	case types.Struct:
		return parts, failed
	}
	return items, failed
}
