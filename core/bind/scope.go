package bind

import (
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

// scope is what names mean at one place: the tables of FROM, and around them the scopes of outer queries.
type scope struct {
	tables []*table
	merged []*merged
	parent *scope
	// block is the SELECT whose FROM this is; aggregates over its columns belong to it.
	block *block
	macro *expansion // whose body this is
}

// table is one relation of FROM under its alias.
type table struct {
	alias string
	path  []string // qualified name, for schema.table.column
	cols  []plan.Column
	// function is the name that the one column of a table function has beside that of the alias: a.range as well as a.a.
	function string
	// last is what window_time stands for, of a table that is cut by time: a name that * does not have.
	last expr.Expr
}

const lastTimeName = "window_time"

// has reports whether a column of the table answers to the name.
func (t *table) has(c plan.Column, name string) bool {
	return sameName(c.Name, name) || t.function != "" && sameName(t.function, name)
}

// merged is a column of USING or NATURAL: one name for a column of each side.
type merged struct {
	members map[expr.ColID]bool
	value   expr.Expr
}

// join appends the tables of right, as a join's ON and the items after it see them.
func (s *scope) join(right *scope) *scope {
	out := *s
	out.tables = append(append([]*table{}, s.tables...), right.tables...)
	out.merged = append(append([]*merged{}, s.merged...), right.merged...)
	return &out
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }

// ids are the columns of the scope's own tables.
func (s *scope) ids() map[expr.ColID]bool {
	set := map[expr.ColID]bool{}
	for _, t := range s.tables {
		for _, c := range t.cols {
			set[c.ID] = true
		}
	}
	return set
}

// hit is a column found by name.
type hit struct {
	table *table
	col   plan.Column
	value expr.Expr // of a merged column
}

func (h hit) expr() expr.Expr {
	if h.value != nil {
		return h.value
	}
	return h.col.Ref()
}

// name is the column's name as its table spells it, of its two names the one that was asked for.
func (h hit) name(asked string) string {
	if f := h.table.function; f != "" && sameName(f, asked) {
		return f
	}
	return h.col.Name
}

// find looks a column up in the scope's own tables. With a qualifier only tables of that name count.
func (s *scope) find(qualifier []string, name string, pos errs.Pos) (hit, bool) {
	var hits []hit
	for _, t := range s.tables {
		if len(qualifier) > 0 && !t.named(qualifier) {
			continue
		}
		for _, c := range t.cols {
			if t.has(c, name) {
				hits = append(hits, hit{table: t, col: c})
				break
			}
		}
	}
	if len(hits) == 0 && sameName(name, lastTimeName) {
		hits = s.lastTimes(qualifier)
	}
	if len(qualifier) == 0 {
		hits = s.merge(hits)
	}
	switch len(hits) {
	case 0:
		return hit{}, false
	case 1:
		return hits[0], true
	}
	a, z := hits[0], hits[1]
	hint := "write " + a.table.alias + "." + a.col.Name + " or " + z.table.alias + "." + z.col.Name
	if sameName(a.table.alias, z.table.alias) {
		hint = "give one of the tables another name with AS"
	}
	failHint(pos, hint, "column %q is ambiguous: it is in %s and in %s", name, a.table.alias, z.table.alias)
	return hit{}, false
}

// lastTimes are the tables that are cut by time, each with the last time of a row's window.
func (s *scope) lastTimes(qualifier []string) (hits []hit) {
	for _, t := range s.tables {
		if t.last != nil && (len(qualifier) == 0 || t.named(qualifier)) {
			hits = append(hits, hit{table: t, col: plan.Column{Name: lastTimeName, Type: t.last.Type()}, value: t.last})
		}
	}
	return hits
}

// merge makes one hit of those that USING or NATURAL has made one column.
func (s *scope) merge(hits []hit) []hit {
	for _, m := range s.merged {
		var out []hit
		done := false
		for _, h := range hits {
			if h.value != nil || !m.members[h.col.ID] {
				out = append(out, h)
			} else if !done {
				done = true
				h.value = m.value
				out = append(out, h)
			}
		}
		hits = out
	}
	return hits
}

// mergedFor returns the merged column that id belongs to.
func (s *scope) mergedFor(id expr.ColID) *merged {
	for _, m := range s.merged {
		if m.members[id] {
			return m
		}
	}
	return nil
}

// named reports whether the table answers to the qualifier: its alias, or its schema-qualified name.
func (t *table) named(qualifier []string) bool {
	if len(qualifier) == 1 {
		return sameName(t.alias, qualifier[0])
	}
	if len(qualifier) > len(t.path) && len(t.path) > 0 && (sameName(qualifier[0], "main") || sameName(qualifier[0], "memory")) {
		return t.named(qualifier[1:]) // the one schema there is
	}
	if len(qualifier) > len(t.path) {
		return false
	}
	tail := t.path[len(t.path)-len(qualifier):]
	for i, q := range qualifier {
		if !sameName(tail[i], q) {
			return false
		}
	}
	return true
}

// tableNamed finds a table by qualifier, for t.* and for t as a row.
func (s *scope) tableNamed(qualifier []string) *table {
	for _, t := range s.tables {
		if t.named(qualifier) {
			return t
		}
	}
	return nil
}

// lookup finds what the first parts of a name mean here, without outer scopes. It returns how many parts it used; the
// rest are struct fields. table.column comes before column.field, as in DuckDB.
func (s *scope) lookup(name sql.Name) (h hit, used int) {
	parts := make([]string, len(name))
	for i, p := range name {
		parts[i] = p.Name
	}
	for n := min(len(parts), 4); n >= 2; n-- {
		if h, ok := s.find(parts[:n-1], parts[n-1], name.Position()); ok {
			return h, n
		}
	}
	if h, ok := s.find(nil, parts[0], name.Position()); ok {
		return h, 1
	}
	return hit{}, 0
}

// failUnknown reports a name that nothing answers to, with what is near it.
func (s *scope) failUnknown(name sql.Name, more []string) {
	pos := name.Position()
	if len(name) > 1 {
		qualifier, column := []string{}, name.Last().Name
		for _, p := range name[:len(name)-1] {
			qualifier = append(qualifier, p.Name)
		}
		for at := s; at != nil; at = at.parent {
			if t := at.tableNamed(qualifier); t != nil {
				failHint(name.Last().Pos, candidates("columns of "+t.alias, column, suggestions(t.cols)), "no column %q in %s", column, t.alias)
			}
		}
		var tables []string
		for at := s; at != nil; at = at.parent {
			for _, t := range at.tables {
				tables = append(tables, t.alias)
			}
		}
		failHint(pos, candidates("tables here", name[0].Name, tables), "no table %q in FROM, for column %q", name[0].Name, name)
	}
	names := more
	var in []string
	for at := s; at != nil; at = at.parent {
		for _, t := range at.tables {
			names = append(names, suggestions(t.cols)...)
			if at == s && t.alias != "" {
				in = append(in, t.alias)
			}
		}
	}
	where := ""
	if len(in) > 0 {
		where = " in " + strings.Join(in, ", ")
	}
	hint := candidates("columns here", name[0].Name, names)
	if len(names) == 0 {
		hint = "there is no FROM; a text is written in single quotes: '" + name[0].Name + "'"
	}
	failHint(pos, hint, "no column %q%s", name[0].Name, where)
}

// suggestions are the names of columns without the hidden one.
func suggestions(cols []plan.Column) []string {
	out := columnNames(cols)
	if n := len(out); n > 0 && out[n-1] == RowIDColumn {
		out = out[:n-1]
	}
	return out
}

func columnNames(cols []plan.Column) []string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = c.Name
	}
	return out
}
