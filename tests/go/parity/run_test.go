package parity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strings"

	riverbed "github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/tests/go/sqltest"
)

// session replays a file up to an item in a batch session: relations as tables with the rows that were taken (without the late).
// memory is its memory_limit, "" the default.
func session(f *sqltest.File, above int, memory string) (*riverbed.Session, error) {
	rows, err := sqltest.TakenLogs(f.Relations, sqltest.FileCut(f.Events(above)))
	if err != nil {
		return nil, err
	}
	set := map[string]string{"parallelism": "2", "timezone": "UTC"}
	if memory != "" {
		set["memory_limit"], set["state_dir"] = memory, os.TempDir()
	}
	s, err := riverbed.Open(set)
	if err != nil {
		return nil, err
	}
	for i, r := range f.Relations {
		g := sqltest.NewGrowingOf(r)
		g.Set(rows[i])
		if err := s.Register(r.Name, g); err != nil {
			return nil, err
		}
	}
	for _, it := range f.Items[:above] {
		if it.Stmt != nil {
			if msg := statement(s, it.Stmt); msg != "" {
				_ = s.Close()
				return nil, fmt.Errorf("line %d: %s", it.Line, msg)
			}
		}
	}
	return s, nil
}

// run runs a statement and reads what it returns.
func run(s *riverbed.Session, text string) ([]string, error) {
	q, err := s.Query(context.Background(), text, nil)
	if err != nil || q == nil {
		return nil, err
	}
	return sqltest.Rows(q)
}

// statement runs a statement and says how it differs from what the file expects.
func statement(s *riverbed.Session, st *sqltest.Stmt) string {
	_, err := run(s, st.SQL)
	switch {
	case err == nil && st.Error:
		return "the statement succeeds, an error was expected"
	case err != nil && !st.Error:
		return err.Error()
	case err != nil && !strings.Contains(err.Error(), st.Want):
		return fmt.Sprintf("the error says %q, not %q", err, st.Want)
	case err != nil && strings.Contains(err.Error(), "internal"):
		return err.Error()
	}
	return ""
}

func runBatch(f *sqltest.File, c sqltest.Config) (problems []string, ran bool) {
	for i, it := range f.Items {
		switch {
		case it.Stmt != nil && (it.Stmt.Error || i == len(f.Items)-1):
			ran = true
			s, err := session(f, i, c.Memory)
			if err != nil {
				return append(problems, at(f, it.Line, "%v", err)), true
			}
			if msg := statement(s, it.Stmt); msg != "" {
				problems = append(problems, at(f, it.Line, "%s", msg))
			}
			_ = s.Close()
		case it.Query != nil:
			ran = true
			rows, err := goldenOf(f, i, c.Memory)
			if err != nil {
				problems = append(problems, at(f, it.Line, "%v", err))
				continue
			}
			want := it.Query.Want
			if got := strings.Join(rows, "\n"); got != strings.Join(want, "\n") && !it.Query.Changelog {
				problems = append(problems, at(f, it.Line, "batch answers\n%s\nwant\n%s", got, strings.Join(want, "\n")))
			}
		}
	}
	return problems, ran
}

// goldenOf computes the expected lines of a query.
func goldenOf(f *sqltest.File, i int, memory string) ([]string, error) {
	q := f.Items[i].Query
	if q.Changelog {
		return changelog(f, i)
	}
	s, err := session(f, i, memory)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	plan, err := s.Query(context.Background(), q.SQL, nil)
	if err != nil {
		return nil, err
	}
	if plan == nil {
		return nil, fmt.Errorf("the statement has no rows; write statement ok")
	}
	rows, err := sqltest.Rows(plan)
	if err != nil {
		return nil, err
	}
	if msg := letters(q.Types, plan.Fields()); msg != "" {
		return nil, fmt.Errorf("%s", msg)
	}
	if q.Sort {
		sort.Strings(rows)
	}
	return rows, nil
}

func letters(want string, fields []types.Field) string {
	if want == "" {
		return ""
	}
	got := make([]byte, len(fields))
	for i, f := range fields {
		switch {
		case f.Type.IsInteger():
			got[i] = 'I'
		case f.Type.IsNumeric():
			got[i] = 'R'
		default:
			got[i] = 'T'
		}
	}
	if string(got) != want {
		return fmt.Sprintf("the columns are %s, not %s", got, want)
	}
	return ""
}

