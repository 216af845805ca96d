package service

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// bounds writes the bounds of columns as JSON, as Iceberg writes single values. What has no such form is left out: a bound that is missing skips nothing.
func bounds(raw map[int][]byte, schema *iceberg.Schema) map[int]string {
	var out map[int]string
	for id, bytes := range raw {
		field, ok := schema.FindFieldByID(id)
		if !ok || bytes == nil {
			continue
		}
		value, err := iceberg.LiteralFromBytes(field.Type, bytes)
		if err != nil { // written as another type, before the column was widened
			if value, err = widened(field.Type, bytes); err != nil {
				continue
			}
		}
		text, ok := single(value, field.Type)
		if !ok {
			continue
		}
		if out == nil {
			out = map[int]string{}
		}
		out[id] = text
	}
	return out
}

// widened reads a bound of the narrower type that a column had.
func widened(t iceberg.Type, bytes []byte) (iceberg.Literal, error) {
	switch t.(type) {
	case iceberg.Int64Type:
		v, err := iceberg.LiteralFromBytes(iceberg.PrimitiveTypes.Int32, bytes)
		if err != nil {
			return nil, err
		}
		return v.To(t)
	case iceberg.Float64Type:
		v, err := iceberg.LiteralFromBytes(iceberg.PrimitiveTypes.Float32, bytes)
		if err != nil {
			return nil, err
		}
		return v.To(t)
	}
	return nil, iceberg.ErrType
}

// single is a value in Iceberg's JSON form of single values.
func single(v iceberg.Literal, t iceberg.Type) (string, bool) {
	text := func(s string) (string, bool) {
		b, err := json.Marshal(s)
		return string(b), err == nil
	}
	switch x := v.(type) {
	case iceberg.BoolLiteral, iceberg.Int32Literal, iceberg.Int64Literal:
		return v.String(), true
	case iceberg.Float32Literal:
		return number(float64(x), 32)
	case iceberg.Float64Literal:
		return number(float64(x), 64)
	case iceberg.StringLiteral:
		return text(string(x))
	case iceberg.DateLiteral, iceberg.UUIDLiteral, iceberg.DecimalLiteral:
		return text(v.String())
	case iceberg.TimeLiteral:
		return text(v.String())
	case iceberg.TimestampLiteral, iceberg.TimestampNsLiteral:
		zone := ""
		switch t.(type) {
		case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
			zone = "+00:00"
		}
		return text(strings.Replace(v.String(), " ", "T", 1) + zone)
	case iceberg.BinaryLiteral:
		return text(hex.EncodeToString(x))
	case iceberg.FixedLiteral:
		return text(hex.EncodeToString(x))
	}
	return "", false
}

func number(f float64, bits int) (string, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false
	}
	return strconv.FormatFloat(f, 'g', -1, bits), true
}

// partitionText are the values of a file's partition by the names of its parts, as JSON; a name that is missing is NULL.
func partitionText(values map[int]any, spec *iceberg.PartitionSpec, schema *iceberg.Schema) map[string]string {
	var out map[string]string
	for _, f := range spec.Fields() {
		value, ok := literal(values[f.FieldID])
		if !ok {
			continue
		}
		text, ok := single(value, partType(f, schema))
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[f.Name] = text
	}
	return out
}

// partType is the type of the values of a part; nil when its column is gone.
func partType(f iceberg.PartitionField, schema *iceberg.Schema) iceberg.Type {
	source, ok := schema.FindFieldByID(f.SourceID())
	if !ok {
		return nil
	}
	return f.Transform.ResultType(source.Type)
}

// literal is a value of a manifest's partition; not ok is NULL.
func literal(value any) (iceberg.Literal, bool) {
	switch x := value.(type) {
	case iceberg.Literal:
		return x, true
	case bool:
		return iceberg.NewLiteral(x), true
	case int32:
		return iceberg.NewLiteral(x), true
	case int:
		return iceberg.NewLiteral(int32(x)), true
	case int64:
		return iceberg.NewLiteral(x), true
	case float32:
		return iceberg.NewLiteral(x), true
	case float64:
		return iceberg.NewLiteral(x), true
	case string:
		return iceberg.NewLiteral(x), true
	case []byte:
		return iceberg.NewLiteral(x), true
	case iceberg.Date:
		return iceberg.NewLiteral(x), true
	case iceberg.Time:
		return iceberg.NewLiteral(x), true
	case iceberg.Timestamp:
		return iceberg.NewLiteral(x), true
	case iceberg.TimestampNano:
		return iceberg.NewLiteral(x), true
	case iceberg.Decimal:
		return iceberg.NewLiteral(x), true
	case uuid.UUID:
		return iceberg.NewLiteral(x), true
	}
	return nil, false
}

// parseSingle reads a value in Iceberg's JSON form of single values, as manifests hold it.
func parseSingle(text string, t iceberg.Type) (any, error) {
	var s string
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("%s is no value", text)
		}
	} else {
		s = text
	}
	switch t := t.(type) {
	case iceberg.BinaryType, iceberg.FixedType:
		return hex.DecodeString(s)
	case iceberg.StringType:
		return s, nil
	case iceberg.Int32Type:
		n, err := strconv.ParseInt(s, 10, 32)
		return int32(n), err
	case iceberg.DateType:
		if n, err := strconv.ParseInt(s, 10, 32); err == nil { // days since 1970
			return iceberg.Date(n), nil
		}
		day, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return nil, fmt.Errorf("%s is no date", text)
		}
		return iceberg.Date(day.Unix() / 86400), nil
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return parseTime(s, t)
	default:
		v, err := iceberg.NewLiteral(s).To(t)
		if err != nil {
			return nil, fmt.Errorf("%s is no %s", text, t)
		}
		return v.Any(), nil
	}
}

func parseTime(s string, t iceberg.Type) (any, error) {
	s = strings.Replace(strings.TrimSuffix(strings.TrimSuffix(s, "+00:00"), "Z"), " ", "T", 1)
	at, err := time.Parse("2006-01-02T15:04:05.999999999", s)
	if err != nil {
		return nil, fmt.Errorf("%s is no %s", s, t)
	}
	switch t.(type) {
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.TimestampNano(at.UnixNano()), nil
	}
	return iceberg.Timestamp(at.UnixMicro()), nil
}
