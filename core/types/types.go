// Package types holds the SQL types, their Arrow form, and the coercion table.
//
// Invariant: a Type is a plain comparable-by-Equal value; each SQL type has exactly
// one Arrow form inside the engine (arrow.go), so kernels never see two layouts of one type.
package types

import (
	"fmt"
	"strings"
)

// Kind is the family of a type. The numbers are written into plans and state and are never reused.
type Kind uint8

const (
	Invalid     Kind = 0
	Null        Kind = 1 // the type of a bare NULL
	Boolean     Kind = 2
	TinyInt     Kind = 3
	SmallInt    Kind = 4
	Integer     Kind = 5
	BigInt      Kind = 6
	HugeInt     Kind = 7
	UTinyInt    Kind = 8
	USmallInt   Kind = 9
	UInteger    Kind = 10
	UBigInt     Kind = 11
	UHugeInt    Kind = 12
	Real        Kind = 13
	Double      Kind = 14
	Decimal     Kind = 15 // Width, Scale
	Varchar     Kind = 16
	Blob        Kind = 17
	Date        Kind = 18
	Time        Kind = 19
	TimestampS  Kind = 20
	TimestampMS Kind = 21
	Timestamp   Kind = 22 // microseconds
	TimestampNS Kind = 23
	TimestampTZ Kind = 24 // microseconds UTC
	Interval    Kind = 25
	UUID        Kind = 26
	List        Kind = 27 // Elem
	Struct      Kind = 28 // Fields
	Map         Kind = 29 // Key, Elem
	JSON        Kind = 30
	Any         Kind = 31 // only in function signatures
)

// Type is one SQL type.
type Type struct {
	Kind   Kind
	Width  uint8   // Decimal: total digits, 1 to 38
	Scale  uint8   // Decimal: digits after the point
	Key    *Type   // Map: key type
	Elem   *Type   // List: element type; Map: value type
	Fields []Field // Struct
}

// Field is a named part of a STRUCT, or a column of a relation.
type Field struct {
	Name string
	Type Type
}

// The types without parameters, ready to use.
var (
	NullType = Type{Kind: Null}
	Bool     = Type{Kind: Boolean}
	Int8     = Type{Kind: TinyInt}
	Int16    = Type{Kind: SmallInt}
	Int32    = Type{Kind: Integer}
	Int64    = Type{Kind: BigInt}
	Int128   = Type{Kind: HugeInt}
	Uint8    = Type{Kind: UTinyInt}
	Uint16   = Type{Kind: USmallInt}
	Uint32   = Type{Kind: UInteger}
	Uint64   = Type{Kind: UBigInt}
	Uint128  = Type{Kind: UHugeInt}
	Float32  = Type{Kind: Real}
	Float64  = Type{Kind: Double}
	String   = Type{Kind: Varchar}
	Binary   = Type{Kind: Blob}
	Date32   = Type{Kind: Date}
	TimeUS   = Type{Kind: Time}
	TsS      = Type{Kind: TimestampS}
	TsMS     = Type{Kind: TimestampMS}
	TsUS     = Type{Kind: Timestamp}
	TsNS     = Type{Kind: TimestampNS}
	TsTZ     = Type{Kind: TimestampTZ}
	Span     = Type{Kind: Interval}
	UUIDType = Type{Kind: UUID}
	JSONType = Type{Kind: JSON}
	AnyType  = Type{Kind: Any}
)

// Dec returns DECIMAL(width, scale).
func Dec(width, scale int) Type { return Type{Kind: Decimal, Width: uint8(width), Scale: uint8(scale)} }

// ListOf returns a LIST of elem.
func ListOf(elem Type) Type { return Type{Kind: List, Elem: &elem} }

// MapOf returns MAP(key, value).
func MapOf(key, value Type) Type { return Type{Kind: Map, Key: &key, Elem: &value} }

// StructOf returns a STRUCT.
func StructOf(fields ...Field) Type { return Type{Kind: Struct, Fields: fields} }

