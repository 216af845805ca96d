package iceberg

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// form says how rows of a query become the columns of a data file.
type form struct {
	schema  *arrow.Schema // of the file: the table's columns with their field ids
	columns []formColumn
}

type formColumn struct {
	field meta.Field
	typ   types.Type  // in the table
	from  int         // column of the rows; -1: the table's default
	value types.Value // that is
	bring func(arrow.Array) arrow.Array
	final func(arrow.Array) arrow.Array // to the form of the file
}

// newForm finds the columns of the rows in a table by their names. A column of the table that the rows do not have is NULL, or what the table says.
func newForm(t *table, m *meta.Table, fields []types.Field) (*form, error) {
	out := &form{}
	taken := make([]bool, len(fields))
	var schema []arrow.Field
	for _, f := range m.Schema {
		c := formColumn{field: f, from: fieldNamed(fields, f.Name)}
		have, err := columnOf(f, nil)
		if err != nil && c.from < 0 && !f.Required {
			continue // of a type that is not written, and NULL
		}
		if err != nil {
			return nil, errs.Because(err, errs.Source, "open sink", "", "column %q of the Iceberg table %q", f.Name, t.name)
		}
		c.typ = have.Type
		if c.from >= 0 {
			taken[c.from] = true
			if c.bring, err = bringer(fields[c.from].Type, c.typ); err != nil {
				return nil, errs.Because(err, errs.Source, "open sink", "", "column %q of the Iceberg table %q", f.Name, t.name)
			}
		} else {
			if f.Default != "" {
				if c.value, err = parseValue(f.Default, c.typ); err != nil {
					return nil, errs.New(errs.Source, "open sink", "the default of column %q of the Iceberg table %q: %v", f.Name, t.name, err)
				}
			}
			if f.Required && c.value == nil {
				return nil, errs.New(errs.Schema, "open sink", "the Iceberg table %q requires the column %q, which the query does not have", t.name, f.Name).WithHint("add it to the query")
			}
		}
		form := arrowField(f, c.typ)
		c.final = finisher(form.Type)
		schema = append(schema, form)
		out.columns = append(out.columns, c)
	}
	for i, f := range fields {
		if taken[i] {
			continue
		}
		have := make([]string, len(m.Schema))
		for i, c := range m.Schema {
			have[i] = c.Name
		}
		e := errs.New(errs.Schema, "open sink", "the Iceberg table %q has no column %q", t.name, f.Name)
		if hint := errs.DidYouMean(f.Name, have); hint != "" {
			return nil, e.WithHint("%s", hint)
		}
		return nil, e.WithHint("name the columns of the query as the table's are, or set evolve = true to add it to the table")
	}
	out.schema = arrow.NewSchema(schema, nil)
	return out, nil
}

func fieldNamed(fields []types.Field, name string) int {
	return named(len(fields), func(i int) string { return fields[i].Name }, name)
}

// bringer turns columns of a query into a type of the table.
func bringer(from, to types.Type) (func(arrow.Array) arrow.Array, error) {
	same := func(a arrow.Array) arrow.Array { return a }
	if from.Equal(to) {
		return same, nil
	}
	word, as := "", from
	if !from.IsNested() {
		var err error
		if word, as, err = wordOf(from); err != nil {
			return nil, err
		}
	}
	switch {
	case word == "string" && to.Kind == types.Varchar:
		return same, nil
	case from.Kind == types.UBigInt && to.Kind == types.Decimal && to.Scale == 0 && to.Width >= 20:
		return unsigned, nil
	case (from.Kind == types.HugeInt || from.Kind == types.UHugeInt) && to.Equal(as):
		return same, nil
	case !from.IsNested() && !to.IsNested() && files.Widens(from, to):
		return func(a arrow.Array) arrow.Array { return files.Widen(a, from, to) }, nil
	}
	e := errs.New(errs.Schema, "open sink", "it is %s, and the query gives %s", to, from)
	if !as.IsNested() && !to.IsNested() && files.Widens(to, as) {
		return nil, e.WithHint("cast it in the query, or set evolve = true to widen the table's column")
	}
	return nil, e.WithHint("cast it in the query")
}

