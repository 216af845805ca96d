package types

import "maps"

// Listed is every type of values without parts, in the order in which the reference shows them.
func Listed() []Type {
	return []Type{Bool, Int8, Int16, Int32, Int64, Int128, Uint8, Uint16, Uint32, Uint64, Uint128, Float32, Float64,
		Dec(18, 3), String, Binary, Date32, TimeUS, TsUS, TsS, TsMS, TsNS, TsTZ, Span, UUIDType, JSONType}
}

// Names maps every spelling of a type without parts to it.
func Names() map[string]Type { return maps.Clone(byName) }
