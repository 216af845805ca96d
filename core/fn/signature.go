package fn

import (
	"strings"

	"github.com/riverbed/riverbed/core/types"
)

// Signatures lists the overloads as the reference and messages show them, "upper(VARCHAR) → VARCHAR", equal ones once.
func (f *Scalar) Signatures() []string {
	var out []string
	for i := range f.Overloads {
		o := &f.Overloads[i]
		sig := o.signature(f.Name)
		if f.Lambda != nil {
			sig = strings.Replace(sig, "ANY[], ANY", "ANY[], LAMBDA", 1)
		}
		out = appendNew(out, sig+result(o.Returns))
	}
	return out
}

// Signatures lists the overloads, equal ones once.
func (f *Aggregate) Signatures() []string {
	var out []string
	for _, o := range f.Overloads {
		sig := Overload{Args: o.Args}
		out = appendNew(out, sig.signature(f.Name)+result(o.Returns))
	}
	return out
}

// result is empty for a type that the arguments decide.
func result(t types.Type) string {
	if t.Kind == types.Invalid || t.Kind == types.Any || t.Kind == types.Decimal && t.Width == 0 {
		return ""
	}
	return " → " + t.String()
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
