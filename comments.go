package riverbed

import (
	"maps"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

const commentObject objectKind = "comment"

// comment is what COMMENT ON said of an object.
func (c *catalog) comment(kind, name string) string {
	said, _ := c.object(commentObject, kind+" "+name).(string)
	return said
}

func (s *Session) commentOn(st *sql.Comment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cat := *s.cat.Load()
	owner, column := st.Name, ""
	if st.Kind == "COLUMN" {
		if len(st.Name) < 2 {
			return errs.E(errs.Schema, "comment", st.Pos, "COMMENT ON COLUMN wants table.column")
		}
		owner, column = st.Name[:len(st.Name)-1], st.Name.Last().Name
	}
	key, err := cat.read(owner)
	if err != nil {
		return err
	}
	kind, name := st.Kind, key
	switch st.Kind {
	case "TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM", "SINK", "COLUMN":
		e := cat.get(key)
		if e == nil {
			return errs.E(errs.Schema, "comment", st.Name.Position(), "no table %q", key).WithHint("%s", errs.DidYouMean(key, cat.names()))
		}
		if kind == "MATERIALIZED VIEW" {
			kind = "VIEW"
		}
		if kind == "STREAM" {
			kind = "TABLE"
		}
		if column != "" {
			known := false
			for _, f := range e.columns() {
				known = known || strings.EqualFold(f.Name, column)
			}
			if !known && e.view == nil {
				return errs.E(errs.Schema, "comment", st.Name.Last().Pos, "%q has no column %q", key, column)
			}
			name += "." + column
		}
	case "SCHEMA":
		name = st.Name.Last().Name
		if cat.object(schemaObject, name) == nil && !strings.EqualFold(name, mainSchema) {
			return errs.E(errs.Schema, "comment", st.Name.Position(), "no schema %q", name)
		}
	case "MACRO", "FUNCTION", "MACRO TABLE", "SEQUENCE", "INDEX", "TYPE":
	default:
		return errs.E(errs.Schema, "comment", st.Pos, "a comment cannot stand on a %s", st.Kind)
	}
	cat.objects = maps.Clone(cat.objects)
	at := objectKey(commentObject, kind+" "+name)
	delete(cat.objects, at)
	if l, ok := st.Text.(*sql.Literal); ok {
		cat.objects[at] = l.Text
	}
	s.cat.Store(&cat)
	return nil
}
