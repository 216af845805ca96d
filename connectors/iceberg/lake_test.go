package iceberg_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/capi/iceload"
	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/iceberg"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// These tests go through the library of metadata, with a catalog in SQLite.

// lake is a catalog of its own.
type lake struct {
	dir     string
	options map[string]string
}

func newLake(t *testing.T) *lake {
	t.Helper()
	if os.Getenv(iceload.Variable) == "" {
		built := filepath.Join("..", "..", "python", "riverbed", "libriverbed_iceberg.so")
		path, err := filepath.Abs(built)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Skip("make iceberg builds the library of metadata")
		}
		t.Setenv(iceload.Variable, path)
	}
	dir := t.TempDir()
	return &lake{dir, map[string]string{"catalog": "sqlite:///" + filepath.Join(dir, "catalog.db"), "table": "n.t"}}
}

func (l *lake) with(more map[string]string) map[string]string {
	out := maps.Clone(l.options)
	maps.Copy(out, more)
	return out
}

var columns = []types.Field{{Name: "k", Type: types.Int32}, {Name: "s", Type: types.String}, {Name: "v", Type: types.Int64}}

// sink is a writer under test and its chain of markers.
type sink struct {
	t      *testing.T
	w      connectors.Committer
	fields []types.Field
	epoch  flow.Epoch
	last   connectors.Marker
}

// open opens the sink as a pipeline does that begins, or goes on behind an epoch.
func (l *lake) open(t *testing.T, options map[string]string, fields []types.Field, after flow.Epoch) *sink {
	t.Helper()
	s, err := l.tryOpen(t, options, fields, after)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (l *lake) tryOpen(t *testing.T, options map[string]string, fields []types.Field, after flow.Epoch) (*sink, error) {
	t.Helper()
	req := connectors.SinkRequest{Name: "iceberg", Settings: ct.Parse(t, iceberg.Sink.Options, l.with(options)), Fields: fields, Pipeline: "p.1", ExactlyOnce: true}
	if options["key"] != "" {
		req.Updating, req.Keys = true, [][]int{{0}}
	}
	w, err := iceberg.Sink.Open(t.Context(), req)
	if err != nil {
		return nil, err
	}
	s := &sink{t: t, w: w.(connectors.Committer), fields: fields, epoch: after, last: marker(after)}
	t.Cleanup(func() { _ = w.Close() })
	first := connectors.Marker("")
	if after == 0 {
		first = marker(0)
	}
	held, err := s.w.Begin(t.Context(), first)
	if err != nil {
		return nil, err
	}
	if held != s.last {
		t.Fatalf("the table holds the marker %q, not %q", held, s.last)
	}
	return s, nil
}

func marker(e flow.Epoch) connectors.Marker { return connectors.Marker(fmt.Sprintf("run:%d", e)) }

// row is a row with its weight.
type row struct {
	weight int64
	values []types.Value
}

func (s *sink) write(rows ...row) {
	s.t.Helper()
	cols := make([]arrow.Array, len(s.fields))
	for i, f := range s.fields {
		values := make([]types.Value, len(rows))
		for r := range rows {
			values[r] = rows[r].values[i]
		}
		cols[i] = types.ArrayOf(values, f.Type)
	}
	weights := make([]types.Value, len(rows))
	for i := range rows {
		weights[i] = rows[i].weight
	}
	b := array.NewRecordBatch(flow.WithWeights(types.ArrowSchema(s.fields)), append(cols[:len(cols):len(cols)], types.ArrayOf(weights, types.Int64)), int64(len(rows)))
	if err := s.w.Write(s.t.Context(), flow.Delta{Batch: b}); err != nil {
		s.t.Fatal(err)
	}
}

// stage ends an epoch; the zero value when it has nothing.
func (s *sink) stage() connectors.StagedEpoch {
	s.t.Helper()
	s.epoch++
	c, err := s.w.Stage(s.t.Context(), s.epoch)
	if err != nil {
		s.t.Fatal(err)
	}
	if c == nil {
		return connectors.StagedEpoch{}
	}
	e := connectors.StagedEpoch{Epoch: s.epoch, Marker: marker(s.epoch), Previous: s.last, Committable: c}
	s.last = e.Marker
	return e
}

func (s *sink) commit(e connectors.StagedEpoch) {
	s.t.Helper()
	if e.Marker == "" {
		return
	}
	if err := s.w.Commit(s.t.Context(), e); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sink) epochOf(rows ...row) {
	s.t.Helper()
	s.write(rows...)
	s.commit(s.stage())
}

func ins(values ...types.Value) row { return row{1, values} }
func del(values ...types.Value) row { return row{-1, values} }

func (l *lake) rows(t *testing.T, options map[string]string) []string {
	t.Helper()
	return ct.Scan(t, ct.OpenRelation(t, iceberg.Source, l.with(options)), flow.ScanRequest{})
}

func (l *lake) holds(t *testing.T, options map[string]string, want ...string) {
	t.Helper()
	have := l.rows(t, options)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the table holds %q, not %q", have, want)
	}
}

