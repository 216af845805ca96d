package exec_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/spill"
	"github.com/riverbed/riverbed/core/types"
)

// spilling are queries whose breakers spill. Those with an order are compared in it.
var spilling = []string{
	"SELECT k, count(*), sum(v), min(t), max(t), avg(v * 0.1::DOUBLE), stddev_samp(v) FROM r GROUP BY k",
	"SELECT v, t, count(*) FROM r GROUP BY v, t",
	"SELECT t, count(DISTINCT v), sum(DISTINCT v), count(*), string_agg(DISTINCT t, ',' ORDER BY t DESC) FROM r GROUP BY t",
	"SELECT k % 7, count(DISTINCT k), median(v), array_agg(v ORDER BY k, v) FROM r GROUP BY k % 7",
	"SELECT k, t, count(*), sum(v), grouping(k, t) FROM r GROUP BY ROLLUP (k, t)",
	"SELECT k, t, count(DISTINCT v) FROM r GROUP BY GROUPING SETS ((k), (t), ())",
	"SELECT DISTINCT t, v FROM r",
	"SELECT count(*), sum(v), count(DISTINCT k), sum(DISTINCT v), string_agg(DISTINCT t, ',' ORDER BY t) FROM r",
	"SELECT k, v, t FROM r ORDER BY v DESC NULLS FIRST, t, k",
	"SELECT k, v, t FROM r ORDER BY t DESC, v LIMIT 2000000 OFFSET 37",
	"SELECT k, v FROM r ORDER BY v, k LIMIT 19 OFFSET 5",
	"SELECT t, v FROM r ORDER BY t LIMIT 3000001 OFFSET 10",
	"SELECT r.k, r.v, o.v FROM r JOIN r AS o ON r.k = o.k AND r.t = o.t",
	"SELECT r.k, o.k FROM r JOIN r AS o ON r.v = o.v AND r.k < o.k",
	"SELECT r.k, o.t FROM r LEFT JOIN o ON r.v = o.x",
	"SELECT r.k, o.t FROM r LEFT JOIN o ON r.v = o.x AND r.k > o.x",
	"SELECT r.k, o.x FROM o RIGHT JOIN r ON r.v = o.x",
	"SELECT r.k, o.x FROM r FULL JOIN o ON r.v = o.x AND o.x % 2 = 0",
	"SELECT k FROM r WHERE v IN (SELECT x FROM o)",
	"SELECT k FROM r WHERE v NOT IN (SELECT x FROM o)",
	"SELECT k FROM r WHERE v NOT IN (SELECT x FROM o WHERE x IS NOT NULL)",
	"SELECT k FROM r WHERE EXISTS (SELECT 1 FROM o WHERE o.x = r.v AND o.x < r.k)",
	"SELECT x FROM o WHERE EXISTS (SELECT 1 FROM r WHERE r.v = o.x)",
	"SELECT x FROM o WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.v = o.x)",
	"SELECT k, (SELECT max(o.x) FROM o WHERE o.x = r.v) FROM r",
	"SELECT v FROM r INTERSECT SELECT x FROM o",
	"SELECT v, t FROM r EXCEPT SELECT x, t FROM o",
	"SELECT v FROM r INTERSECT ALL SELECT x FROM o",
	"SELECT v FROM r EXCEPT ALL SELECT x FROM o",
	"SELECT v FROM r UNION SELECT x FROM o",
	"SELECT k, v FROM r QUALIFY row_number() OVER (PARTITION BY t ORDER BY v, k) <= 2",
	"SELECT k, rank() OVER (PARTITION BY k % 50 ORDER BY v) AS n FROM r QUALIFY n <= 3",
	"WITH q AS (SELECT v, t, count(*) AS n FROM r GROUP BY v, t) SELECT a.v, b.n FROM q a JOIN q b ON a.v = b.v WHERE a.n = (SELECT max(n) FROM q)",
	"WITH q AS (SELECT DISTINCT v FROM r) SELECT v FROM q UNION ALL SELECT v + 1 FROM q UNION ALL SELECT x FROM o WHERE x NOT IN (SELECT v FROM q WHERE v IS NOT NULL)",
	"SELECT o.x, q.n FROM o JOIN (SELECT v, count(*) AS n FROM r GROUP BY v) AS q ON q.v = o.x ORDER BY q.n DESC, o.x",
}

