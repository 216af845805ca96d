package riverbed

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rules"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// Query is a planned SELECT, or the rows that another statement gave. It runs when it is read, and may be read again.
type Query struct {
	s      *Session
	text   string
	params bind.Params  // the values of the text's parameters
	said   string       // the prepared statement that EXECUTE ran; empty when text has the statement itself
	txn    *transaction // in which it was planned; it fails with the query
	bound  *plan.Query  // nil for fixed rows
	live   *plan.Query  // bound for an incremental run: materialized views are their queries, not their present rows

	columns []types.Field // of the result, without the weight
	fixed   []arrow.RecordBatch
	sink    *SinkSpec // INSERT INTO sink SELECT over live input: run it as a pipeline
	follows bool      // it reads __late or __bad: what other runs leave out, when it runs incrementally

	divert bool         // on_error = 'bad'
	bad    atomic.Int64 // rows that the last batch run left out
}

func (s *Session) planQuery(ctx context.Context, cat *scopeCatalog, st *sql.Query, text string) (*Query, error) {
	bound, err := bind.New(cat, bind.Options{SQL: text, Values: cat.values, Params: cat.params}).Query(st)
	if err != nil {
		return nil, err
	}
	q := &Query{s: s, txn: s.transactionOf(ctx), text: text, params: cat.params, bound: bound, live: bound, divert: s.cfg.Load().onError == onErrorBad}
	q.follows = cat.kept
	if cat.kept || slices.ContainsFunc(cat.used, func(e *entry) bool { return e.mat != nil }) {
		following := &scopeCatalog{s: s, cat: cat.cat, ctx: ctx, locals: cat.locals, following: true}
		if q.live, err = bind.New(following, bind.Options{SQL: text, Params: cat.params}).Query(st); err != nil {
			return nil, err
		}
	}
	for i, c := range bound.Root.Columns() {
		t := c.Type
		if t.Kind == types.Null { // as DuckDB: a bare NULL shows as INTEGER
			t = types.Int32
		}
		q.columns = append(q.columns, types.Field{Name: bound.Names[i], Type: t})
	}
	return q, nil
}

// assigned are the columns with the types that an assignment starts from: a bare NULL, which shows as INTEGER, goes into any
// column.
func (q *Query) assigned() []types.Field {
	out := slices.Clone(q.columns)
	for i, c := range q.bound.Root.Columns() {
		out[i].Type = c.Type
	}
	return out
}

func fixedQuery(fields []types.Field, cols []arrow.Array, n int) *Query {
	return &Query{columns: fields, fixed: []arrow.RecordBatch{array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(n))}}
}

// Schema is the Arrow schema of the batch result.
func (q *Query) Schema() *arrow.Schema { return types.ArrowSchema(q.columns) }

// Fields are the columns of the result.
func (q *Query) Fields() []types.Field { return q.columns }

// Live reports whether the query reads a stream that does not end by itself.
func (q *Query) Live() bool {
	return q.bound != nil && slices.ContainsFunc(plan.Sources(q.bound.Root), (*plan.Source).Live)
}

// Followed reports whether the query reads a stream, ending or not, so that only Subscribe and Sink can read it.
func (q *Query) Followed() bool {
	return q.bound != nil && slices.ContainsFunc(plan.Sources(q.bound.Root), func(s *plan.Source) bool { return s.Relation == nil })
}

// Pipeline reports whether the statement was INSERT INTO sink SELECT … over live input, which Start runs.
func (q *Query) Pipeline() bool { return q.sink != nil }

// Follows reports whether the query, when it runs incrementally, takes what other pipelines of the session leave out: __late or __bad. With
// until='latest' it ends behind them.
func (q *Query) Follows() bool { return q.follows }

// batchPlan optimizes for one run over bounded input.
func (q *Query) batchPlan() (*plan.Query, []rules.Applied, error) {
	bound, err := q.moment()
	if err != nil {
		return nil, nil, errs.As(err).WithSQL(q.text)
	}
	opt, applied, err := rules.Optimize(bound, rules.Batch, q.ruleOptions())
	if err != nil {
		return nil, nil, errs.As(err).WithSQL(q.text)
	}
	return opt, applied, nil
}

// held is a relation that statements change.
type held interface {
	hold() (flow.Relation, error) // its present rows
}

// moment is the bound query over tables and views as they are now. A statement publishes what it changed in tables and
// views at once, and a run that looked at them one after the other would see a total that does not match its parts.
func (q *Query) moment() (*plan.Query, error) {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	now := map[*plan.Source]*plan.Source{}
	rows := map[flow.Relation]flow.Relation{}
	for _, src := range plan.Sources(q.bound.Root) {
		h, ok := src.Relation.(held)
		if !ok || now[src] != nil {
			continue
		}
		if rows[src.Relation] == nil {
			r, err := h.hold()
			if err != nil {
				return nil, err
			}
			rows[src.Relation] = r
		}
		c := *src
		c.Relation = rows[src.Relation]
		now[src] = &c
	}
	if len(now) == 0 {
		return q.bound, nil
	}
	bound := *q.bound
	bound.Root = plan.MapSources(q.bound.Root, func(src *plan.Source) *plan.Source {
		if c := now[src]; c != nil {
			return c
		}
		return src
	})
	return &bound, nil
}

