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

func (s *Session) show(ctx context.Context, st *sql.Show) (*Query, error) {
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
		return s.showViews(ctx)
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

// showViews tells of each materialized view how many steps it has taken and what its state is. Whoever steps a view has the turn.
func (s *Session) showViews(ctx context.Context) (*Query, error) {
	_, release, err := s.takeTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	names := []string{"steps", "state_rows", "state_bytes", "state_touched"}
	fields := []types.Field{{Name: "name", Type: types.String}}
	for _, n := range names {
		fields = append(fields, types.Field{Name: n, Type: types.Int64})
	}
	vals := make([][]types.Value, len(fields))
	entries := s.cat.Load().list("MATERIALIZED VIEW")
	for _, e := range entries {
		st := e.mat.stats()
		for i, v := range []types.Value{e.name, st.Steps, st.StateRows, st.StateBytes, st.StateTouched} {
			vals[i] = append(vals[i], v)
		}
	}
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		cols[i] = types.ArrayOf(vals[i], f.Type)
	}
	return fixedQuery(fields, cols, len(entries)), nil
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
		return s.show(ctx, &sql.Show{At: st.At, What: "ALL TABLES"})
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
