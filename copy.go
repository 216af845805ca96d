package riverbed

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// copy is COPY … TO 'file', and COPY table FROM 'file', which inserts what the file holds.
func (s *Session) copy(ctx context.Context, cat *scopeCatalog, st *sql.Copy, text string) (*Query, error) {
	options := map[string]string{"path": st.Path}
	format := ""
	for _, o := range st.Options {
		v, err := s.optionValue(o)
		if err != nil {
			return nil, err
		}
		if key := strings.ToLower(o.Key); key == "format" {
			format = strings.ToLower(v)
		} else {
			options[key] = v
		}
	}
	if st.Query == nil {
		return s.copyFrom(ctx, cat, st, text)
	}
	ext := strings.ToLower(filepath.Ext(st.Path))
	if format == "" {
		for _, k := range all.Sinks {
			for _, e := range k.Extensions {
				if e == ext {
					format = k.Name
				}
			}
		}
		if format == "" {
			return nil, errs.E(errs.Schema, "copy", st.Position(), "cannot tell the format of %q from its ending", st.Path).WithHint("name it: (FORMAT parquet)")
		}
	}
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	n, err := q.writeBatch(ctx, ConnectorSpec{format, options})
	if err != nil {
		return nil, err
	}
	return countResult(n), nil
}

func (s *Session) copyFrom(ctx context.Context, cat *scopeCatalog, st *sql.Copy, text string) (*Query, error) {
	from := &sql.Query{At: st.At, Body: &sql.Select{At: st.At, Items: []sql.SelectItem{{Expr: &sql.Star{At: st.At}}},
		From: []sql.TableRef{&sql.FileTable{At: st.At, Path: st.Path}}}}
	return s.insert(ctx, cat, &sql.Insert{At: st.At, Table: st.Table, Columns: st.Columns, Query: from}, text)
}
