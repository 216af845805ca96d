package types

import (
	"slices"
	"testing"
)

func TestDistinctNames(t *testing.T) {
	for _, c := range []struct{ given, want []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"x", "x", "x"}, []string{"x", "x_1", "x_2"}},
		{[]string{"x", "X", "x_1"}, []string{"x", "X_1", "x_1_1"}},
		{[]string{"x", "x_1", "x"}, []string{"x", "x_1", "x_2"}},
		{nil, nil},
	} {
		var fields []Field
		for _, n := range c.given {
			fields = append(fields, Field{n, Int64})
		}
		var got, after []string
		for _, f := range DistinctNames(fields) {
			got = append(got, f.Name)
		}
		for _, f := range fields {
			after = append(after, f.Name)
		}
		if !slices.Equal(got, c.want) || !slices.Equal(after, c.given) {
			t.Errorf("%q became %q, not %q; the argument is now %q", c.given, got, c.want, after)
		}
	}
}