// unsigned turns UBIGINT into DECIMAL.
func unsigned(a arrow.Array) arrow.Array {
	b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 20})
	defer b.Release()
	in := a.(*array.Uint64)
	for i := range in.Len() {
		if in.IsNull(i) {
			b.AppendNull()
			continue
		}
		b.Append(decimal128.New(0, in.Value(i)))
	}
	return b.NewArray()
}

// arrowField is a field as data files hold it.
func arrowField(f meta.Field, t types.Type) arrow.Field {
	return arrow.Field{Name: f.Name, Type: arrowType(f, t), Nullable: !f.Required, Metadata: arrow.NewMetadata([]string{parquet.FieldIDKey}, []string{strconv.Itoa(f.ID)})}
}

func arrowType(f meta.Field, t types.Type) arrow.DataType {
	switch {
	case t.Kind == types.UUID:
		return extensions.NewUUIDType()
	case t.Kind == types.Struct:
		fields := make([]arrow.Field, len(f.Fields))
		for i, p := range f.Fields {
			fields[i] = arrowField(p, t.Fields[i].Type)
		}
		return arrow.StructOf(fields...)
	case t.Kind == types.List:
		return arrow.ListOfField(arrowField(f.Fields[0], *t.Elem))
	case t.Kind == types.Map:
		key := arrowField(f.Fields[0], *t.Key)
		key.Nullable = false
		return arrow.MapOfFields(key, arrowField(f.Fields[1], *t.Elem))
	}
	return t.Arrow()
}

// finisher turns an array in the engine's form into that of the file: the same values, with what the file's fields say of themselves.
func finisher(form arrow.DataType) func(arrow.Array) arrow.Array {
	switch form.(type) {
	case *extensions.UUIDType, *arrow.StructType, *arrow.ListType, *arrow.MapType, *arrow.Decimal128Type:
		return func(a arrow.Array) arrow.Array { return array.MakeFromData(retyped(a.Data(), form)) }
	}
	return func(a arrow.Array) arrow.Array { return a }
}

func retyped(d arrow.ArrayData, form arrow.DataType) arrow.ArrayData {
	var parts []arrow.DataType
	switch f := form.(type) {
	case *arrow.StructType:
		for _, p := range f.Fields() {
			parts = append(parts, p.Type)
		}
	case *arrow.MapType:
		parts = []arrow.DataType{f.Elem()}
	case *arrow.ListType:
		parts = []arrow.DataType{f.Elem()}
	}
	children := make([]arrow.ArrayData, len(parts))
	for i, p := range parts {
		children[i] = retyped(d.Children()[i], p)
	}
	return array.NewData(form, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
}

// bring turns columns of the rows into those of the table, still in the engine's form.
func (f *form) bring(cols []arrow.Array, rows int) ([]arrow.Array, error) {
	out := make([]arrow.Array, len(f.columns))
	for i, c := range f.columns {
		switch {
		case c.from >= 0:
			out[i] = c.bring(cols[c.from])
		case c.value != nil:
			out[i] = kernels.Take(types.ArrayOf([]types.Value{c.value}, c.typ), make([]int32, rows))
		default:
			out[i] = kernels.Nulls(c.typ.Arrow(), rows)
		}
		if c.field.Required && out[i].NullN() > 0 {
			return nil, errs.New(errs.Data, "write", "a row is NULL in the column %q, which the table requires", c.field.Name).WithHint("leave such rows out (WHERE %s IS NOT NULL)", strconv.Quote(c.field.Name))
		}
		if d, ok := out[i].(*array.Decimal128); ok {
			if err := fits(d, c); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// fits refuses a HUGEINT that a decimal does not hold.
func fits(d *array.Decimal128, c formColumn) error {
	for i := range d.Len() {
		if d.IsValid(i) && !d.Value(i).FitsInPrecision(int32(c.typ.Width)) {
			return errs.New(errs.Data, "write", "the column %q holds a number of more digits than %s has", c.field.Name, c.typ)
		}
	}
	return nil
}

// finish turns columns of the table into the form of the file.
func (f *form) finish(cols []arrow.Array) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, c := range f.columns {
		out[i] = c.final(cols[i])
	}
	return out
}

// at is the place of a column by its field id; -1.
func (f *form) at(id int) int {
	for i, c := range f.columns {
		if c.field.ID == id {
			return i
		}
	}
	return -1
}