func TestAppend(t *testing.T) {
	l := newLake(t)
	s := l.open(t, nil, columns, 0)
	s.epochOf(ins(int64(1), "a", int64(10)), ins(int64(2), "b", nil))
	if e := s.stage(); e.Marker != "" {
		t.Error("an epoch without rows has something to commit")
	}
	s.write(row{2, []types.Value{int64(3), "c", int64(30)}})
	e := s.stage()
	l.holds(t, nil, "1|a|10", "2|b|NULL")
	s.commit(e)
	s.commit(e) // its answer was lost
	l.holds(t, nil, "1|a|10", "2|b|NULL", "3|c|30", "3|c|30")
	if left, err := filepath.Glob(filepath.Join(l.dir, "n.db", "t", "data", "*")); err != nil || len(left) != 2 {
		t.Error(left, err)
	}
}

// A process ends between Stage and Commit, or behind it, and its successor commits what its checkpoint names; what it does not name goes.
func TestAppendAfterACrash(t *testing.T) {
	l := newLake(t)
	one := l.open(t, nil, columns, 0)
	one.write(ins(int64(1), "a", int64(10)))
	first := one.stage()
	one.write(ins(int64(9), "never", nil))
	_ = one.stage() // and its manifest never came

	two := l.open(t, nil, columns, 0)
	two.last, two.epoch = first.Marker, first.Epoch
	two.commit(first)
	l.holds(t, nil, "1|a|10")
	two.epochOf(ins(int64(2), "b", int64(20)))
	l.holds(t, nil, "1|a|10", "2|b|20")
	var left []string
	err := filepath.WalkDir(l.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "/data/") {
			left = append(left, path)
		}
		return err
	})
	if err != nil || len(left) != 2 {
		t.Errorf("the table's data are %q: %v", left, err)
	}

	// The first one wakes up: what it commits again is there, what it adds is refused.
	one.commit(connectors.StagedEpoch{Epoch: 2, Marker: marker(2), Previous: marker(1), Committable: first.Committable})
	err = one.w.Commit(t.Context(), connectors.StagedEpoch{Epoch: 3, Marker: "other:3", Previous: "other:2", Committable: first.Committable})
	if !errs.Is(err, errs.ExactlyOnce) {
		t.Error(err)
	}
}

