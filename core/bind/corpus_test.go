package bind

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

var tpchTables = []string{
	"region(r_regionkey INTEGER, r_name VARCHAR, r_comment VARCHAR)",
	"nation(n_nationkey INTEGER, n_name VARCHAR, n_regionkey INTEGER, n_comment VARCHAR)",
	"supplier(s_suppkey BIGINT, s_name VARCHAR, s_address VARCHAR, s_nationkey INTEGER, s_phone VARCHAR, s_acctbal DECIMAL(15,2), s_comment VARCHAR)",
	"customer(c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey INTEGER, c_phone VARCHAR, c_acctbal DECIMAL(15,2), c_mktsegment VARCHAR, c_comment VARCHAR)",
	"part(p_partkey BIGINT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INTEGER, p_container VARCHAR, p_retailprice DECIMAL(15,2), p_comment VARCHAR)",
	"partsupp(ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty BIGINT, ps_supplycost DECIMAL(15,2), ps_comment VARCHAR)",
	"orders(o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INTEGER, o_comment VARCHAR)",
	"lineitem(l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber BIGINT, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag VARCHAR, l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR)",
}

var nexmarkTables = []string{
	"person(id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, dateTime TIMESTAMP_MS, extra VARCHAR)",
	"auction(id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP_MS, expires TIMESTAMP_MS, seller BIGINT, category BIGINT, extra VARCHAR)",
	"bid(auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, dateTime TIMESTAMP_MS, extra VARCHAR)",
}

// corpus splits a file of "-- name" lines and queries.
func corpus(t *testing.T, file string) (names, queries []string) {
	text, err := os.ReadFile(file)
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

// TestCorpora binds every query of the two benchmarks and compares names and types of the output.
func TestCorpora(t *testing.T) {
	for file, tables := range map[string][]string{"tpch": tpchTables, "nexmark": nexmarkTables} {
		t.Run(file, func(t *testing.T) {
			var got strings.Builder
			path := "testdata/" + file + ".sql"
			if file == "tpch" { // the parser's tests keep it
				path = "../sql/testdata/tpch.sql"
			}
			names, queries := corpus(t, path)
			for i, query := range queries {
				q, err := bindText(t, declare(t, tables...), query)
				if err != nil {
					t.Errorf("%s: %v", names[i], err)
					continue
				}
				checkPlan(t, q.Root)
				fmt.Fprintf(&got, "%s:", names[i])
				for j, c := range q.Root.Columns() {
					fmt.Fprintf(&got, " %s %s,", q.Names[j], c.Type)
				}
				got.WriteString("\n")
			}
			compareGolden(t, "testdata/"+file+".schema", got.String())
		})
	}
}

// TestBugs binds queries that other systems got wrong, each over its own tables. What is refused is part of the golden file.
func TestBugs(t *testing.T) {
	var got strings.Builder
	heads, queries := corpus(t, "testdata/bugs.sql")
	for i, query := range queries {
		name, decls, _ := strings.Cut(heads[i], ": ")
		var tables []string
		if decls != "" {
			tables = strings.Split(decls, "; ")
		}
		q, err := bindText(t, declare(t, tables...), query)
		if err != nil {
			line, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(&got, "%s: ERROR %s\n", name, line)
			continue
		}
		checkPlan(t, q.Root)
		fmt.Fprintf(&got, "%s:", name)
		for j, c := range q.Root.Columns() {
			fmt.Fprintf(&got, " %s %s,", q.Names[j], c.Type)
		}
		got.WriteString("\n")
	}
	compareGolden(t, "testdata/bugs.schema", got.String())
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("got:\n%s\nwant:\n%s%v", got, want, err)
	}
}

// TestLongStatements: texts that machines write, thousands of terms long, bind without running out of stack or time.
func TestLongStatements(t *testing.T) {
	numbers := func(n int, format, sep string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, sep)
	}
	repeat := func(s string, n int, sep string) string {
		return strings.Join(strings.Split(strings.Repeat(s+"\x00", n-1)+s, "\x00"), sep)
	}
	for name, text := range map[string]string{
		"or":       "SELECT count(*) FROM t WHERE " + numbers(10_000, "a = %d", " OR "),
		"and":      "SELECT count(*) FROM t WHERE " + numbers(10_000, "a <> %d", " AND "),
		"in":       "SELECT count(*) FROM t WHERE l IN (" + numbers(100_000, "%d", ", ") + ")",
		"plus":     "SELECT " + repeat("1", 10_000, " + ") + " AS n",
		"grouped":  "SELECT " + repeat("a", 2_000, " + ") + " AS n, count(*) FROM t GROUP BY a",
		"subquery": "SELECT count(*) FROM " + strings.Repeat("(SELECT * FROM ", 300) + "t" + strings.Repeat(") q", 300),
		"union":    repeat("SELECT 1 AS x", 1_000, " UNION ALL "),
		"joins":    "SELECT count(*) FROM u" + numbers(100, " JOIN u u%d USING (a)", ""),
		"case":     "SELECT CASE " + numbers(5_000, "WHEN a = %d THEN 1", " ") + " END FROM t",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := bindText(t, small(t), text); err != nil {
				t.Fatalf("%.300s", err)
			}
		})
	}
}

// TestDoublingIsRefused: common table expressions are written out, so thirty that double end in an error and not in all memory.
func TestDoublingIsRefused(t *testing.T) {
	text := "WITH c0 AS (SELECT a FROM u)"
	for i := range 30 {
		text += fmt.Sprintf(", c%d AS (SELECT x.a FROM c%d x, c%d y)", i+1, i, i)
	}
	if _, err := bindText(t, small(t), text+" SELECT * FROM c30"); err == nil || !strings.Contains(err.Error(), "relations") {
		t.Errorf("%v", err)
	}
}

// TestOrIsFlat: a chain of OR is one node, so that no later walk over it is deep.
func TestOrIsFlat(t *testing.T) {
	q, err := bindText(t, small(t), "SELECT a FROM t WHERE a = 1 OR a = 2 OR a = 3 OR a = 4")
	if err != nil {
		t.Fatal(err)
	}
	cond := q.Root.Children()[0].(*plan.Filter).Cond
	if n := len(cond.Children()); n != 4 {
		t.Errorf("OR has %d arguments: %s", n, plan.ExprString(cond))
	}
}

// FuzzBind: whatever parses binds or is refused; a panic of the binder would come out as an internal error.
func FuzzBind(f *testing.F) {
	for _, file := range []string{"select", "group", "joins", "subqueries", "order", "errors"} {
		text, err := os.ReadFile("testdata/" + file + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n\n") {
			query, _, _ := strings.Cut(block, ";\n----\n")
			_, query = splitComment(query)
			f.Add(query)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		st, err := sql.ParseOne(text)
		if err != nil {
			return
		}
		q, ok := st.(*sql.Query)
		if !ok {
			return
		}
		out, err := New(small(t), Options{SQL: text}).Query(q)
		if err != nil {
			if strings.Contains(err.Error(), "bug in Riverbed") {
				t.Errorf("%s\n%v", text, err)
			}
			return
		}
		checkPlan(t, out.Root)
	})
}
