package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// broker starts an embedded broker with topics of two partitions.
func broker(t testing.TB, topics ...string) (*kfake.Cluster, string) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, c.ListenAddrs()[0]
}

func produce(t testing.TB, addr string, opts []kgo.Opt, recs ...*kgo.Record) {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func rec(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

// read opens the topic up to its present end and reads partition after partition.
func read(t testing.TB, options map[string]string, schema ...types.Field) (rows, bad []string) {
	t.Helper()
	s := latest(t, options, schema...)
	splits, err := s.Splits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sp := range splits {
		r, b := ct.Flat(ct.Drain(t, s, sp, "", 1000, 3))
		rows, bad = append(rows, r...), append(bad, b...)
	}
	return rows, bad
}

func latest(t testing.TB, options map[string]string, schema ...types.Field) flow.Stream {
	t.Helper()
	s := ct.OpenStream(t, Source, options, schema...)
	l, err := s.(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var vInt = types.Field{Name: "v", Type: types.Int64}

func TestConformance(t *testing.T) {
	_, addr := broker(t, "t")
	var recs []*kgo.Record
	for i := range 100 {
		v := fmt.Sprintf(`{"v":%d}`, i)
		if i%10 == 7 {
			v = `{"v":"no number"}`
		}
		recs = append(recs, rec("t", int32(i%2), v))
	}
	produce(t, addr, nil, recs...)
	ct.Stream(t, ct.StreamConfig{Limit: 7, Open: func(t testing.TB) flow.Stream {
		return ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t"}, vInt)
	}})
}

func TestStart(t *testing.T) {
	_, addr := broker(t, "t")
	var recs []*kgo.Record
	for i := range 5 {
		r := rec("t", 0, fmt.Sprintf(`{"v":%d}`, i))
		r.Timestamp = time.UnixMilli(int64(1_700_000_000_000 + i*1000))
		recs = append(recs, r)
	}
	produce(t, addr, nil, recs...)
	for start, want := range map[string]string{"earliest": "0 1 2 3 4", "latest": "", "0:3": "3 4", "1:0": "0 1 2 3 4", "2023-11-14T22:13:22Z": "2 3 4", "2099-01-01": ""} {
		rows, _ := read(t, map[string]string{"brokers": addr, "topic": "t", "start": start}, vInt)
		if got := strings.Join(rows, " "); got != want {
			t.Errorf("start %s: %s", start, got)
		}
	}
	_, err := open(map[string]string{"brokers": addr, "topic": "t", "start": "earlyest"}, vInt)
	wantError(t, err, errs.Usage, "earlyest", `did you mean "earliest"?`)
}

func open(options map[string]string, schema ...types.Field) (flow.Stream, error) {
	s, err := Source.Options.Parse("connector 'kafka'", options)
	if err != nil {
		return nil, err
	}
	return Source.Stream(context.Background(), connectors.OpenRequest{Settings: s, Schema: schema})
}

func wantError(t *testing.T, err error, kind errs.Kind, parts ...string) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Fatalf("got %v, want an error of kind %s", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error lacks %q: %v", p, err)
		}
	}
}

func TestInference(t *testing.T) {
	_, addr := broker(t, "t", "empty", "text")
	produce(t, addr, nil, rec("t", 0, `{"symbol":"A","price":1,"ts":"2020-01-01T00:00:00Z","n":{"a":[1]}}`), rec("t", 1, `{"symbol":"B","price":1.5,"ts":"2020-01-01 00:00:01","extra":true}`), rec("t", 1, `broken`))
	s := ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t"})
	if got := ct.Columns(s.Fields()); got != "symbol VARCHAR, price DOUBLE, ts TIMESTAMP, n STRUCT(a BIGINT[]), extra BOOLEAN" {
		t.Errorf("columns %s", got)
	}
	rows, bad := read(t, map[string]string{"brokers": addr, "topic": "t"})
	if len(rows) != 2 || len(bad) != 1 || !strings.HasPrefix(bad[0], "broken: ") {
		t.Errorf("rows %v, bad %v", rows, bad)
	}
	_, err := open(map[string]string{"brokers": addr, "topic": "empty", "schema_timeout": "50ms"})
	wantError(t, err, errs.Source, `"empty" was empty for 50ms`, "schema=")
	produce(t, addr, nil, rec("text", 0, "a"), rec("text", 0, "b"))
	_, err = open(map[string]string{"brokers": addr, "topic": "text", "schema_timeout": "300ms"})
	wantError(t, err, errs.Source, "none of the first 2 records")
}

// A broker that has not heard yet of a topic that was just made is asked again.
func TestTopicJustMade(t *testing.T) {
	c, addr := broker(t, "t")
	produce(t, addr, nil, rec("t", 0, `{"v":1}`))
	unheard := 2
	c.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := r.(*kmsg.MetadataRequest)
		if len(req.Topics) == 0 || unheard == 0 {
			return nil, nil, false
		}
		unheard--
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		for _, topic := range req.Topics {
			no := kmsg.NewMetadataResponseTopic()
			no.Topic, no.ErrorCode = topic.Topic, kerr.UnknownTopicOrPartition.Code
			resp.Topics = append(resp.Topics, no)
		}
		return resp, nil, true
	})
	if rows, bad := read(t, map[string]string{"brokers": addr, "topic": "t"}, vInt); len(rows) != 1 || len(bad) > 0 || unheard > 0 {
		t.Errorf("rows %v, bad %v, %d answers not given", rows, bad, unheard)
	}
}

