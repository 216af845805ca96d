package kafka

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

var pairFields = []types.Field{{Name: "k", Type: types.Int32}, {Name: "s", Type: types.String}}

// pairs makes a delta of "+1 7 a" and the like; "-" is NULL.
func pairs(rows ...string) flow.Delta {
	k, s, w := array.NewInt32Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	for _, row := range rows {
		part := strings.Fields(row)
		for i, b := range []array.Builder{w, k, s} {
			if part[i] == "-" {
				b.AppendNull()
			} else if err := b.AppendValueFromString(strings.TrimPrefix(part[i], "+")); err != nil {
				panic(err)
			}
		}
	}
	return flow.Delta{Batch: array.NewRecordBatch(flow.WithWeights(types.ArrowSchema(pairFields)), []arrow.Array{k.NewArray(), s.NewArray(), w.NewArray()}, int64(len(rows)))}
}

func sinkRecords(t *testing.T, options map[string]string, keys [][]int) (*records, error) {
	t.Helper()
	options["topic"], options["brokers"] = "t", "b"
	s, err := Sink.Options.Parse("sink", options)
	if err != nil {
		t.Fatal(err)
	}
	return newRecords(connectors.SinkRequest{Settings: s, Fields: pairFields, Updating: true, Keys: keys})
}

func text(r *kgo.Record) string {
	part := func(b []byte) string {
		if b == nil {
			return "nil"
		}
		return string(b)
	}
	out := part(r.Key) + "=" + part(r.Value)
	for _, h := range r.Headers {
		out += " " + h.Key + ":" + part(h.Value)
	}
	return out
}

func TestRecordsOfChanges(t *testing.T) {
	unique := [][]int{{0}}
	for _, c := range []struct {
		name    string
		options map[string]string
		epochs  [][]string // each is one delta
		want    string     // records, epochs apart
	}{
		{"upsert", map[string]string{"upsert": "true", "key": "k"},
			[][]string{{"+1 7 a", "+1 8 b"}, {"-1 7 a", "+1 7 c", "-1 8 b"}, {"+1 9 x", "-1 9 x", "+1 7 d", "-1 7 c", "-1 7 d", "+1 7 c"}},
			`7={"k":7,"s":"a"} 8={"k":8,"s":"b"} | 7={"k":7,"s":"c"} 8=nil | `},
		{"a key that changes", map[string]string{"upsert": "true", "key": "K"}, [][]string{{"+1 11 v"}, {"-1 11 v", "+1 12 v"}}, `11={"k":11,"s":"v"} | 11=nil 12={"k":12,"s":"v"}`},
		{"a key of JSON", map[string]string{"upsert": "true", "key": "k", "key_format": "json"}, [][]string{{"+1 - a"}, {"-1 - a"}}, `{"k":null}={"k":null,"s":"a"} | {"k":null}=nil`},
		{"a key of two", map[string]string{"upsert": "true", "key": "s, k"}, [][]string{{"+1 1 a"}}, `{"s":"a","k":1}={"k":1,"s":"a"}`},
		{"headers", map[string]string{"upsert": "true", "key": "k", "headers": "s"}, [][]string{{"+1 1 a"}, {"+1 1 b", "-1 1 a"}, {"-1 1 b", "+1 1 -"}}, `1={"k":1} s:a | 1={"k":1} s:b | 1={"k":1} s:nil`},
		{"debezium by key", map[string]string{"format": "debezium", "key": "k"}, [][]string{{"+1 1 a"}, {"-1 1 a", "+1 1 b"}, {"-1 1 b"}},
			`1={"before":null,"after":{"k":1,"s":"a"},"op":"c"} | 1={"before":{"k":1,"s":"a"},"after":{"k":1,"s":"b"},"op":"u"} | 1={"before":{"k":1,"s":"b"},"after":null,"op":"d"} 1=nil`},
		{"debezium", map[string]string{"format": "debezium"}, [][]string{{"+2 1 a"}, {"-1 1 a", "+1 1 -"}},
			`nil={"before":null,"after":{"k":1,"s":"a"},"op":"c"} nil={"before":null,"after":{"k":1,"s":"a"},"op":"c"} | nil={"before":{"k":1,"s":"a"},"after":null,"op":"d"} nil={"before":null,"after":{"k":1,"s":null},"op":"c"}`},
		{"raw with headers", map[string]string{"format": "raw", "headers": "k", "changelog": "false", "upsert": "true", "key": "k"}, [][]string{{"+1 1 a"}, {"-1 1 a", "+1 1 -"}}, `1=a k:1 | 1=nil k:1`},
		{"changelog", map[string]string{"changelog": "true", "key": "k"}, [][]string{{"+2 1 a", "-1 - b"}}, `1={"k":1,"s":"a","__weight":2} nil={"k":null,"s":"b","__weight":-1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := sinkRecords(t, c.options, unique)
			if err != nil {
				t.Fatal(err)
			}
			e := r.epoch()
			var got []string
			for _, rows := range c.epochs {
				var sent []string
				send := func(r *kgo.Record) { sent = append(sent, text(r)) }
				if err := e.add(pairs(rows...), send); err != nil {
					t.Fatal(err)
				}
				if err := e.end(send); err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.Join(sent, " "))
			}
			if got := strings.Join(got, " | "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSinkRefusesKeys(t *testing.T) {
	for _, c := range []struct {
		options map[string]string
		keys    [][]int
		kind    errs.Kind
		part    string
	}{
		{map[string]string{}, nil, errs.Unsupported, "changelog = true"},
		{map[string]string{"upsert": "true"}, [][]int{{0}}, errs.Usage, "needs the option key"},
		{map[string]string{"upsert": "true", "key": "s"}, [][]int{{0}}, errs.Unsupported, "these columns are unique: k"},
		{map[string]string{"upsert": "true", "key": "s"}, nil, errs.Unsupported, "PARTITION BY s"},
		{map[string]string{"format": "debezium", "key": "s"}, nil, errs.Unsupported, "PARTITION BY s"},
		{map[string]string{"upsert": "true", "key": "x"}, nil, errs.Schema, `no column "x"`},
		{map[string]string{"upsert": "true", "key": "k,k"}, nil, errs.Schema, "twice"},
		{map[string]string{"upsert": "true", "key": "k,s", "key_format": "text"}, [][]int{{0}}, errs.Usage, "it takes json"},
		{map[string]string{"upsert": "true", "changelog": "true", "key": "k"}, [][]int{{0}}, errs.Usage, "changelog"},
		{map[string]string{"upsert": "true", "format": "debezium", "key": "k"}, [][]int{{0}}, errs.Usage, "exclude"},
		{map[string]string{"format": "raw", "changelog": "true"}, nil, errs.Schema, "one column"},
	} {
		_, err := sinkRecords(t, c.options, c.keys)
		wantError(t, err, c.kind, c.part)
	}
	// A query of one row at most has any key.
	if _, err := sinkRecords(t, map[string]string{"upsert": "true", "key": "s"}, [][]int{{}}); err != nil {
		t.Error(err)
	}
	r, err := sinkRecords(t, map[string]string{"upsert": "true", "key": "k"}, [][]int{{0}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(*kgo.Record) {}
	wantError(t, r.epoch().add(pairs("+1 - a"), send), errs.Data, "key_format = 'json'")
	e := r.epoch()
	if err := e.add(pairs("+1 1 a", "+1 1 b"), send); err != nil {
		t.Fatal(err)
	}
	wantError(t, e.end(send), errs.Data, "several rows have the key 1")
}
