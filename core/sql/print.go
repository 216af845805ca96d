package sql

import (
	"fmt"
	"strconv"
	"strings"
)

// Print writes a node as canonical text on one line: keywords in capitals,
// every alias with AS, parentheses only where they are needed.
func Print(n Node) string {
	w := &printer{}
	w.node(n)
	return w.b.String()
}

type printer struct{ b strings.Builder }

func (w *printer) node(n Node) {
	switch n := n.(type) {
	case Statement: // before Body: a *Query is both
		w.statement(n)
	case Expr:
		w.expr(n, 0)
	case TableRef:
		w.table(n)
	case Body:
		w.body(n, 0)
	default:
		panic(fmt.Sprintf("sql: cannot print %T", n)) // AIDEV-NOTE: only a node type that is new and forgotten here comes to this
	}
}

// put writes pieces of text as they are.
func (w *printer) put(pieces ...string) {
	for _, s := range pieces {
		w.b.WriteString(s)
	}
}

// putIf writes pieces when a condition holds.
func (w *printer) putIf(cond bool, pieces ...string) {
	if cond {
		w.put(pieces...)
	}
}

// list writes n items with commas between them.
func (w *printer) list(n int, item func(int)) {
	for i := range n {
		w.putIf(i > 0, ", ")
		item(i)
	}
}

func (w *printer) ident(i Ident) { w.put(nameText(i.Name)) }

func nameText(name string) string {
	if plainName(name) {
		return name
	}
	return quoteName(name)
}

func (w *printer) name(n Name) {
	for i, part := range n {
		w.putIf(i > 0, ".")
		w.ident(part)
	}
}

func (w *printer) idents(list []Ident) {
	w.put("(")
	w.list(len(list), func(i int) { w.ident(list[i]) })
	w.put(")")
}

func (w *printer) alias(i Ident) {
	if !i.IsZero() {
		w.put(" AS ")
		w.ident(i)
	}
}

func (w *printer) tableAlias(a Alias) {
	w.alias(a.Name)
	if a.Columns != nil {
		w.idents(a.Columns)
	}
}

// typeName writes a type; words that a parser would take for something else are quoted.
func (w *printer) typeName(t *TypeName) {
	plain := plainWord(t.Name) && t.Name == strings.ToUpper(t.Name) && !reserved[t.Name] && !functionOnly[t.Name]
	if plain || t.Name == "UNION" && t.Fields != nil {
		w.put(t.Name)
	} else {
		w.put(quoteName(t.Name))
	}
	if len(t.Mods)+len(t.Params)+len(t.Fields) > 0 {
		w.put("(")
		w.list(len(t.Mods), func(i int) { w.put(strconv.Itoa(t.Mods[i])) })
		w.list(len(t.Params), func(i int) { w.typeName(t.Params[i]) })
		w.list(len(t.Fields), func(i int) {
			w.ident(t.Fields[i].Name)
			w.put(" ")
			w.typeName(t.Fields[i].Type)
		})
		w.put(")")
	}
	for _, d := range t.Dims {
		if d == ListDim {
			w.put("[]")
		} else {
			w.put("[", strconv.Itoa(d), "]")
		}
	}
}