func TestNoBrokerNoTopic(t *testing.T) {
	_, addr := broker(t, "trades")
	_, err := open(map[string]string{"brokers": addr, "topic": "trade"}, vInt)
	wantError(t, err, errs.Source, `no topic "trade"`, `did you mean "trades"?`)
	_, err = open(map[string]string{"brokers": "127.0.0.1:1", "topic": "t"}, vInt)
	wantError(t, err, errs.Source, "127.0.0.1:1", "tried 5 times")
	t.Setenv("KAFKA_BROKERS", addr)
	if _, err := open(map[string]string{"topic": "trades"}, vInt); err != nil {
		t.Error(err)
	}
	_, err = open(map[string]string{"topic": "trades", "sasl_password": "${NO_SUCH_VARIABLE}"}, vInt)
	wantError(t, err, errs.Usage, "NO_SUCH_VARIABLE")
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Setenv("PW", "hidden")
	s := ct.Parse(t, Source.Options, map[string]string{"brokers": "b", "topic": "t", "sasl_password": "pl4in"})
	r := ct.Parse(t, Source.Options, map[string]string{"brokers": "b", "topic": "t", "sasl_password": "${PW}"})
	if s.Shown()["sasl_password"] != "***" || r.Shown()["sasl_password"] != "${PW}" || r.String("sasl_password") != "hidden" {
		t.Errorf("%v, %v", s.Shown(), r.Shown())
	}
}

func TestNewPartitionsAppear(t *testing.T) {
	_, addr := broker(t, "t")
	s := ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t", "start": "latest"}, vInt)
	client, _ := kgo.NewClient(kgo.SeedBrokers(addr))
	defer client.Close()
	if _, err := kadm.NewClient(client).UpdatePartitions(t.Context(), 3, "t"); err != nil {
		t.Fatal(err)
	}
	produce(t, addr, nil, rec("t", 2, `{"v":1}`))
	splits, err := s.Splits(t.Context())
	if err != nil || len(splits) != 3 {
		t.Fatalf("splits %v, %v", splits, err)
	}
	// Its records came after the stream was opened, so latest does not pass them over.
	r, err := s.Open(t.Context(), splits[2], "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		rows, err := r.Read(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if rows.Batch != nil {
			if got := ct.Row(rows.Batch, 0); got != "1" {
				t.Errorf("got %s", got)
			}
			return
		}
	}
}

// message is a line of the inputs below: null and empty keys and values are told apart.
type message struct {
	Offset     int64
	Key, Value *string
}

