package iceberg

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// nameMapping is what columns may be called in files that number none (the table property schema.name-mapping.default).
type nameMapping struct {
	ID     int           `json:"field-id"`
	Names  []string      `json:"names"`
	Fields []nameMapping `json:"fields"`
}

// mappingOf reads the table's name mapping: names by field id.
func mappingOf(t *meta.Table) (map[int][]string, error) {
	text := t.Properties["schema.name-mapping.default"]
	if text == "" {
		return nil, nil
	}
	var list []nameMapping
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, errs.New(errs.Source, "read schema", "the table's property schema.name-mapping.default is not to be read: %v", err)
	}
	out := map[int][]string{}
	var add func([]nameMapping)
	add = func(list []nameMapping) {
		for _, m := range list {
			out[m.ID] = m.Names
			add(m.Fields)
		}
	}
	add(list)
	return out, nil
}

// columnsOf are the columns of a schema.
func columnsOf(fields []meta.Field, names map[int][]string) ([]datafile.Column, error) {
	out := make([]datafile.Column, len(fields))
	for i, f := range fields {
		c, err := columnOf(f, names)
		if err != nil {
			return nil, errs.Because(err, errs.Source, "read schema", "", "column %q", f.Name)
		}
		out[i] = c
	}
	return out, nil
}

func columnOf(f meta.Field, names map[int][]string) (datafile.Column, error) {
	c := datafile.Column{Field: types.Field{Name: f.Name}, ID: f.ID, Names: names[f.ID]}
	if len(f.Fields) == 0 {
		t, err := typeOf(f.Type)
		if err != nil {
			return c, err
		}
		c.Type = t
		if f.Initial != "" {
			if c.Default, err = parseValue(f.Initial, t); err != nil {
				return c, errs.New(errs.Source, "read schema", "its initial value %v", err)
			}
		}
		return c, nil
	}
	var err error
	if c.Parts, err = columnsOf(f.Fields, names); err != nil {
		return c, err
	}
	switch parts := datafile.Fields(c.Parts); {
	case f.Type == "struct":
		c.Type = types.StructOf(parts...)
	case f.Type == "list" && len(parts) == 1:
		c.Type = types.ListOf(parts[0].Type)
	case f.Type == "map" && len(parts) == 2:
		c.Type = types.MapOf(parts[0].Type, parts[1].Type)
	default:
		return c, errs.New(errs.Unsupported, "read schema", "it is of the Iceberg type %q, which is not read", f.Type)
	}
	return c, nil
}

var scalarTypes = map[string]types.Type{
	"boolean": types.Bool, "int": types.Int32, "long": types.Int64, "float": types.Float32, "double": types.Float64, "date": types.Date32, "time": types.TimeUS,
	"timestamp": types.TsUS, "timestamptz": types.TsTZ, "timestamp_ns": types.TsNS, "string": types.String, "uuid": types.UUIDType, "binary": types.Binary,
}

var (
	decimalType = regexp.MustCompile(`^decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)$`)
	fixedType   = regexp.MustCompile(`^fixed[\[(]\s*\d+\s*[\])]$`)
)

// typeOf reads Iceberg's word for a type without parts.
func typeOf(word string) (types.Type, error) {
	t, ok := scalarTypes[word]
	if m := decimalType.FindStringSubmatch(word); m != nil {
		width, _ := strconv.Atoi(m[1])
		scale, _ := strconv.Atoi(m[2])
		t, ok = types.Dec(width, scale), width >= 1 && width <= 38 && scale <= width
	}
	if fixedType.MatchString(word) {
		t, ok = types.Binary, true
	}
	if !ok {
		return t, errs.New(errs.Unsupported, "read schema", "it is of the Iceberg type %q, which is not read", word).
			WithHint("name the columns to read behind CREATE TABLE or CREATE STREAM, without this one")
	}
	return t, nil
}

// wordOf is Iceberg's type of the values of a query's column, and the SQL type that it stands for.
func wordOf(t types.Type) (word string, as types.Type, err error) {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Integer, types.UTinyInt, types.USmallInt:
		return "int", types.Int32, nil
	case types.BigInt, types.UInteger:
		return "long", types.Int64, nil
	case types.UBigInt:
		return "decimal(20, 0)", types.Dec(20, 0), nil
	case types.HugeInt, types.UHugeInt:
		return "decimal(38, 0)", types.Dec(38, 0), nil
	case types.Decimal:
		return fmt.Sprintf("decimal(%d, %d)", t.Width, t.Scale), t, nil
	case types.TimestampS, types.TimestampMS, types.Timestamp:
		return "timestamp", types.TsUS, nil
	case types.JSON, types.Varchar:
		return "string", types.String, nil
	case types.TimestampNS:
		return "", t, errs.New(errs.Unsupported, "open sink", "%s is not written to Iceberg tables, whose format 2 has no nanoseconds", t).WithHint("cast it to TIMESTAMP in the query")
	}
	for word, have := range scalarTypes {
		if have.Equal(t) {
			return word, t, nil
		}
	}
	return "", t, errs.New(errs.Unsupported, "open sink", "%s is not written to Iceberg tables", t).WithHint("cast it in the query, to VARCHAR for instance")
}

// fieldOf is the Iceberg field for a query's column. number gives the next field id.
func fieldOf(f types.Field, number func() int) (meta.Field, error) {
	out := meta.Field{ID: number(), Name: f.Name}
	var parts []types.Field
	switch f.Type.Kind {
	case types.Struct:
		out.Type, parts = "struct", f.Type.Fields
	case types.List:
		out.Type, parts = "list", []types.Field{{Name: "element", Type: *f.Type.Elem}}
	case types.Map:
		out.Type, parts = "map", []types.Field{{Name: "key", Type: *f.Type.Key}, {Name: "value", Type: *f.Type.Elem}}
	default:
		word, _, err := wordOf(f.Type)
		if err != nil {
			return out, errs.Because(err, errs.Source, "open sink", "", "column %q", f.Name)
		}
		out.Type = word
		return out, nil
	}
	for i, p := range parts {
		part, err := fieldOf(p, number)
		if err != nil {
			return out, errs.Because(err, errs.Source, "open sink", "", "in column %q", f.Name)
		}
		part.Required = out.Type == "map" && i == 0
		out.Fields = append(out.Fields, part)
	}
	return out, nil
}

// namesOf are the names of columns.
func namesOf(columns []datafile.Column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.Name
	}
	return out
}

// find finds a column of a table by name; -1.
func find(columns []datafile.Column, name string) int {
	return named(len(columns), func(i int) string { return columns[i].Name }, name)
}

// findField finds a field of a schema by name; -1.
func findField(fields []meta.Field, name string) int {
	return named(len(fields), func(i int) string { return fields[i].Name }, name)
}

// named finds a name among n: the same one, or one that differs in upper and lower case alone.
func named(n int, of func(int) string, name string) int {
	at := -1
	for i := range n {
		if of(i) == name {
			return i
		}
		if strings.EqualFold(of(i), name) {
			at = i
		}
	}
	return at
}