// Run starts the query as batch. The caller releases the result.
func (q *Query) Run(ctx context.Context) (Result, error) {
	if q.bound == nil {
		return array.NewRecordReader(q.Schema(), q.fixed)
	}
	if err := q.s.usable(); err != nil {
		return nil, err
	}
	for _, src := range plan.Sources(q.bound.Root) {
		switch {
		case src.Live():
			return nil, errs.New(errs.Usage, "run", "%q is a live stream and never ends, so its query has no final result", src.Name).
				WithHint("use subscribe() to read changes as they come, or until='latest' to stop at the stream's present end")
		case src.Relation == nil:
			return nil, errs.New(errs.Usage, "run", "%q is a stream, which is read as it comes", src.Name).
				WithHint("use subscribe(), which ends with the stream")
		}
	}
	return q.run(ctx, nil)
}

func (q *Query) run(ctx context.Context, prof *exec.Profile) (Result, error) {
	opt, _, err := q.batchPlan()
	if err != nil {
		return nil, err
	}
	return q.runPlan(ctx, opt, prof)
}

func (q *Query) runPlan(ctx context.Context, opt *plan.Query, prof *exec.Profile) (Result, error) {
	asked := ctx
	ctx, stop := context.WithCancel(ctx)
	out := &renamed{ctx: asked, stop: stop, q: q, schema: q.Schema()}
	if !q.s.runs.add(out) {
		stop()
		return nil, q.s.usable()
	}
	env, ended := q.env(ctx)
	env.Profile = prof
	var err error
	end := func() {
		q.s.runs.remove(out)
		stop()
		ended()
	}
	if out.Result, err = exec.Run(ctx, opt.Root, env, end); err != nil {
		end()
		q.s.abort(q.txn)
		return nil, errs.As(err).WithSQL(q.text)
	}
	return out, nil
}

// renamed gives the operators' batches the user's column names, and errors the statement they belong to.
type renamed struct {
	*exec.Result
	ctx    context.Context    // the caller's, for what is looked up behind the end
	stop   context.CancelFunc // ends the run
	closed atomic.Bool        // the session is
	q      *Query
	schema *arrow.Schema
	cur    arrow.RecordBatch
	failed error
}

// Close ends the run when the session is closed; whoever reads the result then finds it cancelled, and still releases it.
func (r *renamed) Close() error {
	r.closed.Store(true)
	r.stop()
	return nil
}

func (r *renamed) Schema() *arrow.Schema { return r.schema }

func (r *renamed) Next() bool {
	if r.closed.Load() && r.failed == nil {
		r.failed = errs.New(errs.Cancelled, "run", "the session was closed before the result was read to its end")
	}
	if r.failed != nil || !r.Result.Next() {
		return false
	}
	b := r.Result.RecordBatch()
	cols := typedNulls(r.schema, b.Columns())
	r.cur = array.NewRecordBatch(r.schema, cols, b.NumRows())
	return true
}

// typedNulls gives columns that are NULL and have no type the one they are shown with.
func typedNulls(schema *arrow.Schema, cols []arrow.Array) []arrow.Array {
	out := cols
	for i, c := range cols {
		if c.DataType().ID() == arrow.NULL {
			if &out[0] == &cols[0] {
				out = append([]arrow.Array{}, cols...)
			}
			out[i] = kernels.Nulls(schema.Field(i).Type, c.Len())
		}
	}
	return out
}

// shown is a step's output in the types of the query's columns.
func (q *Query) shown(d flow.Delta) flow.Delta {
	if d.Batch == nil || !slices.ContainsFunc(d.Batch.Columns(), func(c arrow.Array) bool { return c.DataType().ID() == arrow.NULL }) {
		return d
	}
	fields := q.Schema().Fields()
	if w := d.Batch.Schema().Fields(); len(w) > len(fields) {
		fields = append(fields, w[len(fields):]...) // the weight
	}
	schema := arrow.NewSchema(fields, nil)
	d.Batch = array.NewRecordBatch(schema, typedNulls(schema, d.Batch.Columns()), d.Batch.NumRows())
	return d
}

func (r *renamed) RecordBatch() arrow.RecordBatch { return r.cur }

// Record is the older name of RecordBatch.
func (r *renamed) Record() arrow.RecordBatch { return r.cur }

func (r *renamed) Err() error {
	if err := r.Result.Err(); err != nil && r.failed == nil {
		r.q.s.abort(r.q.txn)
		r.failed = errs.As(r.q.failedOn(r.ctx, err)).WithSQL(r.q.text)
	}
	return r.failed
}

