// Package optest tests incremental queries with deltas that are short strings.
//
//	op := optest.New(t, "CREATE TABLE t (k TEXT)", "SELECT DISTINCT k FROM t")
//	op.Delta("+2 a", "+1 b").Emits("+1 a", "+1 b")
//	op.Delta("-1 a").Emits() // one copy is left
//	op.Restart()             // snapshot, forget, restore
//	op.Delta("-1 a").Emits("-1 a")
//
// A row is a weight and its values. With several sources it begins with the source's name; name/split names a split.
// Times are mm:ss of 2024-01-01 00 o'clock, or ISO 8601.
//
// Invariant: a test says nothing that depends on the order of rows within a step.
package optest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// Run is a query under test.
type Run struct {
	t     testing.TB
	cat   *catalog
	text  string
	opts  incremental.Options
	query *plan.Query
	graph *incremental.Graph
	types []types.Type

	in      incremental.Input
	out     incremental.Output
	late    []lateRow
	total   map[string]int64
	saved   *incremental.Snapshot // Incremental: the sum of all changes
	copying *incremental.Copying  // the last of them, which is copied when the graph has stepped on
}

// Option changes how a query runs.
type Option func(*incremental.Options)

// Parallel runs keyed operators as n instances.
func Parallel(n int) Option { return func(o *incremental.Options) { o.Parallelism = n } }

// Lenient counts retractions of rows that were never there instead of failing.
func Lenient() Option { return func(o *incremental.Options) { o.StrictRetractions = false } }

// Incremental restarts from the sum of what each step changed, instead of from a whole snapshot.
func Incremental() Option { return func(o *incremental.Options) { o.TrackChanges = true } }

// With sets options as it likes.
func With(set func(*incremental.Options)) Option { return set }

// New plans a query over declared relations.
func New(t testing.TB, ddl, query string, opts ...Option) *Run {
	t.Helper()
	r, err := Build(t, ddl, query, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Build is New for queries that may be refused.
func Build(t testing.TB, ddl, query string, opts ...Option) (*Run, error) {
	t.Helper()
	r := &Run{t: t, cat: declare(t, ddl), text: query, total: map[string]int64{}}
	r.opts = incremental.Options{Parallelism: 1, StrictRetractions: true}
	for _, o := range opts {
		o(&r.opts)
	}
	r.in.Now = start
	return r, r.build()
}

var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func (r *Run) build() error {
	q, err := r.cat.query(r.text, plan.Incremental)
	if err != nil {
		return err
	}
	r.query, r.types = q, nil
	for _, c := range q.Root.Columns() {
		r.types = append(r.types, c.Type)
	}
	r.graph, err = incremental.Build(q, r.opts)
	return err
}

// Plan is the plan under test.
func (r *Run) Plan() *plan.Query { return r.query }

// Graph is the graph under test.
func (r *Run) Graph() *incremental.Graph { return r.graph }

// source finds a source of the graph by name; the only one by "".
func (r *Run) source(name string) int {
	for i, s := range r.graph.Sources() {
		if strings.EqualFold(s.Source.Name, name) || name == "" {
			return i
		}
	}
	r.t.Helper()
	r.t.Fatalf("the query reads no source %q", name)
	return 0
}

// Push queues rows for the next step, one push a row run of one split.
func (r *Run) Push(rows ...string) *Run {
	r.t.Helper()
	for _, row := range rows {
		name, split := "", "p"
		fields := words(row)
		if len(r.graph.Sources()) > 1 || !isWeight(fields[0]) {
			name, fields = fields[0], fields[1:]
			if n, s, ok := strings.Cut(name, "/"); ok {
				name, split = n, s
			}
		}
		src := r.source(name)
		r.in.Pushes = append(r.in.Pushes, incremental.Push{Source: src, Split: split, Batch: r.batch(src, fields)})
	}
	return r
}

func isWeight(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil && (s[0] == '+' || s[0] == '-')
}

// words splits at spaces; ” quotes.
func words(s string) []string {
	var out []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '\'' {
			end := strings.IndexByte(s[1:], '\'') + 1
			out, s = append(out, s[:end+1]), s[end+1:]
			continue
		}
		w, rest, _ := strings.Cut(s, " ")
		out, s = append(out, w), rest
	}
	return out
}

func (r *Run) batch(src int, fields []string) arrow.RecordBatch {
	r.t.Helper()
	info := r.graph.Sources()[src]
	weight, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		r.t.Fatalf("%q has no weight in front", fields)
	}
	if len(fields)-1 != len(info.Source.Fields) {
		r.t.Fatalf("%v has %d values and %s has %d columns", fields, len(fields)-1, info.Source.Name, len(info.Source.Fields))
	}
	var cols []arrow.Array
	var arrows []arrow.Field
	for _, at := range info.Columns {
		f := info.Source.Fields[at]
		v, err := parse(fields[1+at], f.Type)
		if err != nil {
			r.t.Fatal(err)
		}
		cols, arrows = append(cols, types.ArrayOf([]types.Value{v}, f.Type)), append(arrows, f.Type.ArrowField(f.Name))
	}
	if info.Updating || weight != 1 {
		cols, arrows = append(cols, types.ArrayOf([]types.Value{weight}, types.Int64)), append(arrows, flow.WeightField)
	}
	return array.NewRecordBatch(arrow.NewSchema(arrows, nil), cols, 1)
}

