package riverbed

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// A replay is a pipeline of its own: its rows are those of __bad, its sink is where the source reads them from, and its position is the run whose rows they are
// and the set of the numbers that went back (ADR 39): a run that begins anew numbers anew. So a row goes back once, however often and in whatever parts replays are asked for, and wherever one ends.

// ReplaySpec says which bad rows go back, and where to.
type ReplaySpec struct {
	URL      string `json:"url"`      // of the pipeline's checkpoints; "": the session's
	Pipeline string `json:"pipeline"` // whose rows
	Source   string `json:"source"`   // only rows of this stream; "": of the one that all are of
	Repaired string `json:"repaired"` // a file with the columns number and raw (or raw_base64), and key where there is one: these rows, as they are there
	Into     string `json:"into"`     // a sink of the session; "": the topic or the folder of the stream
}

// ReplayReport counts what became of the rows that were asked for.
type ReplayReport struct {
	Replayed int `json:"replayed"`
	Already  int `json:"already"` // went back before
	NoBytes  int `json:"no_bytes"`
}

// replayID is the pipeline that feeds rows of another back to one place.
func replayID(spec ReplaySpec, source string) string {
	if spec.Into != "" {
		source = spec.Into
	}
	return spec.Pipeline + ".replay." + source
}

// Replay feeds bad rows of a pipeline back. The session has the streams, and the sink, by their names.
func (s *Session) Replay(ctx context.Context, spec ReplaySpec) (ReplayReport, error) {
	var report ReplayReport
	if err := s.usable(); err != nil {
		return report, err
	}
	if s.cfg.Load().checkpointURL == "" {
		return report, errs.New(errs.Usage, "replay", "a replay keeps in checkpoints which rows went back, and checkpoint_url is not set").WithHint("set it to where the pipeline's are")
	}
	if spec.URL == "" {
		spec.URL = s.cfg.Load().checkpointURL
	}
	var rows []replayRow
	run, err := readKept(ctx, spec.URL, spec.Pipeline, flow.BadRelation, func(b arrow.RecordBatch) error {
		rows = replayable(rows, b)
		return nil
	})
	if err != nil {
		return report, err
	}
	if spec.Repaired != "" {
		if rows, err = s.repaired(ctx, rows, spec); err != nil {
			return report, err
		}
	}
	rows, source, err := ofOneSource(rows, spec)
	if err != nil {
		return report, err
	}
	asked := len(rows)
	rows = slices.DeleteFunc(rows, func(r replayRow) bool { return r.raw == nil })
	report.NoBytes = asked - len(rows)
	to, err := s.replaySink(source, spec, rows)
	if err != nil {
		return report, err
	}
	st := &replayStream{run: run, rows: rows, done: make(chan struct{})}
	if err := s.runReplay(ctx, st, to, replayID(spec, source)); err != nil {
		return report, err
	}
	report.Replayed = st.gave
	report.Already = len(rows) - st.gave
	return report, nil
}

// runReplay runs the pipeline until the last row is in a checkpoint and in the sink.
func (s *Session) runReplay(ctx context.Context, st *replayStream, to replayTo, id string) error {
	const name = "replayed"
	cat := s.cat.Load().with(&entry{name: name, source: &plan.Source{Name: name, Stream: st, Fields: st.Fields()}})
	columns := "raw"
	if to.keyed {
		columns = "raw, key"
	}
	text := "SELECT " + columns + " FROM " + name
	parsed, err := sql.Parse(text)
	if err != nil {
		return err
	}
	q, err := s.planQuery(ctx, &scopeCatalog{s: s, cat: cat, ctx: ctx, reading: true}, parsed[0].(*sql.Query), text)
	if err != nil {
		return err
	}
	p, err := q.Sink(SinkSpec{ConnectorSpec: to.spec, ID: id, ExactlyOnce: true})
	if err != nil {
		return err
	}
	h, err := p.Start(ctx, "")
	if err != nil {
		return err
	}
	select {
	case <-st.done:
	case <-h.run.done:
		return h.Wait(ctx)
	}
	return h.Stop(false)
}

// replayRow is a row that may go back.
type replayRow struct {
	number   int64
	source   string
	raw, key []byte // raw nil: an expression failed on it, or there was no value
}

