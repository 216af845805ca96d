package types

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
)

// MetaType is the field metadata key that names a SQL type whose Arrow form is shared
// with another type (HUGEINT and DECIMAL(38,0), JSON and VARCHAR).
const MetaType = "riverbed.type"

// metaTuple names row values, whose fields have names in Arrow alone.
const metaTuple = "TUPLE"

// metaExtension is the field metadata key under which Arrow itself names an extension type.
const metaExtension = "ARROW:extension:name"

// extensions are Arrow's canonical extension types that are SQL types.
var extensions = map[string]Type{"arrow.uuid": UUIDType, "arrow.json": JSONType}

// Arrow returns the one Arrow form of t inside the engine.
//
//	HUGEINT, UHUGEINT   decimal128(38,0), all 128 bits in use
//	VARCHAR, JSON       utf8            UUID      fixed_size_binary(16)
//	TIME                time64[us]      INTERVAL  month_day_nano
//	NULL                null
func (t Type) Arrow() arrow.DataType {
	switch t.Kind {
	case Null:
		return arrow.Null
	case Boolean:
		return arrow.FixedWidthTypes.Boolean
	case TinyInt:
		return arrow.PrimitiveTypes.Int8
	case SmallInt:
		return arrow.PrimitiveTypes.Int16
	case Integer:
		return arrow.PrimitiveTypes.Int32
	case BigInt:
		return arrow.PrimitiveTypes.Int64
	case HugeInt, UHugeInt:
		return &arrow.Decimal128Type{Precision: 38, Scale: 0}
	case UTinyInt:
		return arrow.PrimitiveTypes.Uint8
	case USmallInt:
		return arrow.PrimitiveTypes.Uint16
	case UInteger:
		return arrow.PrimitiveTypes.Uint32
	case UBigInt:
		return arrow.PrimitiveTypes.Uint64
	case Real:
		return arrow.PrimitiveTypes.Float32
	case Double:
		return arrow.PrimitiveTypes.Float64
	case Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Width), Scale: int32(t.Scale)}
	case Varchar, JSON:
		return arrow.BinaryTypes.String
	case Blob:
		return arrow.BinaryTypes.Binary
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Time:
		return arrow.FixedWidthTypes.Time64us
	case TimestampS:
		return &arrow.TimestampType{Unit: arrow.Second}
	case TimestampMS:
		return &arrow.TimestampType{Unit: arrow.Millisecond}
	case Timestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case TimestampNS:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}
	case TimestampTZ:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case Interval:
		return arrow.FixedWidthTypes.MonthDayNanoInterval
	case UUID:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	case List:
		return arrow.ListOfField(t.Elem.ArrowField("item"))
	case Struct:
		fields := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			if fields[i] = f.Type.ArrowField(f.Name); f.Name == "" && t.IsTuple() {
				fields[i].Name = "element" + strconv.Itoa(i+1) // readers of Arrow want names that differ; DuckDB gives these
			}
		}
		return arrow.StructOf(fields...)
	case Map:
		key := t.Key.ArrowField("key")
		key.Nullable = false
		return arrow.MapOfFields(key, t.Elem.ArrowField("value"))
	}
	panic(errs.Bug("types", "type %s has no Arrow form", t))
}

// ArrowField returns a nullable field of the type; shared Arrow forms are told apart by metadata.
func (t Type) ArrowField(name string) arrow.Field {
	f := arrow.Field{Name: name, Type: t.Arrow(), Nullable: true}
	switch t.Kind {
	case HugeInt, UHugeInt, JSON, UUID:
		f.Metadata = arrow.NewMetadata([]string{MetaType}, []string{names[t.Kind]})
	case Struct:
		if t.IsTuple() {
			f.Metadata = arrow.NewMetadata([]string{MetaType}, []string{metaTuple})
		}
	}
	return f
}

