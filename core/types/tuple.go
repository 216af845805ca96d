package types

// IsTuple reports whether t is the type of a row value, (1, 'a'): a STRUCT whose fields have no names. It is compared with
// and cast to other structs by position.
func (t Type) IsTuple() bool {
	if t.Kind != Struct {
		return false
	}
	for _, f := range t.Fields {
		if f.Name != "" {
			return false
		}
	}
	return len(t.Fields) > 0
}

// TupleOf returns the type of a row value.
func TupleOf(ts []Type) Type {
	t := Type{Kind: Struct, Fields: make([]Field, len(ts))}
	for i := range ts {
		t.Fields[i].Type = ts[i]
	}
	return t
}

// byPosition reports whether a cast between two structs goes by position: one of them is a row value.
func byPosition(from, to Type) bool {
	return from.Kind == Struct && to.Kind == Struct && len(from.Fields) == len(to.Fields) && (from.IsTuple() || to.IsTuple())
}
