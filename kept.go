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
		{Name: "key", Type: types.Binary}, // of a message
	}
)

// numberField is the column behind those that are stored: with the name of the run it tells each row from all others, also after a restart.
var numberField = types.Field{Name: "number", Type: types.Int64}

// keptRows is a bounded relation of rows as values, and the newest part of a log for each run, which can be followed (follow.go).
type keptRows struct {
	name   string // __late or __bad
	fields []types.Field
	mu     sync.Mutex
	rows   []keptRow
	logs   map[string]*keptLog // by the run, which the first column names
	news   chan struct{}       // closed when those who follow may find something; nil: nobody waits
}

// keptRow is a row and which of its run it is, from 0 on.
type keptRow struct {
	number int64
	values []types.Value
}

// keptLog is what is known of the rows of one run.
type keptLog struct {
	next    int64  // number of the next row
	shown   int64  // followers see the rows before: those of a durable run when their epoch is
	began   string // of a durable run: which one, as its manifests name it
	durable bool
	own     bool // of a run that follows: it is not followed
}

func newKeptRows(name string, fields []types.Field) *keptRows {
	return &keptRows{name: name, fields: fields, logs: map[string]*keptLog{}}
}

// log is what is known of a run. The rows are locked.
func (k *keptRows) log(run string) *keptLog {
	l := k.logs[run]
	if l == nil {
		l = &keptLog{}
		k.logs[run] = l
	}
	return l
}

func (k *keptRows) add(row ...types.Value) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.append(row)
	if l := k.log(row[0].(string)); !l.durable {
		l.shown = l.next
		k.wake()
	}
}

func (k *keptRows) append(row []types.Value) {
	if len(k.rows) >= keptLimit {
		k.rows = append([]keptRow{}, k.rows[keptLimit/8:]...)
	}
	l := k.log(row[0].(string))
	k.rows = append(k.rows, keptRow{l.next, row})
	l.next++
}

// wake tells those who follow that there is something to look at. The rows are locked.
func (k *keptRows) wake() {
	if k.news != nil {
		close(k.news)
		k.news = nil
	}
}

// replace makes what a run has kept that of its checkpoints: it may have run in this session before. The first column names the run.
func (k *keptRows) replace(run string, batches []arrow.RecordBatch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows = slices.DeleteFunc(slices.Clone(k.rows), func(r keptRow) bool { return r.values[0] == run })
	k.logs[run] = &keptLog{}
	for _, b := range batches {
		for r := range int(b.NumRows()) {
			row := keptValues(k.fields, b, r)
			row[0] = run // of a savepoint it may be another
			k.append(row)
		}
	}
}

// keptValues is a row of a checkpoint. One of an earlier version has fewer columns.
func keptValues(fields []types.Field, b arrow.RecordBatch, r int) []types.Value {
	row := make([]types.Value, len(fields))
	for c, f := range fields[:min(len(fields), int(b.NumCols()))] {
		row[c] = types.ValueAt(b.Column(c), r, f.Type)
	}
	return row
}

// batches are the rows with their numbers.
func (k *keptRows) batches() []arrow.RecordBatch {
	k.mu.Lock()
	defer k.mu.Unlock()
	return []arrow.RecordBatch{keptBatch(k.Fields(), k.rows)}
}

// stored are the rows as checkpoints have them.
func (k *keptRows) stored() []arrow.RecordBatch {
	k.mu.Lock()
	defer k.mu.Unlock()
	return []arrow.RecordBatch{keptBatch(k.fields, k.rows)}
}

func keptBatch(fields []types.Field, rows []keptRow) arrow.RecordBatch {
	cols := make([]arrow.Array, len(fields))
	for c, f := range fields {
		vals := make([]types.Value, len(rows))
		for r, row := range rows {
			if c < len(row.values) {
				vals[r] = row.values[c]
			} else {
				vals[r] = row.number
			}
		}
		cols[c] = types.ArrayOf(vals, f.Type)
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(len(rows)))
}

func (k *keptRows) source() *plan.Source {
	return &plan.Source{Name: k.name, Relation: k, Fields: k.Fields()}
}

// Fields implements flow.Relation.
func (k *keptRows) Fields() []types.Field {
	return append(k.fields[:len(k.fields):len(k.fields)], numberField)
}

// Stats implements flow.Relation.
func (k *keptRows) Stats() flow.Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return flow.Stats{Rows: int64(len(k.rows))}
}

// Scan implements flow.Relation.
func (k *keptRows) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return newChunkScan(chunksOf(k.batches()), k.Fields(), req), nil
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
