package exec_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

func TestAggregates(t *testing.T) {
	c := catalog{
		"t":     define(t, "g VARCHAR, h BIGINT, v BIGINT", "a,1,10", "b,1,20", "a,2,10", "NULL,1,5", "b,2,NULL", "a,1,30", "NULL,2,5", "a,2,NULL"),
		"empty": define(t, "g VARCHAR, v BIGINT"),
		"s":     series(t, 10000),
	}
	c["s"].size = 128
	for _, q := range [][2]string{
		{"SELECT g, sum(v), count(v), count(*) FROM t GROUP BY g", "a,50,3,4; b,20,1,2; NULL,10,2,2"},
		{"SELECT g, sum(v) FILTER (WHERE h = 2) FROM t GROUP BY g", "a,10; b,NULL; NULL,5"},
		{"SELECT g, sum(DISTINCT v), count(DISTINCT v) FROM t GROUP BY g", "a,40,2; b,20,1; NULL,5,1"},
		{"SELECT count(DISTINCT v) FILTER (WHERE h = 1), min(g), max(g) FROM t", "4,a,b"},
		{"SELECT sum(v), count(*), min(g) FROM empty", "NULL,0,NULL"},
		{"SELECT g, sum(v) FROM empty GROUP BY g", ""},
		{"SELECT g, h, count(*), grouping(g, h) FROM t GROUP BY GROUPING SETS ((g, h), (g), ())",
			"a,1,2,0; a,2,2,0; b,1,1,0; b,2,1,0; NULL,1,1,0; NULL,2,1,0; a,NULL,4,1; b,NULL,2,1; NULL,NULL,2,1; NULL,NULL,8,3"},
		{"SELECT g, count(*) FROM empty GROUP BY GROUPING SETS ((g), ())", "NULL,0"},
		{"SELECT count(*), sum(x), count(DISTINCT x % 7) FROM s", "10000,49995000,7"},
		{"SELECT count(*), sum(n), min(n) FROM (SELECT x % 2500 AS k, count(*) AS n FROM s GROUP BY x % 2500)", "2500,10000,4"},
		{"SELECT sum(d) FROM (SELECT x % 10 AS k, count(DISTINCT x % 100) AS d FROM s GROUP BY x % 10)", "100"},
		{"SELECT DISTINCT g FROM t", "a; b; NULL"},
		{"SELECT DISTINCT g, h FROM t WHERE h = 1", "a,1; b,1; NULL,1"},
		{"SELECT string_agg(g, '-' ORDER BY v, h) FROM t WHERE g IS NOT NULL AND v IS NOT NULL", "a-a-b-a"},
	} {
		check(t, c, q[0], q[1])
	}
}

func TestSetOperations(t *testing.T) {
	c := catalog{
		"l":     define(t, "a BIGINT", "1", "1", "1", "2", "NULL", "NULL", "3"),
		"r":     define(t, "b BIGINT", "1", "1", "NULL", "4"),
		"empty": define(t, "b BIGINT"),
	}
	for _, q := range [][2]string{
		{"SELECT a FROM l UNION SELECT b FROM r", "1; 2; 3; 4; NULL"},
		{"SELECT a FROM l UNION ALL SELECT b FROM r", "1; 1; 1; 2; NULL; NULL; 3; 1; 1; NULL; 4"},
		{"SELECT a FROM l INTERSECT SELECT b FROM r", "1; NULL"},
		{"SELECT a FROM l INTERSECT ALL SELECT b FROM r", "1; 1; NULL"},
		{"SELECT a FROM l EXCEPT SELECT b FROM r", "2; 3"},
		{"SELECT a FROM l EXCEPT ALL SELECT b FROM r", "1; 2; 3; NULL"},
		{"SELECT b FROM empty UNION ALL SELECT b FROM r WHERE b > 3", "4"},
		{"SELECT b FROM r EXCEPT SELECT b FROM empty", "1; 4; NULL"},
		{"SELECT b FROM empty INTERSECT SELECT b FROM r", ""},
	} {
		check(t, c, q[0], q[1])
	}
}

