package riverbed

import (
	"testing"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// Conditions on what rises with a column skip chunks as those on the column do.
func TestRisingConditionsSkipChunks(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t AS SELECT range AS k, CAST(range AS DOUBLE) AS x, TIMESTAMP '2000-01-01' + to_hours(range) AS ts, DATE '2000-01-01' + CAST(range // 24 AS INTEGER) AS day FROM range(200000)")
	d.run("INSERT INTO t VALUES (NULL, 'nan', NULL, NULL)")
	chunks := len(d.cat.Load().get("t").table.snapshot())
	for _, c := range []struct {
		where string
		rows  string // how many; empty: not asked
		skips bool   // reads at most those around the value, those of NaN or NULL beside
	}{
		{"k // 32 IN (5, 6)", "64", true},
		{"k // 32 = 5000", "32", true},
		{"k // -32 = -5000", "32", false},
		{"k // 0 = 1", "", false},
		{"k + 10 < 20", "10", true},
		{"k - 10 < 20", "30", true},
		{"10 - k > 5", "5", false},
		{"CAST(k AS INTEGER) >= 199999", "1", true},
		{"k + 9223372036854775807 = 9223372036854775807", "", false},
		{"x + 1.5 < 3", "2", true},
		{"x // 2 > 99990", "20", false}, // NaN, too, which may be anywhere
		{"year(ts) = 2000", "8784", true},
		{"year(day) >= 2022", "7136", true},
		{"CAST(ts AS DATE) = DATE '2000-01-02'", "24", true},
		{"date_trunc('month', ts) = TIMESTAMP '2000-02-01'", "696", true},
		{"month(ts) = 2", "", false},
		{"k // 32 <> 0", "199968", false},
		{"k // 32 = 1 OR k // 16 = 1", "48", false},
		{"k // 32 = 1 AND x // 32 = 5000", "0", true},
	} {
		text := "SELECT count(*) FROM t WHERE " + c.where
		opt, _, err := d.query(text).batchPlan()
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		plan.Walk(opt.Root, func(n plan.Node) bool {
			if s, ok := n.(*plan.Scan); ok {
				scan := newChunkScan(d.cat.Load().get("t").table.snapshot(), s.Source.Fields, flow.ScanRequest{Filters: plan.Predicates(s)})
				read = len(scan.chunks)
			}
			return true
		})
		if skips := read <= 3; skips != c.skips || chunks < 6 {
			t.Errorf("%s reads %d of %d chunks", c.where, read, chunks)
		}
		if c.rows != "" {
			d.is(text, c.rows)
		}
	}
}
