package rules

import (
	"os"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/plan"
)

// tpch is the benchmark's schema at scale factor 1, with the bounds that Parquet files tell.
func tpch(t testing.TB) catalog {
	return declare(t,
		"region(r_regionkey INTEGER 0 4; r_name VARCHAR; r_comment VARCHAR) 5",
		"nation(n_nationkey INTEGER 0 24; n_name VARCHAR; n_regionkey INTEGER 0 4; n_comment VARCHAR) 25",
		"supplier(s_suppkey BIGINT 1 10000; s_name VARCHAR; s_address VARCHAR; s_nationkey INTEGER 0 24; s_phone VARCHAR; s_acctbal DECIMAL(15,2); s_comment VARCHAR) 10000",
		"customer(c_custkey BIGINT 1 150000; c_name VARCHAR; c_address VARCHAR; c_nationkey INTEGER 0 24; c_phone VARCHAR; c_acctbal DECIMAL(15,2); c_mktsegment VARCHAR; c_comment VARCHAR) 150000",
		"part(p_partkey BIGINT 1 200000; p_name VARCHAR; p_mfgr VARCHAR; p_brand VARCHAR; p_type VARCHAR; p_size INTEGER 1 50; p_container VARCHAR; p_retailprice DECIMAL(15,2); p_comment VARCHAR) 200000",
		"partsupp(ps_partkey BIGINT 1 200000; ps_suppkey BIGINT 1 10000; ps_availqty BIGINT 1 9999; ps_supplycost DECIMAL(15,2); ps_comment VARCHAR) 800000",
		"orders(o_orderkey BIGINT 1 6000000; o_custkey BIGINT 1 149999; o_orderstatus VARCHAR; o_totalprice DECIMAL(15,2); o_orderdate DATE 8035 10440; o_orderpriority VARCHAR; o_clerk VARCHAR; o_shippriority INTEGER 0 0; o_comment VARCHAR) 1500000",
		"lineitem(l_orderkey BIGINT 1 6000000; l_partkey BIGINT 1 200000; l_suppkey BIGINT 1 10000; l_linenumber BIGINT 1 7; l_quantity DECIMAL(15,2); l_extendedprice DECIMAL(15,2); l_discount DECIMAL(15,2); l_tax DECIMAL(15,2); l_returnflag VARCHAR; l_linestatus VARCHAR; l_shipdate DATE 8036 10561; l_commitdate DATE 8065 10530; l_receiptdate DATE 8037 10591; l_shipinstruct VARCHAR; l_shipmode VARCHAR; l_comment VARCHAR) 6001215")
}

// tpchQueries reads the queries that the parser's tests keep.
func tpchQueries(t testing.TB) (names, queries []string) {
	text, err := os.ReadFile("../sql/testdata/tpch.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		name, query, _ := strings.Cut(block, "\n")
		if query == "" {
			continue // a comment on the file
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, "-- "), "name: ")
		names, queries = append(names, name), append(queries, strings.TrimSuffix(query, ";"))
	}
	return names, queries
}

// TestTPCH keeps the plans of the 22 queries, so that a change of a rule or of a guess shows which joins it moves.
func TestTPCH(t *testing.T) {
	const file = "testdata/tpch.plans"
	var got strings.Builder
	names, queries := tpchQueries(t)
	for i, text := range queries {
		q := bound(t, tpch(t), text)
		out, _, err := Optimize(q, Batch, Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", names[i], err, plan.Format(q.Root))
		}
		checkColumns(t, names[i], q, out)
		got.WriteString("-- " + names[i] + "\n" + plan.Format(out.Root) + "\n")
		if _, _, err := Optimize(q, Incremental, Options{}); err != nil {
			t.Errorf("%s, incremental: %v", names[i], err)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got.String() {
		t.Errorf("plans changed; compare after -rewrite (%v)\n%s", err, firstDifference(string(want), got.String()))
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "want: " + x[i] + "\ngot:  " + y[i]
		}
	}
	return "one is longer"
}
