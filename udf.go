package riverbed

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// RegisterUDF makes a function of the host language callable from SQL in this session.
func (s *Session) RegisterUDF(u UDF) error {
	if err := s.usable(); err != nil {
		return err
	}
	_, scalar := fn.Lookup(u.Name)
	_, aggregate := fn.LookupAggregate(u.Name)
	if scalar || aggregate {
		return errs.New(errs.Usage, "register function", "%q is a built-in function", u.Name).WithHint("give the function another name")
	}
	ret, err := s.declared([]ColumnSpec{{u.Name, u.Returns}})
	if err != nil {
		return errs.New(errs.Usage, "register function", "%s: %q is not a type", u.Name, u.Returns)
	}
	f := &fn.Scalar{Name: strings.ToLower(u.Name), Category: fn.Utility, Summary: "A function of the host language.", Nulls: fn.NullAware, Purity: fn.Volatile}
	if u.Deterministic {
		f.Purity = fn.Stable // never folded while planning: the host's function runs when the query runs
	}
	o := fn.Overload{Returns: ret[0].Type, Fallible: true, Kernel: udfKernel(u, ret[0].Type)}
	if len(u.Args) == 0 {
		o.Args, o.Variadic = []types.Type{types.AnyType}, true
	} else {
		for _, a := range u.Args {
			t, err := s.declared([]ColumnSpec{{a, a}})
			if err != nil {
				return errs.New(errs.Usage, "register function", "%s: %q is not a type", u.Name, a)
			}
			o.Args = append(o.Args, t[0].Type)
		}
	}
	f.Overloads = []fn.Overload{o}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cat.Store(s.cat.Load().withFunction(f))
	return nil
}

// udfKernel calls the host once per batch and checks what comes back.
func udfKernel(u UDF, ret types.Type) fn.Kernel {
	want := ret.Arrow()
	return func(c *fn.Call) (arrow.Array, error) {
		ctx := c.Env.Ctx
		if ctx == nil {
			ctx = context.Background()
		}
		args := make([]arrow.Array, len(c.Args))
		for i, a := range c.Args {
			args[i] = expr.Expand(a, c.N)
		}
		out, err := u.Call(ctx, args, c.N)
		if err != nil {
			return nil, errs.New(errs.Data, "call function", "%s: %w", u.Name, err)
		}
		if out == nil {
			return nil, errs.New(errs.Data, "call function", "%s returned nothing", u.Name).WithHint("a function returns one array")
		}
		if out.Len() != c.N {
			return nil, errs.New(errs.Data, "call function", "%s returned %d values for %d rows", u.Name, out.Len(), c.N).
				WithHint("a function takes whole columns and returns one value per row")
		}
		if !arrow.TypeEqual(out.DataType(), want) {
			return nil, errs.New(errs.Data, "call function", "%s returned %s, but was registered to return %s (%s)", u.Name, out.DataType(), u.Returns, want).
				WithHint("cast the result, or register the function with another return_type")
		}
		return out, nil
	}
}
