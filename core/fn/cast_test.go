package fn

import (
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

// The table of casts and the kernels say the same.
func TestCastsExist(t *testing.T) {
	all := Types{types.Bool, types.Float32, types.Float64, types.Dec(9, 3), types.Dec(38, 10), types.String, types.Binary, types.Date32, types.TimeUS,
		types.TsS, types.TsMS, types.TsUS, types.TsNS, types.TsTZ, types.Span, types.UUIDType, types.JSONType, types.ListOf(types.Int32), types.ListOf(types.Span),
		types.MapOf(types.String, types.Int32), types.StructOf(types.Field{Name: "a", Type: types.Int32}), types.StructOf(types.Field{Name: "b", Type: types.Int32}), types.NullType}
	all = append(all, ints...)
	for _, from := range all {
		for _, to := range all {
			if to.Kind == types.Null {
				continue
			}
			if _, _, ok := CastFor(from, to); ok != types.CanCast(from, to) {
				t.Errorf("%s to %s: CastFor says %v, CanCast %v", from, to, ok, types.CanCast(from, to))
			}
		}
	}
}
