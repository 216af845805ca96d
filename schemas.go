package riverbed

import (
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// A session has one catalog, memory, and in it the schema main and those that CREATE SCHEMA makes. A name of another
// schema than main is kept as schema.name.
const mainSchema = "main"

// setSchema is USE and SET schema.
func (s *Session) setSchema(name string, pos errs.Pos) error {
	name = strings.TrimPrefix(strings.ToLower(name), "memory.")
	if name == "memory" {
		name = mainSchema
	}
	if name != mainSchema && s.cat.Load().object(schemaObject, name) == nil {
		return errs.E(errs.Schema, "use", pos, "there is no schema or catalog %q", name).WithHint("%s", errs.DidYouMean(name, append(s.cat.Load().objectNames(schemaObject), mainSchema)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cat := *s.cat.Load()
	cat.schema = name
	s.cat.Store(&cat)
	return nil
}

// name is under what an object of a possibly qualified name is kept. A name without a schema belongs to the current one.
func (c *catalog) name(n sql.Name) (string, error) {
	schema, base, ok := c.split(partsOf(n))
	switch {
	case !ok:
		return "", errs.E(errs.Schema, "bind", n.Position(), "there is no schema or catalog %q", n[:len(n)-1].String()).
			WithHint("the schemas are %s", strings.Join(append(c.objectNames(schemaObject), mainSchema), ", "))
	case schema == "":
		schema = c.schema
	}
	if schema == mainSchema {
		return base, nil
	}
	return schema + "." + base, nil
}

func partsOf(n sql.Name) []string {
	parts := make([]string, len(n))
	for i, p := range n {
		parts[i] = p.Name
	}
	return parts
}

// read finds under what a name that a statement reads, changes or drops is kept.
func (c *catalog) read(n sql.Name) (string, error) {
	if key, ok := c.key(partsOf(n)); ok {
		return key, nil
	}
	return c.name(n)
}

// split takes a name apart; schema is empty when the name has none, and ok is false when it is unknown.
func (c *catalog) split(parts []string) (schema, base string, ok bool) {
	base = parts[len(parts)-1]
	for _, q := range parts[:len(parts)-1] {
		q = strings.ToLower(q)
		switch {
		case c.object(schemaObject, q) != nil:
			schema = q
		case q == mainSchema, q == "temp":
			schema = mainSchema
		case q == "memory":
		default:
			return "", "", false
		}
	}
	return schema, base, true
}

// key finds under what a name that is read is kept: in the current schema, or in main.
func (c *catalog) key(parts []string) (string, bool) {
	schema, base, ok := c.split(parts)
	if !ok {
		return "", false
	}
	if schema == "" {
		schema = c.schema
		if schema != mainSchema {
			if full := schema + "." + base; c.has(full) {
				return full, true
			}
			schema = mainSchema
		}
	}
	if schema == mainSchema {
		return base, true
	}
	return schema + "." + base, true
}

// has reports whether anything is kept under a name.
func (c *catalog) has(name string) bool {
	if c.get(name) != nil {
		return true
	}
	for _, kind := range []objectKind{macroObject, tableMacro, sequenceObject, indexObject} {
		if c.object(kind, name) != nil {
			return true
		}
	}
	return false
}

func (s *Session) createSchema(st *sql.CreateSchema) error {
	name := strings.ToLower(st.Name.Last().Name)
	if len(st.Name) > 2 || len(st.Name) == 2 && !strings.EqualFold(st.Name[0].Name, "memory") {
		return errs.E(errs.Schema, "create", st.Name.Position(), "there is no catalog %q", st.Name[:len(st.Name)-1].String())
	}
	if name == mainSchema || name == "temp" || name == "memory" {
		if st.IfNotExists {
			return nil
		}
		return errs.E(errs.Schema, "create", st.Name.Position(), "schema %q exists already", name)
	}
	plain := sql.Name{{At: st.Name.Last().At, Name: name}}
	return s.createObject(newObject{kind: schemaObject, name: append(sql.Name{{Name: mainSchema}}, plain...), replace: st.OrReplace, ifNotExists: st.IfNotExists, value: name})
}

func (s *Session) dropSchema(st *sql.Drop) error {
	last := st.Name.Last()
	d := *st
	d.Name = sql.Name{{Name: mainSchema}, last}
	if strings.EqualFold(last.Name, mainSchema) {
		return errs.E(errs.Schema, "drop", st.Name.Position(), "the schema main cannot be dropped")
	}
	prefix := strings.ToLower(last.Name) + "."
	if st.Cascade {
		for _, e := range s.cat.Load().entries {
			if strings.HasPrefix(strings.ToLower(e.name), prefix) {
				schema, base, _ := strings.Cut(e.name, ".")
				if err := s.dropStatement(&sql.Drop{At: st.At, Kind: sql.DropKind(e.kind()), IfExists: true, Cascade: true, Name: sql.Name{{Name: schema}, {Name: base}}}); err != nil {
					return err
				}
			}
		}
	}
	_, err := s.dropObject(schemaObject, &d, func(c *catalog, name string, _ any) error {
		notEmpty := func(what string) error {
			return errs.E(errs.Schema, "drop", st.Name.Position(), "the schema %q is not empty: it has %s", name, what).WithHint("DROP SCHEMA … CASCADE drops what is in it")
		}
		for low := range c.entries {
			if strings.HasPrefix(low, prefix) {
				return notEmpty(low)
			}
		}
		for key := range c.objects {
			switch {
			case !strings.Contains(key, " "+prefix):
			case !st.Cascade:
				return notEmpty("the " + key)
			default:
				delete(c.objects, key)
			}
		}
		return nil
	})
	if err == nil && s.cat.Load().schema == strings.ToLower(last.Name) {
		err = s.setSchema(mainSchema, st.Pos)
	}
	return err
}
