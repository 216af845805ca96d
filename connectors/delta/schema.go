package delta

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// column is a column of a table, or a part of a nested one.
type column struct {
	types.Field
	physical  string   // its name in data files, statistics and partition values
	id        int      // its number in data files under the column mapping by id; 0: none
	parts     []column // STRUCT: the fields; LIST: the element; MAP: key and value
	partition bool
}

// mapping is the table property delta.columnMapping.mode.
type mapping string

const (
	byName    mapping = "name"
	byID      mapping = "id"
	noMapping mapping = "none"
)

// mapping is how data files name the columns. The property counts only under a protocol that has it.
func (m *metadata) mapping(p *protocol) (mapping, error) {
	if p.MinReaderVersion < 2 || p.MinReaderVersion > 2 && !slices.Contains(p.ReaderFeatures, "columnMapping") {
		return noMapping, nil
	}
	switch mode := mapping(m.Configuration["delta.columnMapping.mode"]); mode {
	case "", noMapping:
		return noMapping, nil
	case byName, byID:
		return mode, nil
	default:
		return "", errs.New(errs.Unsupported, "read schema", "the column mapping %q is not known", string(mode)).WithHint("name and id are")
	}
}

// appendOnly reports whether the table promises that no row ever goes.
func (m *metadata) appendOnly() bool { return m.Configuration["delta.appendOnly"] == "true" }

type jsonField struct {
	Name     string          `json:"name"`
	Type     json.RawMessage `json:"type"`
	Metadata map[string]any  `json:"metadata"`
}

type jsonType struct {
	Type    string          `json:"type"`
	Fields  []jsonField     `json:"fields"`
	Element json.RawMessage `json:"elementType"`
	Key     json.RawMessage `json:"keyType"`
	Value   json.RawMessage `json:"valueType"`
}

// columns reads the table's schema.
func (m *metadata) columns(p *protocol) ([]column, error) {
	mode, err := m.mapping(p)
	if err != nil {
		return nil, err
	}
	var top jsonType
	if err := json.Unmarshal([]byte(m.SchemaString), &top); err != nil {
		return nil, errs.New(errs.Source, "read schema", "the table's schema is not JSON: %w", cutOff(err))
	}
	out, err := fieldsOf(top.Fields, mode)
	if err != nil {
		return nil, err
	}
	for _, name := range m.PartitionColumns {
		at := slices.IndexFunc(out, func(c column) bool { return c.Name == name })
		if at < 0 {
			return nil, errs.New(errs.Source, "read schema", "the table is partitioned by %q, which is no column of it", name)
		}
		if out[at].Type.IsNested() {
			return nil, errs.New(errs.Source, "read schema", "the table is partitioned by %q, which is %s", name, out[at].Type)
		}
		out[at].partition = true
	}
	return out, nil
}

func fieldsOf(fields []jsonField, mode mapping) ([]column, error) {
	out := make([]column, len(fields))
	for i, f := range fields {
		c, err := typeOf(f.Type, mode)
		if err != nil {
			return nil, inColumn(f.Name, err)
		}
		c.Name, c.physical = f.Name, f.Name
		if mode != noMapping {
			name, ok := f.Metadata["delta.columnMapping.physicalName"].(string)
			if !ok {
				return nil, errs.New(errs.Source, "read schema", "column %q has no physical name, though the table maps its columns", f.Name)
			}
			c.physical = name
		}
		if id, ok := f.Metadata["delta.columnMapping.id"].(float64); ok && mode == byID {
			c.id = int(id)
		} else if mode == byID {
			return nil, errs.New(errs.Source, "read schema", "column %q has no id, though the table maps its columns by it", f.Name)
		}
		out[i] = c
	}
	return out, nil
}

// inColumn names the column that an error is about.
func inColumn(name string, err error) error {
	return errs.Because(err, errs.Source, "read schema", "", "column %q", name)
}

var scalarTypes = map[string]types.Type{
	"string": types.String, "long": types.Int64, "integer": types.Int32, "short": types.Int16, "byte": types.Int8, "float": types.Float32,
	"double": types.Float64, "boolean": types.Bool, "binary": types.Binary, "date": types.Date32, "timestamp": types.TsTZ, "timestamp_ntz": types.TsUS,
}

var decimalType = regexp.MustCompile(`^decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$`)

// typeOf reads a type, which is a word or an object.
func typeOf(raw json.RawMessage, mode mapping) (column, error) {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		t, ok := scalarTypes[word]
		if m := decimalType.FindStringSubmatch(word); m != nil {
			width, _ := strconv.Atoi(m[1])
			scale, _ := strconv.Atoi(m[2])
			t, ok = types.Dec(width, scale), width >= 1 && width <= 38 && scale <= width
		}
		if !ok {
			return column{}, errs.New(errs.Unsupported, "read schema", "it is of the Delta type %q, which is not read", word).
				WithHint("leave the column out of a copy of the table, or write it as another type")
		}
		return column{Field: types.Field{Type: t}}, nil
	}
	var nested jsonType
	if err := json.Unmarshal(raw, &nested); err != nil {
		return column{}, errs.New(errs.Source, "read schema", "its type is not to be read: %w", cutOff(err))
	}
	switch nested.Type {
	case "struct":
		parts, err := fieldsOf(nested.Fields, mode)
		if err != nil {
			return column{}, err
		}
		fields := make([]types.Field, len(parts))
		for i, p := range parts {
			fields[i] = p.Field
		}
		return column{Field: types.Field{Type: types.StructOf(fields...)}, parts: parts}, nil
	case "array":
		parts, err := typesOf(mode, nested.Element)
		if err != nil {
			return column{}, err
		}
		return column{Field: types.Field{Type: types.ListOf(parts[0].Type)}, parts: parts}, nil
	case "map":
		parts, err := typesOf(mode, nested.Key, nested.Value)
		if err != nil {
			return column{}, err
		}
		return column{Field: types.Field{Type: types.MapOf(parts[0].Type, parts[1].Type)}, parts: parts}, nil
	}
	return column{}, errs.New(errs.Unsupported, "read schema", "it is of the Delta type %q, which is not read", nested.Type)
}

func typesOf(mode mapping, raws ...json.RawMessage) ([]column, error) {
	out := make([]column, len(raws))
	for i, raw := range raws {
		var err error
		if out[i], err = typeOf(raw, mode); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fieldsIn are the fields of columns.
func fieldsIn(columns []column) []types.Field {
	out := make([]types.Field, len(columns))
	for i, c := range columns {
		out[i] = c.Field
	}
	return out
}

// hiveNull is how Hive spells NULL in a folder's name; some writers put it into the log too.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// partitionValue reads the value of a partition column. The empty text is NULL, whatever the type.
func (c *column) partitionValue(f *dataFile) (types.Value, error) {
	text, ok := f.Partition[c.physical]
	if !ok {
		return nil, fmt.Errorf("the log gives the file %q no value of the partition column %q", f.Path, c.Name)
	}
	if text == nil || *text == "" || *text == hiveNull {
		return nil, nil
	}
	if c.Type.Kind == types.Blob {
		return []byte(*text), nil
	}
	v, err := types.ParseValue(*text, c.Type)
	if err != nil {
		return nil, fmt.Errorf("the log gives the file %q the value %q of the partition column %q, which is no %s", f.Path, *text, c.Name, c.Type)
	}
	return v, nil
}
