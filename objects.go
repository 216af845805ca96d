package riverbed

import (
	"maps"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// Beside the relations, each kind of object has names of its own: a macro, a sequence and a table may all be called x.
type objectKind string

const (
	macroObject    objectKind = "macro"
	tableMacro     objectKind = "table macro"
	sequenceObject objectKind = "sequence"
	indexObject    objectKind = "index"
	schemaObject   objectKind = "schema"
)

func objectKey(kind objectKind, name string) string {
	return string(kind) + " " + strings.ToLower(name)
}

func (c *catalog) object(kind objectKind, name string) any { return c.objects[objectKey(kind, name)] }

// objectNames lists the objects of a kind.
func (c *catalog) objectNames(kind objectKind) []string {
	var out []string
	for key := range c.objects {
		if name, ok := strings.CutPrefix(key, string(kind)+" "); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// newObject says what a statement wants to create.
type newObject struct {
	kind                 objectKind
	name                 sql.Name
	replace, ifNotExists bool
	value                any
}

func (s *Session) createObject(n newObject) error {
	name, err := s.cat.Load().name(n.name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	cat := *s.cat.Load()
	if cat.object(n.kind, name) != nil {
		switch {
		case n.ifNotExists:
			return nil
		case !n.replace:
			return errs.E(errs.Schema, "create", n.name.Position(), "%s %q exists already", n.kind, name).WithHint("use CREATE OR REPLACE, or drop it first")
		}
	}
	cat.objects = maps.Clone(cat.objects)
	cat.objects[objectKey(n.kind, name)] = n.value
	s.cat.Store(&cat)
	return nil
}

// dropObject takes an object away and returns it; nil when IF EXISTS found none. may looks at it before; the session is locked then.
func (s *Session) dropObject(kind objectKind, st *sql.Drop, may func(c *catalog, name string, v any) error) (any, error) {
	name, err := s.cat.Load().read(st.Name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cat := *s.cat.Load()
	v := cat.object(kind, name)
	if v == nil {
		if st.IfExists {
			return nil, nil
		}
		return nil, errs.E(errs.Schema, "drop", st.Name.Position(), "no %s %q", kind, name).WithHint("%s", errs.DidYouMean(name, cat.objectNames(kind)))
	}
	cat.objects = maps.Clone(cat.objects)
	if may != nil {
		if err := may(&cat, name, v); err != nil {
			return nil, err
		}
	}
	delete(cat.objects, objectKey(kind, name))
	s.cat.Store(&cat)
	return v, nil
}
