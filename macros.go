package riverbed

import (
	"strings"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// createMacro keeps the bodies as they are written: their names are resolved where the macro is called.
func (s *Session) createMacro(st *sql.CreateMacro, text string) error {
	m := &bind.Macro{Name: st.Name.Last().Name, Bodies: st.Bodies, SQL: text}
	for _, b := range st.Bodies {
		seen, optional := map[string]bool{}, false
		for _, p := range b.Params {
			low := strings.ToLower(p.Name.Name)
			if seen[low] {
				return errs.E(errs.Schema, "create macro", p.Name.Pos, "two parameters are named %q", p.Name.Name)
			}
			if optional && p.Default == nil {
				return errs.E(errs.Schema, "create macro", p.Name.Pos, "%q has no default, and a parameter before it has one", p.Name.Name)
			}
			seen[low], optional = true, p.Default != nil
			if p.Type != nil {
				if _, err := bind.Type(p.Type); err != nil {
					return err
				}
			}
		}
		if len(sql.Params(st)) > 0 {
			return errs.E(errs.Schema, "create macro", st.Pos, "a macro has no parameters of a statement ($1, ?); give it one of its own")
		}
	}
	kind := macroObject
	if st.Bodies[0].Query != nil {
		kind = tableMacro
	}
	return s.createObject(newObject{kind: kind, name: st.Name, replace: st.OrReplace, ifNotExists: st.IfNotExists, value: m})
}

func (s *Session) dropMacro(st *sql.Drop) error {
	kind := macroObject
	if st.Kind == sql.DropMacroTable {
		kind = tableMacro
	} else if name, err := s.cat.Load().read(st.Name); err == nil && s.cat.Load().object(macroObject, name) == nil && s.cat.Load().object(tableMacro, name) != nil {
		kind = tableMacro
	}
	_, err := s.dropObject(kind, st, nil)
	return err
}

// tellMacro is a macro's rows of duckdb_functions().
func (c *scopeCatalog) tellMacro(kind objectKind, key string) [][]types.Value {
	var rows [][]types.Value
	schema, name := c.cat.place(key)
	for _, b := range c.cat.object(kind, key).(*bind.Macro).Bodies {
		var params []types.Value
		for _, p := range b.Params {
			params = append(params, p.Name.Name)
		}
		what, body := "macro", sql.Node(b.Expr)
		if b.Query != nil {
			what, body = "table_macro", b.Query
		}
		rows = append(rows, []types.Value{database, schema, name, nil, what, nil, nil, params, nil, nil, sql.Print(body), false, false, nil, nil})
	}
	return rows
}

// Macro implements bind.SessionCatalog. What a statement uses is noted, so that a view keeps it.
func (c *scopeCatalog) Macro(name []string) *bind.Macro {
	key, ok := c.cat.key(name)
	if !ok {
		return nil
	}
	for _, kind := range []objectKind{macroObject, tableMacro} {
		if m, ok := c.cat.object(kind, key).(*bind.Macro); ok {
			if c.macros == nil {
				c.macros = map[string]*bind.Macro{}
			}
			c.macros[strings.ToLower(strings.Join(name, "."))] = m
			return m
		}
	}
	return nil
}
