package expr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// widened is a root of either form as the wide one.
func widened(a arrow.Array, t types.Type) (arrow.Array, bool) {
	if a.DataType().ID() != arrow.DECIMAL64 {
		return a, false
	}
	v := make([]decimal128.Num, a.Len())
	kernels.UnpackDecimals(v, kernels.Values[int64](a))
	return kernels.NewFixed(t.Arrow(), v, kernels.Valid(a)), true
}

// In 64 bits and in 128 the values are the same, and so are the NULLs and the errors.
func TestNarrowIsWide(t *testing.T) {
	d := func(w, s int) types.Type { return types.Dec(w, s) }
	a, b, c := col(0, d(15, 2)), col(1, d(15, 2)), col(2, d(18, 0))
	cols := map[ColID]int{0: 0, 1: 1, 2: 2, 3: 3}
	one := lit(decimal128.FromI64(1), d(1, 0))
	least := lit(decimal128.FromI64(-999), d(3, 2))
	cond := call(t, ">", a, b)
	exprs := []Expr{
		a, c, lit(decimal128.FromI64(5), d(9, 1)), lit(nil, d(9, 1)),
		call(t, "+", a, b), call(t, "-", one, b), call(t, "*", a, b), call(t, "*", a, call(t, "-", one, b)),
		call(t, "*", call(t, "*", a, call(t, "-", one, b)), call(t, "+", one, a)), call(t, "*", c, c), call(t, "+", c, c), call(t, "*", least, b),
		call(t, "*", a, lit(nil, d(9, 1))), CastTo(a, d(18, 5), errs.Pos{}), CastTo(a, d(16, 1), errs.Pos{}), call(t, "*", CastTo(a, d(18, 5), errs.Pos{}), b),
		&Case{Whens: []When{{cond, call(t, "*", a, b)}}, Else: call(t, "*", c, c), T: call(t, "*", a, b).Type()},
		&Coalesce{[]Expr{a, b}, d(15, 2)}, call(t, "*", &Coalesce{[]Expr{a, b}, d(15, 2)}, b), call(t, "-", a), call(t, "*", call(t, "-", a), b),
		call(t, "*", col(3, types.Int64), one), call(t, "%", a, b),
	}
	r := rand.New(rand.NewPCG(8, 8))
	narrow := 0
	for round := range 400 {
		n := []int{0, 1, 2, 17, 300}[r.IntN(5)]
		skip := r.IntN(3) // sliced arrays
		arrays := make([]arrow.Array, 4)
		for k := range arrays {
			digits := []int{3, 9, 15}[r.IntN(3)]
			if k == 2 && r.IntN(2) == 0 {
				digits = 18
			}
			v, valid := make([]decimal128.Num, n+skip), kernels.Ones(n+skip)
			ints := make([]int64, n+skip)
			for i := range v {
				x := r.Int64N(int64(types.Pow10(digits).LowBits()))
				if r.IntN(2) == 0 {
					x = -x
				}
				v[i], ints[i] = decimal128.FromI64(x), x
				if r.IntN(7) == 0 && round%2 == 0 {
					kernels.ClearBit(valid, i)
				}
			}
			arrays[k] = kernels.NewFixed([]types.Type{d(15, 2), d(15, 2), d(18, 0)}[min(k, 2)].Arrow(), v, valid)
			if k == 3 {
				arrays[k] = kernels.NewFixed(arrow.PrimitiveTypes.Int64, ints, valid)
			}
			arrays[k] = array.NewSlice(arrays[k], int64(skip), int64(n+skip))
		}
		some := slices.Clone(exprs)
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:1+r.IntN(4)]
		wide, err := CompileAll(some, cols)
		if err != nil {
			t.Fatal(err)
		}
		small, err := CompileAll(some, cols)
		if err != nil {
			t.Fatal(err)
		}
		for i := range some {
			if r.IntN(4) > 0 {
				small.Narrow(i)
			}
		}
		want, wantErr := wide.EvalArrays(nil, arrays, n)
		got, gotErr := small.EvalArrays(nil, arrays, n)
		if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
			t.Fatalf("wide: %v\nnarrow: %v", wantErr, gotErr)
		}
		for i := range got {
			g, is := widened(got[i], some[i].Type())
			if is {
				narrow++
			}
			if !array.Equal(g, want[i]) {
				t.Fatalf("%v over %d rows\nnarrow %v\nwide   %v", String(some[i]), n, g, want[i])
			}
		}
	}
	if narrow < 100 {
		t.Errorf("only %d results were narrow", narrow)
	}
}