func spillTables(t testing.TB, n int) catalog {
	c := catalog{"r": define(t, "k BIGINT, v BIGINT, t VARCHAR"), "o": define(t, "x BIGINT, t VARCHAR")}
	value := func(i, null int, v types.Value) types.Value {
		if i%null == 0 {
			return nil
		}
		return v
	}
	for i := range n {
		h := (i * 7919) % 10007
		c["r"].rows = append(c["r"].rows, []types.Value{value(i, 97, int64(h%(n/3+1))), value(i, 31, int64(h%(n/5+1))),
			value(i, 53, fmt.Sprintf("%s%d", strings.Repeat("x", i%23), h%(n/6+1)))})
		if i%3 == 0 {
			c["o"].rows = append(c["o"].rows, []types.Value{value(i, 41, int64(h%(n/4+1))), value(i, 59, fmt.Sprint("t", h%9))})
		}
	}
	c["r"].size, c["o"].size = max(n/20, 1), max(n/15, 1)
	return c
}

// Whatever the limit, and so however much is spilled, the rows are the same, and ORDER BY gives the same order.
func TestSpillingChangesNothing(t *testing.T) {
	for _, rows := range []int{40, 900} {
		c := spillTables(t, rows)
		for _, text := range spilling {
			q := planned(t, c, text)
			want, err := run(t.Context(), q.Root, env(1))
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			if len(want) == 0 && !strings.Contains(text, "NOT IN (SELECT x FROM o)") {
				t.Fatalf("%s gives no rows", text)
			}
			ordered := strings.Contains(text, " ORDER BY ") && !strings.Contains(text, "OVER") && !strings.Contains(text, "GROUP BY t") && !strings.Contains(text, "% 7")
			if !ordered {
				slices.Sort(want)
			}
			for _, limit := range []int64{1, 40 << 10} {
				for _, workers := range []int{1, 3} {
					if workers == 1 && (rows > 40 || limit > 1) {
						continue // each is slow with a file for each part
					}
					e := env(workers)
					e.Memory, e.Spill = exec.NewBudget(limit), spill.NewDir(t.TempDir())
					got, err := run(t.Context(), q.Root, e)
					if !ordered {
						slices.Sort(got)
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%s\nwith %d bytes and %d workers gave %d rows, %v\nwant %d", text, limit, workers, len(got), err, len(want))
						if err == nil && len(want) < 20 {
							t.Errorf("%q\n%q", got, want)
						}
					}
					if limit == 1 && e.Spill.Bytes() == 0 && !strings.Contains(text, "LIMIT 19") && !strings.HasPrefix(text, "SELECT count(*)") {
						t.Errorf("%s did not spill", text)
					}
					if e.Spill.Open() != 0 || e.Memory.Used() != 0 {
						t.Errorf("%s left %d files and %d bytes", text, e.Spill.Open(), e.Memory.Used())
					}
				}
			}
		}
	}
}