// replayable adds the rows of a batch of the log.
func replayable(out []replayRow, b arrow.RecordBatch) []replayRow {
	for r := range int(b.NumRows()) {
		row := keptValues(badFields, b, r)
		n := replayRow{number: int64(len(out))}
		n.source, _ = row[1].(string)
		n.raw, _ = row[5].([]byte)
		n.key, _ = row[9].([]byte)
		out = append(out, n)
	}
	return out
}

// repaired are the rows that a file names, with the bytes that it gives them.
func (s *Session) repaired(ctx context.Context, have []replayRow, spec ReplaySpec) ([]replayRow, error) {
	from := "'" + strings.ReplaceAll(spec.Repaired, "'", "''") + "'"
	if name := strings.ToLower(filepath.Base(spec.Repaired)); strings.Contains(name, ".json") || strings.Contains(name, ".ndjson") {
		from = fmt.Sprintf("read_json(%s, sample_size = %d)", from, math.MaxInt32) // raw_base64 may stand in the last row only
	}
	q, err := s.Query(ctx, "SELECT * FROM "+from, nil)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i, f := range q.columns {
		at[strings.ToLower(f.Name)] = i
	}
	number, okNumber := at["number"]
	_, okRaw := at["raw"]
	_, okBase64 := at["raw_base64"]
	if !okNumber || !okRaw && !okBase64 {
		return nil, errs.New(errs.Schema, "replay", "%s needs the columns number and raw (or raw_base64): which row of __bad it is, and its bytes", spec.Repaired).
			WithHint("begin with the file that --export writes")
	}
	batches, err := q.all(ctx)
	if err != nil {
		return nil, err
	}
	var out []replayRow
	seen := map[int64]bool{}
	for _, b := range batches {
		for r := range int(b.NumRows()) {
			value := func(c int) types.Value { return types.ValueAt(b.Column(c), r, q.columns[c].Type) }
			n, ok := value(number).(int64)
			if !ok || n < 0 || n >= int64(len(have)) {
				return nil, errs.New(errs.Data, "replay", "%s: the pipeline %q has no bad row of the number %v; it has %d", spec.Repaired, spec.Pipeline, value(number), len(have))
			}
			if seen[n] {
				return nil, errs.New(errs.Data, "replay", "%s: the number %d stands there twice", spec.Repaired, n)
			}
			seen[n] = true
			row := have[n]
			if row.raw, err = replayBytes(at, "raw", value); err != nil {
				return nil, errs.New(errs.Data, "replay", "%s: the row of the number %d: %w", spec.Repaired, n, err)
			}
			key, err := replayBytes(at, "key", value)
			if err != nil {
				return nil, errs.New(errs.Data, "replay", "%s: the key of the number %d: %w", spec.Repaired, n, err)
			}
			if key != nil {
				row.key = key
			}
			out = append(out, row)
		}
	}
	return out, nil
}

// replayBytes are those of a column, or where it is NULL those that the column beside it spells in base 64: the ones that are no text.
func replayBytes(at map[string]int, name string, value func(column int) types.Value) ([]byte, error) {
	if c, ok := at[name]; ok {
		switch v := value(c).(type) {
		case nil:
		case []byte:
			return v, nil
		case string:
			return []byte(v), nil
		default:
			return nil, fmt.Errorf("%s is VARCHAR or BLOB, and it has %v", name, v)
		}
	}
	c, ok := at[name+"_base64"]
	if !ok || value(c) == nil {
		return nil, nil
	}
	text, ok := value(c).(string)
	if !ok {
		return nil, fmt.Errorf("%s_base64 is VARCHAR, and it has %v", name, value(c))
	}
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s_base64: %w", name, err)
	}
	return out, nil
}

// ofOneSource keeps the rows of the stream that is asked for; without one all must be of the same.
func ofOneSource(rows []replayRow, spec ReplaySpec) ([]replayRow, string, error) {
	var sources []string
	kept := rows[:0:0]
	for _, r := range rows {
		if spec.Source != "" && !strings.EqualFold(r.source, spec.Source) {
			continue
		}
		if !slices.Contains(sources, r.source) {
			sources = append(sources, r.source)
		}
		kept = append(kept, r)
	}
	slices.Sort(sources)
	switch {
	case len(sources) > 1 && spec.Into == "":
		return nil, "", errs.New(errs.Usage, "replay", "the bad rows of the pipeline %q are of several streams: %s", spec.Pipeline, strings.Join(sources, ", ")).WithHint("name one with --source")
	case len(sources) == 0:
		return nil, spec.Source, nil
	}
	return kept, sources[0], nil
}

