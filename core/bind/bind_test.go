package bind

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files; read the difference before committing it")

// testCatalog holds tables declared as "name(column TYPE, …)", and views.
type testCatalog struct {
	tables map[string]*plan.Source
	views  map[string]*View
}

func declare(t testing.TB, tables ...string) *testCatalog {
	c := &testCatalog{tables: map[string]*plan.Source{}, views: map[string]*View{}}
	for _, decl := range tables {
		name, cols, _ := strings.Cut(strings.TrimSuffix(decl, ")"), "(")
		st, err := sql.ParseOne("CREATE TABLE " + name + "(" + cols + ")")
		if err != nil {
			t.Fatal(err)
		}
		src := &plan.Source{Name: name, Table: true}
		for _, col := range st.(*sql.CreateTable).Columns {
			typ, err := Type(col.Type)
			if err != nil {
				t.Fatal(err)
			}
			src.Fields = append(src.Fields, types.Field{Name: col.Name.Name, Type: typ})
		}
		src.Fields = append(src.Fields, types.Field{Name: RowIDColumn, Type: types.Int64})
		c.tables[name] = src
	}
	return c
}

func (c *testCatalog) view(t testing.TB, name, query string, columns ...string) {
	c.views[name] = &View{Name: name, Columns: columns, Query: parse(t, query), SQL: query}
}

func (c *testCatalog) Resolve(name []string) (*Relation, error) {
	key := strings.ToLower(name[len(name)-1])
	if s := c.tables[key]; s != nil {
		return &Relation{Source: s}, nil
	}
	if v := c.views[key]; v != nil {
		return &Relation{View: v}, nil
	}
	return nil, nil
}

func (c *testCatalog) Names() []string {
	var out []string
	for n := range c.tables {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (c *testCatalog) ResolveFile(path string) (*plan.Source, error) {
	if !strings.HasSuffix(path, ".parquet") {
		return nil, errs.New(errs.Source, "open", "no file %q", path)
	}
	return &plan.Source{Name: path, Fields: []types.Field{{Name: "x", Type: types.Int64}}}, nil
}

func (c *testCatalog) TableFunction(name string, args []types.Value, _ []types.Type, _ map[string]types.Value) (*plan.Source, error) {
	if name != "range" && name != "generate_series" {
		return nil, nil
	}
	return &plan.Source{Name: fmt.Sprintf("%s%v", name, args), Fields: []types.Field{{Name: name, Type: types.Int64}}}, nil
}

func (c *testCatalog) Functions() []string      { return nil }
func (c *testCatalog) TableFunctions() []string { return []string{"generate_series", "range"} }

func (c *testCatalog) Function(string) *fn.Scalar { return nil }

func parse(t testing.TB, text string) *sql.Query {
	t.Helper()
	st, err := sql.ParseOne(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	q, ok := st.(*sql.Query)
	if !ok {
		t.Fatalf("not a query: %s", text)
	}
	return q
}

func bindText(t testing.TB, c Catalog, text string) (*plan.Query, error) {
	t.Helper()
	return New(c, Options{SQL: text}).Query(parse(t, text))
}

// small is the catalog of the golden files.
func small(t testing.TB) *testCatalog {
	c := declare(t,
		"t(a INTEGER, b VARCHAR, c DOUBLE, d DATE, ts TIMESTAMP, l BIGINT, s SMALLINT, st STRUCT(x INTEGER, y VARCHAR))",
		"u(a INTEGER, e VARCHAR)",
		"w(k INTEGER, v INTEGER)")
	c.view(t, "big", "SELECT a AS id, l * 2 AS twice FROM t WHERE l > 1000")
	c.view(t, "broken", "SELECT nope FROM t")
	c.view(t, "loop", "SELECT * FROM loop")
	return c
}

// TestGolden binds the queries of testdata/*.txt. A case is a query that ends in ";", a line "----", and the output columns
// with the plan, or the error.
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
			var out strings.Builder
			for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
				query, want, _ := strings.Cut(block, ";\n----\n")
				query = strings.TrimSuffix(query, ";")
				comment, bare := splitComment(query)
				got := describe(small(t), t, bare)
				if i > 0 {
					out.WriteString("\n")
				}
				out.WriteString(comment + bare + ";\n----\n" + got)
				if !*rewrite && strings.TrimSpace(got) != strings.TrimSpace(want) {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s", query, got, want)
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func splitComment(s string) (comment, rest string) {
	for strings.HasPrefix(s, "#") {
		line, more, _ := strings.Cut(s, "\n")
		comment, s = comment+line+"\n", more
	}
	return comment, s
}

func describe(c Catalog, t *testing.T, query string) string {
	q, err := bindText(t, c, query)
	if err != nil {
		e := errs.As(err)
		return strings.TrimRight(fmt.Sprintf("ERROR %s at %d: %s\n%s", e.Kind, e.Pos.Col, e.Msg, e.Hint), "\n") + "\n"
	}
	checkPlan(t, q.Root)
	var cols []string
	for i, col := range q.Root.Columns() {
		cols = append(cols, q.Names[i]+" "+col.Type.String())
	}
	emit := ""
	if q.Emit != plan.EmitDefault {
		emit = fmt.Sprintf("EMIT %s %d\n", q.Emit, q.EveryUS)
	}
	return strings.Join(cols, ", ") + "\n" + emit + plan.Format(q.Root)
}

// checkPlan holds the package's invariant: the plan is closed, and columns are made once.
func checkPlan(t *testing.T, root plan.Node) {
	t.Helper()
	if free := plan.Free(root); len(free) > 0 {
		t.Errorf("the plan reads columns that nothing makes: %v\n%s", plan.IDs(free), plan.Format(root))
	}
	plan.Walk(root, func(n plan.Node) bool {
		seen := plan.ColSet{}
		for _, c := range n.Columns() {
			if seen[c.ID] {
				t.Errorf("column %d twice in %s", c.ID, plan.Describe(n))
			}
			seen[c.ID] = true
		}
		below := plan.ColSet{}
		for _, in := range n.Children() {
			for _, c := range in.Columns() {
				below[c.ID] = true
			}
		}
		if _, ok := n.(*plan.Scan); !ok && !plan.Subset(plan.Reads(n), below) {
			if len(plan.Free(n)) == 0 {
				t.Errorf("a node reads what its input does not have: %s", plan.Describe(n))
			}
		}
		return true
	})
}

// TestErrorsArePlaced: every refusal is an *errs.Error of kind schema or unsupported, with a place and without a panic.
func TestErrorsArePlaced(t *testing.T) {
	text, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		query, _, _ := strings.Cut(block, ";\n----\n")
		_, query = splitComment(query)
		_, err := bindText(t, small(t), query)
		var e *errs.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: no error", query)
			continue
		}
		if e.Kind != errs.Schema && e.Kind != errs.Unsupported || !e.Pos.Valid() {
			t.Errorf("%s: kind %s, place %v: %v", query, e.Kind, e.Pos, e)
		}
	}
}
