package riverbed

import (
	"context"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// Nothing vanishes: what came too late, what did not decode, and what an expression failed on with on_error = 'bad' can be
// read from __late and __bad.

// keptLimit bounds each of the two; beyond it the oldest rows go, and only their number in the metrics remains.
const keptLimit = 1 << 17

var (
	lateFields = []types.Field{
		{Name: "pipeline", Type: types.String}, {Name: "source", Type: types.String}, {Name: "split", Type: types.String},
		{Name: "step", Type: types.Int64}, {Name: "row", Type: types.String}, {Name: "weight", Type: types.Int64},
	}
	badFields = []types.Field{
		{Name: "pipeline", Type: types.String}, {Name: "source", Type: types.String}, {Name: "split", Type: types.String},
		{Name: "position", Type: types.String}, {Name: "error", Type: types.String}, {Name: "raw", Type: types.Binary},
		{Name: "time", Type: types.TsUS},
		{Name: "row", Type: types.String}, {Name: "query", Type: types.String}, // of what an expression failed on
	}
)

// keptRows is a bounded relation of rows as values.
type keptRows struct {
	fields []types.Field
	mu     sync.Mutex
	rows   [][]types.Value
}

func newKeptRows(fields []types.Field) *keptRows { return &keptRows{fields: fields} }

func (k *keptRows) add(row ...types.Value) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.rows) >= keptLimit {
		k.rows = append([][]types.Value{}, k.rows[keptLimit/8:]...)
	}
	k.rows = append(k.rows, row)
}

// replace makes what a run has kept that of its checkpoints: it may have run in this session before. The first column names the run.
func (k *keptRows) replace(run string, batches []arrow.RecordBatch) {
	k.mu.Lock()
	k.rows = slices.DeleteFunc(slices.Clone(k.rows), func(row []types.Value) bool { return row[0] == run })
	k.mu.Unlock()
	for _, b := range batches {
		for r := range int(b.NumRows()) {
			row := make([]types.Value, len(k.fields))
			for c, f := range k.fields {
				row[c] = types.ValueAt(b.Column(c), r, f.Type)
			}
			k.add(row...)
		}
	}
}

func (k *keptRows) batches() []arrow.RecordBatch {
	k.mu.Lock()
	defer k.mu.Unlock()
	cols := make([]arrow.Array, len(k.fields))
	for c, f := range k.fields {
		vals := make([]types.Value, len(k.rows))
		for r, row := range k.rows {
			vals[r] = row[c]
		}
		cols[c] = types.ArrayOf(vals, f.Type)
	}
	return []arrow.RecordBatch{array.NewRecordBatch(types.ArrowSchema(k.fields), cols, int64(len(k.rows)))}
}

func (k *keptRows) source(name string) *plan.Source {
	return &plan.Source{Name: name, Relation: k, Fields: k.fields}
}

// Fields implements flow.Relation.
func (k *keptRows) Fields() []types.Field { return k.fields }

// Stats implements flow.Relation.
func (k *keptRows) Stats() flow.Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return flow.Stats{Rows: int64(len(k.rows))}
}

// Scan implements flow.Relation.
func (k *keptRows) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return newChunkScan(chunksOf(k.batches()), k.fields, req), nil
}

// keep books a step's late and bad rows.
func (s *Session) keep(q *Query, pipeline string, out incremental.Output) {
	keepLate(s.late, pipeline, out)
	q.keepBad(s.bad, pipeline, out.Bad)
}

func keepLate(to *keptRows, pipeline string, out incremental.Output) {
	for _, l := range out.Late {
		for _, row := range rowTexts(l.Batch) {
			to.add(pipeline, l.Source, l.Split, int64(out.Delta.Step), row.text, row.weight)
		}
	}
}

type rowText struct {
	text   string
	weight int64
}

// rowTexts prints rows as STRUCT values.
func rowTexts(b arrow.RecordBatch) []rowText {
	d := flow.Delta{Batch: b}
	cols := d.Columns()
	fields := make([]types.Field, len(cols))
	for i := range cols {
		f, err := types.FromArrow(b.Schema().Field(i))
		if err != nil {
			f = types.String
		}
		fields[i] = types.Field{Name: b.Schema().Field(i).Name, Type: f}
	}
	t := types.StructOf(fields...)
	w := d.Weights()
	out := make([]rowText, d.Rows())
	for r := range out {
		vals := make([]types.Value, len(cols))
		for c, a := range cols {
			vals[c] = types.ValueAt(a, r, fields[c].Type)
		}
		out[r] = rowText{types.Format(vals, t), 1}
		if w != nil {
			out[r].weight = w[r]
		}
	}
	return out
}