// replayTo is where rows go back to.
type replayTo struct {
	spec  ConnectorSpec
	keyed bool // with the keys of messages
}

// replaySink is the sink that was named, or one to where the stream reads.
func (s *Session) replaySink(source string, spec ReplaySpec, rows []replayRow) (replayTo, error) {
	cat := s.cat.Load()
	if spec.Into != "" {
		e := cat.get(spec.Into)
		if e == nil || e.sink == nil {
			return replayTo{}, errs.New(errs.Schema, "replay", "there is no sink %q", spec.Into).WithHint("declare it with CREATE SINK in the script; it gets the column raw, and key when it has the option")
		}
		return replayTo{e.sink.spec, e.sink.spec.Options["key"] != ""}, nil
	}
	if source == "" {
		return replayTo{}, errs.New(errs.Usage, "replay", "the pipeline %q has no bad rows to replay", spec.Pipeline)
	}
	e := cat.get(source)
	if e == nil || e.origin == nil {
		return replayTo{}, errs.New(errs.Schema, "replay", "the bad rows are of the stream %q, which the script does not declare", source).WithHint("give the script of the pipeline, or name a sink with --into")
	}
	switch e.origin.Connector {
	case "kafka":
		return kafkaAgain(*e.origin, rows)
	case "json":
		return folderAgain(*e.origin, source)
	}
	return replayTo{}, errs.New(errs.Unsupported, "replay", "rows cannot be fed back to the stream %q, whose connector is %q", source, e.origin.Connector).
		WithHint("declare a sink to where such rows are read from, and name it with --into")
}

// kafkaAgain is the topic of a stream as a sink of bytes.
func kafkaAgain(origin ConnectorSpec, rows []replayRow) (replayTo, error) {
	to := ConnectorSpec{Connector: "kafka", Options: map[string]string{"format": "raw", "create": "false"}}
	takes := all.Sink("kafka").Options.Names()
	for name, v := range origin.Options {
		if name != "format" && name != "key_format" && name != "upsert" && slices.Contains(takes, name) {
			to.Options[name] = v
		}
	}
	to.Options["key"] = "key" // NULL is a message without a key
	for _, r := range rows {
		if !utf8.Valid(r.key) {
			return replayTo{}, errs.New(errs.Unsupported, "replay", "the key of the bad row of the number %d is not text", r.number).WithHint("leave the row out with --repaired")
		}
	}
	return replayTo{to, true}, nil
}

// folderAgain is the folder of a stream of JSON files as a sink of lines.
func folderAgain(origin ConnectorSpec, source string) (replayTo, error) {
	path := origin.Options["path"]
	dir, base := path, ""
	if strings.ContainsAny(filepath.Base(path), "*?[{") {
		dir, base = strings.TrimSuffix(path[:len(path)-len(filepath.Base(path))], "/"), filepath.Base(path)
	}
	for _, ending := range []string{".jsonl", ".json", ".ndjson"} {
		fits, err := filepath.Match(base, "replay-00000001-0000-00000000"+ending)
		if err == nil && (fits || base == "") && dir != "" && !strings.ContainsAny(dir, "*?[{,") && filepath.Ext(dir) == "" {
			return replayTo{spec: ConnectorSpec{Connector: "json", Options: map[string]string{"path": dir, "format": "raw", "extension": ending}}}, nil
		}
	}
	return replayTo{}, errs.New(errs.Unsupported, "replay", "a new file in the folder of the stream %q would not be read: its path is %q", source, path).
		WithHint("declare a sink to where such rows are read from, and name it with --into")
}

// replayStream gives rows that did not go back before. It has a split for the run that wrote them, whose position is that run and the set of numbers that did;
// the splits of other runs stay in the checkpoints as they are, and give nothing.
type replayStream struct {
	run  string // as manifests name it
	rows []replayRow

	mu   sync.Mutex
	gave int    // rows of this run
	set  ranges // of the run: what went back, with it
	done chan struct{}
	over bool
}

var replayFields = []types.Field{{Name: "raw", Type: types.Binary}, {Name: "key", Type: types.String}}

func (st *replayStream) Fields() []types.Field { return replayFields }
func (st *replayStream) Bounded() bool         { return false }
func (st *replayStream) Updating() bool        { return false }
func (st *replayStream) Replayable() bool      { return true }

