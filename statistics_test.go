package riverbed

import (
	"strings"
	"testing"
)

// COUNT, MIN and MAX of whole files come from their statistics where these tell it, and are what the rows say.
func TestAnswersFromStatistics(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	d.run("COPY (SELECT i::INTEGER AS i, (i * 7919 % 5003 - 2000)::BIGINT AS b, CASE WHEN i % 3 > 0 THEN (i % 200 - 100)::SMALLINT END AS s, " +
		"DATE '2020-01-01' + (i % 300)::INTEGER AS d, i / 7 AS f, i::VARCHAR AS t, CASE WHEN i >= 3000 THEN i END AS half, " +
		"(i % 50)::DECIMAL(9,2) AS dec, i % 2 = 0 AS bool, i::UTINYINT AS u FROM range(200) r(i)) TO '" + dir + "/one.parquet' (row_group_size 50)")
	d.run("COPY (SELECT i::INTEGER AS i, -i AS b, NULL::SMALLINT AS s, DATE '2019-01-01' AS d, 0.5::DOUBLE AS f, 'x' AS t, i AS half, " +
		"1::DECIMAL(9,2) AS dec, true AS bool, 1::UTINYINT AS u FROM range(10) r(i)) TO '" + dir + "/two.parquet'")
	d.run("COPY (SELECT i::INTEGER AS i FROM range(10) r(i) WHERE i > 20) TO '" + dir + "/none.parquet'")
	for _, q := range []struct {
		list string
		read bool // the rows are read
	}{
		{"count(*)", false},
		{"min(i), max(i)", false},
		{"min(b), max(b), count(b), count(*)", false},
		{"min(d), max(d)", false},
		{"min(DISTINCT i)", false},
		{"count(DISTINCT i)", true},
		{"min(s)", true}, // one file has no value of it
		{"min(f)", true},
		{"max(t)", true},
		{"min(dec)", true},
		{"max(bool)", true},
		{"min(i + 1)", true},
		{"min(i, 2)", true},
		{"max(i) FILTER (WHERE b > 0)", true},
		{"sum(i)", true},
		{"min(i), sum(i)", true},
	} {
		from := " FROM '" + dir + "/[ot]*.parquet'"
		plan := strings.Join(d.rows("EXPLAIN SELECT "+q.list+from), "\n")
		if read := strings.Contains(plan, "Scan "); read != q.read {
			t.Errorf("%s reads rows: %t, want %t\n%s", q.list, read, q.read, plan)
		}
		plainly := "SELECT " + q.list + " FROM (SELECT * FROM '" + dir + "/one.parquet' UNION ALL SELECT * FROM '" + dir + "/two.parquet')"
		if got, want := d.rows("SELECT "+q.list+from), d.rows(plainly); strings.Join(got, ";") != strings.Join(want, ";") {
			t.Errorf("%s gives %q, by reading %q", q.list, got, want)
		}
	}
	for _, c := range [][2]string{
		{"SELECT count(*), min(i) FROM '" + dir + "/none.parquet'", "0|NULL"},
		{"SELECT min(i) FROM '" + dir + "/one.parquet' WHERE i > 5", "6"},
		{"SELECT min(i) FROM (SELECT i FROM '" + dir + "/one.parquet' LIMIT 0)", "NULL"},
		{"SELECT count(*) FROM (SELECT i % 4 AS k, min(i) FROM '" + dir + "/one.parquet' GROUP BY k)", "4"},
	} {
		if got := strings.Join(d.rows(c[0]), ";"); got != c[1] {
			t.Errorf("%s gives %s, want %s", c[0], got, c[1])
		}
	}
}
