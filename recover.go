package riverbed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/plan"
)

// pipelineID is what names the folder of a pipeline's checkpoints and its markers.
var pipelineID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// id is the name under which a pipeline is found again after a restart: the given one, the sink's of INSERT INTO, or one made of
// the query and the sink.
func (p *Pipeline) id() (string, error) {
	id := p.spec.ID
	if id == "" {
		options := p.spec.Options // of a callable its name
		if p.spec.Func == nil {
			_, set, err := parseSink(p.spec.ConnectorSpec)
			if err != nil {
				return "", err
			}
			options = set.Shown() // no secrets: they change, and the pipeline stays what it is
		}
		h := sha256.New()
		h.Write([]byte(p.q.statement() + "\x00" + p.spec.Connector))
		for _, k := range slices.Sorted(maps.Keys(options)) {
			h.Write([]byte("\x00" + k + "\x00" + options[k]))
		}
		id = "query-" + hex.EncodeToString(h.Sum(nil)[:6])
	}
	if !pipelineID.MatchString(id) {
		return "", errs.New(errs.Usage, "run", "%q cannot be the id of a pipeline", id).
			WithHint("an id has up to 100 letters, digits, points, dashes and underscores, and begins with a letter or a digit")
	}
	return id, nil
}

// checkExactlyOnce refuses a pipeline that cannot be exactly once, before anything starts.
func (p *Pipeline) checkExactlyOnce() error {
	refuse := func(hint, format string, args ...any) error {
		return errs.New(errs.ExactlyOnce, "sink", format, args...).WithHint("%s", hint)
	}
	if p.q.s.cfg.Load().checkpointURL == "" {
		return refuse("set checkpoint_url (RIVERBED_CHECKPOINT_URL) to a directory or an s3:// URL", "exactly_once needs durable checkpoints, and checkpoint_url is not set")
	}
	if p.spec.Func != nil {
		return refuse("use a sink that can, or leave out exactly_once", "a Python callable cannot be told to take each row once: after a crash it sees some again")
	}
	k, _, err := parseSink(p.spec.ConnectorSpec)
	if err != nil {
		return err
	}
	if !k.ExactlyOnce {
		return refuse("use a sink that can ("+strings.Join(exactlyOnceSinks(), ", ")+"), or leave out exactly_once: rows are then written at least once",
			"the sink %q cannot take each row exactly once", k.Name)
	}
	for _, src := range plan.Sources(p.q.live.Root) {
		if rel, ok := src.Relation.(repeatable); src.Stream != nil && !src.Stream.Replayable() || ok && !rel.Replayable() {
			return refuse("read it from a source with positions, such as Kafka or files", "the source %q cannot be read again from a position, so rows could be lost in a crash", src.Name)
		}
	}
	return nil
}