func (st *replayStream) Splits(context.Context) ([]flow.Split, error) {
	return []flow.Split{{ID: st.run}}, nil
}

func (st *replayStream) Open(_ context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	set, err := parseReplayed(split.ID, from)
	if err != nil {
		return nil, errs.New(errs.State, "open", "%q is no set of rows of the run %q that were replayed", from, split.ID)
	}
	return &replayReader{st: st, set: set, read: split.ID != st.run}, nil
}

// position is "9c41 0-16,18".
func (st *replayStream) position(set ranges) flow.Position {
	return flow.Position(st.run + " " + set.text())
}

func parseReplayed(run string, at flow.Position) (ranges, error) {
	if at == "" {
		return nil, nil
	}
	set, ok := strings.CutPrefix(string(at), run+" ")
	if !ok {
		return nil, fmt.Errorf("of another run")
	}
	return parseRanges(set)
}

// Acknowledge ends the replay when a checkpoint has all of its rows.
//
// AIDEV-NOTE: the engine acknowledges behind the commit, so that a replay that reports its rows has them in the sink. One that ends before is finished by the next.
func (st *replayStream) Acknowledge(_ context.Context, upTo map[string]flow.Position) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.set != nil && upTo[st.run] == st.position(st.set) {
		st.end()
	}
	return nil
}

func (st *replayStream) end() {
	if !st.over {
		st.over = true
		close(st.done)
	}
}

type replayReader struct {
	st   *replayStream
	set  ranges
	read bool // there is nothing more
}

// Read gives all rows at once, and then nothing.
func (r *replayReader) Read(ctx context.Context, _ int) (flow.Rows, error) {
	if r.read {
		<-ctx.Done()
		return flow.Rows{}, ctx.Err()
	}
	r.read = true
	var raw, key []types.Value
	set := slices.Clone(r.set)
	for _, row := range r.st.rows {
		if r.set.has(row.number) {
			continue
		}
		set = append(set, [2]int64{row.number, row.number})
		raw = append(raw, row.raw)
		if row.key == nil {
			key = append(key, nil)
		} else {
			key = append(key, string(row.key))
		}
	}
	set = set.joined()
	r.st.mu.Lock()
	defer r.st.mu.Unlock()
	if r.st.gave = len(raw); len(raw) == 0 {
		r.st.end() // what an earlier run has staged was committed at the start
		return flow.Rows{}, nil
	}
	r.st.set = set
	cols := []arrow.Array{types.ArrayOf(raw, types.Binary), types.ArrayOf(key, types.String)}
	return flow.Rows{Batch: array.NewRecordBatch(types.ArrowSchema(replayFields), cols, int64(len(raw))), Next: r.st.position(set)}, nil
}

func (r *replayReader) Close() error { return nil }

// ranges is a set of numbers: rising ranges that do not touch, both ends included.
type ranges [][2]int64

func (s ranges) has(n int64) bool {
	_, found := slices.BinarySearchFunc(s, n, func(r [2]int64, n int64) int {
		switch {
		case r[1] < n:
			return -1
		case r[0] > n:
			return 1
		}
		return 0
	})
	return found
}

// joined is the set of ranges in any order.
func (s ranges) joined() ranges {
	slices.SortFunc(s, func(a, b [2]int64) int { return int(min(max(a[0]-b[0], -1), 1)) })
	var out ranges
	for _, r := range s {
		if n := len(out); n > 0 && r[0] <= out[n-1][1]+1 {
			out[n-1][1] = max(out[n-1][1], r[1])
			continue
		}
		out = append(out, r)
	}
	return out
}

// text is "0-16,18".
func (s ranges) text() string {
	parts := make([]string, len(s))
	for i, r := range s {
		if parts[i] = strconv.FormatInt(r[0], 10); r[1] > r[0] {
			parts[i] += "-" + strconv.FormatInt(r[1], 10)
		}
	}
	return strings.Join(parts, ",")
}

func parseRanges(text string) (ranges, error) {
	if text == "" {
		return nil, nil
	}
	var out ranges
	for part := range strings.SplitSeq(text, ",") {
		from, to, two := strings.Cut(part, "-")
		if !two {
			to = from
		}
		a, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			return nil, err
		}
		b, err := strconv.ParseInt(to, 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, [2]int64{a, b})
	}
	return out, nil
}