func TestOrders(t *testing.T) {
	c := catalog{
		"t": define(t, "k BIGINT, s VARCHAR", "2,b", "1,z", "NULL,m", "2,a", "3,c", "1,y", "NULL,l", "2,a"),
		"s": series(t, 20000),
	}
	c["s"].size = 500
	for _, q := range [][2]string{
		{"SELECT k, s FROM t ORDER BY k", "1,y; 1,z; 2,a; 2,a; 2,b; 3,c; NULL,l; NULL,m"}, // the rest of the row breaks ties
		{"SELECT k, s FROM t ORDER BY k DESC NULLS FIRST, s DESC", "NULL,m; NULL,l; 3,c; 2,b; 2,a; 2,a; 1,z; 1,y"},
		{"SELECT k, s FROM t ORDER BY k NULLS FIRST LIMIT 3", "NULL,l; NULL,m; 1,y"},
		{"SELECT k, s FROM t ORDER BY k LIMIT 2 OFFSET 3", "2,a; 2,b"},
		{"SELECT k, s FROM t ORDER BY k LIMIT 0", ""},
		{"SELECT count(*) FROM (SELECT x FROM s LIMIT 9223372036854775807 OFFSET 5)", "19995"},
		{"SELECT k, s FROM t ORDER BY k OFFSET 6", "NULL,l; NULL,m"},
		{"SELECT k, s FROM t ORDER BY k LIMIT 5 OFFSET 100", ""},
		{"SELECT x FROM s ORDER BY x % 1000 DESC, x LIMIT 3", "999; 1999; 2999"},
		{"SELECT sum(x) FROM (SELECT x FROM s ORDER BY x DESC LIMIT 10000)", "149995000"},
	} {
		check(t, c, q[0], q[1])
	}
}

func TestGroupTopN(t *testing.T) {
	c := catalog{"t": define(t, "g VARCHAR, v BIGINT", "a,1", "a,2", "b,5", "a,2", "b,5", "a,3", "b,4", "NULL,9", "a,3", "NULL,8")}
	for _, q := range [][2]string{
		{"SELECT g, v, n FROM (SELECT g, v, row_number() OVER (PARTITION BY g ORDER BY v DESC) AS n FROM t) WHERE n <= 2", "a,3,1; a,3,2; b,5,1; b,5,2; NULL,9,1; NULL,8,2"},
		{"SELECT g, v, n FROM (SELECT g, v, rank() OVER (PARTITION BY g ORDER BY v) AS n FROM t) WHERE n <= 2", "a,1,1; a,2,2; a,2,2; b,4,1; b,5,2; b,5,2; NULL,8,1; NULL,9,2"},
		{"SELECT g, v, n FROM (SELECT g, v, dense_rank() OVER (PARTITION BY g ORDER BY v DESC) AS n FROM t) WHERE n <= 2", "a,3,1; a,3,1; a,2,2; a,2,2; b,5,1; b,5,1; b,4,2; NULL,9,1; NULL,8,2"},
		{"SELECT g, v FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY v) = 1", "a,1; b,4; NULL,8"},
	} {
		check(t, c, q[0], q[1])
	}
}

func TestTimeWindows(t *testing.T) {
	c := catalog{"t": define(t, "ts TIMESTAMP, v BIGINT", "0,1", "59000000,2", "60000000,3", "NULL,4", "150000000,5")}
	for _, q := range [][2]string{
		{"SELECT epoch_us(window_start), sum(v) FROM TUMBLE(t, ts, INTERVAL 1 MINUTE) GROUP BY window_start", "0,3; 60000000,3; 120000000,5; NULL,4"},
		{"SELECT epoch_us(window_start), sum(v) FROM HOP(t, ts, INTERVAL 1 MINUTE, INTERVAL 2 MINUTE) WHERE v < 4 GROUP BY window_start", "-60000000,3; 0,6; 60000000,3"},
	} {
		check(t, c, q[0], q[1])
	}
}

