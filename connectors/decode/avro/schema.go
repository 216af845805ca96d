// Package avro turns messages in Apache Avro into Arrow columns: data with the schema of whoever wrote it is read as the
// columns asked for, by the names of fields.
//
// Invariant: a message either gives exactly one row or an error and no row; memory of a message is not kept.
package avro

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/types"
)

// Schema is a type of Avro.
type Schema struct {
	kind     kind
	name     string // of records, enums and fixed: with the namespace
	aliases  []string
	logical  string
	fields   []field
	items    *Schema   // array, map
	branches []*Schema // union
	symbols  []string  // enum
	size     int       // fixed

	precision, scale int // decimal
}

type kind string

const (
	kNull    kind = "null"
	kBoolean kind = "boolean"
	kInt     kind = "int"
	kLong    kind = "long"
	kFloat   kind = "float"
	kDouble  kind = "double"
	kBytes   kind = "bytes"
	kString  kind = "string"
	kRecord  kind = "record"
	kEnum    kind = "enum"
	kArray   kind = "array"
	kMap     kind = "map"
	kUnion   kind = "union"
	kFixed   kind = "fixed"
)

type field struct {
	name     string
	aliases  []string
	schema   *Schema
	fallback json.RawMessage // default; nil: none
}

// ParseSchema reads a schema in JSON. Names that it does not define itself are looked up in known, which may be nil, and what
// it defines is added there.
func ParseSchema(text []byte, known map[string]*Schema) (*Schema, error) {
	if known == nil {
		known = map[string]*Schema{}
	}
	p := schemaParser{known: known}
	s, err := p.parse(text, "", 0)
	if err != nil {
		return nil, fmt.Errorf("the Avro schema: %w", err)
	}
	return s, nil
}

type schemaParser struct{ known map[string]*Schema }

// deepest bounds schemas that would exhaust the stack.
const deepest = 200

func (p *schemaParser) parse(text []byte, space string, depth int) (*Schema, error) {
	if depth > deepest {
		return nil, fmt.Errorf("it is nested more than %d deep", deepest)
	}
	switch text = bytes.TrimSpace(text); {
	case len(text) == 0:
		return nil, fmt.Errorf("a type is missing")
	case text[0] == '"':
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return nil, err
		}
		return p.named(name, space)
	case text[0] == '[':
		var parts []json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			return nil, err
		}
		u := &Schema{kind: kUnion}
		for _, part := range parts {
			b, err := p.parse(part, space, depth+1)
			if err != nil {
				return nil, err
			}
			if b.kind == kUnion {
				return nil, fmt.Errorf("a union stands directly in a union")
			}
			u.branches = append(u.branches, b)
		}
		if len(u.branches) == 0 {
			return nil, fmt.Errorf("a union has no branches")
		}
		return u, nil
	case text[0] != '{':
		return nil, fmt.Errorf("%.40s is no type", text)
	}
	return p.object(text, space, depth)
}

