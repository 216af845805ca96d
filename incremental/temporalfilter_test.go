package incremental_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/incremental/optest"
)

func TestTemporalFilterFollowsTheClock(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k TEXT, ts TIMESTAMP)", "SELECT k FROM t WHERE ts > now() - INTERVAL '1 minute' AND ts <= now()")
	op.Delta("+1 old 00:00", "+2 soon 00:30", "+1 never NULL").Emits("+1 old")
	op.After(30 * time.Second).Step().Emits("+2 soon")
	op.Restart()
	op.After(30*time.Second).Delta("-1 soon 00:30").Emits("-1 old", "-1 soon")
	op.After(30 * time.Second).Step().Emits("-1 soon")
	op.After(72 * time.Hour).Step().Emits()
	if n := op.StateRows(); n != 0 {
		t.Errorf("%d rows of state that the clock has passed for good", n)
	}
	op.Delta("-1 soon 00:30", "+1 late 00:10").Emits() // both are passed, and nobody keeps them
}

func TestTemporalFilterPassesThroughWhatItForgot(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k TEXT, ts TIMESTAMP)", "SELECT k FROM t WHERE ts < now()")
	op.Delta("+1 a 00:00").Emits()
	op.After(time.Second).Step().Emits("+1 a")
	op.After(72 * time.Hour).Step().Emits()
	if n := op.StateRows(); n != 0 {
		t.Errorf("%d rows of state that the clock has passed for good", n)
	}
	op.Delta("-1 a 00:00", "+1 b 00:05").Emits("-1 a", "+1 b")
}

func TestClockIsRefusedWhereItIsNoFilter(t *testing.T) {
	for _, q := range []string{"SELECT k, now() FROM t", "SELECT k FROM t WHERE now() - ts < INTERVAL '1 hour'", "SELECT k FROM t WHERE ts = now()", "SELECT k FROM t WHERE ts > now() OR k = 'a'", "SELECT count(*) FILTER (WHERE ts > now()) FROM t"} {
		if _, err := optest.Build(t, "CREATE TABLE t (k TEXT, ts TIMESTAMP)", q); err == nil || !strings.Contains(err.Error(), "not supported in incremental mode") {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// TestTemporalFilterIsTheBatchAnswer: at each step what batch answers at the time of that step.
func TestTemporalFilterIsTheBatchAnswer(t *testing.T) {
	queries := []string{
		"SELECT k, ts FROM t WHERE ts > now() - INTERVAL '1 minute'", "SELECT k, ts FROM t WHERE ts + INTERVAL '2 minutes' >= now() AND k <> 'b'", "SELECT k FROM t WHERE now() > ts",
		"SELECT k, count(*) FROM t WHERE ts BETWEEN now() - INTERVAL '1 minute' AND now() + INTERVAL '1 minute' GROUP BY k", "SELECT k, ts FROM t WHERE ts::DATE >= current_date",
		"SELECT a.k FROM t a JOIN t b ON a.k = b.k AND a.ts < b.ts WHERE b.ts >= date_trunc('hour', now())", "SELECT k FROM t WHERE ts > now() - INTERVAL '1 month' ORDER BY ts, k LIMIT 2", "SELECT DISTINCT k FROM t WHERE ts <= localtimestamp",
	}
	for i, q := range queries {
		for seed := range uint64(*cases) {
			r := clock.NewRand(seed<<8 | uint64(i))
			op, err := optest.Build(t, "CREATE TABLE t (k TEXT, ts TIMESTAMP)", q, restartBy(seed), optest.Parallel(1+r.IntN(4)))
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
			var input []string
			present := map[string]int64{}
			for step := range 12 {
				if r.IntN(3) == 0 {
					op.RestartWith(1 + r.IntN(4))
				}
				by := []time.Duration{0, time.Second, 20 * time.Second, time.Minute, 50 * time.Minute, 24 * time.Hour, 31 * 24 * time.Hour}[r.IntN(7)]
				op.After(by)
				at = at.Add(by)
				var rows []string
				for range r.IntN(5) {
					far := time.Duration(r.IntN(9)-4) * []time.Duration{20 * time.Second, time.Minute, 24 * time.Hour, 10 * 24 * time.Hour}[r.IntN(4)]
					row := fmt.Sprintf("%s '%s'", []string{"a", "b", "c"}[r.IntN(3)], at.Add(far).Format("2006-01-02 15:04:05"))
					w := int64(1 + r.IntN(2))
					if r.IntN(3) == 0 {
						for _, old := range slices.Sorted(maps.Keys(present)) {
							if present[old] > 0 && r.IntN(2) == 0 {
								row, w = old, -1
								break
							}
						}
					}
					present[row] += w
					rows = append(rows, fmt.Sprintf("%+d %s", w, row))
				}
				input = append(input, rows...)
				if err := op.Push(rows...).TryStep(); err != nil {
					t.Fatalf("%s, seed %d, step %d: %v", q, seed, step, err)
				}
				want, err := optest.Batch(op, map[string][]string{"t": input})
				if err != nil {
					t.Fatal(err)
				}
				if got := op.Rows(); !slices.Equal(got, want) {
					t.Fatalf("%s, seed %d, step %d at %s\n  rows %q\n  got  %q\n  want %q", q, seed, step, at, input, got, want)
				}
			}
		}
	}
}