// tombstones writes tombstones, JSON null, null and empty keys. A compacted topic has gaps in its offsets as well; here they are at
// the ends of transactions.
func tombstones(t testing.TB) (addr string) {
	t.Helper()
	const input = `{"offset": 0, "key": "a", "value": "{\"v\": 1}"}
{"offset": 1, "key": "b", "value": "{\"v\": 2}"}
{"offset": 2, "key": "a", "value": null}
{"offset": 3, "key": "zzz", "value": null}
{"offset": 4, "key": "b", "value": "{\"v\": null}"}
{"offset": 6, "key": "c", "value": "null"}
{"offset": 7, "key": "a", "value": "{\"v\": 5}"}
{"offset": 8, "key": null, "value": "{\"v\": 9}"}
{"offset": 9, "key": "", "value": "{\"v\": 10}"}
{"offset": 12, "key": "b", "value": "{}"}`
	_, addr = broker(t, "t")
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	commit := func(recs []*kgo.Record, how kgo.TransactionEndTry) {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	var recs []*kgo.Record
	for _, line := range strings.Split(input, "\n") {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: "t"}
		if m.Key != nil {
			r.Key = []byte(*m.Key)
		}
		if m.Value != nil {
			r.Value = []byte(*m.Value)
		}
		recs = append(recs, r)
		if m.Offset == 4 { // its end takes offset 5
			commit(recs, kgo.TryCommit)
			recs = nil
		}
	}
	commit(recs[:4], kgo.TryCommit)
	commit([]*kgo.Record{rec("t", 0, `{"v":666}`)}, kgo.TryAbort)
	commit(recs[4:], kgo.TryCommit)
	return addr
}

func TestTombstonesAndNullKeys(t *testing.T) {
	addr := tombstones(t)
	s := latest(t, map[string]string{"brokers": addr, "topic": "t"}, vInt, types.Field{Name: "_key", Type: types.String}, types.Field{Name: "_offset", Type: types.Int64})
	r, err := s.Open(t.Context(), flow.Split{ID: "0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rows, bad []string
	for {
		got, err := r.Read(t.Context(), 100)
		if err != nil {
			break
		}
		if got.Batch != nil {
			for i := range int(got.Batch.NumRows()) {
				rows = append(rows, ct.Row(got.Batch, i))
			}
		}
		for _, b := range got.Bad {
			bad = append(bad, b.Position+" "+string(b.Raw))
		}
	}
	if got, want := strings.Join(rows, " "), "1|a|0 2|b|1 NULL|b|4 5|a|7 9|NULL|8 10||9 NULL|b|13"; got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
	if len(bad) != 1 || bad[0] != "6 null" {
		t.Errorf("bad %v", bad)
	}
	if n := r.(interface{ SkippedTombstones() int64 }).SkippedTombstones(); n != 2 {
		t.Errorf("%d tombstones", n)
	}
	kept, _ := read(t, map[string]string{"brokers": addr, "topic": "t", "tombstones": "keep"}, vInt)
	if len(kept) != 9 {
		t.Errorf("with tombstones %v", kept)
	}
	dirty, _ := read(t, map[string]string{"brokers": addr, "topic": "t", "isolation": "read_uncommitted"}, vInt)
	if len(dirty) != 8 {
		t.Errorf("uncommitted %v", dirty)
	}
}

// Metadata: headers are an ordered list whose names repeat and whose values may be NULL; a timestamp of −1 is none.
func TestMetadata(t *testing.T) {
	_, addr := broker(t, "t")
	ts := func(ms int64) time.Time { return time.UnixMilli(ms) }
	produce(t, addr, nil,
		&kgo.Record{Topic: "t", Timestamp: ts(1700000000123), Key: []byte(`{"k1":"m1","k2":"g1"}`), Value: []byte(`{"f":1}`), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("a")}, {Key: "h", Value: []byte("b")}, {Key: "n"}}},
		&kgo.Record{Topic: "t", Timestamp: ts(-1), Key: []byte(`{"k1":"m2","k2":"g2"}`)},
		&kgo.Record{Topic: "t", Partition: 1, Timestamp: ts(1699999999000), Value: []byte(`{"f":2}`), Headers: []kgo.RecordHeader{{Key: "ü", Value: []byte{0xff}}}})
	rows, bad := read(t, map[string]string{"brokers": addr, "topic": "t", "metadata": "true", "tombstones": "keep"}, types.Field{Name: "f", Type: types.Int64})
	want := []string{
		`1|t|0|0|2023-11-14T22:13:20.123Z|{"k1":"m1","k2":"g1"}|[{"key":"h","value":"YQ=="},{"key":"h","value":"Yg=="},{"key":"n","value":null}]`,
		`NULL|t|0|1|NULL|{"k1":"m2","k2":"g2"}|[]`,
		`2|t|1|0|2023-11-14T22:13:19Z|NULL|[{"key":"ü","value":"/w=="}]`,
	}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") || len(bad) != 0 {
		t.Errorf("got\n%s\nbad %v", strings.Join(rows, "\n"), bad)
	}
	_, err := open(map[string]string{"brokers": addr, "topic": "t"}, types.Field{Name: "_offset", Type: types.String})
	wantError(t, err, errs.Schema, "_offset", "BIGINT")
}

