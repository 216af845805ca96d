package exec_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/spill"
	"github.com/riverbed/riverbed/core/types"
)

// Many rows are ordered in memory as they are by runs that are merged, which compare keys as bytes.
func TestOrderInMemoryIsThatOfRuns(t *testing.T) {
	rows := 3*exec.ChunkRows + 1234
	r := define(t, "k BIGINT, f BIGINT, t VARCHAR, u VARCHAR, d DOUBLE, n SMALLINT")
	for i := range rows {
		h := uint32(i) * 2654435761
		row := []types.Value{int64(h % 1000), int64(h>>7) - 1<<20, fmt.Sprintf("id%05d", h%5000), strings.Repeat("u", int(h%19)), float64(h%700) / 7, nil}
		if h%5 == 0 {
			row[0] = nil
		}
		switch h % 1000 {
		case 1:
			row[4] = math.Copysign(0, -1)
		case 2:
			row[4] = math.NaN()
		case 3:
			row[4], row[3] = nil, nil
		}
		r.rows = append(r.rows, row)
	}
	c := catalog{"r": r}
	dir := spill.NewDir(t.TempDir())
	for _, text := range []string{
		"SELECT f FROM r ORDER BY f DESC",
		"SELECT t FROM r ORDER BY t",
		"SELECT t FROM r ORDER BY t DESC",
		"SELECT d FROM r ORDER BY d DESC",
		"SELECT d, k FROM r ORDER BY d DESC NULLS FIRST",
		"SELECT k, t, u, d, f FROM r ORDER BY k, t",
		"SELECT k, u FROM r ORDER BY u DESC, k NULLS FIRST",
		"SELECT f, n FROM r ORDER BY n, f % 10, f DESC",
		"SELECT t || u AS x, k FROM r ORDER BY x, k DESC",
		"SELECT k % 3 AS few, t, d FROM r ORDER BY few, d LIMIT 20000 OFFSET 3000",
		"SELECT k, t FROM r ORDER BY k, t LIMIT 9223372036854775807 OFFSET 17000",
		"SELECT f FROM r WHERE f % 1000 = 7 ORDER BY f",
		"SELECT n, n AS m FROM r ORDER BY n",
		"SELECT f FROM r ORDER BY f OFFSET 100000000",
	} {
		n := planned(t, c, text).Root
		r.size = 20000
		spilled := env(1)
		spilled.Memory, spilled.Spill = exec.NewBudget(1), dir
		want, err := run(context.Background(), n, spilled)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		for _, size := range []int{5000, 301} {
			r.size = size
			for _, workers := range []int{1, 3} {
				got, err := run(context.Background(), n, env(workers))
				if err != nil {
					t.Fatalf("%s\n%v", text, err)
				}
				if !slices.Equal(got, want) {
					i := 0
					for i < len(got) && i < len(want) && got[i] == want[i] {
						i++
					}
					t.Errorf("%s\nmorsels of %d, %d workers: %d rows, want %d; different from row %d on", text, size, workers, len(got), len(want), i)
				}
			}
		}
	}
}
