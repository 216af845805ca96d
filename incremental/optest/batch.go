package optest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// Oracle answers a query over weighted rows, written as for Delta and listed by source; the answer is sorted.
type Oracle func(r *Run, input map[string][]string) ([]string, error)

// Batch is the oracle of the promise: our own batch mode over the accumulated input.
func Batch(r *Run, input map[string][]string) ([]string, error) {
	cat := &catalog{sources: map[string]*plan.Source{}}
	for _, src := range r.cat.order {
		rel, err := relationOf(src.Fields, input[strings.ToLower(src.Name)])
		if err != nil {
			return nil, err
		}
		// The event time stays declared: what the text means must not depend on the mode.
		s := &plan.Source{Name: src.Name, Fields: src.Fields, Relation: rel, Watermark: src.Watermark}
		cat.sources[strings.ToLower(src.Name)] = s
	}
	q, err := cat.query(r.text, plan.Batch)
	if err != nil {
		return nil, err
	}
	var ts []types.Type
	for _, c := range q.Root.Columns() {
		ts = append(ts, c.Type)
	}
	res, err := exec.Run(context.Background(), q.Root, &exec.Env{Fn: &fn.Env{Now: r.in.Now}, Workers: 1}, nil)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	var out []string
	for res.Next() {
		for _, row := range render(res.RecordBatch(), ts) {
			_, text, _ := strings.Cut(row, " ")
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out, res.Err()
}

// relationOf spells weights out as rows.
func relationOf(fields []types.Field, rows []string) (*relation, error) {
	count := map[string]int64{}
	var order []string
	for _, row := range rows {
		w, text, _ := strings.Cut(row, " ")
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return nil, err
		}
		if _, ok := count[text]; !ok {
			order = append(order, text)
		}
		count[text] += n
	}
	values := make([][]types.Value, len(fields))
	n := 0
	for _, text := range order {
		ws := words(text)
		for range count[text] {
			n++
			for c, f := range fields {
				v, err := parse(ws[c], f.Type)
				if err != nil {
					return nil, err
				}
				values[c] = append(values[c], v)
			}
		}
	}
	rel := &relation{fields: fields, rows: n}
	for c, f := range fields {
		rel.cols = append(rel.cols, types.ArrayOf(values[c], f.Type))
	}
	return rel, nil
}

// scan hands all rows to the first worker.
type scan struct {
	rel  *relation
	at   []int
	done bool
}

func (s *scan) Next(_ context.Context, worker int) (*flow.Morsel, error) {
	if s.done || worker != 0 {
		return nil, nil
	}
	s.done = true
	var cols []arrow.Array
	var fields []arrow.Field
	for _, i := range s.at {
		cols = append(cols, s.rel.cols[i])
		fields = append(fields, s.rel.fields[i].Type.ArrowField(s.rel.fields[i].Name))
	}
	return &flow.Morsel{Batch: array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(s.rel.rows))}, nil
}

func (s *scan) Close() error { return nil }
