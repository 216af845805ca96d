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
	rows := 2*exec.ChunkRows + 1234
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
		"SELECT d, u, n, t, t || u AS long, f FROM r ORDER BY f % 100",
		"SELECT *, [f] AS l, f % 2 = 0 AS b, d::REAL AS e, f::HUGEINT AS h, k::TINYINT AS y FROM (SELECT f, d, k % 100 AS k FROM r) ORDER BY f",
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
		for _, by := range []struct{ size, workers, records int }{{5000, 3, rows}, {301, 1, rows + 1}, {2000, 2, 1}} {
			r.size = by.size
			undo := exec.RecordsFrom(by.records)
			got, err := run(context.Background(), n, env(by.workers))
			undo()
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			if !slices.Equal(got, want) {
				i := 0
				for i < len(got) && i < len(want) && got[i] == want[i] {
					i++
				}
				t.Errorf("%s\n%+v: %d rows, want %d; different from row %d on", text, by, len(got), len(want), i)
			}
		}
	}
}

// The first rows of many groups are those of a walk through all rows in order.
func TestFirstRowsOfManyGroups(t *testing.T) {
	type row struct {
		k, v, id int64
		null     bool // of k
		t        string
	}
	rows := make([]row, 2*exec.ChunkRows+777)
	r := define(t, "k BIGINT, t VARCHAR, v BIGINT, id BIGINT")
	for i := range rows {
		h := uint32(i) * 2654435761
		x := row{k: int64(h>>9) % 3000, v: int64(h>>5) % 50, id: int64(i), null: h%61 == 0, t: fmt.Sprintf("%s%d", strings.Repeat("long", 20), h%40)}
		rows[i] = x
		k := types.Value(x.k)
		if x.null {
			k, rows[i].k = nil, -1
		}
		r.rows = append(r.rows, []types.Value{k, x.t, x.v, x.id})
	}
	c := catalog{"r": r}
	groups := map[string]func(x row) string{
		"k":        func(x row) string { return fmt.Sprint(x.k) },
		"k % 7, t": func(x row) string { return fmt.Sprint(x.k%7, x.null, x.t) },
		"id":       func(x row) string { return fmt.Sprint(x.id) },
	}
	slices.SortFunc(rows, func(a, b row) int {
		if a.v != b.v {
			return int(b.v - a.v)
		}
		if a.null != b.null {
			if a.null {
				return 1
			}
			return -1
		}
		if a.k != b.k {
			return int(a.k - b.k)
		}
		if a.t != b.t {
			return strings.Compare(a.t, b.t)
		}
		return int(a.id - b.id)
	})
	for group, of := range groups {
		for _, rank := range []string{"row_number", "rank", "dense_rank"} {
			type state struct{ row, rank, dense, v int64 }
			states := map[string]*state{}
			var want []string
			for _, x := range rows {
				s := states[of(x)]
				if s == nil {
					s = &state{v: -1}
					states[of(x)] = s
				}
				if s.row++; x.v != s.v {
					s.v, s.rank = x.v, s.row
					s.dense++
				}
				n := map[string]int64{"row_number": s.row, "rank": s.rank, "dense_rank": s.dense}[rank]
				if n <= 2 {
					k := fmt.Sprint(x.k)
					if x.null {
						k = "NULL"
					}
					want = append(want, fmt.Sprintf("%s,%s,%d,%d,%d", k, x.t, x.v, x.id, n))
				}
			}
			slices.Sort(want)
			text := fmt.Sprintf("SELECT k, t, v, id, %s() OVER (PARTITION BY %s ORDER BY v DESC) AS n FROM r QUALIFY n <= 2", rank, group)
			n := planned(t, c, text).Root
			for _, size := range []int{4000, 100} {
				r.size = size
				undo := exec.RecordsFrom(size)
				got, err := run(context.Background(), n, env(2))
				undo()
				if err != nil {
					t.Fatalf("%s\n%v", text, err)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s\nmorsels of %d: %d rows, want %d", text, size, len(got), len(want))
				}
			}
		}
	}
}
