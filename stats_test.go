package riverbed

import (
	"fmt"
	"testing"
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
