package kernels

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestNullsOfEveryType: NULLs of types that hold NULL, at any depth, which Arrow's own function does not make.
func TestNullsOfEveryType(t *testing.T) {
	field := func(dt arrow.DataType) arrow.Field { return arrow.Field{Name: "f", Type: dt, Nullable: true} }
	types := []arrow.DataType{arrow.Null, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32, arrow.FixedWidthTypes.Boolean,
		&arrow.FixedSizeBinaryType{ByteWidth: 16}, &arrow.Decimal128Type{Precision: 38}, arrow.FixedWidthTypes.MonthDayNanoInterval}
	for range 2 { // every nesting of every nesting
		for _, dt := range append([]arrow.DataType{}, types...) {
			types = append(types, arrow.StructOf(field(dt)), arrow.ListOf(dt), arrow.MapOf(arrow.BinaryTypes.String, dt))
		}
	}
	types = append(types, arrow.StructOf())
	for _, dt := range types {
		for _, n := range []int{0, 1, 9} {
			a := Nulls(dt, n)
			if a.Len() != n || a.NullN() != n || !arrow.TypeEqual(a.DataType(), dt) {
				t.Fatalf("%d NULLs of %s: %d rows, %d of them NULL, of %s", n, dt, a.Len(), a.NullN(), a.DataType())
			}
			if n > 0 {
				if twice := Take(Concat([]arrow.Array{a, a}), []int32{0, int32(n), -1}); twice.NullN() != 3 {
					t.Errorf("%s: NULLs taken of NULLs are %v", dt, twice)
				}
			}
		}
	}
}