func TestValuesAndProjections(t *testing.T) {
	c := catalog{"t": define(t, "a BIGINT", "1", "NULL", "3")}
	for _, q := range [][2]string{
		{"SELECT 1, 'x', NULL", "1,x,NULL"},
		{"SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(x, y)", "1,a; 2,NULL"},
		{"SELECT a + 1, a IS NULL FROM t", "2,false; NULL,true; 4,false"},
		{"SELECT a FROM t WHERE a > 1 OR a IS NULL", "NULL; 3"},
		{"SELECT a FROM t WHERE a <> 3", "1"},
		{"SELECT a FROM t WHERE 6 // (a - 1) = 3", "error: division by zero"},
		{"SELECT count(*) FROM t", "3"},
	} {
		check(t, c, q[0], q[1])
	}
}

func TestNormalize(t *testing.T) {
	columns := "v BIGINT, k VARCHAR, split BIGINT, weight BIGINT"
	c := catalog{
		"t": define(t, columns, "1,a,0,1", "2,b,0,1", "NULL,a,0,-1", "NULL,z,0,-1", "NULL,b,0,1", "5,a,0,1", "10,,0,1"),
		// Each split has its own row of a key; that of the last split stands.
		"s":     define(t, columns, "1,a,0,1", "1,b,0,1", "1,c,0,1", "2,a,1,1", "2,b,1,1", "NULL,b,1,-1", "3,c,2,1", "NULL,d,2,-1"),
		"empty": define(t, columns),
	}
	for _, r := range c {
		r.key = []int{1}
	}
	for _, q := range [][2]string{
		{"SELECT * FROM t", "NULL,b; 5,a; 10,"},
		{"SELECT v IS NULL, count(*) FROM t GROUP BY 1", "true,1; false,2"},
		{"SELECT k, v FROM s", "a,2; b,1; c,3"},
		{"SELECT k FROM s WHERE k <> 'a' AND v < 3", "b"},
		{"SELECT count(*) FROM s WHERE k = 'd'", "0"},
		{"SELECT x.k, y.v FROM s x JOIN s y ON x.v = y.v", "a,2; b,1; c,3"},
		{"SELECT * FROM empty", ""},
	} {
		check(t, c, q[0], q[1])
	}
}

// Rows that cannot be among the first of their group are dropped as they come; the answer is that of sorting all.
func TestFirstOfGroupsAsTheyCome(t *testing.T) {
	c := catalog{"s": define(t, "g BIGINT, k BIGINT, v BIGINT, t VARCHAR")}
	for i := range 4000 {
		h := int64(i * 7919 % 4001)
		row := []types.Value{h % 7, h % 13, h, fmt.Sprint("same text ", h%11)}
		for c := range 3 {
			if (i+c)%17 == 0 {
				row[c] = nil
			}
		}
		c["s"].rows = append(c["s"].rows, row)
	}
	c["s"].size = 100
	for _, rank := range []string{"row_number", "rank", "dense_rank"} {
		for _, order := range []string{"k", "k DESC NULLS FIRST", "t DESC, k", "v NULLS FIRST"} {
			for _, limit := range []int{1, 3, maxBestAndMore} {
				text := fmt.Sprintf("SELECT g, v, n FROM (SELECT g, v, %s() OVER (PARTITION BY g ORDER BY %s) AS n FROM s)", rank, order)
				all, err := run(t.Context(), planned(t, c, text+" WHERE n <= 5000").Root, env(1)) // more than is worth words
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, row := range all {
					if n, _ := strconv.Atoi(row[strings.LastIndex(row, ",")+1:]); n <= limit {
						want = append(want, row)
					}
				}
				check(t, c, fmt.Sprintf("%s WHERE n <= %d", text, limit), strings.Join(want, "; "))
			}
		}
	}
}

const maxBestAndMore = 40