// parse reads a value as a test writes it.
func parse(s string, t types.Type) (types.Value, error) {
	if s == "NULL" {
		return nil, nil
	}
	if len(s) >= 2 && s[0] == '\'' {
		s = s[1 : len(s)-1]
	}
	if t.IsTimestamp() && len(s) >= 5 && s[2] == ':' {
		s = "2024-01-01 00:" + s
	}
	return types.ParseValue(s, t)
}

func format(v types.Value, t types.Type) string {
	if v == nil {
		return "NULL"
	}
	s := types.Format(v, t)
	if t.IsTimestamp() {
		if short, ok := strings.CutPrefix(s, "2024-01-01 00:"); ok {
			return short
		}
		return strings.Replace(s, " ", "T", 1)
	}
	if s == "" || strings.ContainsRune(s, ' ') {
		return "'" + s + "'"
	}
	return s
}

// Watermark queues a watermark set by hand, behind the rows queued so far.
func (r *Run) Watermark(source, at string) *Run {
	r.t.Helper()
	v, err := parse(at, types.TsUS)
	if err != nil {
		r.t.Fatal(err)
	}
	w := flow.Watermark(v.(int64))
	r.in.Pushes = append(r.in.Pushes, incremental.Push{Source: r.source(source), Split: "p", Watermark: &w})
	return r
}

// Open queues the news that a split exists.
func (r *Run) Open(source, split string) *Run { return r.tick(source, split, incremental.SplitOpened) }

// Idle queues the silence of a split, behind the rows queued so far.
func (r *Run) Idle(source, split string) *Run {
	r.in.Pushes = append(r.in.Pushes, incremental.Push{Source: r.source(source), Split: split, Idle: true})
	return r
}

