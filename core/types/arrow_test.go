package types

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestHandedUUID: a UUID at any depth is arrow.uuid for other programs, and comes back as a UUID.
func TestHandedUUID(t *testing.T) {
	fields := []Field{{"u", UUIDType}, {"l", ListOf(UUIDType)}, {"s", StructOf(Field{"a", Int32}, Field{"b", ListOf(StructOf(Field{"u", UUIDType}))})},
		{"m", MapOf(UUIDType, UUIDType)}, {"n", Int64}, {"b", Binary}, {"j", JSONType}}
	inside := ArrowSchema(fields)
	out := Handed(inside)
	var count func(f arrow.Field) int
	count = func(f arrow.Field) int {
		n := 0
		if name, _ := f.Metadata.GetValue("ARROW:extension:name"); name == "arrow.uuid" {
			n++
		}
		if d, ok := f.Type.(arrow.NestedType); ok {
			for _, part := range d.Fields() {
				n += count(part)
			}
		}
		return n
	}
	for i, want := range []int{1, 1, 1, 2, 0, 0, 0} {
		if got := count(out.Field(i)); got != want {
			t.Errorf("%s: %d fields are arrow.uuid, want %d", fields[i].Name, got, want)
		}
		if count(inside.Field(i)) != 0 {
			t.Errorf("%s: the engine's own schema names the extension", fields[i].Name)
		}
	}
	back, err := Schema(out)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range back {
		if !f.Type.Equal(fields[i].Type) {
			t.Errorf("%s comes back as %s", f.Name, f.Type)
		}
	}
	if plain := ArrowSchema(fields[4:]); Handed(plain) != plain {
		t.Error("a schema without UUIDs is made anew")
	}
}
