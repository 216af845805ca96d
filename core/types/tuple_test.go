package types

import "testing"

// TestTuples: a row value prints and reads as (a, b), and is cast and unified with structs by position.
func TestTuples(t *testing.T) {
	tuple := TupleOf([]Type{Int32, String})
	named := StructOf(Field{"a", Int64}, Field{"b", String})
	if s := tuple.String(); s != "TUPLE(INTEGER, VARCHAR)" {
		t.Errorf("the type is %s", s)
	}
	v := []Value{int64(1), "x, y"}
	text := Format(v, tuple)
	if text != "(1, 'x, y')" {
		t.Errorf("the value is %s", text)
	}
	back, err := ParseValue(text, tuple)
	if err != nil || Format(back, tuple) != text {
		t.Errorf("%s reads as %v, %v", text, back, err)
	}
	if !CanCast(tuple, named) || CanCast(tuple, StructOf(Field{"a", Int64})) {
		t.Error("casts go by position, between as many fields")
	}
	field := tuple.ArrowField("r")
	if s := field.Type.String(); s != "struct<element1: int32 nullable, element2: utf8 nullable>" {
		t.Errorf("in Arrow it is %s", s)
	}
	if u, err := FromArrow(field); err != nil || !u.Equal(tuple) {
		t.Errorf("from Arrow it is %s, %v", u, err)
	}
	if c, ok := Common(tuple, named); !ok || !c.Equal(named) {
		t.Errorf("the common type is %s", c)
	}
}
