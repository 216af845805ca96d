package sqltest

import (
	"math"
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

// Rows are paired with the row that they are, however wide the tolerance of a sum is, and with no row twice.
func TestRowsArePairedWithTheNearest(t *testing.T) {
	fields := []types.Field{{Name: "x", Type: types.Float64}, {Name: "s", Type: types.Float64}, {Name: "n", Type: types.Int64}}
	row := func(x, s float64, n int64) []types.Value { return []types.Value{x, s, n} }
	wide := Tolerance{Ulps: 2, Abs: 100}
	for _, c := range []struct {
		name string
		a, b [][]types.Value
		tol  Tolerance
		want bool
	}{
		{"small values beside a wide tolerance", [][]types.Value{row(90, 0, 1), row(0, 0, 1), row(180, 0, 1)}, [][]types.Value{row(180, 0, 1), row(0, 0, 1), row(90, 0, 1)}, wide, true},
		{"a sum that is off, beside a key that is not", [][]types.Value{row(1, 1e15, 1), row(2, 1e15+8, 1)}, [][]types.Value{row(2, 1e15, 1), row(1, 1e15+8, 1)}, wide, true},
		{"zeros and NaNs", [][]types.Value{row(0, math.NaN(), 1), row(-90, 0, 1)}, [][]types.Value{row(-90, 0, 1), row(math.Copysign(0, -1), math.NaN(), 1)}, wide, true},
		{"out of tolerance", [][]types.Value{row(1, 0, 1)}, [][]types.Value{row(1, 101, 1)}, wide, false},
		{"one row for two", [][]types.Value{row(1, 0, 1), row(1, 0, 1)}, [][]types.Value{row(1, 0, 1), row(1, 200, 1)}, wide, false},
		{"an exact column", [][]types.Value{row(1, 0, 1)}, [][]types.Value{row(1, 0, 2)}, wide, false},
		{"infinity", [][]types.Value{row(math.Inf(1), 0, 1)}, [][]types.Value{row(math.MaxFloat64, 0, 1)}, wide, false},
	} {
		if got := matched(c.a, c.b, fields, c.tol); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A join can give millions of rows that differ in nothing: to search the partner of each among all of them would not end.
func TestManyEqualRowsArePaired(t *testing.T) {
	fields := []types.Field{{Name: "k", Type: types.Int64}, {Name: "x", Type: types.Float64}}
	ours, theirs := make([][]types.Value, 300_000), make([][]types.Value, 300_000)
	zeros := []float64{0, math.Copysign(0, -1)}
	for i := range ours {
		ours[i], theirs[i] = []types.Value{int64(7), zeros[i%2]}, []types.Value{int64(7), zeros[i/2%2]}
	}
	ours[0], theirs[299_999] = []types.Value{int64(7), math.NaN()}, []types.Value{int64(7), -math.NaN()}
	if !matched(ours, theirs, fields, Tolerance{}) {
		t.Error("equal rows are not paired")
	}
	theirs[5] = []types.Value{int64(7), 1e-300}
	if matched(ours, theirs, fields, Tolerance{}) {
		t.Error("another row is paired")
	}
}
