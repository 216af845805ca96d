package expr

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// A list of constants is one set, whatever its length; each argument of a call is written into its key once.
func TestInIsOneStep(t *testing.T) {
	in := &In{Arg: col(0, types.Int32)}
	for i := range int64(200_000) {
		in.List = append(in.List, num(i+2))
	}
	p, err := Compile(in, layout)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.slots); n != 2 {
		t.Errorf("%d steps, want the column and the search", n)
	}
	if got := show(t, in, []arrow.Array{ints(1, 2, nil, 200_001, 200_002)}...); got != "false true NULL true false" {
		t.Error(got)
	}
	short := &In{Arg: in.Arg, List: in.List[:3]}
	if got := show(t, &Or{[]Expr{short, &In{Arg: in.Arg, List: in.List[3:4]}}}, ints(1, 4, 5)); got != "false true true" {
		t.Errorf("two lists: %s", got)
	}
}