// An error, a cancellation and a result dropped half-read leave no file and no memory behind.
func TestSpillEndsEarly(t *testing.T) {
	for _, text := range spilling {
		for _, how := range []string{"release", "cancel", "error"} {
			c := spillTables(t, 300)
			ctx, cancel := context.WithCancel(t.Context())
			if how == "error" {
				c["r"].onMorsel = func(_ context.Context, i int) error {
					if i == 15 {
						return errs.New(errs.Source, "test", "the disk is gone")
					}
					return nil
				}
			}
			dir := t.TempDir()
			e := env(3)
			e.Memory, e.Spill = exec.NewBudget(1), spill.NewDir(dir)
			r, err := exec.Run(ctx, planned(t, c, text).Root, e, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Next()
			if how == "cancel" {
				cancel()
				for r.Next() {
				}
			}
			r.Release()
			cancel()
			if names, _ := os.ReadDir(dir); len(names) > 0 || e.Spill.Open() != 0 || e.Memory.Used() != 0 {
				t.Errorf("%s, %s: left are %v, %d files, %d bytes", how, text, names, e.Spill.Open(), e.Memory.Used())
			}
		}
	}
}

// More rows of one key than memory holds: inner joins take them in blocks, what cannot be parted says so.
func TestOneGiantKey(t *testing.T) {
	c := catalog{"g": define(t, "k BIGINT, v BIGINT"), "few": define(t, "k BIGINT", "1", "2")}
	for i := range 100000 {
		c["g"].rows = append(c["g"].rows, []types.Value{int64(1), int64(i)})
	}
	c["g"].size = 5000
	for text, want := range map[string]string{
		"SELECT count(*), sum(g.v) FROM few JOIN g ON few.k = g.k":                                       "100000,4999950000",
		"SELECT k FROM g AS a WHERE NOT EXISTS (SELECT 1 FROM g WHERE g.k = a.k AND g.v > a.v + 200000)": "error: join needs more memory than memory_limit allows",
		"SELECT k, len(string_agg(v::VARCHAR, ',' ORDER BY v)) FROM g GROUP BY k":                        "error: GROUP BY needs more memory than memory_limit allows",
		"SELECT count(DISTINCT v) FROM g":                                                                "100000",
		"SELECT count(*), max(v) FROM (SELECT k, v FROM g ORDER BY k LIMIT 5000000)":                     "100000,99999",
	} {
		e := env(2)
		e.Memory, e.Spill = exec.NewBudget(1<<20), spill.NewDir(t.TempDir())
		checkPlan(t, text, planned(t, c, text).Root, e, true, want)
	}
}

func TestFullDisk(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := spillTables(t, 300)
	for _, text := range spilling {
		e := env(3)
		e.Memory, e.Spill = exec.NewBudget(1), spill.NewDir(file)
		_, err := run(t.Context(), planned(t, c, text).Root, e)
		if strings.Contains(text, "LIMIT 19") || strings.HasPrefix(text, "SELECT count(*)") {
			continue
		}
		if err == nil || kindOf(err) != errs.Source || !strings.Contains(errs.As(err).Hint, "state_dir") {
			t.Errorf("%s without a folder gave %v", text, err)
		}
		if e.Memory.Used() != 0 {
			t.Errorf("%s left %d bytes", text, e.Memory.Used())
		}
	}
}

// A table that turns out larger than was estimated is no reason to fail, at no limit.
func TestTablesMayOutgrowTheEstimate(t *testing.T) {
	c := catalog{"a": define(t, "t VARCHAR")}
	for i := range 12000 {
		c["a"].rows = append(c["a"].rows, []types.Value{fmt.Sprint("some longer text ", i)})
	}
	c["a"].size = 1000
	q := planned(t, c, "SELECT a.t FROM a JOIN a AS b ON a.t = b.t")
	for limit := int64(1200 << 10); limit < 1800<<10; limit += 50 << 10 {
		e := env(2)
		e.Memory, e.Spill = exec.NewBudget(limit), spill.NewDir(t.TempDir())
		if rows, err := run(t.Context(), q.Root, e); err != nil || len(rows) != 12000 {
			t.Errorf("within %d bytes a join gives %d rows, %v", limit, len(rows), err)
		}
	}
}

// Keys that are long texts stand in the batches and in the table.
func TestJoinsOfLongTextsKeepToTheLimit(t *testing.T) {
	const limit = 4 << 20
	for _, text := range []string{
		"SELECT a.n FROM a JOIN b ON a.t = b.t", "SELECT n FROM a WHERE t NOT IN (SELECT t FROM b)", "SELECT n FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.t = b.t)",
	} {
		for rows := 500; rows <= 4000; rows += 500 {
			c := catalog{"a": define(t, "t VARCHAR, n BIGINT"), "b": define(t, "t VARCHAR, n BIGINT")}
			for i := range 4000 {
				row := []types.Value{fmt.Sprint(strings.Repeat("x", 1000), i), int64(i)}
				if c["a"].rows = append(c["a"].rows, row); i < rows {
					c["b"].rows = append(c["b"].rows, row)
				}
			}
			c["a"].size, c["b"].size = 250, 250
			e := env(2)
			e.Memory, e.Spill = exec.NewBudget(limit), spill.NewDir(t.TempDir())
			most := atomic.Int64{}
			for _, r := range c {
				r.onMorsel = func(context.Context, int) error {
					for now, was := e.Memory.Used(), most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
					}
					return nil
				}
			}
			if _, err := run(t.Context(), planned(t, c, text).Root, e); err != nil {
				t.Errorf("%s of %d rows: %v", text, rows, err)
			}
			if most.Load() > limit {
				t.Errorf("%s of %d rows holds %d bytes of %d", text, rows, most.Load(), limit)
			}
		}
	}
}
