package riverbed

import (
	"testing"

	"github.com/riverbed/riverbed/core/fn"
)

func TestPrepare(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k BIGINT); CREATE VIEW v AS SELECT k FROM t; CREATE MATERIALIZED VIEW m AS SELECT k FROM t")
	for text, want := range map[string]bool{
		"SELECT 1": true,
		"WITH c AS (SELECT k FROM t) SELECT a.k FROM c a JOIN (SELECT k FROM t) b USING (k) WHERE k IN (SELECT k FROM T)": true,
		"SELECT 1; SELECT 2":                      false,
		"INSERT INTO t VALUES (1)":                false,
		"COMMIT":                                  false,
		"SELECT k FROM t, nowhere":                false,
		"SELECT k FROM t, v":                      false, // which may read files
		"SELECT k FROM m":                         false,
		"SELECT k FROM t, 'a.parquet'":            false,
		"SELECT (SELECT max(k) FROM range(3)) k":  false,
		"SELECT k FROM t, read_parquet('a') ":     false,
		"EXPLAIN SELECT 1":                        false,
		"CREATE TABLE n AS SELECT 1 AS a":         false,
		"SELECT k FROM t WHERE k > (SELECT":       false,
		"SELECT * FROM (VALUES (1), (2)) x(a), t": true,
	} {
		if _, prompt := d.Prepare(text); prompt != want {
			t.Errorf("%s: %t", text, prompt)
		}
	}
	d.cat.Store(d.cat.Load().withFunction(&fn.Scalar{Name: "host"}))
	if _, prompt := d.Prepare("SELECT 1"); prompt {
		t.Error("a function of the host may wait")
	}
}
