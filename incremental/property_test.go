package incremental_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
)

var (
	cases = flag.Int("cases", 12, "random cases per query")
	seed  = flag.Uint64("seed", 0, "run only the case with this seed")
)

// oracle answers each case; a test of the harness replaces it by a wrong one.
var oracle optest.Oracle = optest.Batch

const propertyTables = "CREATE TABLE a (k TEXT, v BIGINT, x DOUBLE); CREATE TABLE b (k TEXT, w BIGINT)"

// propertyQueries are one per operator and per way in which operators meet.
var propertyQueries = map[string]string{
	"filter":             "SELECT k, v + 1 FROM a WHERE v > 1 OR k IS NULL",
	"distinct":           "SELECT DISTINCT k, x FROM a",
	"union all":          "SELECT k, v FROM a UNION ALL SELECT k, w FROM b",
	"union":              "SELECT k FROM a UNION SELECT k FROM b",
	"intersect":          "SELECT k FROM a INTERSECT SELECT k FROM b",
	"except":             "SELECT k FROM a EXCEPT SELECT k FROM b",
	"count":              "SELECT k, count(*), count(v) FROM a GROUP BY k",
	"sum":                "SELECT k, sum(v), sum(x), avg(x) FROM a GROUP BY k",
	"global":             "SELECT count(*), sum(v), min(v), max(x) FROM a",
	"min and max":        "SELECT k, min(v), max(v), min(x), max(x) FROM a GROUP BY k",
	"count distinct":     "SELECT k, count(DISTINCT v), count(DISTINCT v) FILTER (WHERE x > 0) FROM a GROUP BY k",
	"having":             "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > 1",
	"two aggregates":     "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM a GROUP BY k) AS g GROUP BY n",
	"inner join":         "SELECT a.k, v, w FROM a JOIN b ON a.k = b.k",
	"inner join, beyond": "SELECT a.k, v, w FROM a JOIN b ON a.k = b.k AND v < w",
	"non-equi join":      "SELECT v, w FROM a JOIN b ON v < w",
	"cross join":         "SELECT v, w FROM a, b",
	"left join":          "SELECT a.k, v, w FROM a LEFT JOIN b ON a.k = b.k",
	"left join, beyond":  "SELECT a.k, v, w FROM a LEFT JOIN b ON a.k = b.k AND v < w",
	"right join":         "SELECT a.k, v, w FROM a RIGHT JOIN b ON a.k = b.k",
	"full join":          "SELECT a.k, v, b.k, w FROM a FULL JOIN b ON a.k = b.k",
	"full join, beyond":  "SELECT a.k, v, w FROM a FULL JOIN b ON a.k = b.k AND v < w",
	"intersect all":      "SELECT k FROM a INTERSECT ALL SELECT k FROM b",
	"except all":         "SELECT k FROM a EXCEPT ALL SELECT k FROM b",
	"string_agg":         "SELECT k, string_agg(k || v::TEXT, ',' ORDER BY v DESC) FROM a GROUP BY k",
	"array_agg":          "SELECT k, array_agg(v ORDER BY v) FROM a GROUP BY k",
	"arg_max":            "SELECT k, arg_max(v, x), median(v), bool_and(v > 1) FROM a GROUP BY k",
	"variance":           "SELECT k, var_pop(x), stddev_samp(v) FROM a GROUP BY k",
	"first":              "SELECT k, first(v ORDER BY x, v), last(x ORDER BY v, x) FROM a GROUP BY k",
	"self join":          "SELECT p.v, q.v FROM a p JOIN a q ON p.k = q.k",
	"join of aggregates": "SELECT g.k, n, w FROM (SELECT k, count(*) AS n FROM a GROUP BY k) AS g LEFT JOIN b ON g.k = b.k",
	"semi join":          "SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k)",
	"anti join":          "SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND v < w)",
	"in":                 "SELECT k, v FROM a WHERE v IN (SELECT w FROM b)",
	"not in":             "SELECT k, v FROM a WHERE v NOT IN (SELECT w FROM b)",
	"correlated not in":  "SELECT k, v FROM a WHERE v NOT IN (SELECT w FROM b WHERE a.k = b.k)",
	"in as a value":      "SELECT k, v IN (SELECT w FROM b) FROM a",
	"scalar subquery":    "SELECT k, v, (SELECT max(w) FROM b WHERE b.k = a.k) FROM a",
	"top-N":              "SELECT k, v FROM a ORDER BY v DESC, x LIMIT 3",
	"top-N, offset":      "SELECT k, v, x FROM a ORDER BY k NULLS FIRST, v LIMIT 2 OFFSET 1",
	"top-N per group":    "SELECT k, v, x, rn FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM a) WHERE rn <= 2",
	"deduplicate":        "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v, x) AS rn FROM a) WHERE rn = 1",
	"rank":               "SELECT k, v, r FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM a) WHERE r <= 2",
	"top-N of a join":    "SELECT a.k, v, w FROM a JOIN b ON a.k = b.k ORDER BY v, w DESC LIMIT 2",
}

