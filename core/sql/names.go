package sql

import "strings"

// scope is a chain of the CTE names that a part of a statement can see.
type scope struct {
	name  string
	outer *scope
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if strings.EqualFold(s.name, name) {
			return true
		}
	}
	return false
}

// TableNames returns the relations that a statement reads or changes by name
// in FROM, UPDATE, DELETE and MERGE: each once, as first written, parts joined
// with dots, without the names that WITH defines. Targets of INSERT, COPY and
// CREATE are not among them.
func TableNames(n Node) []string {
	type todo struct {
		node  Node
		scope *scope
	}
	var names []string
	seen := map[string]bool{}
	stack := []todo{{n, nil}}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t, ok := top.node.(*Table); ok {
			name := t.Name.String()
			if key := strings.ToLower(name); !seen[key] && (len(t.Name) > 1 || !top.scope.has(name)) {
				seen[key] = true
				names = append(names, name)
			}
		}
		// The subqueries of WITH come first among the children; each sees the ones before it.
		children := Children(top.node)
		work := make([]todo, len(children))
		inner := top.scope
		i := 0
		if w := withOf(top.node); w != nil {
			for _, cte := range w.CTEs {
				outer := inner
				inner = &scope{cte.Name.Name, inner}
				if w.Recursive {
					outer = inner
				}
				work[i] = todo{cte.Query, outer}
				i++
			}
		}
		for ; i < len(children); i++ {
			work[i] = todo{children[i], inner}
		}
		for i := len(work) - 1; i >= 0; i-- {
			stack = append(stack, work[i])
		}
	}
	return names
}

func withOf(n Node) *With {
	switch n := n.(type) {
	case *Query:
		return n.With
	case *Insert:
		return n.With
	case *Update:
		return n.With
	case *Delete:
		return n.With
	case *Merge:
		return n.With
	}
	return nil
}
