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
	rows   []keptRow           // of all runs, as they came; what is in it does not change, so that a scan needs the lock for a moment only
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
	rows    []keptRow // those that are in memory: the last ones
	next    int64     // number of the next row
	shown   int64     // followers see the rows before: those of a durable run when their epoch is
	began   string    // of a durable run: which one, as its manifests name it
	durable bool
	own     bool // of a run that follows: it is not followed
	over    bool // nothing comes any more, and no other run gets its name
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

// add takes rows of a run, and wakes those who follow once.
func (k *keptRows) add(run string, rows [][]types.Value) {
	if len(rows) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, row := range rows {
		k.append(run, row)
	}
	if l := k.log(run); !l.durable {
		l.shown = l.next
		k.wake()
	}
}

func (k *keptRows) append(run string, values []types.Value) {
	if len(k.rows) >= keptLimit {
		k.drop(keptLimit / 8)
	}
	l := k.log(run)
	row := keptRow{l.next, values}
	k.rows, l.rows = append(k.rows, row), append(l.rows, row)
	l.next++
}

// drop forgets the oldest rows. They are locked.
func (k *keptRows) drop(n int) {
	for _, row := range k.rows[:n] {
		l := k.log(row.values[0].(string))
		l.rows[0] = keptRow{} // its values may go before what they lay in
		l.rows = l.rows[1:]
	}
	k.rows = slices.Clone(k.rows[n:])
}

// wake tells those who follow that there is something to look at. The rows are locked.
func (k *keptRows) wake() {
	if k.news != nil {
		close(k.news)
		k.news = nil
	}
}

// replace makes what a run has kept that of its checkpoints: it may have run in this session before.
func (k *keptRows) replace(run string, by keptTail) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows = slices.DeleteFunc(slices.Clone(k.rows), func(r keptRow) bool { return r.values[0] == run })
	k.logs[run] = &keptLog{next: by.next - int64(len(by.rows))}
	for _, row := range by.rows {
		row[0] = run // of a savepoint it may be another
		k.append(run, row)
	}
}

// keptTail is a log that is read from checkpoints: it counts all rows and has the values of those that memory has room for.
type keptTail struct {
	fields []types.Field
	next   int64
	rows   [][]types.Value
}

// take reads on; all is how many rows there are.
func (t *keptTail) take(b arrow.RecordBatch, all int64) {
	n := b.NumRows()
	for r := max(all-keptLimit-t.next, 0); r < n; r++ {
		t.rows = append(t.rows, keptValues(t.fields, b, int(r)))
	}
	t.next += n
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
	rows := k.rows
	k.mu.Unlock()
	return []arrow.RecordBatch{keptBatch(k.Fields(), rows)}
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

// keptOfStep are the late and the bad rows of a step.
type keptOfStep struct{ late, bad [][]types.Value }

func (q *Query) kept(run string, out incremental.Output) keptOfStep {
	k := keptOfStep{bad: q.badRows(run, out.Bad)}
	for _, l := range out.Late {
		for _, row := range rowTexts(l.Batch) {
			k.late = append(k.late, []types.Value{run, l.Source, l.Split, int64(out.Delta.Step), row.text, row.weight})
		}
	}
	return k
}

// keep books them.
func (s *Session) keep(run string, k keptOfStep) {
	s.late.add(run, k.late)
	s.bad.add(run, k.bad)
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