// newDurable opens a pipeline's checkpoints and brings the run to the newest of them. The sink is opened behind.
func (p *Pipeline) newDurable(ctx context.Context, r *runner, w *sinkWriter, id string) (_ *durable, err error) {
	updates, err := p.updates()
	if err != nil {
		return nil, err
	}
	leave, err := enter(r.cfg.checkpointURL, id)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	again := func(ctx context.Context, do func() error) error {
		return r.newRetry().within(ctx, func(context.Context) error { return do() })
	}
	var store *checkpoint.Store
	if err := again(ctx, func() (err error) {
		store, err = checkpoint.Open(ctx, checkpoint.Options{URL: r.cfg.checkpointURL, Pipeline: id, Clock: r.s.clock, Rand: r.s.rand, Version: Version, Untended: true,
			Warn: func(err error) { r.warned(err) }, Again: again})
		return err
	}); err != nil {
		return nil, err
	}
	d := &durable{r: r, w: w, store: store, leave: leave, updates: updates}
	if err := guarded(func() error {
		if err := d.fork(ctx, id); err != nil {
			return err
		}
		return d.begin(ctx, p.q, id)
	}); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

// overtakings bounds how often a start looks for the newest manifest again because a process that was thought dead published one.
const overtakings = 5

// begin finds the newest manifest and restores it, or publishes the first.
//
// AIDEV-NOTE: the fence comes before anything is restored, so that what is restored stays the newest; and behind the look at all objects, so that
// starts that fail on a damaged one publish nothing and older checkpoints, which may be whole, are not collected for their sake.
func (d *durable) begin(ctx context.Context, q *Query, id string) error {
	prints, text, err := d.r.fingerprints()
	if err != nil {
		return err
	}
	for range overtakings {
		if err = d.newest(ctx, q, id, prints, text); !checkpoint.Overtaken(err) {
			break
		}
	}
	if err != nil {
		return err
	}
	if d.last.Step > 0 {
		if err := d.restore(ctx, d.last); err != nil {
			return err
		}
	}
	if d.last.Step == 0 { // it begins anew: what another run of its name has left in the session is not its own
		d.r.s.late.replace(id, keptTail{})
		d.r.s.bad.replace(id, keptTail{})
	}
	d.r.s.beginKept(id, d.last.Run, q.follows)
	d.epoch, d.r.stats.Epoch = d.last.Epoch, int64(d.last.Epoch)
	d.due = d.r.s.clock.Now().Add(d.interval())
	return nil
}

// newest makes the newest manifest, whose objects are whole, this run's own.
func (d *durable) newest(ctx context.Context, q *Query, id string, prints map[string]string, text string) error {
	again := d.r.newRetry()
	var m *checkpoint.Manifest
	if err := again.within(ctx, func(ctx context.Context) (err error) { m, err = d.store.Newest(ctx); return err }); err != nil {
		return err
	}
	if m == nil {
		run := fmt.Sprintf("%016x", d.r.s.rand.Uint64())
		d.last = &checkpoint.Manifest{Pipeline: id, Run: run, Written: d.r.s.clock.Now().UTC(), SQL: q.statement(), Plan: text, Operators: prints,
			Sinks: []checkpoint.Sink{{Name: sinkName, Done: markerOf(run, 0)}}}
		for _, in := range d.r.inputs {
			d.last.Sources = append(d.last.Sources, checkpoint.Source{Name: in.info.Source.Name})
		}
		if err := again.within(ctx, func(ctx context.Context) error { return d.store.Publish(ctx, d.last) }); err != nil {
			return checkpointFailed(err)
		}
		return nil
	}
	changed, err := d.fits(m, id, prints, text) // before anything is fenced
	if err != nil {
		return err
	}
	if m.Step > 0 {
		if err := d.store.Verify(ctx, m); err != nil {
			return err
		}
	}
	if err := again.within(ctx, func(ctx context.Context) (err error) { d.last, err = d.store.Fence(ctx); return err }); err != nil {
		return checkpointFailed(err)
	}
	if changed {
		d.columns = d.last.Operators[sinkName] != prints[sinkName]
		d.last, err = d.adapt(d.last, q, prints, text)
	}
	return err
}

// fingerprints names the plan's operators: a checkpoint fits the plan that wrote it.
func (r *runner) fingerprints() (map[string]string, string, error) {
	text, err := plan.Explain(r.plan, plan.ExplainOptions{Mode: plan.Incremental})
	if err != nil {
		return nil, "", err
	}
	out := map[string]string{}
	for _, op := range r.graph.Fingerprints() {
		out[op.Path] = op.Print
	}
	var columns strings.Builder
	for _, f := range r.fields {
		fmt.Fprintf(&columns, "%q %s,", f.Name, f.Type)
	}
	out[sinkName] = columns.String()      // rows that wait for the sink have them
	out["emit"] = r.graph.Emit().String() // another policy knows nothing of what is held back
	for _, in := range r.inputs {
		columns.Reset()
		for _, c := range in.info.Columns {
			f := in.info.Source.Fields[c]
			fmt.Fprintf(&columns, "%q %s, ", f.Name, f.Type)
		}
		out[sourcePrint+in.info.Source.Name] = strings.TrimSuffix(columns.String(), ", ")
	}
	return out, text, nil
}

// statement is the query's own text, without the statements that stood before it and without what is secret.
func (q *Query) statement() string {
	text := q.text
	if q.said != "" {
		text = q.said
	} else if all, err := Statements(text); err == nil && len(all) > 0 {
		text = all[len(all)-1]
	}
	text = secretOption.ReplaceAllString(text, "$1'***'")
	return secretInURL.ReplaceAllString(strings.TrimSpace(text)+paramText(text, q.params), "$1***@")
}

// Secrets that a statement may spell out: passwords in URLs, and options whose names say so.
var (
	secretInURL  = regexp.MustCompile(`(://[^\s:/@']*:)[^\s']*@`)
	secretOption = regexp.MustCompile(`(?i)(\b\w*(?:password|secret|token|credential)\w*\s*(?:=>|:=|=)\s*)'(?:[^']|'')*'`)
)

// sourcePrint begins the entries beside the operators' that have the columns which are read of a source: those that were inferred may be others
// when other files are there.
const sourcePrint = "columns of "

// differences are the paths of operators that a plan and a manifest do not have in common. Columns of a source that were inferred and are others now
// are an error.
func differences(m *checkpoint.Manifest, prints map[string]string, id, statement string) (differ []string, err error) {
	for path, print := range m.Operators {
		name, ofSource := strings.CutPrefix(path, sourcePrint)
		switch {
		case prints[path] == print:
		case ofSource && prints[path] != "" && m.SQL == statement: // otherwise another query reads others
			return nil, errs.New(errs.State, "restore", "the stream %q has other columns than when the pipeline %q was started: it has %s, and its checkpoints know %s", name, id, prints[path], print).
				WithHint("declare the columns (CREATE STREAM %s (%s) …): those that are inferred depend on what is there", name, print)
		case !ofSource:
			differ = append(differ, path)
		}
	}
	for path := range prints {
		if m.Operators[path] == "" && !strings.HasPrefix(path, sourcePrint) { // checkpoints of an earlier version do not say it
			differ = append(differ, path)
		}
	}
	slices.Sort(differ)
	return slices.Compact(differ), nil
}

// otherQuery refuses state of another plan.
func otherQuery(m *checkpoint.Manifest, id string, differ []string) error {
	return errs.New(errs.State, "restore", "the checkpoints of the pipeline %q are of another query: the operators at %s differ. Its query was: %s",
		id, strings.Join(differ, ", "), strings.Join(strings.Fields(m.SQL), " ")).
		WithHint("run the query that it had; or let the new one go on with the state that it still has (changed_query = 'reuse') or begin from history (changed_query = 'rebuild'); or give it another id")
}

// attach gives the run its sink, and commits what was staged when the process ended.
//
// AIDEV-NOTE: the sink's marker decides what of the chain it has. A marker that is not in the chain means that the sink has rows of
// another run, or lost some: to commit on top of it would double or lose rows, so nothing starts.
func (d *durable) attach(ctx context.Context, s *connectorSink) error {
	c, ok := s.w.(connectors.Committer)
	if !ok || !s.exactly {
		return nil
	}
	d.sink, d.held = c, s.held
	chain := d.last.Sinks[0]
	var first connectors.Marker
	if accept := d.r.cfg.acceptDuplicates; accept || chain.Done == markerOf(d.last.Run, 0) && len(chain.Pending) == 0 {
		first = connectors.Marker(chain.Done)
	}
	marker, err := c.Begin(ctx, first)
	if err != nil {
		return err
	}
	if marker == "" && first == "" {
		return errs.New(errs.ExactlyOnce, "restore", "the sink %q knows nothing of the pipeline %q, and its checkpoints say that it has rows of it: it was emptied, or is another one", s.name, d.last.Pipeline).
			WithHint("name the sink that it wrote to, or begin anew with another id; to go on all the same, with rows lost or doubled: accept_duplicates = true")
	}
	if marker == "" {
		marker = first
	}
	if d.r.cfg.acceptDuplicates {
		d.follow(string(marker))
		chain = d.last.Sinks[0]
	}
	at := slices.IndexFunc(chain.Pending, func(l checkpoint.Link) bool { return l.Marker == string(marker) })
	if at < 0 && string(marker) != chain.Done {
		return errs.New(errs.ExactlyOnce, "restore", "the sink %q holds the marker %q of the pipeline %q, and its checkpoints know it up to %q: rows would be lost or doubled",
			s.name, marker, d.last.Pipeline, chain.Done).
			WithHint("the checkpoints, or the sink, are of another run: restore what belongs together, or use another id and an empty sink; to go on all the same, with rows lost or doubled: accept_duplicates = true")
	}
	if at >= 0 {
		d.done(string(marker))
	}
	if len(d.last.Sinks[0].Pending) > 0 {
		d.ended = "" // there is something to finish
	}
	for _, l := range slices.Clone(d.last.Sinks[0].Pending) {
		var rows []arrow.RecordBatch
		if l.Held && d.columns {
			return errs.New(errs.State, "restore", "rows of epoch %d wait to be written to the sink %q, and have the columns of the query that the pipeline %q had", l.Epoch, s.name, d.last.Pipeline).
				WithHint("run the former query until they are written, and stop it; then the changed one")
		}
		if l.Held {
			if rows, err = d.store.ReadOnce(ctx, d.last, l.Epoch, sinkName, ""); err != nil { // it has patience
				return err
			}
		}
		if err := d.commit(ctx, l, rows); err != nil {
			return err
		}
	}
	return nil
}

// follow makes the chain go on from a marker that it does not know: what the sink has is taken for all that there was to commit up to there.
func (d *durable) follow(marker string) {
	chain := d.last.Sinks[0]
	if marker == chain.Done || slices.ContainsFunc(chain.Pending, func(l checkpoint.Link) bool { return l.Marker == marker }) {
		return
	}
	m := *d.last
	chain.Done, chain.Pending = marker, slices.Clone(chain.Pending)
	if len(chain.Pending) > 0 {
		chain.Pending[0].Previous = marker
	}
	m.Sinks = []checkpoint.Sink{chain}
	d.last = &m
}

// goesOn refuses to run a pipeline whose stream has ended: its windows are closed, and what came to the stream since would be passed over.
func (d *durable) goesOn() error {
	if d == nil || d.ended == "" {
		return nil
	}
	return errs.New(errs.Usage, "restore", "the stream %q has ended for the pipeline %q: until='latest', or a stop with drain, closed its windows, and nothing more is read of it", d.ended, d.r.name).
		WithHint("to read on later, end a pipeline by stop() without drain; to begin anew, give it another id")
}

// exactlyOnceSinks are the names of sinks that can.
func exactlyOnceSinks() []string {
	var out []string
	for _, k := range all.Sinks {
		if k.ExactlyOnce {
			out = append(out, k.Name)
		}
	}
	return out
}
