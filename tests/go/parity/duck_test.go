package parity

import (
	"context"
	"regexp"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/tests/go/sqltest"
)

// foreign matches what is Riverbed's alone.
var foreign = regexp.MustCompile(`(?i)\b(TUMBLE|HOP|CUMULATE|SESSION)(_START|_END)?\s*\(|\bMATERIALIZED VIEW\b|\bSTREAM\b|\bSINK\b|\b__late\b|\b__bad\b|\bTABLE\(`)

// plain is the query without its EMIT clause; ok is false when DuckDB does not speak it.
func plain(text string) (string, bool) {
	st, err := sql.ParseOne(text)
	if err != nil {
		return text, !foreign.MatchString(text)
	}
	if q, is := st.(*sql.Query); is && q.Emit != nil {
		q.Emit = nil
		text = sql.Print(q)
	}
	return text, !foreign.MatchString(text)
}

// runDuck asks DuckDB for every query of the file, and whether it too refuses what is refused.
func runDuck(f *sqltest.File, duck *sqltest.Duck) (problems []string, ran bool) {
	for i, it := range f.Items {
		text := ""
		switch {
		case it.Query != nil && !it.Query.Changelog:
			text = it.Query.SQL
		case it.Stmt != nil && it.Stmt.Error:
			text = it.Stmt.SQL
		}
		text, ok := plain(text)
		if text == "" || !ok {
			continue
		}
		ran = true
		taken, err := sqltest.TakenRows(f.Relations, sqltest.FileCut(f.Events(i)))
		if err != nil {
			return []string{at(f, it.Line, "%v", err)}, true
		}
		ask := sqltest.Ask{Query: text}
		for n, r := range f.Relations {
			ask.Setup = append(ask.Setup, sqltest.Inserts(r, taken[n])...)
		}
		for _, st := range f.Statements(i) {
			if !foreign.MatchString(st) {
				ask.Setup = append(ask.Setup, st)
			}
		}
		if len(ask.Setup) == 0 {
			ask.Setup = []string{"SELECT 1"}
		}
		if it.Stmt != nil {
			ask.Setup, ask.Query = append(ask.Setup, text), "SELECT 1"
		}
		answers, err := duck.All([]sqltest.Ask{ask})
		if err != nil {
			return append(problems, at(f, it.Line, "%v", err)), true
		}
		a := answers[0]
		if it.Stmt != nil {
			if a.Error == "" {
				problems = append(problems, at(f, it.Line, "DuckDB runs what is refused here"))
			}
			continue
		}
		if a.Error != "" {
			problems = append(problems, at(f, it.Line, "DuckDB: %s", a.Error))
			continue
		}
		rows, fields, err := values(f, i)
		if err != nil {
			problems = append(problems, at(f, it.Line, "%v", err))
			continue
		}
		for n, t := range a.Types {
			if got := fields[n].Type.String(); !strings.EqualFold(got, t) && !strings.ContainsAny(t, "(\"") {
				problems = append(problems, at(f, it.Line, "column %s is %s, DuckDB has %s", fields[n].Name, got, t))
			}
		}
		if d := a.Agree(rows, fields, sqltest.Tolerance{Ulps: 16}); d != "" {
			problems = append(problems, at(f, it.Line, "%s", d))
		}
	}
	return problems, ran
}

// values are the batch answer as Go values.
func values(f *sqltest.File, i int) ([][]types.Value, []types.Field, error) {
	s, err := session(f, i, "")
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	q, err := s.Query(context.Background(), f.Items[i].Query.SQL, nil)
	if err != nil {
		return nil, nil, err
	}
	var out [][]types.Value
	err = sqltest.Each(q, func(b arrow.RecordBatch) { out = append(out, sqltest.Values(b, q.Fields())...) })
	return out, q.Fields(), err
}
