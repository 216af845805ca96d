package riverbed

import (
	"strings"
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

		// What planning computes may take long.
		"SELECT count(*), sum(k) FILTER (k > 1), row_number() OVER (ORDER BY -k) FROM t GROUP BY k":                       true,
		"SELECT CASE WHEN k BETWEEN 1 AND 2 * 3 THEN CAST('4' AS INTEGER) END, DATE '2024-01-01' FROM t":                  true,
		"SELECT levenshtein(repeat('a', 60000), repeat('b', 60000))":                                                      false,
		"SELECT k FROM t WHERE k = length(repeat('a', 60000))":                                                            false,
		"SELECT sum(length(repeat('a', 60000))) FROM t":                                                                   false,
		"SELECT count(*) FROM t GROUP BY length(repeat('a', 60000))":                                                      false,
		"SELECT a.k FROM t a JOIN t b ON a.k = b.k + length(repeat('a', 60000))":                                          false,
		"SELECT k FROM t ORDER BY k + length(repeat('a', 60000))":                                                         false,
		"SELECT k FROM t LIMIT length(repeat('a', 60000))":                                                                false,
		"SELECT sum(k) OVER (ORDER BY length(repeat('a', 60000))) FROM t":                                                 false,
		"VALUES (length(repeat('a', 60000)))":                                                                             false,
		"WITH a AS (SELECT 'x' || 'x' AS s) SELECT s || s FROM a":                                                         false,
		"WITH a AS (SELECT [1, 1] AS s) SELECT [s, s] FROM a":                                                             false,
		"SELECT 'aaaaaaaa' LIKE '%a%a%a%b'":                                                                               false,
		"SELECT count(*) FROM t GROUP BY CUBE (k, k)":                                                                     false,
		"WITH a AS (SELECT 1 FROM t, t u), b AS (SELECT 1 FROM a, a x), c AS (SELECT 1 FROM b, b x) SELECT 1 FROM c, c x": true,
		"SELECT 1 FROM t a, t b, t c, t d, t e, t f, t g, t h, t i":                                                       false,
		"SELECT 1" + strings.Repeat(" + 1", 1<<10):                                                                        false,
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
