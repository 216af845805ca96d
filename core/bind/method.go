package bind

import "github.com/riverbed/riverbed/core/sql"

// method reads k.upper() as upper(k), where k is a column, an alias or a parameter; nil where it is none.
func (e *env) method(x *sql.Function) *sql.Function {
	of := x.Name[:len(x.Name)-1]
	known := false
	for s := e.scope; s != nil && !known; s = s.parent {
		_, used := s.lookup(of)
		known = used > 0
	}
	if !known && len(of) == 1 {
		if _, known = e.param(of[0]); !known {
			_, known = e.alias(of[0])
		}
	}
	if !known {
		return nil
	}
	f := *x
	f.Name = x.Name[len(x.Name)-1:]
	f.Args = append([]sql.Arg{{Value: &sql.ColumnRef{At: x.At, Parts: of}}}, x.Args...)
	return &f
}
