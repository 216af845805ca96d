package types

import (
	"strings"
	"time"
)

// parseNested reads the text form of a LIST, STRUCT or MAP: [a, 'b c'], {'a': 1, b: x}, {a=1, b=2}.
func parseNested(text string, t Type, loc *time.Location) (Value, error) {
	s := strings.TrimSpace(text)
	open, shut := byte('{'), byte('}')
	switch {
	case t.Kind == List:
		open, shut = '[', ']'
	case t.IsTuple():
		open, shut = '(', ')'
	}
	if len(s) < 2 || s[0] != open || s[len(s)-1] != shut {
		return nil, Unreadable(text, t)
	}
	items, ok := splitItems(s[1:len(s)-1], ',')
	if !ok {
		return nil, Unreadable(text, t)
	}
	switch t.Kind {
	case List:
		out := make([]Value, len(items))
		for i, item := range items {
			v, err := parsePart(item, *t.Elem, loc)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case Map:
		out := make([]MapEntry, len(items))
		for i, item := range items {
			kv, ok := splitItems(item, '=')
			if !ok || len(kv) != 2 {
				return nil, Unreadable(text, t)
			}
			k, err := parsePart(kv[0], *t.Key, loc)
			if err != nil {
				return nil, err
			}
			v, err := parsePart(kv[1], *t.Elem, loc)
			if err != nil {
				return nil, err
			}
			out[i] = MapEntry{k, v}
		}
		return out, nil
	}
	out := make([]Value, len(t.Fields))
	if t.IsTuple() {
		if len(items) != len(out) {
			return nil, Unreadable(text, t)
		}
		for i, item := range items {
			v, err := parsePart(item, t.Fields[i].Type, loc)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}
	for _, item := range items {
		kv, ok := splitItems(item, ':')
		if !ok || len(kv) != 2 {
			return nil, Unreadable(text, t)
		}
		name, _ := unquotePart(kv[0])
		at := -1
		for i, f := range t.Fields {
			if strings.EqualFold(f.Name, name) {
				at = i
			}
		}
		if at < 0 {
			return nil, Unreadable(text, t)
		}
		v, err := parsePart(kv[1], t.Fields[at].Type, loc)
		if err != nil {
			return nil, err
		}
		out[at] = v
	}
	return out, nil
}

func parsePart(s string, t Type, loc *time.Location) (Value, error) {
	s = strings.TrimSpace(s)
	if strings.EqualFold(s, "null") {
		return nil, nil
	}
	if t.IsNested() || t.Kind == JSON {
		return ParseValueIn(s, t, loc)
	}
	s, _ = unquotePart(s)
	return ParseValueIn(s, t, loc)
}

// unquotePart takes the quotes off.
func unquotePart(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' || s[len(s)-1] != s[0] {
		return s, false
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' && i+1 < len(s)-1 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// splitItems cuts at sep outside quotes and brackets. '=' and ':' cut once.
func splitItems(s string, sep byte) ([]string, bool) {
	if strings.TrimSpace(s) == "" && sep == ',' {
		return nil, true
	}
	var out []string
	depth, quote, start := 0, byte(0), 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[' || c == '{' || c == '(':
			depth++
		case c == ']' || c == '}' || c == ')':
			depth--
		case c == sep && depth == 0 && (sep == ',' || len(out) == 0):
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:]), depth == 0 && quote == 0
}
