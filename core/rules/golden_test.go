package rules

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/plan"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files; read the difference before committing it")

// small is the catalog of the golden files: bounded a, b, c, live s, r, and l, f that are tables by key.
func small(t testing.TB) catalog {
	return declare(t,
		"a(*id INTEGER 1 1000; x INTEGER 1 100; y VARCHAR; d DATE 8000 9000; p DECIMAL(10,2)) 1000",
		"b(*id INTEGER 1 1000; aid INTEGER 1 1000; z VARCHAR; v INTEGER 1 50) 10000",
		"c(id INTEGER 1 50; w INTEGER) 50",
		"stream s(k INTEGER; v BIGINT; ts TIMESTAMP)",
		"stream r(k INTEGER; u BIGINT; ts TIMESTAMP)",
		"stream l(*k INTEGER; v BIGINT; ts TIMESTAMP)",
		"stream f(*x DOUBLE; v BIGINT)")
}

// TestGolden optimizes the queries of testdata/*.txt. A case is a comment, "batch" or "incremental", a query that ends in ";", a
// line "----", and the plan or the error. The word "explain" before the mode prints EXPLAIN instead.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n\n") {
				head, want, _ := strings.Cut(block, ";\n----\n")
				head = strings.TrimSuffix(head, ";")
				got := golden(t, head)
				out = append(out, head+";\n----\n"+got)
				if !*rewrite && strings.TrimSpace(got) != strings.TrimSpace(want) {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s", head, got, want)
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func golden(t *testing.T, head string) string {
	var mode Mode
	explain := false
	lines := strings.Split(head, "\n")
	for mode == 0 && len(lines) > 0 {
		switch lines[0] {
		case "batch":
			mode = Batch
		case "incremental":
			mode = Incremental
		case "explain batch":
			mode, explain = Batch, true
		case "explain incremental":
			mode, explain = Incremental, true
		}
		lines = lines[1:]
	}
	q := bound(t, small(t), strings.Join(lines, "\n"))
	before := plan.Format(q.Root)
	out, applied, err := Optimize(q, mode, Options{})
	if plan.Format(q.Root) != before {
		t.Errorf("%s\nthe bound plan was changed", head)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	checkSame(t, head, q, out, mode)
	if !explain {
		return strings.TrimSpace(plan.Format(out.Root))
	}
	var notes []string
	for _, a := range applied {
		if a.Note != "" {
			notes = append(notes, a.Note)
		}
	}
	text, err := plan.Explain(out, plan.ExplainOptions{Mode: mode, Notes: notes})
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.TrimSpace(text)
}

// checkSame checks what holds of every rewrite: the output columns stay, and optimizing again changes nothing.
func checkSame(t testing.TB, head string, q, out *plan.Query, mode Mode) {
	t.Helper()
	checkColumns(t, head, q, out)
	if nodes(out.Root, false) != nodes(out.Root, true) {
		return // whose rewrites are for trees, before nodes are shared
	}
	again, _, err := Optimize(out, mode, Options{})
	if err != nil {
		t.Errorf("%s\noptimizing again: %v", head, err)
		return
	}
	if a, b := plan.Format(out.Root), plan.Format(again.Root); a != b {
		t.Errorf("%s\noptimizing again gave another plan:\n%s\nfirst:\n%s", head, b, a)
	}
}

// nodes counts the nodes of a plan; those that several nodes read once, or as often as they are read.
func nodes(root plan.Node, once bool) (n int) {
	seen := map[plan.Node]bool{}
	plan.Walk(root, func(m plan.Node) bool {
		if once && seen[m] {
			return false
		}
		seen[m] = true
		n++
		return true
	})
	return n
}

// checkColumns checks that the output columns are what they were, and that each column of the plan is made in one place.
func checkColumns(t testing.TB, head string, q, out *plan.Query) {
	t.Helper()
	want, got := q.Root.Columns(), out.Root.Columns()
	if len(want) != len(got) {
		t.Fatalf("%s\n%d columns became %d", head, len(want), len(got))
	}
	for i := range want {
		if want[i].ID != got[i].ID || !want[i].Type.Equal(got[i].Type) {
			t.Errorf("%s\ncolumn %d: %v became %v", head, i, want[i], got[i])
		}
	}
	unique, seen := map[any]plan.Node{}, map[plan.Node]bool{}
	plan.Walk(out.Root, func(n plan.Node) bool {
		if seen[n] { // shared
			return false
		}
		seen[n] = true
		for _, c := range madeBy(n) {
			if other, ok := unique[c.ID]; ok {
				t.Errorf("%s\ncolumn %s#%d is made twice: by %s and by %s", head, c.Name, c.ID, plan.Describe(other), plan.Describe(n))
			}
			unique[c.ID] = n
		}
		return true
	})
}

// madeBy returns the columns of n that its inputs do not have.
func madeBy(n plan.Node) []plan.Column {
	below := plan.ColSet{}
	for _, c := range n.Children() {
		for _, col := range c.Columns() {
			below[col.ID] = true
		}
	}
	var out []plan.Column
	for _, c := range n.Columns() {
		if !below[c.ID] {
			out = append(out, c)
		}
	}
	return out
}
