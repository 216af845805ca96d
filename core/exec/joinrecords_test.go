package exec_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/spill"
	"github.com/riverbed/riverbed/core/types"
)

// An inner join whose build rows are records gives what one gives whose build rows are columns.
func TestJoinOfRecords(t *testing.T) {
	l, r := define(t, "a BIGINT, s VARCHAR"), define(t, "k BIGINT, s VARCHAR, long VARCHAR, v BIGINT, d DOUBLE, n SMALLINT")
	for i := range 3000 {
		l.rows = append(l.rows, []types.Value{int64(i % 700), fmt.Sprint("t", i%90)})
		row := []types.Value{int64(i % 1100), fmt.Sprint("t", i%101), strings.Repeat("long", i%50), int64(i), float64(i) / 3, nil}
		if i%7 == 0 {
			row[i%6] = nil
		}
		if i < 2000 {
			r.rows = append(r.rows, row)
		}
	}
	l.size, r.size = 400, 300
	c := catalog{"l": l, "r": r}
	for _, text := range []string{
		"SELECT l.a, r.s, r.long, r.v, r.d, r.n FROM l JOIN r ON l.a = r.k",
		"SELECT l.s, r.v, r.d, r.n, r.k FROM l JOIN r ON l.s = r.s AND l.a = r.v % 700",
		"SELECT l.s, r.s, r.v, r.d FROM l JOIN r ON l.a + 1 = r.k * 2",
		"SELECT l.s, r.k, r.s, r.v FROM l JOIN r ON l.a = r.k AND l.s < r.s",
		"SELECT l.s, r.k, r.s, r.v, r.d FROM l LEFT JOIN r ON l.a = r.k",
		"SELECT l.s, r.k, r.s, r.v, r.d FROM l RIGHT JOIN r ON l.a = r.k",
	} {
		n := planned(t, c, text).Root
		want, err := run(context.Background(), n, env(1))
		if err != nil || len(want) == 0 {
			t.Fatalf("%s\n%d rows, %v", text, len(want), err)
		}
		slices.Sort(want)
		for _, workers := range []int{1, 3} {
			for _, limit := range []int64{0, 1} {
				e := env(workers)
				e.Memory, e.Spill = exec.NewBudget(limit), spill.NewDir(t.TempDir())
				undo := exec.RecordsFrom(1)
				got, err := run(context.Background(), n, e)
				undo()
				slices.Sort(got)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s\n%d workers, limit %d: %d rows, %v, want %d", text, workers, limit, len(got), err, len(want))
				}
			}
		}
	}
}