// TestAccumulatedOutputIsTheBatchAnswer is the promise on random input: tiny domains, so that rows collide, weights from −1 to
// 2 with every sum at least zero, NULL, NaN and −0.0; any cutting, parallelism and restarts.
func TestAccumulatedOutputIsTheBatchAnswer(t *testing.T) {
	names := make([]string, 0, len(propertyQueries))
	for name := range propertyQueries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			first, last := uint64(1), uint64(*cases)
			if *seed > 0 {
				first, last = *seed, *seed
			}
			for s := first; s <= last; s++ {
				if msg := tryCase(t, propertyQueries[name], s); msg != "" {
					t.Fatalf("%s\n%s\nagain with: go test ./incremental -run '%s' -seed %d", propertyQueries[name], msg, t.Name(), s)
				}
			}
		})
	}
}

// tryCase runs one random case and says how it fails; empty when it does not.
func tryCase(t *testing.T, query string, seed uint64) string {
	r := clock.NewRand(seed)
	op, err := optest.Build(t, propertyTables, query, restartBy(seed), optest.Parallel(1+r.IntN(4)))
	if err != nil {
		return err.Error()
	}
	input := map[string][]string{}
	present := map[string]int64{}
	var log []string
	for step := range 2 + r.IntN(5) {
		if r.IntN(3) == 0 {
			op.RestartWith(1 + r.IntN(4))
			log = append(log, "restart")
		}
		var rows []string
		for range r.IntN(6) {
			source, row := randomRow(r)
			key := source + " " + row
			w := int64(r.IntN(4)) - 1
			if r.IntN(50) == 0 {
				w = 60
			}
			if w < 0 && present[key] == 0 {
				w = 1
			}
			if w == 0 && present[key] > 0 { // take all copies
				w = -present[key]
			}
			if w == 0 || !reads(op, source) {
				continue
			}
			present[key] += w
			rows = append(rows, fmt.Sprintf("%s %+d %s", source, w, row))
			input[source] = append(input[source], fmt.Sprintf("%+d %s", w, row))
		}
		log = append(log, fmt.Sprintf("step %d: %q", step+1, rows))
		if len(op.Graph().Sources()) == 1 {
			for i := range rows {
				_, rows[i], _ = strings.Cut(rows[i], " ")
			}
		}
		if err := op.Push(rows...).TryStep(); err != nil {
			return strings.Join(log, "\n") + "\n" + err.Error()
		}
		want, err := oracle(op, input)
		if err != nil {
			return strings.Join(log, "\n") + "\noracle: " + err.Error()
		}
		if got := op.Rows(); !slices.Equal(got, want) {
			return fmt.Sprintf("%s\n  got  %q\n  want %q", strings.Join(log, "\n"), got, want)
		}
	}
	return ""
}

func reads(op *optest.Run, source string) bool {
	for _, s := range op.Graph().Sources() {
		if s.Source.Name == source {
			return true
		}
	}
	return false
}

func randomRow(r clock.Rand) (source, row string) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	k := pick("p", "q", "''", "NULL")
	v := pick("1", "2", "3", "NULL")
	if r.IntN(2) == 0 {
		return "b", k + " " + v
	}
	return "a", k + " " + v + " " + pick("0.0", "-0.0", "nan", "1.5", "NULL")
}

// restartBy restarts every second case from changes and the others from whole snapshots.
func restartBy(seed uint64) optest.Option {
	if seed%2 == 0 {
		return optest.Incremental()
	}
	return optest.With(func(*incremental.Options) {})
}
