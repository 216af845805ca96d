package expr

import (
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Lambda is a function of the elements of a list. It stands only among the arguments of a Call whose function takes one. What
// Body reads of the row around is there as columns, so that rules see and move it as they do elsewhere; what it reads of the
// element is Param.
type Lambda struct {
	Params []*Param
	Body   Expr
}

// Param is a parameter of a lambda, named by an ID of its own. It means nothing outside the lambda.
type Param struct {
	ID   ColID
	Name string
	T    types.Type
}

func (e *Lambda) Type() types.Type { return e.Body.Type() }
func (e *Param) Type() types.Type  { return e.T }

func (e *Lambda) Children() []Expr { return []Expr{e.Body} }
func (e *Param) Children() []Expr  { return nil }

func (e *Lambda) With(c []Expr) Expr { return &Lambda{e.Params, c[0]} }
func (e *Param) With([]Expr) Expr    { return e }

// LambdaOf is the lambda among a call's arguments, nil when it has none.
func LambdaOf(e *Call) *Lambda {
	if e.Fn.Lambda == nil || len(e.Args) < 2 {
		return nil
	}
	l, _ := e.Args[1].(*Lambda)
	return l
}

// plainArgs are a call's arguments without the lambda.
func plainArgs(e *Call) []Expr { return append([]Expr{e.Args[0]}, e.Args[2:]...) }

// freeParams adds the parameters that e reads of lambdas around it to set.
func freeParams(e Expr, set map[ColID]bool) {
	switch e := e.(type) {
	case *Param:
		set[e.ID] = true
	case *Lambda:
		inner := map[ColID]bool{}
		freeParams(e.Body, inner)
		for _, p := range e.Params {
			delete(inner, p.ID)
		}
		for id := range inner {
			set[id] = true
		}
	default:
		for _, c := range e.Children() {
			freeParams(c, set)
		}
	}
}

// closed reports whether e reads neither columns nor parameters of lambdas around it.
func closed(e Expr) bool {
	cols, params := map[ColID]bool{}, map[ColID]bool{}
	Columns(e, cols)
	freeParams(e, params)
	return len(cols)+len(params) == 0
}

// lambdaCall compiles a call with a lambda. The body is a program of its own, over the parameters and over captures: the parts
// of the body that no parameter concerns, evaluated once a row of the call and repeated for the elements.
func (c *compiler) lambdaCall(e *Call, l *Lambda) (int, error) {
	args, err := c.compileAll(plainArgs(e))
	if err != nil {
		return 0, err
	}
	cap := capturer{outer: c}
	body := cap.rewrite(l.Body)
	if cap.err != nil {
		return 0, cap.err
	}
	inner := compiler{prog: &Program{}, layout: map[ColID]int{}, params: map[ColID]int{}, known: map[string]int{}}
	for i, p := range l.Params {
		inner.params[p.ID] = i
	}
	for i := range cap.slots {
		inner.layout[captureID(i)] = len(l.Params) + i
	}
	root, err := inner.compile(body)
	if err != nil {
		return 0, err
	}
	inner.prog.roots = []int{root}
	o := &lambdaOp{fn: e.Fn, kernel: e.Sig.Kernel, args: args, captures: cap.slots, ret: e.Sig.Returns, pos: e.Pos, body: inner.prog, params: len(l.Params)}
	key := "lambda " + e.Fn.Name + " " + e.Sig.Returns.String()
	for _, a := range plainArgs(e) {
		o.types = append(o.types, a.Type())
		key += "," + a.Type().String()
	}
	key += " " + strconv.Itoa(len(args)) + " " + Key(&Lambda{l.Params, body})
	o.volatile = Volatile(body)
	return c.add(key, e.Sig.Returns, o, slices.Concat(args, cap.slots), e.Fallible || Fallible(body), o.volatile), nil
}

// capturer finds what a lambda's body takes from around it.
type capturer struct {
	outer *compiler
	slots []int // of the outer program
	err   error
}

// captureID names a capture in the body. Columns of plans have no negative IDs.
func captureID(i int) ColID { return ColID(-1 - i) }

// rewrite replaces the greatest parts of a body that read none of its parameters by columns. What may fail or is volatile stays
// inside, where the body may keep it away from an element.
func (c *capturer) rewrite(e Expr) Expr {
	switch e.(type) {
	case *Lit, *Lambda:
	default:
		_, column := e.(*Col)
		_, param := e.(*Param)
		if c.outside(e) && (column || param || !Fallible(e) && !Volatile(e)) {
			return c.capture(e)
		}
	}
	children := e.Children()
	if len(children) == 0 {
		return e
	}
	changed := make([]Expr, len(children))
	for i, x := range children {
		changed[i] = c.rewrite(x)
	}
	return e.With(changed)
}

// outside reports whether e means something outside the body. Constants do, but there they stay.
func (c *capturer) outside(e Expr) bool {
	params := map[ColID]bool{}
	freeParams(e, params)
	for id := range params {
		if _, known := c.outer.params[id]; !known {
			return false
		}
	}
	return true
}

func (c *capturer) capture(e Expr) Expr {
	s, err := c.outer.compile(e)
	if err != nil && c.err == nil {
		c.err = err
	}
	at := slices.Index(c.slots, s)
	if at < 0 {
		at, c.slots = len(c.slots), append(c.slots, s)
	}
	return &Col{ID: captureID(at), Name: String(e), T: e.Type()}
}

// lambdaOp applies a kernel that evaluates a lambda.
type lambdaOp struct {
	fn       *fn.Scalar
	kernel   fn.Kernel
	args     []int
	types    []types.Type
	captures []int
	ret      types.Type
	pos      errs.Pos
	body     *Program
	params   int
	volatile bool
}

func (o *lambdaOp) eval(x *frame) (fn.Arg, error) {
	constant := !o.volatile
	args, err := x.getAll(o.args, &constant)
	if err != nil {
		return fn.Arg{}, err
	}
	captures, err := x.getAll(o.captures, &constant)
	if err != nil {
		return fn.Arg{}, err
	}
	n := x.n
	if constant {
		n = 1
	}
	eval := func(n int, params []arrow.Array, rows []int32) (fn.Arg, []fn.RowError, error) {
		cols := slices.Clone(params)
		for _, c := range captures {
			if c.Const {
				cols = append(cols, kernels.Repeat(c.Array, 0, n))
			} else {
				cols = append(cols, kernels.Take(c.Array, rows))
			}
		}
		body := o.body.frame(x.env, cols, n)
		v, err := body.get(o.body.roots[0])
		return v, body.failed, err
	}
	call := &fn.Call{Env: x.env, N: n, Args: args, Types: o.types, Ret: o.ret, Lambda: &fn.Lambda{Params: o.params, Eval: eval}}
	out, failed, err := call.Run(o.kernel, o.fn.Nulls)
	if err != nil {
		return fn.Arg{}, located(err, o.pos)
	}
	x.fail(failed, constant, o.pos)
	return fn.Arg{Array: out, Const: constant}, nil
}

// getAll is get for several slots; constant becomes false unless all are.
func (x *frame) getAll(slots []int, constant *bool) ([]fn.Arg, error) {
	out := make([]fn.Arg, len(slots))
	for i, s := range slots {
		v, err := x.get(s)
		if err != nil {
			return nil, err
		}
		out[i] = v
		*constant = *constant && v.Const
	}
	return out, nil
}