// FromArrow returns the SQL type of an Arrow field as sources and users hand it in. It accepts the
// layouts that scans canonicalise (large and view strings, dictionaries, other decimal widths, unit variants).
func FromArrow(f arrow.Field) (Type, error) {
	if name, ok := f.Metadata.GetValue(MetaType); ok {
		for _, k := range []Kind{HugeInt, UHugeInt, JSON, UUID} {
			if names[k] == name {
				return Type{Kind: k}, nil
			}
		}
	}
	if ext, ok := f.Metadata.GetValue(metaExtension); ok {
		if t, ok := extensions[ext]; ok {
			return t, nil
		}
	}
	switch d := f.Type.(type) {
	case *arrow.NullType:
		return NullType, nil
	case *arrow.BooleanType:
		return Bool, nil
	case *arrow.Int8Type:
		return Int8, nil
	case *arrow.Int16Type:
		return Int16, nil
	case *arrow.Int32Type:
		return Int32, nil
	case *arrow.Int64Type:
		return Int64, nil
	case *arrow.Uint8Type:
		return Uint8, nil
	case *arrow.Uint16Type:
		return Uint16, nil
	case *arrow.Uint32Type:
		return Uint32, nil
	case *arrow.Uint64Type:
		return Uint64, nil
	case *arrow.Float16Type, *arrow.Float32Type:
		return Float32, nil
	case *arrow.Float64Type:
		return Float64, nil
	case arrow.DecimalType:
		if d.GetPrecision() <= 38 && d.GetScale() >= 0 && d.GetScale() <= d.GetPrecision() {
			return Dec(int(d.GetPrecision()), int(d.GetScale())), nil
		}
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return String, nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType, *arrow.FixedSizeBinaryType:
		return Binary, nil
	case *arrow.Date32Type, *arrow.Date64Type:
		return Date32, nil
	case *arrow.Time32Type, *arrow.Time64Type:
		return TimeUS, nil
	case *arrow.TimestampType:
		if d.TimeZone != "" {
			return TsTZ, nil
		}
		return []Type{TsS, TsMS, TsUS, TsNS}[d.Unit], nil
	case *arrow.DurationType, *arrow.MonthIntervalType, *arrow.DayTimeIntervalType, *arrow.MonthDayNanoIntervalType:
		return Span, nil
	case *arrow.DictionaryType:
		return FromArrow(arrow.Field{Name: f.Name, Type: d.ValueType})
	case *arrow.MapType:
		k, err := FromArrow(d.KeyField())
		if err != nil {
			return Type{}, err
		}
		v, err := FromArrow(d.ItemField())
		if err != nil {
			return Type{}, err
		}
		return MapOf(k, v), nil
	case arrow.ListLikeType:
		e, err := FromArrow(d.ElemField())
		if err != nil {
			return Type{}, err
		}
		return ListOf(e), nil
	case *arrow.StructType:
		fields := make([]Field, d.NumFields())
		for i := range fields {
			ft, err := FromArrow(d.Field(i))
			if err != nil {
				return Type{}, err
			}
			fields[i] = Field{d.Field(i).Name, ft}
			if of, _ := f.Metadata.GetValue(MetaType); of == metaTuple {
				fields[i].Name = ""
			}
		}
		return StructOf(fields...), nil
	case arrow.ExtensionType:
		if t, ok := extensions[d.ExtensionName()]; ok {
			return t, nil
		}
		return FromArrow(arrow.Field{Name: f.Name, Type: d.StorageType()})
	}
	return Type{}, errs.New(errs.Schema, "read schema", "column %q has the Arrow type %s, which has no SQL type here", f.Name, f.Type).
		WithHint("cast it before handing it over, or leave the column out")
}

// Schema turns an Arrow schema into fields.
func Schema(s *arrow.Schema) ([]Field, error) {
	out := make([]Field, s.NumFields())
	for i := range out {
		t, err := FromArrow(s.Field(i))
		if err != nil {
			return nil, err
		}
		out[i] = Field{s.Field(i).Name, t}
	}
	return out, nil
}

// ArrowSchema turns fields into the Arrow schema of the engine.
func ArrowSchema(fields []Field) *arrow.Schema {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = f.Type.ArrowField(f.Name)
	}
	return arrow.NewSchema(out, nil)
}

// Handed is a schema of the engine as it is handed to other programs: they know a UUID as the extension type arrow.uuid.
// Inside the engine no field says so, for a reader that knows the extension would make another array of it.
func Handed(s *arrow.Schema) *arrow.Schema {
	fields, changed := handedFields(s.Fields())
	if !changed {
		return s
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta)
}

func handedFields(in []arrow.Field) (out []arrow.Field, changed bool) {
	out = make([]arrow.Field, len(in))
	for i, f := range in {
		var did bool
		out[i], did = handed(f)
		changed = changed || did
	}
	return out, changed
}

func handed(f arrow.Field) (arrow.Field, bool) {
	switch d := f.Type.(type) {
	case *arrow.FixedSizeBinaryType:
		if name, ok := f.Metadata.GetValue(MetaType); ok && name == names[UUID] && f.Metadata.FindKey(metaExtension) < 0 {
			f.Metadata = arrow.NewMetadata(append(f.Metadata.Keys(), metaExtension), append(f.Metadata.Values(), "arrow.uuid"))
			return f, true
		}
	case *arrow.StructType:
		if fields, changed := handedFields(d.Fields()); changed {
			f.Type = arrow.StructOf(fields...)
			return f, true
		}
	case *arrow.MapType:
		key, one := handed(d.KeyField())
		item, two := handed(d.ItemField())
		if one || two {
			f.Type = arrow.MapOfFields(key, item)
			return f, true
		}
	case *arrow.ListType:
		if elem, changed := handed(d.ElemField()); changed {
			f.Type = arrow.ListOfField(elem)
			return f, true
		}
	}
	return f, false
}
