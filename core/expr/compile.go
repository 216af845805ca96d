package expr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Compile makes a program of one expression; layout gives the position of each column in the batches to come.
func Compile(e Expr, layout map[ColID]int) (*Program, error) {
	return CompileAll([]Expr{e}, layout)
}

// CompileAll makes a program of a list of expressions. What they have in common is computed once.
func CompileAll(es []Expr, layout map[ColID]int) (*Program, error) {
	c := compiler{prog: &Program{}, layout: layout, known: map[string]int{}}
	for _, e := range es {
		s, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		c.prog.roots = append(c.prog.roots, s)
	}
	return c.prog, nil
}

type compiler struct {
	prog   *Program
	layout map[ColID]int
	params map[ColID]int  // of a lambda's body: where its parameters stand
	known  map[string]int // slots by what they compute, children named by slot
}

// reads remembers what the program calls a column, for messages.
func (c *compiler) reads(at int, e *Col) {
	if !slices.ContainsFunc(c.prog.reads, func(r read) bool { return r.at == at }) {
		c.prog.reads = append(c.prog.reads, read{at, types.Field{Name: e.Name, Type: e.T}})
	}
}

func (c *compiler) compileAll(es []Expr) ([]int, error) {
	out := make([]int, len(es))
	for i, e := range es {
		s, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// add makes a slot, or finds the one that computes the same.
func (c *compiler) add(key string, t types.Type, o op, args []int, fallible, volatile bool) int {
	for _, a := range args {
		fallible = fallible || c.prog.slots[a].fallible
		volatile = volatile || c.prog.slots[a].volatile
	}
	if !volatile {
		b := []byte(key) // not a string that grows: there may be a hundred thousand arguments
		for _, a := range args {
			b = strconv.AppendInt(append(b, '#'), int64(a), 10)
		}
		key = string(b)
		if s, ok := c.known[key]; ok {
			return s
		}
		c.known[key] = len(c.prog.slots)
	}
	c.prog.slots = append(c.prog.slots, slot{o, t.Arrow(), fallible, volatile})
	return len(c.prog.slots) - 1
}

func (c *compiler) compile(e Expr) (int, error) {
	switch e := e.(type) {
	case *Col:
		at, ok := c.layout[e.ID]
		if !ok {
			return 0, errs.Bug("compile", "column %s (%d) is not in the input", e.Name, e.ID)
		}
		c.reads(at, e)
		return c.add("col"+strconv.Itoa(at), e.T, colOp(at), nil, false, false), nil
	case *Lit:
		return c.add("lit"+literalKey(e), e.T, &litOp{fn.Arg{Array: types.ArrayOf([]types.Value{e.V}, e.T), Const: true}}, nil, false, false), nil
	case *Param:
		at, ok := c.params[e.ID]
		if !ok {
			return 0, errs.Bug("compile", "the parameter %s is outside its lambda", e.Name)
		}
		return c.add("col"+strconv.Itoa(at), e.T, colOp(at), nil, false, false), nil
	case *Call:
		if l := LambdaOf(e); l != nil {
			return c.lambdaCall(e, l)
		}
		return c.call(e)
	case *Cast:
		return c.cast(e)
	case *In:
		return c.in(e)
	}
	args, err := c.compileAll(e.Children())
	if err != nil {
		return 0, err
	}
	switch e := e.(type) {
	case *And:
		return c.add("and", types.Bool, &logicOp{args, false}, args, false, false), nil
	case *Or:
		return c.add("or", types.Bool, &logicOp{args, true}, args, false, false), nil
	case *Not:
		return c.add("not", types.Bool, notOp(args[0]), args, false, false), nil
	case *IsNull:
		return c.add("null"+strconv.FormatBool(e.Negate), types.Bool, isNullOp{args[0], e.Negate}, args, false, false), nil
	case *Case:
		o := &caseOp{els: -1, typ: e.T.Arrow()}
		for i := range e.Whens {
			o.conds, o.thens = append(o.conds, args[2*i]), append(o.thens, args[2*i+1])
		}
		if e.Else != nil {
			o.els = args[len(args)-1]
		}
		return c.add("case"+strconv.Itoa(len(args)), e.T, o, args, false, false), nil
	case *Coalesce:
		return c.add("coalesce", e.T, &coalesceOp{args, e.T.Arrow()}, args, false, false), nil
	}
	return 0, errs.Bug("compile", "no operator evaluates a %T", e)
}

func (c *compiler) call(e *Call) (int, error) {
	args, err := c.compileAll(e.Args)
	if err != nil {
		return 0, err
	}
	if e.Fn == fn.Try {
		s := c.add("try", e.Type(), &tryOp{args[0], e.Type().Arrow()}, args, false, false)
		c.prog.slots[s].fallible = false
		return s, nil
	}
	o := &callOp{fn: e.Fn, kernel: e.Sig.Kernel, args: args, ret: e.Sig.Returns, data: e.Sig.Data, pos: e.Pos, op: e.Sig.Narrow, safe: e.Sig.Safe}
	o.types = make([]types.Type, len(e.Args))
	key := strings.Builder{}
	key.WriteString("call " + e.Fn.Name + " " + e.Sig.Returns.String())
	for i, a := range e.Args {
		o.types[i] = a.Type()
		key.WriteString("," + a.Type().String())
	}
	volatile := e.Fn.Purity == fn.Volatile
	return c.add(key.String(), e.Sig.Returns, o, args, e.Fallible, volatile), nil
}

func (c *compiler) cast(e *Cast) (int, error) {
	from := e.Arg.Type()
	if from.Equal(e.T) {
		return c.compile(e.Arg)
	}
	kernel, fallible, ok := fn.CastFor(from, e.T)
	if !ok {
		return 0, errs.E(errs.Schema, "bind", e.Pos, "cannot cast %s to %s", from, e.T)
	}
	arg, err := c.compile(e.Arg)
	if err != nil {
		return 0, err
	}
	o := &castOp{kernel: kernel, arg: arg, from: from, to: e.T, try: e.Try, pos: e.Pos}
	key := "cast " + from.String() + ">" + e.T.String()
	if e.Try {
		key = "try_" + key
	}
	return c.add(key, e.T, o, []int{arg}, fallible && !e.Try, false), nil
}

func literalKey(e *Lit) string {
	if e.V == nil {
		return e.T.String() + " NULL"
	}
	return e.T.String() + " " + strconv.Quote(types.Format(e.V, e.T))
}

// colOp reads a column of the batch.
type colOp int

func (o colOp) eval(x *frame) (fn.Arg, error) { return fn.Arg{Array: x.column(int(o))}, nil }

// litOp is a constant.
type litOp struct{ v fn.Arg }

func (o *litOp) eval(*frame) (fn.Arg, error) { return o.v, nil }

// callOp applies a kernel. Over constants alone it runs once and gives a constant.
type callOp struct {
	fn     *fn.Scalar
	kernel fn.Kernel
	args   []int
	types  []types.Type
	ret    types.Type
	data   any
	pos    errs.Pos
	op     fn.Narrow // what it is in 64 bits
	safe   bool      // no row exceeds the width of the result
}

func (o *callOp) eval(x *frame) (fn.Arg, error) {
	args := make([]fn.Arg, len(o.args))
	constant := o.fn.Purity != fn.Volatile
	for i, a := range o.args {
		v, err := x.get(a)
		if err != nil {
			return v, err
		}
		args[i] = v
		constant = constant && v.Const
	}
	n := x.n
	if constant {
		n = 1
	}
	call := &fn.Call{Env: x.env, N: n, Args: args, Types: o.types, Ret: o.ret, Data: o.data}
	out, failed, err := call.Run(o.kernel, o.fn.Nulls)
	if err != nil {
		return fn.Arg{}, located(err, o.pos)
	}
	x.fail(failed, constant, o.pos)
	return fn.Arg{Array: out, Const: constant}, nil
}

// castOp converts; a failing row is NULL for TRY_CAST.
type castOp struct {
	kernel   fn.Kernel
	arg      int
	from, to types.Type
	try      bool
	pos      errs.Pos
}

func (o *castOp) eval(x *frame) (fn.Arg, error) {
	v, err := x.get(o.arg)
	if err != nil {
		return v, err
	}
	n := x.n
	if v.Const {
		n = 1
	}
	call := &fn.Call{Env: x.env, N: n, Args: []fn.Arg{v}, Types: []types.Type{o.from}, Ret: o.to}
	if o.try {
		call.Data = fn.TryCast
	}
	out, failed, err := call.Run(o.kernel, fn.NullIfAnyNull)
	if err != nil {
		return fn.Arg{}, located(err, o.pos)
	}
	if !o.try {
		x.fail(failed, v.Const, o.pos)
	}
	return fn.Arg{Array: out, Const: v.Const}, nil
}

// tryOp is TRY(x): rows that fail below it are NULL.
type tryOp struct {
	arg int
	typ arrow.DataType
}

func (o *tryOp) eval(x *frame) (fn.Arg, error) {
	// The argument gets a frame of its own: failures of the same subexpression outside TRY still count.
	sub := &frame{prog: x.prog, env: x.env, cols: x.cols, n: x.n, memo: make([]fn.Arg, len(x.memo)), parent: nil}
	if x.parent != nil {
		rows := make([]int32, x.n)
		for i := range rows {
			rows[i] = int32(i)
		}
		sub = x.sub(rows)
	}
	v, err := sub.get(o.arg)
	if err != nil {
		return v, err
	}
	if len(sub.failed) == 0 {
		return v, nil
	}
	if v.Const {
		return fn.Arg{Array: kernels.Nulls(o.typ, 1), Const: true}, nil
	}
	return fn.Arg{Array: fn.NullRows(v.Array, sub.failed)}, nil
}
