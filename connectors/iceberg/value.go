package iceberg

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/riverbed/riverbed/core/types"
)

// parseValue reads a value in Iceberg's single-value JSON form: bounds, defaults, values of partitions. A value that is no JSON stands for itself.
func parseValue(text string, t types.Type) (types.Value, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		v = text
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		if t.Kind == types.Boolean {
			return v, nil
		}
	case json.Number:
		return parseNumber(v, t)
	case string:
		return parseText(v, t)
	}
	return nil, fmt.Errorf("%q is no %s", text, t)
}

// parseNumber reads a number. Those of dates and times count from 1970, in the unit of the type.
func parseNumber(n json.Number, t types.Type) (types.Value, error) {
	switch t.Kind {
	case types.Date, types.Time, types.Timestamp, types.TimestampTZ, types.TimestampNS:
		return n.Int64()
	}
	return types.ParseValue(n.String(), t)
}

func parseText(s string, t types.Type) (types.Value, error) {
	switch t.Kind {
	case types.Varchar, types.JSON:
		return s, nil
	case types.Blob:
		return hex.DecodeString(s)
	case types.UUID:
		if raw, err := hex.DecodeString(s); err == nil && len(raw) == 16 {
			return [16]byte(raw), nil
		}
	}
	return types.ParseValue(s, t)
}

// formatValue writes a value in Iceberg's single-value JSON form.
func formatValue(v types.Value, t types.Type) string {
	var out any
	switch t.Kind {
	case types.Boolean, types.TinyInt, types.SmallInt, types.Integer, types.BigInt, types.Real, types.Double, types.Varchar, types.JSON:
		out = v
	case types.Blob:
		out = hex.EncodeToString(v.([]byte))
	case types.Timestamp, types.TimestampTZ, types.TimestampNS:
		text := strings.Replace(types.Format(v, t), " ", "T", 1)
		if t.Kind == types.TimestampTZ {
			text = strings.TrimSuffix(strings.TrimSuffix(text, "+00:00"), "+00") + "+00:00"
		}
		out = text
	default:
		out = types.Format(v, t)
	}
	text, err := json.Marshal(out)
	if err != nil { // a NaN
		return fmt.Sprintf("%q", fmt.Sprint(out))
	}
	return string(text)
}