// all reads the whole result.
func (q *Query) all(ctx context.Context) ([]arrow.RecordBatch, error) {
	r, err := q.Run(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []arrow.RecordBatch
	for r.Next() {
		out = append(out, r.RecordBatch())
	}
	return out, r.Err()
}

// discard runs a query whose rows nobody reads, for its errors.
func (q *Query) discard(ctx context.Context, st sql.Statement) error {
	switch {
	case q.sink != nil:
		return errs.E(errs.Usage, "run", st.Position(), "INSERT INTO a sink over live input is a pipeline that somebody has to run; here another statement follows").
			WithHint("give the statement to sql() by itself, and run the pipeline")
	case q.bound == nil || q.Live():
		return nil
	}
	_, err := q.all(ctx)
	return err
}

// Explain prints the plan. mode is "", "batch" or "incremental"; "" is the mode in which the query would run.
func (q *Query) Explain(mode string) (string, error) {
	if q.bound == nil {
		return "", errs.New(errs.Usage, "explain", "this statement has run already; there is no plan to explain")
	}
	m := rules.Batch
	switch strings.ToLower(mode) {
	case "":
		if q.Live() {
			m = rules.Incremental
		}
	case "batch":
	case "incremental":
		m = rules.Incremental
	default:
		return "", errs.New(errs.Usage, "explain", "unknown mode %q", mode).WithHint("use 'batch' or 'incremental'")
	}
	bound := q.bound
	if m == rules.Incremental {
		bound = q.live
	}
	opt, applied, err := rules.Optimize(bound, m, q.ruleOptions())
	if err != nil {
		return "", errs.As(err).WithSQL(q.text)
	}
	return explainText(opt, m, applied, nil)
}

func (s *Session) explain(ctx context.Context, cat *scopeCatalog, st *sql.Explain, text string) (*Query, error) {
	inner, ok := st.Statement.(*sql.Query)
	if !ok {
		if ins, isInsert := st.Statement.(*sql.Insert); isInsert && ins.Query != nil {
			inner = ins.Query
		} else {
			return nil, errs.E(errs.Unsupported, "explain", st.Position(), "EXPLAIN takes a SELECT or an INSERT … SELECT")
		}
	}
	q, err := s.planQuery(ctx, cat, inner, text)
	if err != nil {
		return nil, err
	}
	mode := ""
	for _, o := range st.Options {
		if v, err := s.optionValue(o); err == nil && strings.EqualFold(o.Key, "mode") {
			mode = v
		} else if strings.EqualFold(o.Key, "batch") || strings.EqualFold(o.Key, "incremental") {
			mode = o.Key
		}
	}
	var out string
	if st.Analyze {
		out, err = q.explainAnalyze(ctx)
	} else {
		out, err = q.Explain(mode)
	}
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimRight(out, "\n"), "\n") {
		rows = append(rows, []string{line})
	}
	return textRows([]string{"plan"}, rows), nil
}

func (q *Query) explainAnalyze(ctx context.Context) (string, error) {
	if q.Live() {
		return "", errs.New(errs.Usage, "explain", "EXPLAIN ANALYZE runs the query, and this one never ends").WithHint("leave out ANALYZE")
	}
	opt, applied, err := q.batchPlan()
	if err != nil {
		return "", err
	}
	prof := &exec.Profile{}
	r, err := q.runPlan(ctx, opt, prof)
	if err != nil {
		return "", err
	}
	defer r.Release()
	for r.Next() {
	}
	if err := r.Err(); err != nil {
		return "", err
	}
	return explainText(opt, rules.Batch, applied, prof)
}

// explainText prints an optimized plan; prof adds what a run did.
func explainText(q *plan.Query, mode plan.Mode, applied []rules.Applied, prof *exec.Profile) (string, error) {
	o := plan.ExplainOptions{Mode: mode}
	for _, a := range applied {
		if a.Note != "" {
			o.Notes = append(o.Notes, a.Note)
		}
	}
	if prof != nil {
		o.Actual = func(n plan.Node) (plan.Metrics, bool) {
			p := prof.Of(n)
			return plan.Metrics{Rows: p.Rows.Load(), Batches: p.Batches.Load(), Nanos: p.Nanos.Load()}, true
		}
	}
	return plan.Explain(q, o)
}

// constant evaluates an expression that reads no column.
func (s *Session) constant(x sql.Expr) (types.Value, types.Type, error) {
	e, err := bind.New(s.scope(), bind.Options{}).Expr(x, nil, types.Type{})
	if err != nil {
		return nil, types.Type{}, err
	}
	return s.evaluate(e)
}

// evaluate computes a bound expression that reads no column.
func (s *Session) evaluate(e expr.Expr) (types.Value, types.Type, error) {
	p, err := expr.Compile(e, nil)
	if err != nil {
		return nil, types.Type{}, err
	}
	a, err := p.EvalArray(s.fnEnv(context.Background()), nil, 1)
	if err != nil {
		return nil, types.Type{}, err
	}
	return types.ValueAt(a, 0, e.Type()), e.Type(), nil
}