// End queues the end of a source; "" ends all.
func (r *Run) End(source string) *Run {
	if source == "" {
		for i := range r.graph.Sources() {
			r.in.Ticks = append(r.in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
		}
		return r
	}
	return r.tick(source, "", incremental.SourceEnded)
}

func (r *Run) tick(source, split string, kind incremental.TickKind) *Run {
	r.in.Ticks = append(r.in.Ticks, incremental.Tick{Source: r.source(source), Split: split, Kind: kind})
	return r
}

// After moves the time of the next steps on.
func (r *Run) After(d time.Duration) *Run {
	r.in.Now = r.in.Now.Add(d)
	return r
}

// Delta runs a step with what is queued and these rows.
func (r *Run) Delta(rows ...string) *Run {
	r.t.Helper()
	return r.Push(rows...).Step()
}

// Step runs a step with what is queued.
func (r *Run) Step() *Run {
	r.t.Helper()
	if err := r.TryStep(); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// TryStep is Step for steps that may fail.
func (r *Run) TryStep() error {
	in := r.in
	r.in = incremental.Input{Now: in.Now}
	out, err := r.graph.Step(in)
	if err != nil {
		return err
	}
	r.out = out
	if r.opts.TrackChanges {
		if err := r.save(); err != nil {
			return err
		}
	}
	for _, row := range render(out.Delta.Batch, r.types) {
		w, text, _ := strings.Cut(row, " ")
		n, _ := strconv.ParseInt(w, 10, 64)
		if r.total[text] += n; r.total[text] == 0 {
			delete(r.total, text)
		}
	}
	for _, l := range out.Late {
		var ts []types.Type
		for _, f := range l.Batch.Schema().Fields() {
			if f.Name != flow.WeightColumn {
				typ, err := types.FromArrow(f)
				if err != nil {
					return err
				}
				ts = append(ts, typ)
			}
		}
		for _, row := range render(l.Batch, ts) {
			r.late = append(r.late, lateRow{l.Source, row})
		}
	}
	return nil
}

// save adds the step's changes to the saved state. Their rows are copied behind the next step.
func (r *Run) save() (err error) {
	if r.saved == nil {
		r.saved = &incremental.Snapshot{}
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.copying, err = r.graph.BeginChanges()
	return err
}

// settle copies what is left of the last changes.
func (r *Run) settle() error {
	if r.copying == nil {
		return nil
	}
	changes, err := r.copying.Rest()
	r.copying = nil
	if err == nil {
		r.saved.Add(changes)
	}
	return err
}

// render prints the rows of a batch, weight first.
func render(b arrow.RecordBatch, ts []types.Type) []string {
	d := flow.Delta{Batch: b}
	w, cols := d.Weights(), d.Columns()
	out := make([]string, d.Rows())
	for i := range out {
		weight := int64(1)
		if w != nil {
			weight = w[i]
		}
		parts := []string{fmt.Sprintf("%+d", weight)}
		for c, a := range cols {
			parts = append(parts, format(types.ValueAt(a, i, ts[c]), ts[c]))
		}
		out[i] = strings.Join(parts, " ")
	}
	return out
}

func (r *Run) compare(what string, got, want []string) *Run {
	r.t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Fatalf("%s\n  got  %q\n  want %q", what, got, want)
	}
	return r
}

// Emits compares what the last step showed.
func (r *Run) Emits(want ...string) *Run {
	r.t.Helper()
	return r.compare("the step shows other changes", render(r.out.Delta.Batch, r.types), want)
}

// Holds compares what all steps so far add up to; a row that stands n times is written n times, without weights.
func (r *Run) Holds(want ...string) *Run {
	r.t.Helper()
	return r.compare("the changes so far add up to other rows", r.Rows(), want)
}

// Rows is what all steps so far add up to, sorted.
func (r *Run) Rows() []string {
	var got []string
	for row, n := range r.total {
		if n < 0 {
			r.t.Helper()
			r.t.Fatalf("the changes so far add up to %d times %q", n, row)
		}
		for range n {
			got = append(got, row)
		}
	}
	slices.Sort(got)
	return got
}

// Late compares all late rows so far.
func (r *Run) Late(want ...string) *Run {
	r.t.Helper()
	return r.compare("other rows are late", r.LateOf(""), want)
}

// At compares the output's watermark.
func (r *Run) At(want string) *Run {
	r.t.Helper()
	got := "none"
	switch w := r.graph.Watermark(); w {
	case flow.NoWatermark:
	case flow.EndWatermark:
		got = "end"
	default:
		got = format(int64(w), types.TsUS)
	}
	if got != want {
		r.t.Fatalf("the watermark is %s, not %s", got, want)
	}
	return r
}

// Restart takes a snapshot, forgets everything and restores it.
func (r *Run) Restart() *Run { return r.RestartWith(r.opts.Parallelism) }

// RestartWith restarts with another parallelism.
func (r *Run) RestartWith(parallelism int) *Run {
	r.t.Helper()
	if err := r.settle(); err != nil {
		r.t.Fatal(err)
	}
	s := r.saved
	if s == nil {
		var err error
		if s, err = r.graph.Snapshot(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.opts.Parallelism = parallelism
	if err := r.build(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.graph.Restore(s); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// StateRows is how many rows the operators keep.
func (r *Run) StateRows() int64 { return r.graph.Stats().StateRows }

// Canon rewrites an output row to the way in which this package prints it.
func (r *Run) Canon(row string) string {
	r.t.Helper()
	ws := words(row)
	if len(ws) != len(r.types) {
		r.t.Fatalf("%q has %d values and the output %d columns", row, len(ws), len(r.types))
	}
	for i, w := range ws {
		v, err := parse(w, r.types[i])
		if err != nil {
			r.t.Fatal(err)
		}
		ws[i] = format(v, r.types[i])
	}
	return strings.Join(ws, " ")
}

// LateRows is how many rows were late so far.
func (r *Run) LateRows() int { return len(r.late) }

// Explain prints the plan.
func (r *Run) Explain() string {
	q, err := r.cat.query(r.text, plan.Incremental)
	if err != nil {
		return err.Error()
	}
	return plan.Format(q.Root)
}

type lateRow struct{ source, row string }

// LateOf lists the late rows of a source so far; of all for "".
func (r *Run) LateOf(source string) []string {
	var out []string
	for _, l := range r.late {
		if source == "" || strings.EqualFold(l.source, source) {
			out = append(out, l.row)
		}
	}
	return out
}

// Time reads a time as tests write it.
func Time(s string) (flow.Watermark, error) {
	v, err := parse(s, types.TsUS)
	if err != nil {
		return 0, err
	}
	return flow.Watermark(v.(int64)), nil
}

// Render prints the rows of a delta of the query's output, weight first.
func (r *Run) Render(d flow.Delta) []string { return render(d.Batch, r.types) }
