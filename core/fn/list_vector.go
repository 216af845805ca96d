package fn

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// vectors are functions of two lists of numbers as vectors, and what takes an end off a list.
var vectors = []*Scalar{
	vector("list_distance", "The distance of two vectors; a <-> b.", nil, func(v *dots) float64 { return math.Sqrt(v.gap) }, "list_distance([1, 2], [4, 6])", "5.0"),
	vector("list_inner_product", "The inner product of two vectors.", []string{"list_dot_product"}, func(v *dots) float64 { return v.ab }, "list_inner_product([1, 2], [3, 4])", "11.0"),
	vector("list_negative_inner_product", "The inner product of two vectors, negated: less is nearer.", []string{"list_negative_dot_product"}, func(v *dots) float64 { return -v.ab }, "list_negative_inner_product([1, 2], [3, 4])", "-11.0"),
	vector("list_cosine_similarity", "The cosine of the angle between two vectors.", nil, cosine, "list_cosine_similarity([1, 0], [2, 0])", "1.0"),
	vector("list_cosine_distance", "1 less the cosine of the angle between two vectors; a <=> b.", nil, func(v *dots) float64 { return 1 - cosine(v) }, "list_cosine_distance([1, 0], [0, 2])", "1.0"),
	endless("array_pop_back", "A list without its last element.", 0, 1, "array_pop_back([1, 2, 3])", "[1, 2]"),
	endless("array_pop_front", "A list without its first element.", 1, 0, "array_pop_front([1, 2, 3])", "[2, 3]"),
	{Name: "array_push_front", Category: Nested, Nulls: NullAware, Summary: "A list with one element before.", Overloads: []Overload{pushFront()}, Examples: []Example{ex("array_push_front([2], 1)", "[1, 2]")}},
}

// dots are the sums over the places of two vectors.
type dots struct{ ab, aa, bb, gap float64 }

func cosine(v *dots) float64 {
	return max(-1, min(1, v.ab/math.Sqrt(v.aa*v.bb)))
}

// vector is a function of two lists of DOUBLE. The angle to a vector of length 0 is NaN, and NULL where there are no elements.
func vector(name, about string, aliases []string, f func(*dots) float64, sql, want string) *Scalar {
	undirected := name == "list_cosine_similarity" || name == "list_cosine_distance"
	return &Scalar{Name: name, Category: Nested, Summary: about, Aliases: aliases, Examples: []Example{ex(sql, want)}, Overloads: []Overload{
		fallible(Types{types.ListOf(types.Float64), types.ListOf(types.Float64)}, types.Float64, func(c *Call) (arrow.Array, error) {
			sides := [2]struct {
				offs  []int32
				vals  []float64
				valid []byte
				mask  int
			}{}
			for k := range sides {
				list := c.Args[k].Array.(*array.List)
				sides[k].offs, sides[k].mask = listOffsets(list), maskOf(c.Args[k])
				sides[k].vals, sides[k].valid = kernels.Values[float64](list.ListValues()), kernels.Valid(list.ListValues())
			}
			return fixedOrNull(c, func(i int) (float64, bool) {
				var from [2]int
				var size [2]int
				for k, s := range sides {
					j := i & s.mask
					from[k], size[k] = int(s.offs[j]), int(s.offs[j+1]-s.offs[j])
				}
				if size[0] != size[1] {
					c.failf(i, "%s of lists of %d and %d elements", name, size[0], size[1])
					return 0, false
				}
				var v dots
				for n := range size[0] {
					for k, s := range sides {
						if s.valid != nil && !kernels.Bit(s.valid, from[k]+n) {
							c.failf(i, "%s of a list that holds NULL", name)
							return 0, false
						}
					}
					a, b := sides[0].vals[from[0]+n], sides[1].vals[from[1]+n]
					d := a - b // the conversions keep products from being fused with sums, which not every machine does
					v.ab, v.aa, v.bb, v.gap = v.ab+float64(a*b), v.aa+float64(a*a), v.bb+float64(b*b), v.gap+float64(d*d)
				}
				return f(&v), !undirected || size[0] > 0
			})
		})}}
}

// endless takes elements off the ends of a list.
func endless(name, about string, front, back int32, sql, want string) *Scalar {
	return &Scalar{Name: name, Category: Nested, Summary: about, Examples: []Example{ex(sql, want)}, Overloads: []Overload{
		listOverload(Types{anyList}, types.ListOf, func(c *Call) (arrow.Array, error) {
			list := c.Args[0].Array
			offs, alive := listOffsets(list), live(c)
			out, idx := make([]int32, c.N+1), []int32{}
			for i := range c.N {
				if alive == nil || kernels.Bit(alive, i) {
					j := i & maskOf(c.Args[0])
					for k := offs[j] + front; k < offs[j+1]-back; k++ {
						idx = append(idx, k)
					}
				}
				out[i+1] = int32(len(idx))
			}
			return newList(c.Ret, c.N, out, kernels.Take(list.(array.ListLike).ListValues(), idx)), nil
		})}}
}

// pushFront is list_prepend with the list first.
func pushFront() Overload {
	o := appendOverload(true)
	turned := Overload{Args: Types{o.Args[1], o.Args[0]}}
	turned.Resolve = func(ts []types.Type, consts []types.Value) (Resolved, error) {
		r, err := o.Resolve(Types{ts[1], ts[0]}, Values{constAt(consts, 1), constAt(consts, 0)})
		if err != nil {
			return r, err
		}
		k := r.Kernel
		r.Args = Types{r.Args[1], r.Args[0]}
		r.Kernel = func(c *Call) (arrow.Array, error) {
			t := *c
			t.Args, t.Types = []Arg{c.Args[1], c.Args[0]}, Types{c.Types[1], c.Types[0]}
			return k(&t)
		}
		return r, nil
	}
	return turned
}
