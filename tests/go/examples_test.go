// Package repo holds the tests that cross packages: the examples of all functions, the questions of NEXMark, a sink and
// its source, a real broker.
//
// Invariant: what they compare was worked out in two ways.
package repo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// examples runs expressions in a session of its own.
type examples struct {
	*testing.T
	s *riverbed.Session
	n int // streams made so far
}

func newExamples(t *testing.T) *examples {
	s, err := riverbed.Open(map[string]string{"timezone": "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &examples{T: t, s: s}
}

// rows are the rows of a batch run, as text, and their type.
func (e *examples) rows(text string) ([]string, types.Type, error) {
	q, err := e.s.Query(e.Context(), text, nil)
	if err != nil {
		return nil, types.Type{}, err
	}
	res, err := q.Run(e.Context())
	if err != nil {
		return nil, types.Type{}, err
	}
	defer res.Release()
	var out []string
	for res.Next() {
		out = append(out, texts(res.RecordBatch(), q.Fields()[0].Type)...)
	}
	return out, q.Fields()[0].Type, res.Err()
}

// stream runs a query over a stream t(x) of these values, one step each, and gives what the changes add up to.
func (e *examples) stream(from, query string) (got []string, err error) {
	defer func() {
		if v := recover(); v != nil { // the other examples are still worth a look
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	q, err := e.s.Query(e.Context(), "SELECT x FROM "+from, nil)
	if err != nil {
		return nil, err
	}
	res, err := q.Run(e.Context())
	if err != nil {
		return nil, err
	}
	defer res.Release()
	e.n++
	name := fmt.Sprintf("t%d", e.n)
	if _, err := e.s.Query(e.Context(), fmt.Sprintf("CREATE STREAM %s (x %s) WITH (connector = 'memory')", name, q.Fields()[0].Type), nil); err != nil {
		return nil, err
	}
	live, err := e.s.Query(e.Context(), query+" FROM "+name+" t EMIT IMMEDIATE", nil)
	if err != nil {
		return nil, err
	}
	m, err := live.Manual(riverbed.ManualOptions{Strict: true})
	if err != nil {
		return nil, err
	}
	sum := riverbed.NewAccumulated(live.Fields())
	step := func() error {
		d, err := m.Step()
		if err == nil && d.Batch != nil {
			sum.Add(d)
		}
		return err
	}
	for res.Next() {
		b := res.RecordBatch()
		for i := range b.NumRows() {
			if err := m.Push(name, "", b.NewSlice(i, i+1), nil); err != nil {
				return nil, err
			}
			if err := step(); err != nil {
				return nil, err
			}
		}
	}
	m.EndAll()
	if err := step(); err != nil {
		return nil, err
	}
	for _, b := range sum.Batches() {
		got = append(got, texts(b, live.Fields()[0].Type)...)
	}
	return got, res.Err()
}

// texts prints the first column.
func texts(b arrow.RecordBatch, t types.Type) []string {
	out := make([]string, b.NumRows())
	for i := range out {
		if v := types.ValueAt(b.Column(0), i, t); v == nil {
			out[i] = "NULL"
		} else {
			out[i] = string(types.AppendText(nil, v, t, nil))
		}
	}
	return out
}

func (e *examples) check(mode, name, text, want string, got []string, err error) {
	switch {
	case err != nil:
		e.Errorf("%s, example of %q:\n%s\n%v", mode, name, text, err)
	case len(got) != 1 || got[0] != want:
		e.Errorf("%s, example of %q:\n%s\ngives %q, and the registry says %q", mode, name, text, got, want)
	}
}

// Every example of a function gives, in both modes, what the reference prints.
func TestExamplesOfFunctions(t *testing.T) {
	e := newExamples(t)
	for _, f := range fn.All {
		for _, x := range f.Examples {
			query := "SELECT " + x.SQL + " AS y"
			got, _, err := e.rows(query)
			e.check("batch", f.Name, query, x.Want, got, err)
			got, err = e.stream("(VALUES (1)) v(x)", query)
			e.check("incremental", f.Name, query, x.Want, got, err)
		}
	}
}

// Every example of an aggregate does too, or says why it cannot.
func TestExamplesOfAggregates(t *testing.T) {
	e := newExamples(t)
	for _, f := range fn.Aggregates {
		for _, x := range f.Examples {
			query := fmt.Sprintf("SELECT %s(%s) AS y", f.Name, x.SQL)
			from := fmt.Sprintf("unnest([%s]) t(x)", x.Rows)
			got, _, err := e.rows(query + " FROM " + from)
			e.check("batch", f.Name, query+" FROM "+from, x.Want, got, err)
			got, err = e.stream(from, query)
			if f.Algebra == fn.BatchOnly {
				if err == nil || !strings.Contains(err.Error(), f.Why) {
					t.Errorf("%s runs in batch only, but the refusal does not say why: %v", f.Name, err)
				}
				continue
			}
			e.check("incremental", f.Name, query+" FROM "+from, x.Want, got, err)
		}
	}
}