func TestKeysThatAreNotText(t *testing.T) {
	_, addr := broker(t, "t")
	produce(t, addr, nil, &kgo.Record{Topic: "t", Key: []byte{0xff}, Value: []byte(`{"v":1}`)})
	rows, bad := read(t, map[string]string{"brokers": addr, "topic": "t"}, vInt, types.Field{Name: "_key", Type: types.String})
	if len(rows) != 0 || len(bad) != 1 || !strings.Contains(bad[0], "BLOB") {
		t.Errorf("rows %v, bad %v", rows, bad)
	}
	rows, bad = read(t, map[string]string{"brokers": addr, "topic": "t"}, vInt, types.Field{Name: "_key", Type: types.Binary})
	if len(rows) != 1 || len(bad) != 0 {
		t.Errorf("rows %v, bad %v", rows, bad)
	}
}

func TestOtherFormats(t *testing.T) {
	_, addr := broker(t, "t")
	produce(t, addr, nil, rec("t", 0, `1;"a;b"`), rec("t", 0, `x;y`), rec("t", 0, `1`), rec("t", 0, "2;c\n3;d"))
	rows, bad := read(t, map[string]string{"brokers": addr, "topic": "t", "format": "csv", "delim": ";"}, vInt, types.Field{Name: "s", Type: types.String})
	if strings.Join(rows, " ") != "1|a;b" || len(bad) != 3 {
		t.Errorf("csv: %v, %v", rows, bad)
	}
	if rows, _ = read(t, map[string]string{"brokers": addr, "topic": "t", "format": "raw"}); len(rows) != 4 || rows[1] != "x;y" {
		t.Errorf("raw: %v", rows)
	}
}

func TestTrimmedOffsets(t *testing.T) {
	_, addr := broker(t, "t")
	produce(t, addr, nil, rec("t", 0, `{"v":1}`), rec("t", 0, `{"v":2}`))
	client, _ := kgo.NewClient(kgo.SeedBrokers(addr))
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), kadm.Offsets{"t": {0: {Topic: "t", At: 2}}}); err != nil {
		t.Fatal(err)
	}
	s := ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t"}, vInt)
	r, err := s.Open(t.Context(), flow.Split{ID: "0"}, "0")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		if _, err = r.Read(t.Context(), 10); err != nil {
			break
		}
	}
	wantError(t, err, errs.Source, "does not hold the offset 0", "retention")
}

