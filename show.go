package riverbed

import (
	"context"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// textRows makes a result of VARCHAR columns.
func textRows(names []string, rows [][]string) *Query {
	fields := make([]types.Field, len(names))
	cols := make([]arrow.Array, len(names))
	for c, n := range names {
		fields[c] = types.Field{Name: n, Type: types.String}
		vals := make([]types.Value, len(rows))
		for r := range rows {
			vals[r] = rows[r][c]
		}
		cols[c] = types.ArrayOf(vals, types.String)
	}
	return fixedQuery(fields, cols, len(rows))
}

func (s *Session) show(st *sql.Show) (*Query, error) {
	var rows [][]string
	add := func(kinds ...string) {
		for _, e := range s.cat.Load().list(kinds...) {
			rows = append(rows, []string{e.name})
		}
	}
	switch strings.ToUpper(st.What) {
	case "TABLES":
		add("TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM")
	case "STREAMS":
		add("STREAM")
	case "VIEWS":
		add("VIEW")
	case "MATERIALIZED VIEWS":
		add("MATERIALIZED VIEW")
	case "SINKS":
		add("SINK")
	case "ALL TABLES":
		for _, e := range s.cat.Load().list("TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM", "SINK") {
			rows = append(rows, []string{e.name, e.kind(), columnList(e.columns())})
		}
		return textRows([]string{"name", "kind", "columns"}, rows), nil
	case "FUNCTIONS":
		return s.showFunctions(), nil
	case "ALL":
		for _, k := range settings {
			rows = append(rows, []string{k.key, k.get(s.cfg.Load()), k.doc})
		}
		return textRows([]string{"name", "value", "description"}, rows), nil
	default:
		set := findSetting(st.What)
		if set == nil {
			return nil, unknownSettingAt(st.What, st.Position())
		}
		return textRows([]string{set.key}, [][]string{{set.get(s.cfg.Load())}}), nil
	}
	return textRows([]string{"name"}, rows), nil
}

func columnList(fields []types.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + " " + f.Type.String()
	}
	return strings.Join(parts, ", ")
}

func (s *Session) showFunctions() *Query {
	var rows [][]string
	for _, f := range fn.All {
		rows = append(rows, []string{f.Name, "scalar", string(f.Category), f.Summary})
	}
	for _, f := range fn.Aggregates {
		rows = append(rows, []string{f.Name, "aggregate", string(f.Category), f.Summary})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	return textRows([]string{"name", "kind", "category", "summary"}, rows)
}

func (s *Session) describe(ctx context.Context, cat *scopeCatalog, st *sql.Describe, text string) (*Query, error) {
	if st.Query == nil {
		return s.show(&sql.Show{At: st.At, What: "ALL TABLES"})
	}
	if st.Summarize {
		return nil, errs.E(errs.Unsupported, "plan", st.Position(), "SUMMARIZE is not supported yet").WithHint("DESCRIBE lists the columns")
	}
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, f := range q.columns {
		rows = append(rows, []string{f.Name, f.Type.String(), "YES"})
	}
	return textRows([]string{"column_name", "column_type", "null"}, rows), nil
}
