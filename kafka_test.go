package riverbed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/core/errs"
)

func TestSeveralRunsOfOneTopic(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	addr := c.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	produce := func(from, to int) {
		for i := from; i < to; i++ {
			r := &kgo.Record{Topic: "t", Partition: int32(i % 2), Value: fmt.Appendf(nil, `{"v":%d}`, i)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	produce(0, 10)
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'kafka', brokers = '" + addr + "', topic = 't')")
	var subs []*Subscription
	for range 2 {
		subs = append(subs, d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{}))
	}
	reads := func(sub *Subscription, from, to int) {
		t.Helper()
		seen := map[string]bool{}
		for len(seen) < to-from {
			for _, line := range next(t, sub) {
				seen[line] = true
			}
		}
		for i := from; i < to; i++ {
			if !seen[fmt.Sprintf("+1 %d", i)] {
				t.Errorf("row %d is not there: %v", i, seen)
			}
		}
	}
	for _, sub := range subs {
		reads(sub, 0, 10)
	}
	produce(10, 20)
	for _, sub := range subs {
		reads(sub, 10, 20)
	}
	if err := subs[0].Close(); err != nil {
		t.Fatal(err)
	}
	reads(d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{}), 0, 20) // beside one that goes on
	produce(20, 22)
	reads(subs[1], 20, 22)
}

// A topic as a table by key: a null value deletes, a JSON null and an object of NULLs do not, ” is a key and null is none.
func TestUpsertTopic(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	addr := c.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	say := func(key, value string) { // "-" is null
		r := &kgo.Record{}
		if key != "-" {
			r.Key = []byte(key)
		}
		if value != "-" {
			r.Value = []byte(value)
		}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range [][2]string{{"a", `{"v": 1}`}, {"b", `{"v": 2}`}, {"a", "-"}, {"zzz", "-"}, {"b", `{"v": null}`}, {"c", "null"}, {"a", `{"v": 5}`},
		{"-", `{"v": 9}`}, {"", `{"v": 10}`}, {"b", "{}"}} {
		say(m[0], m[1])
	}
	d := openDB(t, "parallelism", "2")
	with := " WITH (connector = 'kafka', brokers = '" + addr + "', topic = 't'"
	d.run("CREATE STREAM t (k VARCHAR, v INT, PRIMARY KEY (k))" + with + ", upsert = true)")
	d.run("CREATE STREAM s (_key VARCHAR, v INT)" + with + ")")
	for text, want := range map[string][]string{
		"SELECT k, v FROM t ORDER BY k":                                          {"a|5", "b|NULL", "|10"},
		"SELECT v IS NULL AS isnull, count(*) AS n FROM t GROUP BY 1 ORDER BY 1": {"false|2", "true|1"},
		"SELECT count(*) AS n, count(v) AS nv FROM s":                            {"7|5"},
	} {
		sub := d.follow(text, SubscribeOptions{Until: "latest"})
		got := accumulate(t, sub)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
		}
	}
	d.has("SELECT DISTINCT source, position, raw, error FROM __bad", "t|5|null|the message is not a JSON object",
		`t|7|{\x22v\x22: 9}|the record has no key, so it is nobody's row`, "s|5|null|the message is not a JSON object")

	d.run("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(v) AS v FROM t")
	until(t, "the view has read the topic", func() bool { return slices.Equal(d.rows("SELECT * FROM total"), []string{"3|15"}) })
	say("", "-")
	say("b", `{"v": 1}`)
	until(t, "the view follows", func() bool { return slices.Equal(d.rows("SELECT * FROM total"), []string{"2|6"}) })
}

func TestUpsertStreamsOfTheProgram(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM t (k VARCHAR PRIMARY KEY, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory', upsert = true)")
	sub := d.follow("SELECT k, v FROM t", SubscribeOptions{})
	d.push("t", "", row{"a", 1, sec(10)}, row{"b", 2, sec(60)}, row{"a", 3, sec(5)})
	expect(t, next(t, sub), "+1 a|3", "+1 b|2")
	d.pushWeighted("t", "", []int64{-1, 1}, row{"b", nil, nil}, row{"a", 4, sec(1)})
	expect(t, next(t, sub), "+1 a|4", "-1 a|3", "-1 b|2")
	if m := sub.Metrics(); m.LateRows != 0 || m.StateRows != 1 || m.BadRetractions != 0 {
		t.Errorf("metrics %+v", m)
	}
	p, err := d.PushStream("t")
	if err != nil {
		t.Fatal(err)
	}
	fields := d.cat.Load().get("t").source.Fields
	failsWith(t, "a key that is NULL", p.Push(t.Context(), "", batchOf(fields, row{nil, 1, nil}), nil), errs.Data, `"k"`, "PRIMARY KEY")
	failsWith(t, "a weight of 2", p.Push(t.Context(), "", batchOf(fields, row{"a", 1, nil}), []int64{2}), errs.Usage, "weight 2")
	m, err := d.query("SELECT * FROM t").Manual(ManualOptions{})
	if err != nil {
		t.Fatal(err)
	}
	failsWith(t, "a key that is NULL", m.Push("t", "", batchOf(fields, row{nil, 1, nil}), nil), errs.Data, "PRIMARY KEY")

	text, err := d.query("SELECT k, v FROM t WHERE k > 'a' AND v > 1").Explain("incremental")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Normalize by", "updating, key (k)", "state normalize_rows: unbounded, the last row of each key", "where (k#0 > 'a')"} {
		if !containsFold(text, part) {
			t.Errorf("EXPLAIN does not say %q:\n%s", part, text)
		}
	}
	d.failsToFollow("SELECT count(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK", errs.Unsupported, "updating stream")
	for text, part := range map[string]string{
		"CREATE STREAM x (k VARCHAR, v INT) WITH (connector = 'memory', upsert = true)":                                          "needs a PRIMARY KEY",
		"CREATE STREAM x (k VARCHAR, v INT, PRIMARY KEY (w)) WITH (connector = 'memory', upsert = true)":                         `no column "w"`,
		"CREATE STREAM x (k VARCHAR, v INT, PRIMARY KEY (k)) WITH (connector = 'memory')":                                        "with upsert = true",
		"CREATE STREAM x (k VARCHAR, v INT, UNIQUE (k)) WITH (connector = 'memory', upsert = true)":                              "PRIMARY KEY",
		"CREATE STREAM x (k VARCHAR PRIMARY KEY, v INT PRIMARY KEY) WITH (connector = 'memory', upsert = true)":                  "key of both",
		"CREATE STREAM x (k VARCHAR, PRIMARY KEY (k)) WITH (connector = 'memory', upsert = true, updating = true)":               "not both",
		"CREATE STREAM x (k VARCHAR, PRIMARY KEY (k)) WITH (connector = 'memory', upsert = true, allowed_lateness = '1 second')": "allowed_lateness",
		"CREATE STREAM x WITH (connector = 'generator', kind = 'sky_alerts', primary_key = 'a, b')":                              "PRIMARY KEY",
		"CREATE TABLE x (k VARCHAR, PRIMARY KEY (k)) WITH (connector = 'csv', path = 'x.csv')":                                   "PRIMARY KEY",
	} {
		if _, err := d.Query(t.Context(), text, nil); err == nil || !containsFold(err.Error(), part) {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

func (d db) failsToFollow(text string, kind errs.Kind, parts ...string) {
	d.t.Helper()
	sub, err := d.query(text).Subscribe(d.t.Context(), SubscribeOptions{})
	if err == nil {
		_ = sub.Close()
	}
	failsWith(d.t, text, err, kind, parts...)
}
