package types

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// byName holds every spelling of a type without parts, as DuckDB takes them.
var byName = map[string]Type{
	"BOOLEAN": Bool, "BOOL": Bool, "LOGICAL": Bool,
	"TINYINT": Int8, "INT1": Int8,
	"SMALLINT": Int16, "INT2": Int16, "INT16": Int16, "SHORT": Int16,
	"INTEGER": Int32, "INT": Int32, "INT4": Int32, "INT32": Int32, "SIGNED": Int32, "INTEGRAL": Int32,
	"BIGINT": Int64, "INT8": Int64, "INT64": Int64, "LONG": Int64, "OID": Int64,
	"HUGEINT": Int128, "INT128": Int128,
	"UTINYINT": Uint8, "UINT8": Uint8, "USMALLINT": Uint16, "UINT16": Uint16,
	"UINTEGER": Uint32, "UINT32": Uint32, "UBIGINT": Uint64, "UINT64": Uint64,
	"UHUGEINT": Uint128, "UINT128": Uint128,
	"FLOAT": Float32, "FLOAT4": Float32, "REAL": Float32,
	"DOUBLE": Float64, "DOUBLE PRECISION": Float64, "FLOAT8": Float64,
	"VARCHAR": String, "CHAR": String, "BPCHAR": String, "TEXT": String, "STRING": String, "NVARCHAR": String,
	"CHARACTER VARYING": String, "CHARACTER": String,
	"BLOB": Binary, "BYTEA": Binary, "BINARY": Binary, "VARBINARY": Binary, "BYTES": Binary,
	"DATE": Date32, "TIME": TimeUS, "TIME WITHOUT TIME ZONE": TimeUS,
	"TIMESTAMP": TsUS, "DATETIME": TsUS, "TIMESTAMP_US": TsUS, "TIMESTAMP WITHOUT TIME ZONE": TsUS,
	"TIMESTAMP_S": TsS, "TIMESTAMP_MS": TsMS, "TIMESTAMP_NS": TsNS,
	"TIMESTAMPTZ": TsTZ, "TIMESTAMP WITH TIME ZONE": TsTZ,
	"INTERVAL": Span, "UUID": UUIDType, "GUID": UUIDType, "JSON": JSONType, "NULL": NullType, "NUMERIC": {Kind: Decimal, Width: 18, Scale: 3},
	"DECIMAL": {Kind: Decimal, Width: 18, Scale: 3}, "DEC": {Kind: Decimal, Width: 18, Scale: 3},
}

// ParseType finds a type by name, in any case, with the numbers in its parentheses: DECIMAL(18, 3), VARCHAR(10), whose
// length means nothing, TIMESTAMP(3), FLOAT(53). The types with parts (LIST, STRUCT, MAP) are the caller's to put together.
func ParseType(name string, mods []int) (Type, error) {
	up := strings.ToUpper(strings.Join(strings.Fields(name), " "))
	t, ok := byName[up]
	if !ok {
		known := make([]string, 0, len(byName))
		for k := range byName {
			known = append(known, k)
		}
		slices.Sort(known) // a hint must not depend on the order of a map
		e := errs.New(errs.Schema, "bind", "there is no type %q", name)
		if hint := errs.DidYouMean(name, known); hint != "" {
			e = e.WithHint("%s", hint)
		}
		return Type{}, e
	}
	if len(mods) == 0 {
		return t, nil
	}
	bad := func(want string) (Type, error) {
		return Type{}, errs.New(errs.Schema, "bind", "type %s takes %s", up, want)
	}
	switch t.Kind {
	case Decimal:
		scale := 0
		if len(mods) == 2 {
			scale = mods[1]
		}
		if len(mods) > 2 || mods[0] < 1 || mods[0] > 38 || scale < 0 || scale > mods[0] {
			return bad("a width from 1 to 38 and a scale from 0 to the width")
		}
		return Dec(mods[0], scale), nil
	case Varchar, Blob:
		if len(mods) > 1 {
			return bad("one length")
		}
		return t, nil
	case Real:
		if len(mods) == 1 && up == "FLOAT" && mods[0] >= 1 && mods[0] <= 53 {
			if mods[0] > 24 {
				return Float64, nil
			}
			return Float32, nil
		}
	case Timestamp:
		if len(mods) == 1 && mods[0] >= 0 && mods[0] <= 9 {
			return []Type{TsS, TsMS, TsMS, TsMS, TsUS, TsUS, TsUS, TsNS, TsNS, TsNS}[mods[0]], nil
		}
		return bad("a precision from 0 to 9")
	}
	return bad("no parameters")
}
