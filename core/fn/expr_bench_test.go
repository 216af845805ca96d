package fn_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

const benchRows = 8192

// benchColumns is a batch with the shapes of NEXMark's and TPC-H's columns.
func benchColumns() ([]types.Field, []arrow.Array) {
	r := rand.New(rand.NewPCG(1, 2))
	fields := []types.Field{{Name: "price", Type: types.Int64}, {Name: "ep", Type: types.Dec(15, 2)}, {Name: "disc", Type: types.Dec(15, 2)},
		{Name: "tax", Type: types.Dec(15, 2)}, {Name: "qty", Type: types.Dec(15, 2)}, {Name: "ts", Type: types.TsMS}, {Name: "extra", Type: types.String},
		{Name: "channel", Type: types.String}, {Name: "url", Type: types.String}, {Name: "mode", Type: types.String}, {Name: "i", Type: types.Int32}}
	vals := make([][]types.Value, len(fields))
	channels := []string{"Apple", "Google", "Facebook", "Baidu", "channel-1234", "channel-99"}
	modes := []string{"AIR", "AIR REG", "TRUCK", "MAIL", "FOB", "SHIP", "RAIL"}
	for range benchRows {
		extra := make([]byte, 40)
		for j := range extra {
			extra[j] = 'a' + byte(r.IntN(26))
		}
		ch := channels[r.IntN(len(channels))]
		url := fmt.Sprintf("https://www.nexmark.com/%s/%s/item.htm?query=1", extra[:5], extra[5:9])
		if r.IntN(2) == 0 {
			url += fmt.Sprintf("&channel_id=%d", r.IntN(1<<30))
		}
		row := []types.Value{r.Int64N(100_000_000), decimal128.FromI64(r.Int64N(10_000_000)), decimal128.FromI64(r.Int64N(10)), decimal128.FromI64(r.Int64N(8)),
			decimal128.FromI64(100 * r.Int64N(50)), 1_700_000_000_000 + r.Int64N(86_400_000), string(extra), ch, url, modes[r.IntN(len(modes))], r.Int64N(100)}
		for c := range vals {
			vals[c] = append(vals[c], row[c])
		}
	}
	cols := make([]arrow.Array, len(fields))
	for c := range cols {
		cols[c] = types.ArrayOf(vals[c], fields[c].Type)
	}
	return fields, cols
}

// BenchmarkExpr evaluates the expressions of TPC-H and NEXMark over a batch.
func BenchmarkExpr(b *testing.B) {
	fields, cols := benchColumns()
	layout := map[expr.ColID]int{}
	for i := range fields {
		layout[expr.ColID(i)] = i
	}
	for _, text := range []string{
		"price * 0.908",
		"price * 0.908 > 1000000 AND price * 0.908 < 50000000",
		"ep * (1 - disc)",
		"ep * (1 - disc) * (1 + tax)",
		"disc BETWEEN 0.05 AND 0.07 AND qty < 24",
		"CASE WHEN disc > 0.05 THEN ep * (1 - disc) ELSE 0 END",
		"CASE WHEN hour(ts) BETWEEN 8 AND 18 THEN 'dayTime' WHEN hour(ts) <= 6 OR hour(ts) >= 20 THEN 'nightTime' ELSE 'otherTime' END",
		"length(extra) - length(replace(extra, 'c', ''))",
		"length(extra)",
		"replace(extra, 'c', '')",
		"hour(ts)",
		"strftime(ts, '%Y-%m-%d')",
		"lower(channel)",
		"lower(channel) IN ('apple', 'google', 'facebook', 'baidu')",
		"mode IN ('AIR', 'AIR REG')",
		"mode = 'AIR'",
		"regexp_matches(url, '(&|^)channel_id=')",
		"regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)",
		"CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1' WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END",
		"split_part(url, '/', 4)",
		"extra LIKE 'ab%'", "extra LIKE '%ab'", "extra LIKE '%abc%'", "extra LIKE '%ab%cd%'",
		"i + 1", "i % 7 = 0", "price % 10000", "price // 7",
		"i::BIGINT", "price::DOUBLE", "price::VARCHAR", "price::DECIMAL(18,2)", "ep::DOUBLE", "ts::DATE", "date_trunc('hour', ts)",
	} {
		b.Run(text, func(b *testing.B) {
			x, err := sql.ParseExpr(text)
			if err != nil {
				b.Fatal(err)
			}
			e, err := bind.New(noCatalog{}, bind.Options{SQL: text}).Expr(x, fields, types.Type{})
			if err != nil {
				b.Fatal(err)
			}
			p, err := expr.Compile(expr.Fold(e), layout)
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				if _, err := p.EvalAll(testEnv, cols, benchRows); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}