// Two pipelines and a stranger add rows to one table at once.
func TestTwoWriters(t *testing.T) {
	l := newLake(t)
	const writers, epochs = 2, 5
	l.open(t, nil, columns, 0) // makes the table
	var all sync.WaitGroup
	for n := range writers {
		req := connectors.SinkRequest{Name: "iceberg", Settings: ct.Parse(t, iceberg.Sink.Options, l.options), Fields: columns, Pipeline: fmt.Sprintf("w%d", n), ExactlyOnce: true}
		w, err := iceberg.Sink.Open(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		s := &sink{t: t, w: w.(connectors.Committer), fields: columns, last: marker(0)}
		if _, err := s.w.Begin(t.Context(), marker(0)); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for e := range epochs {
				s.write(ins(int64(n), "x", int64(e)))
				if err := s.w.Commit(context.Background(), s.stage()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var want []string
	for n := range writers {
		for e := range epochs {
			want = append(want, fmt.Sprintf("%d|x|%d", n, e))
		}
	}
	l.holds(t, nil, want...)
}

// A table by key is the query, epoch by epoch, whatever came and went, however it is partitioned; and a stream of it sums up to it.
func TestByKey(t *testing.T) {
	for _, by := range []string{"", "bucket(3, k)", "truncate(1, s)"} {
		t.Run("by "+by, func(t *testing.T) {
			l := newLake(t)
			options := map[string]string{"key": "k"}
			if by != "" {
				options["partition_by"] = by
			}
			s := l.open(t, options, columns, 0)
			stream := ct.OpenStream(t, iceberg.Source, l.with(map[string]string{"start": "earliest", "poll_interval": "1ms"}))
			model := map[int64]row{}
			chance := rand.New(rand.NewPCG(1, 2))
			for range 12 {
				for range chance.IntN(3) {
					var rows []row
					for _, k := range chance.Perm(6)[:1+chance.IntN(3)] {
						key := int64(k)
						old, there := model[key]
						if there {
							rows = append(rows, del(old.values...))
							delete(model, key)
						}
						if !there || chance.IntN(3) > 0 {
							model[key] = ins(key, string(rune('a'+chance.IntN(3))), chance.Int64N(100))
							rows = append(rows, model[key])
						}
					}
					s.write(rows...)
				}
				e := s.stage()
				if e.Marker != "" && chance.IntN(3) == 0 { // the process ended here
					s = l.open(t, options, columns, s.epoch-1)
					s.epoch, s.last = e.Epoch, e.Marker
				}
				s.commit(e)
				var want []string
				for _, r := range model {
					want = append(want, fmt.Sprintf("%d|%v|%d", r.values[0], r.values[1], r.values[2]))
				}
				l.holds(t, nil, want...)
			}
			sums(t, stream, l.rows(t, nil))
			ct.Stream(t, ct.StreamConfig{Limit: 3, Open: func(t testing.TB) flow.Stream { return stream }})
		})
	}
}

// sums checks that what a stream gave, up to now, is the table.
func sums(t *testing.T, s flow.Stream, table []string) {
	t.Helper()
	bounded, err := s.(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	splits, err := bounded.Splits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := ct.Flat(ct.Drain(t, bounded, splits[0], "", 4, 1))
	sum := map[string]int{}
	for _, r := range rows {
		at := strings.LastIndexByte(r, '|')
		var w int
		_, _ = fmt.Sscan(r[at+1:], &w)
		if sum[r[:at]] += w; sum[r[:at]] == 0 {
			delete(sum, r[:at])
		}
	}
	for _, r := range table {
		sum[r]--
	}
	for r, n := range sum {
		if n != 0 {
			t.Errorf("the stream sums up to %+d of %s beside the table", n, r)
		}
	}
}

// The stream of a table that only grows.
func TestStreamOfAppends(t *testing.T) {
	l := newLake(t)
	s := l.open(t, map[string]string{"partition_by": "s"}, columns, 0)
	for e := range 4 {
		var rows []row
		for i := range 5 {
			rows = append(rows, ins(int64(e), string(rune('a'+i%3)), int64(i)))
		}
		s.epochOf(rows...)
		if e == 1 {
			stream := ct.OpenStream(t, iceberg.Source, l.with(map[string]string{"append_only": "true"}))
			defer ct.Stream(t, ct.StreamConfig{Limit: 4, Open: func(t testing.TB) flow.Stream { return stream }}) // the rows of two snapshots, and two commits
		}
	}
	sums(t, ct.OpenStream(t, iceberg.Source, l.options), l.rows(t, nil))
}

func TestEverySQLType(t *testing.T) {
	l := newLake(t)
	fields := []types.Field{
		{Name: "b", Type: types.Bool}, {Name: "i8", Type: types.Int8}, {Name: "u16", Type: types.Uint16}, {Name: "u32", Type: types.Uint32}, {Name: "u64", Type: types.Uint64}, {Name: "huge", Type: types.Int128},
		{Name: "f", Type: types.Float32}, {Name: "d", Type: types.Float64}, {Name: "small", Type: types.Dec(5, 2)}, {Name: "wide", Type: types.Dec(38, 10)},
		{Name: "t", Type: types.String}, {Name: "j", Type: types.JSONType}, {Name: "x", Type: types.Binary}, {Name: "day", Type: types.Date32}, {Name: "clock", Type: types.TimeUS},
		{Name: "s", Type: types.TsS}, {Name: "us", Type: types.TsUS}, {Name: "tz", Type: types.TsTZ}, {Name: "id", Type: types.UUIDType},
		{Name: "l", Type: types.ListOf(types.Int64)}, {Name: "st", Type: types.StructOf(types.Field{Name: "a", Type: types.String}, types.Field{Name: "n", Type: types.ListOf(types.Float64)})},
		{Name: "m", Type: types.MapOf(types.String, types.Int32)},
	}
	texts := []string{"true", "-1", "65535", "4294967295", "18446744073709551615", "170141183460469231731", "1.5", "-2.5", "123.45", "1234567890123456789012345678.0123456789",
		"é", `{"a": 1}`, "\\x00\\xFF", "1969-12-31", "23:59:59.999999", "2026-11-30 01:02:03", "0001-01-01 00:00:00.000001", "2026-11-30 01:02:03.4+00", "f79c3e09-677c-4bbd-a479-3f349cb785e7",
		"[1, NULL, 3]", "{'a': x, 'n': [1.5]}", "{k=1}"}
	values, nulls := make([]types.Value, len(fields)), make([]types.Value, len(fields))
	for i, f := range fields {
		v, err := types.ParseValue(texts[i], f.Type)
		if err != nil {
			t.Fatal(f.Name, err)
		}
		values[i] = v
	}
	s := l.open(t, nil, fields, 0)
	s.epochOf(ins(values...), ins(nulls...))
	r := ct.OpenRelation(t, iceberg.Source, l.options)
	want := "b BOOLEAN, i8 INTEGER, u16 INTEGER, u32 BIGINT, u64 DECIMAL(20,0), huge DECIMAL(38,0), f FLOAT, d DOUBLE, small DECIMAL(5,2), wide DECIMAL(38,10), t VARCHAR, j VARCHAR, x BLOB, day DATE, clock TIME, " +
		"s TIMESTAMP, us TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, id UUID, l BIGINT[], st STRUCT(a VARCHAR, n DOUBLE[]), m MAP(VARCHAR, INTEGER)"
	if have := ct.Columns(r.Fields()); have != want {
		t.Errorf("the columns are %s\nnot %s", have, want)
	}
	scan, err := r.Scan(t.Context(), flow.ScanRequest{Columns: upTo(len(fields)), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = scan.Close() }()
	m, err := scan.Next(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range r.Fields() {
		have := types.Format(types.ValueAt(m.Batch.Column(i), 0, f.Type), f.Type)
		if was := types.Format(values[i], fields[i].Type); have != was {
			t.Errorf("%s: %s, not %s", f.Name, have, was)
		}
		if m.Batch.Column(i).IsValid(1) {
			t.Errorf("%s is not NULL", f.Name)
		}
	}
	_, err = l.tryOpen(t, map[string]string{"table": "n.u"}, []types.Field{{Name: "i", Type: types.Span}}, 0)
	if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), `"i"`) {
		t.Error(err)
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Columns are added and widened on request, and rows of before read as NULL.
func TestEvolve(t *testing.T) {
	l := newLake(t)
	s := l.open(t, nil, columns, 0)
	s.epochOf(ins(int64(1), "a", int64(10)))
	more := append(slices.Clone(columns), types.Field{Name: "extra", Type: types.Float64})
	more[0].Type = types.Int64
	if _, err := l.tryOpen(t, nil, more, 1); !errs.Is(err, errs.Schema) || !strings.Contains(err.Error(), "evolve") {
		t.Error(err)
	}
	stream := ct.OpenStream(t, iceberg.Source, l.options)
	s = l.open(t, map[string]string{"evolve": "true"}, more, 1)
	s.epochOf(ins(int64(1)<<40, "b", int64(20), 0.5))
	l.holds(t, nil, "1|a|10|NULL", fmt.Sprintf("%d|b|20|0.5", int64(1)<<40))
	bounded, err := stream.(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := bounded.Open(t.Context(), flow.Split{}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for err == nil {
		_, err = r.Read(t.Context(), 10)
	}
	if !strings.Contains(err.Error(), `"k"`) { // INTEGER does not hold what comes now
		t.Error(err)
	}
	sums(t, ct.OpenStream(t, iceberg.Source, l.with(map[string]string{"start": "earliest"})), l.rows(t, nil))
}

// A branch takes rows that the main branch has not, and time travel reads what was.
func TestBranchesAndSnapshots(t *testing.T) {
	l := newLake(t)
	s := l.open(t, nil, columns, 0)
	s.epochOf(ins(int64(1), "a", int64(10)))
	audit := map[string]string{"branch": "audit"}
	b := l.open(t, audit, columns, 1)
	b.epochOf(ins(int64(2), "b", int64(20)))
	l.holds(t, nil, "1|a|10")
	l.holds(t, audit, "1|a|10", "2|b|20")
	if _, err := ct.TryRelation(iceberg.Source, l.with(map[string]string{"branch": "adit"})); err == nil || !strings.Contains(err.Error(), "audit") {
		t.Error(err)
	}
	if _, err := ct.TryRelation(iceberg.Source, l.with(map[string]string{"snapshot": "17"})); err == nil || !strings.Contains(err.Error(), "17") {
		t.Error(err)
	}
	version := ct.OpenRelation(t, iceberg.Source, l.options).(interface{ Version() string }).Version()
	_, id, _ := strings.Cut(version, "@")
	s = l.open(t, nil, columns, 2)
	s.epochOf(ins(int64(3), "c", int64(30)))
	l.holds(t, nil, "1|a|10", "3|c|30")
	l.holds(t, map[string]string{"snapshot": id}, "1|a|10")
}