// named is a primitive type or one that was defined before.
func (p *schemaParser) named(name, space string) (*Schema, error) {
	switch k := kind(name); k {
	case kNull, kBoolean, kInt, kLong, kFloat, kDouble, kBytes, kString:
		return &Schema{kind: k}, nil
	}
	if s := p.known[fullName(name, space)]; s != nil {
		return s, nil
	}
	if s := p.known[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no type %q", name)
}

func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func (p *schemaParser) object(text []byte, space string, depth int) (*Schema, error) {
	var o struct {
		Type        json.RawMessage
		Name        string
		Namespace   *string
		Aliases     []string
		LogicalType string
		Precision   int
		Scale       int
		Size        int
		Symbols     []string
		Items       json.RawMessage
		Values      json.RawMessage
		Fields      []struct {
			Name    string
			Aliases []string
			Type    json.RawMessage
			Default json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	var name string
	if json.Unmarshal(o.Type, &name) != nil { // {"type": {…}}
		return p.parse(o.Type, space, depth+1)
	}
	s := &Schema{kind: kind(name), logical: o.LogicalType, precision: o.Precision, scale: o.Scale, size: o.Size, symbols: o.Symbols}
	switch s.kind {
	case kRecord, kEnum, kFixed, "error":
		if o.Name == "" {
			return nil, fmt.Errorf("a %s has no name", name)
		}
		if o.Namespace != nil {
			space = *o.Namespace
		}
		s.name = fullName(o.Name, space)
		if at := strings.LastIndexByte(s.name, '.'); at >= 0 {
			space = s.name[:at]
		}
		s.aliases = o.Aliases
		p.known[s.name] = s // before its fields, which may speak of it
	}
	var err error
	switch s.kind {
	case kRecord, "error":
		s.kind = kRecord
		for _, f := range o.Fields {
			t, err := p.parse(f.Type, space, depth+1)
			if err != nil {
				return nil, fmt.Errorf("field %q: %w", f.Name, err)
			}
			s.fields = append(s.fields, field{f.Name, f.Aliases, t, f.Default})
		}
	case kEnum:
	case kFixed:
		if s.size < 0 {
			return nil, fmt.Errorf("the size of %q is negative", s.name)
		}
	case kArray:
		s.items, err = p.parse(o.Items, space, depth+1)
	case kMap:
		s.items, err = p.parse(o.Values, space, depth+1)
	default:
		of, err := p.named(name, space)
		if err != nil {
			return nil, err
		}
		if of.name == "" { // primitive, with a meaning
			s.kind = of.kind
			return s, nil
		}
		return of, nil
	}
	return s, err
}

// Fields are the columns that a record becomes.
func (s *Schema) Fields() ([]types.Field, error) {
	if s.kind != kRecord {
		return nil, fmt.Errorf("the Avro schema is %s, and rows are read from a record", s.kind)
	}
	return s.parts(nil)
}

func (s *Schema) parts(within []*Schema) ([]types.Field, error) {
	if slices.Contains(within, s) {
		return nil, fmt.Errorf("the record %q contains itself, which no column can", s.name)
	}
	within = append(within, s)
	var out []types.Field
	for _, f := range s.fields {
		t, err := f.schema.sqlType(within)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.name, err)
		}
		out = append(out, types.Field{Name: f.name, Type: t})
	}
	return out, nil
}

// plain are the types of the primitives.
var plain = map[kind]types.Type{kNull: types.NullType, kBoolean: types.Bool, kInt: types.Int32, kLong: types.Int64, kFloat: types.Float32, kDouble: types.Float64,
	kBytes: types.Binary, kString: types.String, kEnum: types.String, kFixed: types.Binary}

// sqlType is the type that a value becomes when no other is asked for.
func (s *Schema) sqlType(within []*Schema) (types.Type, error) {
	switch s.kind {
	case kRecord:
		parts, err := s.parts(within)
		return types.StructOf(parts...), err
	case kArray:
		elem, err := s.items.sqlType(within)
		return types.ListOf(elem), err
	case kMap:
		elem, err := s.items.sqlType(within)
		return types.MapOf(types.String, elem), err
	case kUnion:
		return s.unionType(within)
	}
	if t, ok := s.logicalType(); ok {
		return t, nil
	}
	return plain[s.kind], nil
}

// logicalType is the type of what a value means, where the schema says so and in a way that holds.
func (s *Schema) logicalType() (types.Type, bool) {
	switch string(s.kind) + " " + s.logical {
	case "int date":
		return types.Date32, true
	case "int time-millis", "long time-micros":
		return types.TimeUS, true
	case "long timestamp-millis", "long timestamp-micros", "long local-timestamp-millis", "long local-timestamp-micros":
		return types.TsUS, true
	case "long timestamp-nanos", "long local-timestamp-nanos":
		return types.TsNS, true
	case "bytes decimal", "fixed decimal":
		if s.precision > 0 && s.precision <= 38 && s.scale >= 0 && s.scale <= s.precision {
			return types.Dec(s.precision, s.scale), true
		}
	case "string uuid":
		return types.UUIDType, true
	case "fixed uuid":
		return types.UUIDType, s.size == 16
	case "fixed duration":
		return types.Span, s.size == 12
	}
	return types.Type{}, false
}

// unionType is that of the one branch that is not null, of numbers the widest, and else a STRUCT of the branches.
func (s *Schema) unionType(within []*Schema) (types.Type, error) {
	branches := s.notNull()
	var all []types.Type
	for _, b := range branches {
		t, err := b.sqlType(within)
		if err != nil {
			return t, err
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return types.NullType, nil
	}
	widest := all[0]
	for _, t := range all[1:] {
		if t.Equal(widest) {
			continue
		}
		rank := func(t types.Type) int {
			return slices.IndexFunc([]types.Type{types.Int32, types.Int64, types.Float32, types.Float64}, t.Equal)
		}
		a, b := rank(widest), rank(t)
		if a < 0 || b < 0 {
			return branchStruct(branches, all), nil
		}
		if widest = types.Int64; max(a, b) >= 2 {
			widest = types.Float64
		}
	}
	return widest, nil
}

func branchStruct(branches []*Schema, all []types.Type) types.Type {
	var fields []types.Field
	for i, b := range branches {
		fields = append(fields, types.Field{Name: b.branchName(), Type: all[i]})
	}
	return types.StructOf(fields...)
}

// branchName is by what name a branch of a union is known.
func (s *Schema) branchName() string {
	if s.name == "" {
		return string(s.kind)
	}
	return s.name[strings.LastIndexByte(s.name, '.')+1:]
}

func (s *Schema) notNull() []*Schema {
	return slices.DeleteFunc(slices.Clone(s.branches), func(b *Schema) bool { return b.kind == kNull })
}
