package expr

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
)

// choice puts the result of CASE and COALESCE together: each row is taken from one of the parts.
type choice struct {
	x     *frame
	typ   arrow.DataType
	parts []fn.Arg
	which []int32 // by row: the part, -1 for NULL
	at    []int32 // by row: the row in that part
}

func newChoice(x *frame, typ arrow.DataType) *choice {
	c := &choice{x: x, typ: typ, which: make([]int32, x.n), at: make([]int32, x.n)}
	for i := range c.which {
		c.which[i] = -1
	}
	return c
}

// take evaluates slot s for the given rows (nil: all) and takes them from it. A slot that cannot fail is evaluated whole,
// which shares it with its other uses. It returns the part's values by the frame's rows.
func (c *choice) take(s int, rows []int32) (v fn.Arg, whole bool, err error) {
	f := c.x
	if rows != nil && len(rows) < c.x.n && c.x.prog.slots[s].guarded() {
		f = c.x.sub(rows)
	}
	if v, err = f.get(s); err != nil {
		return v, false, err
	}
	if f != c.x {
		c.x.done(f)
	}
	return v, f == c.x, nil
}

func (c *choice) put(v fn.Arg, whole bool, rows []int32) {
	part := int32(len(c.parts))
	c.parts = append(c.parts, v)
	if rows == nil {
		for i := range c.which {
			c.which[i], c.at[i] = part, int32(i)
			if v.Const {
				c.at[i] = 0
			}
		}
		return
	}
	switch {
	case v.Const:
		for _, r := range rows {
			c.which[r], c.at[r] = part, 0
		}
	case whole:
		for _, r := range rows {
			c.which[r], c.at[r] = part, r
		}
	default:
		for j, r := range rows {
			c.which[r], c.at[r] = part, int32(j)
		}
	}
}

func (c *choice) result() fn.Arg {
	if len(c.parts) == 0 {
		return fn.Arg{Array: kernels.Nulls(c.typ, c.x.n)}
	}
	base := make([]int32, len(c.parts))
	arrays := make([]arrow.Array, len(c.parts))
	total := int32(0)
	for i, p := range c.parts {
		base[i], arrays[i] = total, p.Array
		total += int32(p.Len())
	}
	for i, w := range c.which {
		if w < 0 {
			c.at[i] = -1
		} else {
			c.at[i] += base[w]
		}
	}
	return fn.Arg{Array: kernels.Take(kernels.Concat(arrays), c.at)}
}

// caseOp is CASE WHEN.
type caseOp struct {
	conds, thens []int
	els          int // -1: none
	typ          arrow.DataType
}

func (o *caseOp) eval(x *frame) (fn.Arg, error) {
	c := newChoice(x, o.typ)
	var left []int32 // rows no condition has taken; nil is all
	for i, cond := range o.conds {
		if left != nil && len(left) == 0 {
			break
		}
		v, whole, err := c.take(cond, left)
		if err != nil {
			return v, err
		}
		hit, rest := split(v, whole, left, x.n)
		if len(hit) > 0 {
			rows := hit
			if len(hit) == x.n {
				rows = nil
			}
			then, wholeThen, err := c.take(o.thens[i], rows)
			if err != nil {
				return then, err
			}
			c.put(then, wholeThen, rows)
		}
		left = rest
	}
	if o.els >= 0 && (left == nil || len(left) > 0) {
		v, whole, err := c.take(o.els, left)
		if err != nil {
			return v, err
		}
		c.put(v, whole, left)
	}
	return c.result(), nil
}

// split divides rows (nil: all n) by a condition: where it is true, and the rest.
func split(v fn.Arg, whole bool, rows []int32, n int) (hit, rest []int32) {
	count := n
	if !whole {
		count = len(rows)
	}
	t := trueBits(v, count)
	if rows == nil {
		hit = kernels.Select(make([]int32, 0, kernels.CountBits(t, n)), t, n)
		t = slices.Clone(t)
		kernels.Invert(t, n)
		return hit, kernels.Select(make([]int32, 0, n-len(hit)), t, n)
	}
	// Both halves are written and the ends move by the bit, so that no branch depends on the data.
	hit, rest = make([]int32, len(rows)), make([]int32, len(rows))
	h, k := 0, 0
	for j, r := range rows {
		at := j
		if whole {
			at = int(r)
		}
		yes := int(t[at>>3]>>(at&7)) & 1
		hit[h], rest[k] = r, r
		h, k = h+yes, k+1-yes
	}
	return hit[:h], rest[:k]
}

// coalesceOp is COALESCE.
type coalesceOp struct {
	args []int
	typ  arrow.DataType
}

func (o *coalesceOp) eval(x *frame) (fn.Arg, error) {
	c := newChoice(x, o.typ)
	var left []int32
	for i, a := range o.args {
		if left != nil && len(left) == 0 {
			break
		}
		v, whole, err := c.take(a, left)
		if err != nil {
			return v, err
		}
		if i == 0 && (v.Const && !kernels.IsNull(v.Array, 0) || !v.Const && v.NullN() == 0) {
			return v, nil
		}
		hit, rest := splitValid(v, whole, left, x.n)
		if len(hit) > 0 {
			if whole {
				c.put(v, true, hit)
			} else {
				c.putAll(v, left)
			}
		}
		left = rest
	}
	return c.result(), nil
}

// putAll takes the rows of a part made for them alone, except those that are NULL.
func (c *choice) putAll(v fn.Arg, rows []int32) {
	part := int32(len(c.parts))
	c.parts = append(c.parts, v)
	for j, r := range rows {
		at := int32(j)
		if v.Const {
			at = 0
		}
		if !kernels.IsNull(v.Array, int(at)) {
			c.which[r], c.at[r] = part, at
		}
	}
}

func splitValid(v fn.Arg, whole bool, rows []int32, n int) (hit, rest []int32) {
	if rows == nil {
		rows = make([]int32, n)
		for i := range rows {
			rows[i] = int32(i)
		}
	}
	hit, rest = make([]int32, 0, len(rows)), make([]int32, 0, len(rows)/4)
	valid := kernels.Valid(v.Array)
	for j, r := range rows {
		at := j
		switch {
		case v.Const:
			at = 0
		case whole:
			at = int(r)
		}
		if valid == nil || kernels.Bit(valid, at) {
			hit = append(hit, r)
		} else {
			rest = append(rest, r)
		}
	}
	return hit, rest
}
