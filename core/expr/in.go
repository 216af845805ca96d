package expr

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// in compiles IN: constants of one type become a set, anything else a chain of comparisons.
func (c *compiler) in(e *In) (int, error) {
	t := e.Arg.Type()
	set := newSet(t)
	key := []byte("in" + strconv.FormatBool(e.Negate))
	for _, item := range e.List {
		lit, ok := item.(*Lit)
		if !ok || set == nil || lit.V != nil && !lit.T.Equal(t) {
			return c.inChain(e)
		}
		if lit.V == nil {
			set.null = true
		} else {
			set.add(lit.V)
		}
		key = append(append(key, ','), literalKey(lit)...)
	}
	arg, err := c.compile(e.Arg)
	if err != nil {
		return 0, err
	}
	set.seal()
	return c.add(string(key), types.Bool, &inOp{arg, set, e.Negate}, []int{arg}, false, false), nil
}

// inChain rewrites x IN (a, b) as x = a OR x = b.
func (c *compiler) inChain(e *In) (int, error) {
	or := &Or{}
	for _, item := range e.List {
		call, err := NewCall("=", errs.Pos{}, e.Arg, item)
		if err != nil {
			return 0, err
		}
		or.Args = append(or.Args, call)
	}
	if e.Negate {
		return c.compile(&Not{or})
	}
	return c.compile(or)
}

// inSet holds constants by value: numbers of up to 64 bits, or bytes.
type inSet struct {
	kind  types.Kind
	ints  map[int64]struct{}
	few   []int64 // the same, for lists that are searched faster than hashed
	texts map[string]struct{}
	sizes [][]string // the texts by length; nil when a text is long or many have one length
	null  bool
}

// newSet returns nil for types whose equality is not that of their bits.
func newSet(t types.Type) *inSet {
	switch {
	case t.Kind == types.Varchar || t.Kind == types.Blob:
		return &inSet{kind: t.Kind, texts: map[string]struct{}{}}
	case t.Kind >= types.TinyInt && t.Kind <= types.BigInt, t.Kind >= types.UTinyInt && t.Kind <= types.UBigInt, t.IsTemporal():
		return &inSet{kind: t.Kind, ints: map[int64]struct{}{}}
	}
	return nil
}

func (s *inSet) add(v types.Value) {
	switch v := v.(type) {
	case int64:
		s.ints[v] = struct{}{}
	case uint64:
		s.ints[int64(v)] = struct{}{}
	case string:
		s.texts[v] = struct{}{}
	case []byte:
		s.texts[string(v)] = struct{}{}
	}
}

// seal chooses how a set that is complete is searched.
func (s *inSet) seal() {
	if s.texts != nil {
		s.bySize()
		return
	}
	const fewest = 8
	if len(s.ints) <= fewest {
		for k := range s.ints { // order does not matter: the list is only searched
			s.few = append(s.few, k)
		}
	}
}

// bySize sorts the texts by length: most texts are turned down by their length alone, and a few comparisons cost less
// than a hash.
func (s *inSet) bySize() {
	const longest, most = 64, 8
	s.sizes = make([][]string, longest+1)
	for k := range s.texts { // order does not matter: the list is only searched
		if len(k) > longest || len(s.sizes[len(k)]) == most {
			s.sizes = nil
			return
		}
		s.sizes[len(k)] = append(s.sizes[len(k)], k)
	}
}

// hasText looks a text up.
func (s *inSet) hasText(b []byte) bool {
	if s.sizes == nil {
		_, ok := s.texts[string(b)]
		return ok
	}
	if len(b) >= len(s.sizes) {
		return false
	}
	for _, t := range s.sizes[len(b)] {
		if t == string(b) {
			return true
		}
	}
	return false
}

type inOp struct {
	arg    int
	set    *inSet
	negate bool
}

func (o *inOp) eval(x *frame) (fn.Arg, error) {
	v, err := x.get(o.arg)
	if err != nil {
		return v, err
	}
	n := v.Len()
	found := make([]byte, kernels.BitBytes(n))
	switch o.set.kind {
	case types.TinyInt:
		match[int8](o.set, v, found)
	case types.SmallInt:
		match[int16](o.set, v, found)
	case types.Integer, types.Date:
		match[int32](o.set, v, found)
	case types.UTinyInt:
		match[uint8](o.set, v, found)
	case types.USmallInt:
		match[uint16](o.set, v, found)
	case types.UInteger:
		match[uint32](o.set, v, found)
	case types.UBigInt:
		match[uint64](o.set, v, found)
	case types.Varchar, types.Blob:
		offs, data := kernels.Spans(v.Array)
		for i := range n {
			if o.set.hasText(data[offs[i]:offs[i+1]]) {
				kernels.SetBit(found, i)
			}
		}
	default:
		match[int64](o.set, v, found)
	}
	valid := kernels.Valid(v.Array)
	if o.set.null { // not found among NULLs is unknown
		valid = kernels.AndBits(valid, found)
	}
	if o.negate {
		out := make([]byte, len(found))
		for i := range out {
			out[i] = ^found[i]
		}
		found = out
	}
	return fn.Arg{Array: boolArray(found, valid, n), Const: v.Const}, nil
}

func match[T arrow.IntType | arrow.UintType](s *inSet, v fn.Arg, found []byte) {
	vals := kernels.Values[T](v.Array)
	if len(s.ints) <= cap(s.few) && len(s.few) == len(s.ints) {
		for i, k := range vals {
			for _, f := range s.few {
				if int64(k) == f {
					kernels.SetBit(found, i)
				}
			}
		}
		return
	}
	for i, k := range vals {
		if _, ok := s.ints[int64(k)]; ok {
			kernels.SetBit(found, i)
		}
	}
}