// names are DuckDB's spellings.
var names = map[Kind]string{
	Invalid: "INVALID", Null: `"NULL"`, Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT", Integer: "INTEGER",
	BigInt: "BIGINT", HugeInt: "HUGEINT", UTinyInt: "UTINYINT", USmallInt: "USMALLINT", UInteger: "UINTEGER",
	UBigInt: "UBIGINT", UHugeInt: "UHUGEINT", Real: "FLOAT", Double: "DOUBLE", Varchar: "VARCHAR", Blob: "BLOB",
	Date: "DATE", Time: "TIME", TimestampS: "TIMESTAMP_S", TimestampMS: "TIMESTAMP_MS", Timestamp: "TIMESTAMP",
	TimestampNS: "TIMESTAMP_NS", TimestampTZ: "TIMESTAMP WITH TIME ZONE", Interval: "INTERVAL", UUID: "UUID",
	JSON: "JSON", Any: "ANY",
}

// String is DuckDB's spelling of the type.
func (t Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Width, t.Scale)
	case List:
		return t.Elem.String() + "[]"
	case Map:
		return "MAP(" + t.Key.String() + ", " + t.Elem.String() + ")"
	case Struct:
		parts := make([]string, len(t.Fields))
		if t.IsTuple() {
			for i, f := range t.Fields {
				parts[i] = f.Type.String()
			}
			return "TUPLE(" + strings.Join(parts, ", ") + ")"
		}
		for i, f := range t.Fields {
			parts[i] = quoteIdent(f.Name) + " " + f.Type.String()
		}
		return "STRUCT(" + strings.Join(parts, ", ") + ")"
	}
	return names[t.Kind]
}

func quoteIdent(s string) string {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// Equal reports whether two types are the same, parameters included.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind {
		return false
	}
	switch t.Kind {
	case Decimal:
		return t.Width == u.Width && t.Scale == u.Scale
	case List:
		return t.Elem.Equal(*u.Elem)
	case Map:
		return t.Key.Equal(*u.Key) && t.Elem.Equal(*u.Elem)
	case Struct:
		if len(t.Fields) != len(u.Fields) {
			return false
		}
		for i := range t.Fields {
			if t.Fields[i].Name != u.Fields[i].Name || !t.Fields[i].Type.Equal(u.Fields[i].Type) {
				return false
			}
		}
	}
	return true
}

// IsInteger reports whether t is one of the whole-number types, HUGEINT included.
func (t Type) IsInteger() bool { return t.Kind >= TinyInt && t.Kind <= UHugeInt }

// IsSigned reports whether t is a signed integer type.
func (t Type) IsSigned() bool { return t.Kind >= TinyInt && t.Kind <= HugeInt }

// IsFloat reports whether t is REAL or DOUBLE.
func (t Type) IsFloat() bool { return t.Kind == Real || t.Kind == Double }

// IsNumeric reports whether arithmetic is defined on t.
func (t Type) IsNumeric() bool { return t.Kind >= TinyInt && t.Kind <= Decimal }

// IsTimestamp reports whether t is a TIMESTAMP of any unit, with or without time zone.
func (t Type) IsTimestamp() bool { return t.Kind >= TimestampS && t.Kind <= TimestampTZ }

// IsTemporal reports whether t is a date, time or timestamp.
func (t Type) IsTemporal() bool { return t.Kind >= Date && t.Kind <= TimestampTZ }

// IsNested reports whether t has parts.
func (t Type) IsNested() bool { return t.Kind == List || t.Kind == Struct || t.Kind == Map }

// Alike reports whether equal values of the type are one and the same; 0.0 and -0.0, 30 days and a month are equal and
// print differently.
func (t Type) Alike() bool {
	if t.IsFloat() || t.Kind == Interval {
		return false
	}
	for _, f := range t.Fields {
		if !f.Type.Alike() {
			return false
		}
	}
	return (t.Elem == nil || t.Elem.Alike()) && (t.Key == nil || t.Key.Alike())
}
