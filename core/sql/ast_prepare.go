package sql

import (
	"strconv"
	"strings"
)

// Prepare is PREPARE name AS statement.
type Prepare struct {
	At
	Name      Ident
	Statement Statement
}

// Execute is EXECUTE name [(values)]; a value may be named (a := 1).
type Execute struct {
	At
	Name Ident
	Args []Arg
}

// Deallocate is DEALLOCATE [PREPARE] name; All is DEALLOCATE ALL.
type Deallocate struct {
	At
	Name Ident
	All  bool
}

// Key is what the values of parameters are found by: the number, or the name in lower case.
func (p *Param) Key() string {
	if p.Name != "" {
		return strings.ToLower(p.Name)
	}
	return strconv.Itoa(p.Index)
}

// Params returns the parameters of a statement in the order of the text, each as often as it stands there.
func Params(n Node) []*Param {
	var list []*Param
	Inspect(n, func(n Node) bool {
		if p, ok := n.(*Param); ok {
			list = append(list, p)
		}
		return true
	})
	return list
}

func (*Prepare) statement()    {}
func (*Execute) statement()    {}
func (*Deallocate) statement() {}
