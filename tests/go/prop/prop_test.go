// Package prop draws random cases for every operator: rows over tiny and wide domains, retractions, weights, cuttings,
// restarts. After every step the accumulated changelog is compared with batch, after the last one batch with DuckDB.
//
// Invariant: a case is a function of operator, seed and number, so what fails can be drawn again.
package prop

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/tests/go/sqltest"
)

// brief is how many cases each operator gets in an ordinary run.
const brief = 60

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func TestOperators(t *testing.T) {
	cases, seed := number("RIVERBED_PROP_CASES", brief), uint64(number("RIVERBED_SEED", 1))
	only := os.Getenv("RIVERBED_PROP_ONLY")
	duck, err := sqltest.OpenDuck()
	if err != nil {
		t.Run("DuckDB", func(t *testing.T) { t.Skipf("batch answers are not compared with DuckDB's: %v", err) })
	} else {
		defer duck.Close()
	}
	t.Logf("seed %d, %d cases for each operator", seed, cases)
	for _, op := range operators {
		if only != "" && !regexp.MustCompile(only).MatchString(op.name) {
			continue
		}
		t.Run(op.name, func(t *testing.T) { runOperator(t, op, cases, seed, duck) })
	}
}

// asked is a case that waits for DuckDB.
type asked struct {
	ask  sqltest.Ask
	test testCase
	out  sqltest.Outcome
	tol  sqltest.Tolerance
}

