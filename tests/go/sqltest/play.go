package sqltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	riverbed "github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// Engine holds two sessions over the same relations: one where they are tables that a test fills, for batch, and one where
// they are streams that a test pushes to.
type Engine struct {
	Relations []*Relation
	Batch     *riverbed.Session
	Inc       *riverbed.Session
	tables    []*Growing
	marks     *riverbed.Session // one worker: keeps the order of rows
	markRows  []*Growing
	markQuery []*riverbed.Query
}

// NewEngine opens the sessions and runs the set-up statements in both. workers is the batch engine's.
func NewEngine(rels []*Relation, setup []string, workers int) (*Engine, error) {
	e := &Engine{Relations: rels}
	config := map[string]string{"parallelism": strconv.Itoa(workers), "timezone": "UTC"}
	var err error
	if e.Batch, err = riverbed.Open(config); err != nil {
		return nil, err
	}
	if e.Inc, err = riverbed.Open(map[string]string{"parallelism": "1", "timezone": "UTC", "strict_retractions": "true"}); err != nil {
		return nil, err
	}
	if e.marks, err = riverbed.Open(map[string]string{"parallelism": "1", "timezone": "UTC"}); err != nil {
		return nil, err
	}
	for _, r := range rels {
		g := NewGrowingOf(r)
		if workers > 1 {
			g.Morsel = 3
		}
		e.tables = append(e.tables, g)
		if err := e.Batch.Register(r.Name, g); err != nil {
			return nil, err
		}
		if err := e.addMarks(r); err != nil {
			return nil, err
		}
		if r.Table {
			if _, err := e.Inc.Query(context.Background(), createTable(r), nil); err != nil {
				return nil, err
			}
			continue
		}
		eventTime := ""
		if r.Watermark != "" {
			eventTime = r.Fields[r.EventTime].Name
		}
		if err := e.Inc.AddStream(r.Name, pushed{r.Fields, r.Updating, r.Key}, r.Watermark, eventTime); err != nil {
			return nil, err
		}
	}
	for _, text := range setup {
		for _, s := range []*riverbed.Session{e.Batch, e.Inc} {
			if _, err := s.Query(context.Background(), text, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
		}
	}
	return e, nil
}

func createTable(r *Relation) string {
	cols := make([]string, len(r.Fields))
	for i, f := range r.Fields {
		cols[i] = fmt.Sprintf("%q %s", f.Name, f.Type)
	}
	return fmt.Sprintf("CREATE TABLE %q (%s)", r.Name, strings.Join(cols, ", "))
}

// Close closes the sessions.
func (e *Engine) Close() {
	_ = e.Batch.Close()
	_ = e.Inc.Close()
	_ = e.marks.Close()
}

// addMarks prepares the query for the event times and watermarks of rows.
func (e *Engine) addMarks(r *Relation) error {
	if r.Watermark == "" {
		e.markRows, e.markQuery = append(e.markRows, nil), append(e.markQuery, nil)
		return nil
	}
	g := NewGrowing(append(append([]types.Field{}, r.Fields...), types.Field{Name: "nth", Type: types.Int64}))
	if err := e.marks.Register(r.Name, g); err != nil {
		return err
	}
	q, err := e.marks.Query(context.Background(), fmt.Sprintf("SELECT nth, CAST(%q AS TIMESTAMP), CAST(%s AS TIMESTAMP) FROM %q", r.Fields[r.EventTime].Name, r.Watermark, r.Name), nil)
	e.markRows, e.markQuery = append(e.markRows, g), append(e.markQuery, q)
	return err
}

// marksOf works out the event time and the watermark of every row.
func (e *Engine) marksOf(events []Event) ([]mark, error) {
	out := make([]mark, len(events))
	for i, q := range e.markQuery {
		if q == nil {
			continue
		}
		var rows [][]types.Value
		for nth, ev := range events {
			if ev.Kind == Row && ev.Rel == i {
				rows = append(rows, append(append([]types.Value{}, ev.Values...), int64(nth)))
			}
		}
		e.markRows[i].Set(rows)
		err := Each(q, func(b arrow.RecordBatch) {
			for r := range int(b.NumRows()) {
				m := &out[types.ValueAt(b.Column(0), r, types.Int64).(int64)]
				if v := types.ValueAt(b.Column(1), r, types.TsUS); v != nil {
					m.at, m.hasAt = flow.Watermark(v.(int64)), true
				}
				if v := types.ValueAt(b.Column(2), r, types.TsUS); v != nil {
					m.wm, m.hasWM = flow.Watermark(v.(int64)), true
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Each runs a query and hands its batches over.
func Each(q *riverbed.Query, f func(arrow.RecordBatch)) error {
	r, err := q.Run(context.Background())
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		f(r.RecordBatch())
	}
	return r.Err()
}

// Rows runs a query and returns its rows in order.
func Rows(q *riverbed.Query) ([]string, error) {
	var out []string
	ts := TypesOf(q.Fields())
	err := Each(q, func(b arrow.RecordBatch) { out = append(out, Texts(b.Columns(), ts, int(b.NumRows()))...) })
	return out, err
}

// BagOf counts rows.
func BagOf(rows []string) Bag {
	b := Bag{}
	for _, r := range rows {
		b.Add(r, 1)
	}
	return b
}

// Options of one run.
type Options struct {
	Workers int
	Rand    *rand.Rand // for restarts and for cutting a step's rows into pushes
	Restart bool       // restore the snapshot, into other parallelisms, between steps
	Durable bool       // restore from checkpoints, an epoch a step
	// OpenStore, where it is given, makes the store to which rows of state go: memory has room for none between steps.
	OpenStore func() (state.Store, error)
	OneAt     bool // compare only after the last step
	OnStep    func(step int, changes Bag, late []string)
}

// Outcome is what a run showed.
type Outcome struct {
	Rows     [][][]types.Value // A at the end, by relation
	Final    Bag
	Values   [][]types.Value // the last batch answer
	Fields   []types.Field
	Failed   error  // the error that batch and incremental agree on; nothing is compared behind it
	Late     int    // rows
	Mismatch string // empty: all is well
	Step     int    // of the mismatch
}

// Play runs a query on a cutting and compares after every step. The error is one of planning the incremental run.
func (e *Engine) Play(query string, steps [][]Event, o Options) (Outcome, error) {
	batch, err := e.Batch.Query(context.Background(), query, nil)
	if err != nil {
		return Outcome{}, err
	}
	inc, err := e.Inc.Query(context.Background(), query, nil)
	if err != nil {
		return Outcome{}, err
	}
	man, err := inc.Manual(riverbed.ManualOptions{Parallelism: max(o.Workers, 1), Strict: true, Checkpoints: o.Durable, OpenStore: o.OpenStore, StateLimit: 1})
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = man.Close() }()
	p := &play{e: e, o: o, man: man, batch: batch, model: newModel(e.Relations), acc: Bag{}, query: query, immediate: man.Updating()}
	p.reads(man.Sources())
	if err := p.policy(); err != nil {
		return Outcome{}, err
	}
	var all []Event
	for _, s := range steps {
		all = append(all, s...)
	}
	if p.marks, err = e.marksOf(all); err != nil {
		return Outcome{}, err
	}
	for i, s := range steps {
		p.out.Step = i + 1
		if p.step(s) {
			return p.out, nil
		}
	}
	p.out.Step = len(steps) + 1
	var end []Event
	for i, r := range p.model.rels {
		if !r.ended {
			end = append(end, Event{Kind: End, Rel: i})
		}
	}
	p.last = true
	p.step(end)
	return p.out, nil
}

type play struct {
	lent      []arrow.RecordBatch // pushed since the last step
	e         *Engine
	o         Options
	man       *riverbed.Manual
	batch     *riverbed.Query
	query     string
	immediate bool
	every     int64 // µs; 0: not EMIT EVERY
	closing   *closing
	model     *model
	marks     []mark // of the events to come
	uses      []bool // by relation: the query reads it
	acc       Bag
	retracted bool // a row was taken back
	now       time.Duration
	shownAt   int64
	started   bool
	last      bool
	out       Outcome
}

func (p *play) reads(sources []string) {
	p.uses = make([]bool, len(p.e.Relations))
	for i, r := range p.e.Relations {
		for _, s := range sources {
			p.uses[i] = p.uses[i] || strings.EqualFold(s, r.Name)
		}
	}
}

// policy finds out when the run shows results, and how to ask batch for the groups that a watermark has closed.
func (p *play) policy() error {
	st, err := sql.ParseOne(p.query)
	if err != nil {
		return err
	}
	q, ok := st.(*sql.Query)
	if !ok {
		return fmt.Errorf("not a query: %s", p.query)
	}
	if q.Emit != nil && q.Emit.Kind == sql.EmitEvery {
		p.every, err = everyMicros(q)
		return err
	}
	if !p.immediate {
		p.closing = newClosing(p.query)
	}
	return nil
}

func everyMicros(q *sql.Query) (int64, error) {
	text := sql.Print(q.Emit.Every)
	v, ok := types.ParseInterval(strings.Trim(strings.TrimPrefix(text, "INTERVAL "), "'"))
	if !ok {
		return 0, fmt.Errorf("not an interval: %s", text)
	}
	return v.Micros, nil
}

func (p *play) fail(format string, args ...any) bool {
	p.out.Mismatch = fmt.Sprintf(format, args...)
	return true
}

// step runs one step and reports whether the run is over.
func (p *play) step(events []Event) bool {
	marks := p.marks[:min(len(events), len(p.marks))]
	p.marks = p.marks[len(marks):]
	p.model.apply(events, marks)
	p.retracted = p.retracted || slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Row && e.Weight < 0 })
	for _, r := range p.model.rels {
		if r.rows.negative() {
			return p.fail("the test retracts a row of %s that is not there", r.Name)
		}
	}
	delta, incErr := p.advance(events)
	if incErr == nil && p.o.Restart && p.o.Rand.IntN(2) == 0 {
		if err := p.man.Restart([]int{1, 2, 3, 4, 7}[p.o.Rand.IntN(5)]); err != nil {
			return p.fail("restart: %v", err)
		}
	}
	if incErr == nil {
		ch := Bag{}
		ch.AddBatch(delta.Columns(), outputTypes(delta), delta.Rows(), delta.Weights())
		for row, n := range ch {
			p.acc.Add(row, n)
		}
		var late []string
		for i, r := range p.model.rels {
			if p.uses[i] {
				for _, row := range r.late {
					late = append(late, r.Name+" "+row)
				}
			}
		}
		p.out.Late += len(late)
		if p.o.OnStep != nil && !(p.last && len(ch) == 0) {
			p.o.OnStep(p.out.Step, ch, late)
		}
		if n := int64(p.out.Late); n != p.engineLate() {
			return p.fail("%d rows are late, and the engine has %d in __late", n, p.engineLate())
		}
		if row, bad := p.acc.Negative(); bad {
			return p.fail("a row stands there less than zero times: %s", row)
		}
	}
	if p.o.OneAt && !p.last && incErr == nil {
		return false
	}
	return p.compare(incErr)
}

func (p *play) engineLate() (n int64) {
	for _, l := range p.man.Stats().Late {
		n += l
	}
	return n
}

// outputTypes reads the SQL types of a delta's columns off its schema.
func outputTypes(d flow.Delta) []types.Type {
	out := make([]types.Type, len(d.Columns()))
	for i := range out {
		t, err := types.FromArrow(d.Batch.Schema().Field(i))
		if err != nil {
			panic(err)
		}
		out[i] = t
	}
	return out
}

// advance pushes the events of a step, rows of one split that follow each other in one batch or in several, and steps.
func (p *play) advance(events []Event) (flow.Delta, error) {
	p.takeAway()
	for i := 0; i < len(events); {
		e := events[i]
		if !p.uses[e.Rel] && e.Kind != Clock {
			i++
			continue
		}
		name := p.e.Relations[e.Rel].Name
		var err error
		switch e.Kind {
		case Row:
			j := i
			for j < len(events) && events[j].Kind == Row && events[j].Rel == e.Rel && events[j].Split == e.Split {
				if j++; p.o.Rand != nil && p.o.Rand.IntN(8) == 0 {
					break
				}
			}
			err = p.push(events[i:j])
			i = j - 1
		case Watermark:
			err = p.man.Watermark(name, e.At)
		case Open:
			err = p.man.Open(name, e.Split)
		case Idle:
			err = p.man.Idle(name, e.Split)
		case End:
			err = p.man.End(name)
		case Clock:
			p.man.AdvanceClock(time.Duration(e.At) * time.Microsecond)
			p.now += time.Duration(e.At) * time.Microsecond
		}
		if err != nil {
			return flow.Delta{}, err
		}
		i++
	}
	return p.man.Step()
}

func (p *play) push(events []Event) error {
	r := p.e.Relations[events[0].Rel]
	rows := make([][]types.Value, len(events))
	weights := make([]int64, len(events))
	plain := true
	for i, e := range events {
		rows[i], weights[i] = e.Values, e.Weight
		plain = plain && e.Weight == 1
	}
	if plain {
		weights = nil
	}
	b := Batch(r.Fields, rows)
	if p.o.Rand != nil {
		b = Disguise(r.Fields, rows, p.o.Rand)
	}
	p.lent = append(p.lent, b)
	return p.man.Push(r.Name, events[0].Split, flow.LentBatch{RecordBatch: b, Lent: lender{b}}, weights)
}

// lender is memory that takeAway takes away.
type lender struct{ b arrow.RecordBatch }

func (lender) Retain()  {}
func (lender) Release() {}

func (l lender) Holds(b []byte) bool {
	return slices.ContainsFunc(l.b.Columns(), func(c arrow.Array) bool { return liesIn(b, c.Data()) })
}

func liesIn(b []byte, d arrow.ArrayData) bool {
	for _, m := range d.Buffers() {
		if m == nil {
			continue
		}
		for i := range m.Bytes() {
			if &m.Bytes()[i] == &b[0] {
				return true
			}
		}
	}
	return slices.ContainsFunc(d.Children(), func(c arrow.ArrayData) bool { return liesIn(b, c) })
}

// takeAway writes over the rows of the steps before, whose output was read, if the run promises to have kept copies alone.
func (p *play) takeAway() {
	if p.man.Borrows() {
		for _, b := range p.lent {
			for _, c := range b.Columns() {
				Scribble(c.Data())
			}
		}
	}
	p.lent = nil
}

// Scribble makes the memory of an array senseless.
func Scribble(d arrow.ArrayData) {
	for _, b := range d.Buffers() {
		if b != nil {
			for i := range b.Bytes() {
				b.Bytes()[i] = 0xdb
			}
		}
	}
	for _, c := range d.Children() {
		Scribble(c)
	}
}

// compare holds the accumulated changelog against batch.
func (p *play) compare(incErr error) bool {
	p.out.Rows = make([][][]types.Value, len(p.e.Relations))
	for i, r := range p.model.rels {
		p.out.Rows[i] = r.list()
		p.e.tables[i].Set(r.stored())
	}
	want, err := p.answer()
	switch {
	case err != nil && incErr != nil:
		p.out.Failed = incErr
		return true
	case incErr != nil:
		return p.fail("incremental fails where batch does not: %v", incErr)
	case err != nil && !p.immediate && !p.last:
		return false // the failing rows may lie in groups that are still open
	case err != nil:
		return p.fail("batch fails where incremental does not: %v", err)
	}
	bag := BagOf(want)
	p.out.Final = bag
	switch {
	case p.every > 0 && !p.last && !p.emits():
		return false
	case p.immediate || p.last:
		if d := p.acc.Diff(bag); d != "" {
			return p.fail("+ is too many in the accumulated changelog, - is missing there:\n%s", d)
		}
		return p.compareBad()
	}
	return p.compareClosed()
}

// compareBad compares the rows of __bad: those of the batch answer, which ran last, and those of all steps. What was taken
// back since stays in the steps' log.
func (p *play) compareBad() bool {
	log := Bag{}
	b := p.man.Bad()
	at := func(name string) int { return b.Schema().FieldIndices(name)[0] }
	cols := []arrow.Array{b.Column(at("source")), b.Column(at("error")), b.Column(at("row"))}
	for _, row := range Texts(cols, []types.Type{types.String, types.String, types.String}, int(b.NumRows())) {
		log.Add(row, 1)
	}
	n := p.batch.BadRows()
	if n == 0 && len(log) == 0 {
		return false
	}
	q, err := p.e.Batch.Query(context.Background(), "SELECT source, error, row FROM __bad", nil)
	if err != nil {
		return p.fail("%v", err)
	}
	rows, err := Rows(q)
	if err != nil {
		return p.fail("%v", err)
	}
	for _, row := range rows[len(rows)-int(n):] {
		log.Add(row, -1)
	}
	for row, left := range log {
		if left < 0 || left > 0 && !p.retracted {
			return p.fail("__bad has a row %d times more in the steps than in batch: %s", left, row)
		}
	}
	return false
}

func (p *play) answer() ([]string, error) {
	p.out.Fields, p.out.Values = p.batch.Fields(), nil
	var out []string
	ts := TypesOf(p.out.Fields)
	err := Each(p.batch, func(b arrow.RecordBatch) {
		out = append(out, Texts(b.Columns(), ts, int(b.NumRows()))...)
		if p.last {
			p.out.Values = append(p.out.Values, Values(b, p.out.Fields)...)
		}
	})
	return out, err
}

// emits models EMIT EVERY: the changelog is shown when the step's time enters another interval.
func (p *play) emits() bool {
	now := int64(p.now/time.Microsecond) / p.every
	if !p.started {
		p.started, p.shownAt = true, now
		return false
	}
	was := p.shownAt
	p.shownAt = now
	return now != was
}

// compareClosed compares under EMIT ON WATERMARK.
func (p *play) compareClosed() bool {
	w := flow.EndWatermark
	for i, r := range p.model.rels {
		if p.uses[i] && !r.Table {
			w = min(w, r.wm)
		}
	}
	want, ok, err := p.closing.answer(p.e.Batch, w)
	if err != nil {
		return p.fail("the groups that are closed at %d: %v", w, err)
	}
	if !ok {
		return false
	}
	if d := p.acc.Diff(want); d != "" {
		return p.fail("watermark %s: + is too many in the accumulated changelog, - is missing there:\n%s", stamp(w), d)
	}
	return false
}

// TakenRows are the rows of each relation after the steps, without those that came late.
func TakenRows(rels []*Relation, steps [][]Event) ([][][]types.Value, error) {
	return afterSteps(rels, steps, (*modelRel).list)
}

// TakenLogs is what a Growing of each relation is filled with after the steps: the rows, and of upsert streams all that was
// said of their keys.
func TakenLogs(rels []*Relation, steps [][]Event) ([][][]types.Value, error) {
	return afterSteps(rels, steps, (*modelRel).stored)
}

func afterSteps(rels []*Relation, steps [][]Event, of func(*modelRel) [][]types.Value) ([][][]types.Value, error) {
	e := &Engine{Relations: rels}
	var err error
	if e.marks, err = riverbed.Open(map[string]string{"parallelism": "1", "timezone": "UTC"}); err != nil {
		return nil, err
	}
	defer func() { _ = e.marks.Close() }()
	for _, r := range rels {
		if err := e.addMarks(r); err != nil {
			return nil, err
		}
	}
	m := newModel(rels)
	for _, s := range steps {
		marks, err := e.marksOf(s)
		if err != nil {
			return nil, err
		}
		m.apply(s, marks)
	}
	out := make([][][]types.Value, len(rels))
	for i, r := range m.rels {
		out[i] = of(r)
	}
	return out, nil
}

// Fill sets the rows of the batch session's tables, as TakenLogs gives them.
func (e *Engine) Fill(rows [][][]types.Value) {
	for i, t := range e.tables {
		t.Set(rows[i])
	}
}

// AllValues runs a query and returns its rows as Go values.
func AllValues(q *riverbed.Query) (out [][]types.Value, err error) {
	err = Each(q, func(b arrow.RecordBatch) { out = append(out, Values(b, q.Fields())...) })
	return out, err
}