// A reader that is not read stops its fetching; the others go on.
func TestBackpressure(t *testing.T) {
	_, addr := broker(t, "t")
	big := strings.Repeat("x", 512<<10)
	for range 80 {
		produce(t, addr, nil, rec("t", 0, `{"v":1,"s":"`+big+`"}`))
	}
	produce(t, addr, nil, rec("t", 1, `{"v":1}`))
	s := latest(t, map[string]string{"brokers": addr, "topic": "t"}, vInt).(*stream)
	slow, err := s.Open(t.Context(), flow.Split{ID: "0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := ct.Flat(ct.Drain(t, s, flow.Split{ID: "1"}, "", 10, 3))
	if len(rows) != 1 {
		t.Errorf("the other partition: %v", rows)
	}
	n := 0
	for {
		got, err := slow.Read(t.Context(), 10)
		if err != nil {
			break
		}
		if q := slow.(*reader).queue; q.bytes > queueBytes+(10<<20) {
			t.Fatalf("%d bytes wait", q.bytes)
		}
		if got.Batch != nil {
			n += int(got.Batch.NumRows())
		}
	}
	if slow.Close(); n != 80 {
		t.Errorf("%d rows", n)
	}
}

func sinkDelta(weights []int64, values ...string) flow.Delta {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues(values, nil)
	fields, cols := types.ArrowSchema([]types.Field{{Name: "s", Type: types.String}}), []arrow.Array{b.NewArray()}
	if weights != nil {
		w := array.NewInt64Builder(memory.DefaultAllocator)
		w.AppendValues(weights, nil)
		fields, cols = flow.WithWeights(fields), append(cols, w.NewArray())
	}
	return flow.Delta{Batch: array.NewRecordBatch(fields, cols, int64(len(values)))}
}

func TestSink(t *testing.T) {
	_, addr := broker(t, "out", "log")
	openSink := func(updating bool, options map[string]string) (connectors.Writer, error) {
		s, err := Sink.Options.Parse("sink", options)
		if err != nil {
			t.Fatal(err)
		}
		return Sink.Open(t.Context(), connectors.SinkRequest{Settings: s, Updating: updating, Fields: []types.Field{{Name: "s", Type: types.String}}})
	}
	w, err := openSink(false, map[string]string{"brokers": addr, "topic": "out", "key": "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []flow.Delta{sinkDelta(nil, "a", "b\n"), sinkDelta([]int64{2, 0}, "c", "d"), {}} {
		if err := w.Write(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(t.Context(), sinkDelta([]int64{-1}, "a")); !errs.Is(err, errs.Unsupported) {
		t.Errorf("a retraction: %v", err)
	}
	if _, err := w.Stage(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.Close()
	rows, _ := read(t, map[string]string{"brokers": addr, "topic": "out"}, types.Field{Name: "s", Type: types.String}, types.Field{Name: "_key", Type: types.String})
	count := map[string]int{}
	for _, r := range rows {
		count[r]++
	}
	if len(rows) != 4 || count["a|a"] != 1 || count["b\n|b\n"] != 1 || count["c|c"] != 2 {
		t.Errorf("rows %q", rows)
	}

	_, err = openSink(true, map[string]string{"brokers": addr, "topic": "out"})
	wantError(t, err, errs.Unsupported, "changelog = true")
	_, err = openSink(false, map[string]string{"brokers": addr, "topic": "ou", "create": "false"})
	wantError(t, err, errs.Source, `did you mean "out"?`)
	made, err := openSink(false, map[string]string{"brokers": addr, "topic": "made", "partitions": "2"})
	if err != nil {
		t.Fatal(err)
	}
	made.Close()
	settings, err := Sink.Options.Parse("sink", map[string]string{"brokers": addr, "topic": "made"})
	if err != nil {
		t.Fatal(err)
	}
	if parts, err := partitionsOf(t.Context(), settings, clock.Wall{}); err != nil || len(parts) != 2 {
		t.Errorf("the topic that was created has partitions %v, %v", parts, err)
	}
	w, err = openSink(true, map[string]string{"brokers": addr, "topic": "log", "changelog": "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Write(t.Context(), sinkDelta([]int64{-1}, "a")); err != nil {
		t.Fatal(err)
	}
	w.Stage(t.Context(), 1)
	if rows, _ = read(t, map[string]string{"brokers": addr, "topic": "log", "format": "raw"}); len(rows) != 1 || rows[0] != `{"s":"a","__weight":-1}` {
		t.Errorf("changelog %q", rows)
	}
}
