package riverbed

import (
	"fmt"
	"testing"

	"github.com/riverbed/riverbed/core/flow"
)

func TestTableStats(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER, b DATE, c TIMESTAMP, s VARCHAR)")
	d.run("INSERT INTO t VALUES (5, DATE '2024-01-02', TIMESTAMP '2024-01-02', 'x'), (NULL, NULL, NULL, NULL)")
	table := d.cat.Load().get("t").table
	d.run("INSERT INTO t VALUES (-3, DATE '2024-01-01', NULL, 'y')")
	s := table.Stats()
	if s.Rows != 3 || !s.Exact {
		t.Errorf("%+v", s)
	}
	for c, want := range []string{"-3 5 1", "19723 19724 1", "1704153600000000 1704153600000000 2", "<nil> <nil> 1", "0 2 0"} {
		col := s.Columns[c]
		if got := fmt.Sprint(col.Min, " ", col.Max, " ", col.Nulls); got != want {
			t.Errorf("column %d: %s, want %s", c, got, want)
		}
	}
	d.run("DELETE FROM t WHERE a = 5")
	if got := table.Stats().Columns[0].Max; got != int64(-3) {
		t.Errorf("after DELETE: %v", got)
	}
	for i := range 200 { // small INSERTs are put together
		d.run(fmt.Sprintf("INSERT INTO t (a) VALUES (%d)", i))
	}
	if n := len(table.snapshot()); n > 10 {
		t.Errorf("%d chunks", n)
	}
	d.is("SELECT count(*), sum(a), count(DISTINCT rowid) FROM t", "202|19897|202")
}

// Of a large table a sample is looked at: counts stay exact, the ends of a range may be a little off.
func TestLargeTableStats(t *testing.T) {
	d := openDB(t)
	d.run(`CREATE TABLE t AS SELECT i AS k, (i % 7)::VARCHAR AS few, i::VARCHAR AS many, (i / 100.0)::DECIMAL(12,2) AS d,
		CASE WHEN i % 2 = 0 THEN i::DOUBLE END AS f, NULL::VARCHAR AS none FROM range(300000) r(i)`)
	s := d.cat.Load().get("t").table.Stats()
	if lo, ok := s.Columns[0].Min.(int64); !ok || lo > 500 {
		t.Errorf("least %v", s.Columns[0].Min)
	}
	if hi, ok := s.Columns[0].Max.(int64); !ok || hi > 299999 || hi < 299499 {
		t.Errorf("greatest %v", s.Columns[0].Max)
	}
	if s.Columns[3].Min == nil || s.Columns[4].Max == nil {
		t.Errorf("no range of decimals or doubles: %+v", s.Columns)
	}
	for c, want := range []flow.ColumnStats{{}, {Distinct: 7}, {}, {}, {Nulls: 150000}, {Nulls: 300000}} {
		if got := s.Columns[c]; got.Distinct != want.Distinct || got.Nulls != want.Nulls || got.Tight {
			t.Errorf("column %d: %+v, want %+v", c, got, want)
		}
	}
	if d.run("CREATE TABLE e (s VARCHAR)"); d.cat.Load().get("e").table.Stats().Rows != 0 {
		t.Error("an empty table has rows")
	}
}