func runOperator(t *testing.T, op operator, cases int, seed uint64, duck *sqltest.Duck) {
	engines := map[string]*sqltest.Engine{}
	leave := func() {
		for _, e := range engines {
			e.Close()
		}
		clear(engines)
	}
	defer leave()
	var waiting []asked
	failures, first := 0, os.Getenv("RIVERBED_PROP_FIRST") != "" // tests/go/mutants ask how long it takes
	steps, rows, refused := 0, 0, 0
	for n := range cases {
		if n%20 == 0 {
			leave() // a session's __bad grows with every case that fails, and each comparison reads it
		}
		c := draw(op, seed, n)
		e, err := engineOf(engines, op, c)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.play(e)
		if isUnsupported(err) {
			t.Errorf("%s: %v", c.query, err)
			if refused++; refused > 3 {
				return
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		steps += len(c.steps)
		for _, s := range c.steps {
			rows += len(s)
		}
		if out.Mismatch != "" {
			if first {
				t.Fatalf("found by %s after %d cases: %s", op.name, n+1, out.Mismatch)
			}
			report(t, e, c, out)
			if failures++; failures >= 3 {
				t.Fatalf("case %d of %d: three failures are enough", n, cases)
			}
			continue
		}
		if duck == nil || op.noDuck != "" || out.Failed != nil && len(out.Rows) == 0 {
			continue
		}
		waiting = append(waiting, waitFor(op, e, c, out))
		if len(waiting) == 500 || n == cases-1 || first && len(waiting) == 20 {
			if wrong := askDuck(t, duck, waiting); wrong > 0 {
				failures += wrong
				if first {
					t.Fatalf("found by %s after %d cases: DuckDB differs", op.name, n+1)
				}
			}
			waiting = waiting[:0]
		}
		if failures >= 3 {
			t.FailNow()
		}
	}
	if len(waiting) > 0 {
		askDuck(t, duck, waiting)
	}
	t.Logf("%d cases, %d steps, %d events", cases, steps, rows)
}

func isUnsupported(err error) bool {
	var e *errs.Error
	return errors.As(err, &e) && e.Kind == errs.Unsupported
}

// testCase is one case.
type testCase struct {
	n        int
	seed     uint64
	query    string
	again    string // the query said otherwise; "" if it is not
	rels     []*sqltest.Relation
	steps    [][]sqltest.Event
	workers  int
	restart  bool
	domain   sqltest.Domain
	updating string // by relation
}

func source(op operator, seed uint64, n int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(op.name))
	return rand.New(rand.NewPCG(seed^h.Sum64(), uint64(n)))
}

func draw(op operator, seed uint64, n int) testCase {
	r := source(op, seed, n)
	c := testCase{n: n, seed: seed, query: pick(r, op.queries), workers: 1}
	if op.otherwise != nil {
		c.again = op.otherwise(c.query)
	}
	if r.IntN(4) == 0 {
		c.workers = 4
	}
	c.restart = r.IntN(6) == 0
	c.domain = []sqltest.Domain{sqltest.Tiny, sqltest.Tiny, sqltest.Small, sqltest.Wide}[r.IntN(4)]
	switch {
	case op.calm:
		c.domain = sqltest.Small
	case op.wide:
		c.domain = sqltest.Wide
	}
	for _, d := range op.relations {
		rel, err := sqltest.Declare(d)
		if err != nil {
			panic(err)
		}
		rel.Updating = rel.Key != nil || !op.appendOnly && !rel.Table && r.IntN(3) > 0
		c.updating += fmt.Sprint(rel.Updating, " ")
		c.rels = append(c.rels, rel)
	}
	p := sqltest.Plan{Domain: c.domain, Rows: 1 + r.IntN(30), Deletes: r.IntN(5) > 0, Heavy: r.IntN(10) == 0 && len(c.rels) == 1}
	if r.IntN(20) == 0 {
		p.Rows = 200
	}
	events := p.Events(r, c.rels)
	switch r.IntN(4) {
	case 0:
		c.steps = sqltest.RowCut(events)
	case 1:
		c.steps = sqltest.OneStep(events)
	default:
		c.steps = sqltest.RandomCut(r, events)
	}
	return c
}

func engineOf(engines map[string]*sqltest.Engine, op operator, c testCase) (*sqltest.Engine, error) {
	key := fmt.Sprint(c.updating, c.workers)
	if engines[key] == nil {
		e, err := sqltest.NewEngine(c.rels, op.setup, c.workers)
		if err != nil {
			return nil, err
		}
		engines[key] = e
	}
	return engines[key], nil
}

// tinyMemory makes one case in three keep no row of state in memory between steps.
func tinyMemory(n int) func() (state.Store, error) {
	if n%3 != 1 {
		return nil
	}
	return func() (state.Store, error) { return state.NewMemory(), nil }
}

func (c testCase) play(e *sqltest.Engine) (sqltest.Outcome, error) {
	out, err := e.Play(c.query, c.steps, sqltest.Options{Workers: c.workers, Restart: c.restart, Durable: c.n%2 == 1, OpenStore: tinyMemory(c.n), Rand: rand.New(rand.NewPCG(c.seed, uint64(c.n)))})
	if c.again == "" || err != nil || out.Mismatch != "" || out.Failed != nil {
		return out, err
	}
	q, err := e.Batch.Query(context.Background(), c.again, nil)
	if err != nil {
		return out, err
	}
	rows, err := sqltest.Rows(q)
	if err != nil {
		return out, err
	}
	if d := out.Final.Diff(sqltest.BagOf(rows)); d != "" {
		out.Mismatch = fmt.Sprintf("+ is too many, - is missing when it is asked otherwise, %s:\n%s", c.again, d)
	}
	return out, nil
}

// report prints the smallest form of a failing case as a .test file.
func report(t *testing.T, e *sqltest.Engine, c testCase, out sqltest.Outcome) {
	t.Helper()
	last := out.Mismatch
	c.steps = sqltest.Shrink(c.steps, func(steps [][]sqltest.Event) bool {
		d := c
		d.steps = steps
		got, err := d.play(e)
		if err != nil || got.Mismatch == "" || strings.HasPrefix(got.Mismatch, "the test retracts") {
			return false
		}
		last = fmt.Sprintf("step %d: %s", got.Step, got.Mismatch)
		return true
	})
	how := fmt.Sprintf("seed %d, case %d, %d workers, updating %s", c.seed, c.n, c.workers, c.updating)
	if c.restart {
		how += ", with restarts"
	}
	t.Errorf("%s\n%s", last, sqltest.Print(c.rels, c.steps, c.query, how))
}

func waitFor(op operator, e *sqltest.Engine, c testCase, out sqltest.Outcome) asked {
	q := c.query
	if op.duck != nil {
		q = op.duck(q)
	}
	ctes := make([]string, len(c.rels))
	for i, r := range c.rels {
		ctes[i] = sqltest.CTE(r, out.Rows[i])
	}
	tol := sqltest.Weight(c.rels, out.Rows)
	if op.calm {
		tol.Ulps = 1 << 20
	}
	return asked{sqltest.Ask{Query: "WITH " + strings.Join(ctes, ", ") + " " + q}, c, out, tol}
}

func askDuck(t *testing.T, duck *sqltest.Duck, waiting []asked) (failures int) {
	t.Helper()
	asks := make([]sqltest.Ask, len(waiting))
	for i, w := range waiting {
		asks[i] = w.ask
	}
	answers, err := duck.All(asks)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		w := waiting[i]
		var problem string
		switch {
		case a.Error != "" && w.out.Failed != nil:
		case a.Error != "":
			problem = "DuckDB fails: " + a.Error
		case w.out.Failed != nil:
			problem = "DuckDB does not fail: " + w.out.Failed.Error()
		default:
			problem = a.Agree(w.out.Values, w.out.Fields, w.tol)
		}
		if problem != "" && failures < 3 {
			failures++
			t.Errorf("batch and DuckDB differ (seed %d, case %d)\n%s\n%s", w.test.seed, w.test.n, problem, sqltest.Print(w.test.rels, w.test.steps, w.test.query, "DuckDB: "+w.ask.Query))
		}
	}
	return failures
}