// repeated gives every row more often, in rows of its own. Joins multiply, so of several relations less.
func repeated(f *sqltest.File, events []sqltest.Event, n int) []sqltest.Event {
	if len(f.Relations) > 1 {
		n = min(n, 12)
	}
	for _, r := range f.Relations {
		if r.Updating {
			n = min(n, 12)
		}
	}
	var out []sqltest.Event
	for _, e := range events {
		times := 1
		if e.Kind == sqltest.Row {
			times = n
		}
		for range times {
			out = append(out, e)
		}
	}
	return out
}

func runIncremental(f *sqltest.File, c sqltest.Config) (problems []string, ran bool) {
	if len(f.Relations) == 0 {
		return nil, false
	}
	seeds := c.Brief
	if full() {
		seeds = c.Seeds
	}
	for i, it := range f.Items {
		if it.Query == nil {
			continue
		}
		ran = true
		if it.Query.Changelog {
			if c.Cut != "file" {
				continue
			}
			got, err := changelog(f, i)
			if err != nil {
				problems = append(problems, at(f, it.Line, "%v", err))
			} else if a, b := strings.Join(got, "\n"), strings.Join(it.Query.Want, "\n"); a != b {
				problems = append(problems, at(f, it.Line, "the changelog is\n%s\nwant\n%s", a, b))
			}
			continue
		}
		e, err := sqltest.NewEngine(f.Relations, f.Statements(i), c.Workers)
		if err != nil {
			return append(problems, at(f, it.Line, "%v", err)), true
		}
		for n := range seeds {
			r := rand.New(rand.NewPCG(seed()+uint64(n), uint64(i)))
			events := f.Events(i)
			if c.Repeat > 1 {
				events = repeated(f, events, c.Repeat)
			}
			var steps [][]sqltest.Event
			switch c.Cut {
			case "one":
				steps = sqltest.OneStep(events)
			case "row":
				steps = sqltest.RowCut(events)
			case "random":
				steps = sqltest.RandomCut(r, events)
				if c.Repeat > 1 {
					steps = sqltest.Coarse(r, events)
				}
			default:
				steps = sqltest.FileCut(events)
			}
			out, err := e.Play(it.Query.SQL, steps, sqltest.Options{Workers: c.Workers, Rand: r, Restart: c.Restart, Durable: c.Durable, OpenStore: opener(c.Store)})
			if err != nil {
				problems = append(problems, at(f, it.Line, "%v", err))
				break
			}
			if out.Mismatch != "" {
				problems = append(problems, at(f, it.Line, "seed %d, step %d: %s", seed()+uint64(n), out.Step, out.Mismatch))
				break
			}
			if c.Repeat == 1 && out.Failed == nil && !idles(events) {
				if d := out.Final.Diff(sqltest.BagOf(it.Query.Want)); d != "" {
					problems = append(problems, at(f, it.Line, "the final answer differs from the file:\n%s", d))
					break
				}
			}
		}
		e.Close()
	}
	return problems, ran
}

// idles reports whether what is late depends on the cutting.
func idles(events []sqltest.Event) bool {
	for _, e := range events {
		if e.Kind == sqltest.Idle {
			return true
		}
	}
	return false
}

// changelog plays the file's own steps and prints what each changed.
func changelog(f *sqltest.File, i int) ([]string, error) {
	e, err := sqltest.NewEngine(f.Relations, f.Statements(i), 1)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	steps := sqltest.FileCut(f.Events(i))
	var out []string
	o := sqltest.Options{Workers: 1, OnStep: func(n int, changes sqltest.Bag, late []string) {
		if len(changes) == 0 && len(late) == 0 {
			return
		}
		head := fmt.Sprintf("step %d", n)
		if n > len(steps) {
			head = "end"
		}
		out = append(out, head)
		for _, sign := range []int64{-1, 1} {
			var rows []string
			for row, w := range changes {
				if w*sign > 0 {
					rows = append(rows, row)
				}
			}
			sort.Strings(rows)
			for _, row := range rows {
				out = append(out, fmt.Sprintf("%+d %s", changes[row], row))
			}
		}
		for _, row := range late {
			out = append(out, "late "+row)
		}
	}}
	got, err := e.Play(f.Items[i].Query.SQL, steps, o)
	if err != nil {
		return nil, err
	}
	if got.Mismatch != "" {
		return nil, fmt.Errorf("step %d: %s", got.Step, got.Mismatch)
	}
	return out, nil
}
