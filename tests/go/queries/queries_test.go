// Package queries writes random SQL and compares batch with DuckDB and incremental with batch.
//
// Invariant: a query is a function of the seed and its number. Where one side fails and another does not, that is a
// difference too, unless exceptions.go gives the reason.
package queries

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/tests/go/sqltest"
)

const brief = 1500

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// world is the relations with a set of events; many queries share one.
type world struct {
	engine *sqltest.Engine
	rels   []*sqltest.Relation
	steps  [][]sqltest.Event
	rows   [][][]types.Value
	logs   [][][]types.Value // what batch reads: the rows, and all that was said of keys
}

func newWorld(r *rand.Rand) (*world, error) {
	w := &world{}
	for _, d := range tables {
		if strings.HasPrefix(d, "stream") && r.IntN(4) == 0 { // a table by key
			d = strings.TrimSuffix(d, ")") + ", PRIMARY KEY (k))"
		}
		rel, err := sqltest.Declare(d)
		if err != nil {
			return nil, err
		}
		rel.Updating = rel.Key != nil || !rel.Table && r.IntN(2) == 0
		w.rels = append(w.rels, rel)
	}
	domain := []sqltest.Domain{sqltest.Tiny, sqltest.Small}[r.IntN(2)]
	events := sqltest.Plan{Domain: domain, Rows: 6 + r.IntN(14), Deletes: true}.Events(r, w.rels)
	w.steps = sqltest.RandomCut(r, events)
	var err error
	if w.engine, err = sqltest.NewEngine(w.rels, nil, 1+r.IntN(2)*3); err != nil {
		return nil, err
	}
	if w.rows, err = sqltest.TakenRows(w.rels, w.steps); err != nil {
		return nil, err
	}
	w.logs, err = sqltest.TakenLogs(w.rels, w.steps)
	return w, err
}

// perWorld is how many queries run on the same rows.
const perWorld = 50

func TestRandomQueries(t *testing.T) {
	total, seed := number("RIVERBED_QUERIES", brief), uint64(number("RIVERBED_SEED", 1))
	duck, err := sqltest.OpenDuck()
	if err != nil {
		t.Run("DuckDB", func(t *testing.T) { t.Skipf("batch answers are not compared with DuckDB's: %v", err) })
	} else {
		defer duck.Close()
	}
	s := &stats{}
	for n := 0; n < total && s.failures < 5; n += perWorld {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		w, err := newWorld(r)
		if err != nil {
			t.Fatal(err)
		}
		texts := make([]string, min(perWorld, total-n))
		for i := range texts {
			g := &generator{r: rand.New(rand.NewPCG(seed, uint64(n+i)<<20|1))}
			texts[i] = g.top()
		}
		w.run(t, s, seed, n, texts, duck)
		w.engine.Close()
	}
	t.Logf("seed %d: %d queries, %d with rows, %d failed alike, %d not supported incrementally, %d excused", seed, s.queries, s.withRows, s.failed, s.unsupported, s.excused)
	if s.unsupported*10 > s.queries {
		t.Errorf("%d of %d queries are not supported incrementally: the generator tests little", s.unsupported, s.queries)
	}
}

type stats struct{ queries, withRows, failed, unsupported, excused, failures int }

func (w *world) run(t *testing.T, s *stats, seed uint64, first int, texts []string, duck *sqltest.Duck) {
	ctes := make([]string, len(w.rels))
	for i, r := range w.rels {
		ctes[i] = sqltest.CTE(r, w.rows[i])
	}
	var asks []sqltest.Ask
	var outs []result
	for i, text := range texts {
		if s.failures >= 5 {
			return
		}
		s.queries++
		out, err := w.play(text, seed, first+i)
		switch {
		case is(err, errs.Unsupported) && out.batch != nil:
			s.unsupported++
		case err != nil:
			s.failures++
			t.Errorf("query %d (seed %d): %v\n%s", first+i, seed, err, text)
			continue
		case out.Mismatch != "":
			s.failures++
			w.report(t, seed, first+i, text, out.Outcome)
			continue
		case out.Failed != nil:
			s.failed++
		case len(out.Final) > 0:
			s.withRows++
		}
		asks = append(asks, sqltest.Ask{Query: "WITH " + strings.Join(ctes, ", ") + " " + text})
		outs = append(outs, out)
	}
	if duck == nil {
		return
	}
	answers, err := duck.All(asks)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		out := outs[i]
		problem := ""
		switch {
		case a.Error != "" && out.failed != nil:
		case a.Error != "":
			problem = "DuckDB fails: " + a.Error
		case out.failed != nil:
			problem = "DuckDB does not fail: " + out.failed.Error()
		default:
			problem = a.Agree(out.batch, out.fields, sqltest.Weight(w.rels, w.rows))
		}
		if problem == "" {
			continue
		}
		if excused(out.text, problem) {
			s.excused++
			continue
		}
		if s.failures++; s.failures <= 5 {
			t.Errorf("batch and DuckDB differ (seed %d)\n%s\n%s\n%s", seed, out.text, problem, asks[i].Query)
		}
	}
}

// result is what batch and incremental made of a query.
type result struct {
	sqltest.Outcome
	text   string
	batch  [][]types.Value
	fields []types.Field
	failed error // of batch over all rows
}

func is(err error, kind errs.Kind) bool {
	var e *errs.Error
	return errors.As(err, &e) && e.Kind == kind
}

func (w *world) play(text string, seed uint64, n int) (result, error) {
	out := result{text: text}
	w.engine.Fill(w.logs)
	q, err := w.engine.Batch.Query(context.Background(), text, nil)
	if err != nil {
		return out, err
	}
	out.fields = q.Fields()
	if out.batch, out.failed = sqltest.AllValues(q); out.failed != nil && (is(out.failed, errs.Internal) || is(out.failed, errs.Unsupported)) {
		return out, out.failed
	}
	if out.batch == nil {
		out.batch = [][]types.Value{}
	}
	o, err := w.engine.Play(text, w.steps, sqltest.Options{Workers: 1 + n%2*3, Restart: n%5 == 0, Rand: rand.New(rand.NewPCG(seed, uint64(n)))})
	out.Outcome = o
	return out, err
}

func (w *world) report(t *testing.T, seed uint64, n int, text string, out sqltest.Outcome) {
	t.Helper()
	last := out.Mismatch
	steps := sqltest.Shrink(w.steps, func(steps [][]sqltest.Event) bool {
		got, err := w.engine.Play(text, steps, sqltest.Options{Workers: 1 + n%2*3, Restart: n%5 == 0, Rand: rand.New(rand.NewPCG(seed, uint64(n)))})
		if err != nil || got.Mismatch == "" || strings.HasPrefix(got.Mismatch, "the test retracts") {
			return false
		}
		last = got.Mismatch
		return true
	})
	t.Errorf("query %d (seed %d): %s\n%s", n, seed, last, sqltest.Print(w.rels, steps, text, "found by tests/go/queries"))
}
