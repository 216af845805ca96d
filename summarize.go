package riverbed

import (
	"context"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// summarize is one query: a row for each column of the given one, which runs once.
func (s *Session) summarize(ctx context.Context, cat *scopeCatalog, st *sql.Describe, text string) (*Query, error) {
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	quote := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	var rows, names []string
	for _, f := range types.DistinctNames(q.columns) {
		names = append(names, quote(f.Name))
		c, low, high, mean, spread, quantile := quote(f.Name), "NULL", "NULL", "NULL", "NULL", "NULL"
		distinct := "NULL"
		if f.Type.Kind != types.Null {
			distinct = "approx_count_distinct(" + c + ")"
		}
		if orderable(f.Type) {
			low, high = "min("+c+")", "max("+c+")"
		}
		if f.Type.IsNumeric() {
			mean, spread = "avg("+c+")", "stddev("+c+")"
		}
		if f.Type.IsNumeric() || f.Type.IsTemporal() {
			quantile = "quantile_disc(" + c + ", [0.25, 0.5, 0.75])"
		}
		row := "SELECT '" + strings.ReplaceAll(f.Name, "'", "''") + "' AS column_name, '" + strings.ReplaceAll(f.Type.String(), "'", "''") + "' AS column_type, " +
			"CAST(" + low + " AS VARCHAR) AS min, CAST(" + high + " AS VARCHAR) AS max, CAST(" + distinct + " AS BIGINT) AS approx_unique, " +
			"CAST(" + mean + " AS VARCHAR) AS avg, CAST(" + spread + " AS VARCHAR) AS std"
		for i, n := range []string{"q25", "q50", "q75"} {
			if quantile == "NULL" {
				row += ", CAST(NULL AS VARCHAR) AS " + n
			} else {
				row += ", CAST((" + quantile + ")[" + string(rune('1'+i)) + "] AS VARCHAR) AS " + n
			}
		}
		row += ", count(*) AS count, CAST((count(*) - count(" + c + ")) * 100.0 / nullif(count(*), 0) AS DECIMAL(9, 2)) AS null_percentage, " + strconv.Itoa(len(rows)) + " AS __nr FROM __summarized"
		rows = append(rows, row)
	}
	query := "WITH __summarized(" + strings.Join(names, ", ") + ") AS MATERIALIZED (" + sql.Print(st.Query) + ") " +
		"SELECT * EXCLUDE (__nr) FROM (" + strings.Join(rows, " UNION ALL ") + ") ORDER BY __nr"
	parsed, err := sql.ParseOne(query)
	if err != nil {
		return nil, errs.Bug("summarize", "%v", err)
	}
	out, err := s.planQuery(ctx, cat, parsed.(*sql.Query), query)
	if err != nil {
		return nil, err
	}
	batches, err := out.all(ctx)
	if err != nil {
		return nil, err
	}
	return &Query{columns: out.columns, fixed: batches}, nil
}

// orderable are the types of which there is a least value to show.
func orderable(t types.Type) bool {
	switch t.Kind {
	case types.Null, types.Map, types.JSON:
		return false
	}
	return true
}
