package kafka

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// keyed opens a topic with upsert = true.
func keyed(options map[string]string, key []string, schema ...types.Field) (flow.Stream, error) {
	options["upsert"] = "true"
	s, err := Source.Options.Parse("connector 'kafka'", options)
	if err != nil {
		return nil, err
	}
	return Source.Stream(context.Background(), connectors.OpenRequest{Name: "s", Settings: s, Schema: schema, Key: key})
}

// said reads what partition 0 says of its keys.
func said(t *testing.T, s flow.Stream) (rows, bad []string) {
	t.Helper()
	if !s.Updating() || flow.KeyOf(s) == nil {
		t.Fatal("the stream gives rows, not what becomes of keys")
	}
	l, err := s.(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(flow.KeyOf(l), flow.KeyOf(s)) {
		t.Fatalf("up to its present end the stream has the key %v, not %v", flow.KeyOf(l), flow.KeyOf(s))
	}
	return ct.Flat(ct.Drain(t, l, flow.Split{ID: "0"}, "", 3, 3))
}

var kText = types.Field{Name: "k", Type: types.String}

func TestUpsertReadsWhatBecomesOfKeys(t *testing.T) {
	addr := tombstones(t)
	s, err := keyed(map[string]string{"brokers": addr, "topic": "t"}, []string{"K"}, vInt, kText, types.Field{Name: "_offset", Type: types.Int64})
	if err != nil {
		t.Fatal(err)
	}
	rows, bad := said(t, s)
	want := "1|a|0|1 2|b|1|1 NULL|a|2|-1 NULL|zzz|3|-1 NULL|b|4|1 5|a|7|1 10||9|1 NULL|b|13|1"
	if got := strings.Join(rows, " "); got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
	if len(bad) != 2 || !strings.HasPrefix(bad[0], "null: the message is not a JSON object") || !strings.HasPrefix(bad[1], `{"v": 9}: the record has no key`) {
		t.Errorf("bad %q", bad)
	}
	ct.Stream(t, ct.StreamConfig{Limit: 2, Open: func(t testing.TB) flow.Stream {
		s, err := keyed(map[string]string{"brokers": addr, "topic": "t"}, []string{"k"}, kText, vInt)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}})
}

func TestKeysOfRecords(t *testing.T) {
	record := func(key string) *kgo.Record {
		return &kgo.Record{Topic: "t", Key: []byte(key), Value: []byte(`{"v":1,"k":"other"}`)}
	}
	a, b := types.Field{Name: "a", Type: types.Int32}, types.Field{Name: "b", Type: types.String}
	for _, c := range []struct {
		name      string
		format    string
		key       []types.Field
		keys      []string
		rows, bad string
	}{
		{"text", "", []types.Field{kText}, []string{"x", "\xff", "NULL", `"q"`}, `1|x|1 1|NULL|1 1|"q"|1`, "BLOB"},
		{"bytes", "", []types.Field{{Name: "k", Type: types.Binary}}, []string{"\xff\x00"}, "1|/wA=|1", ""},
		{"number", "text", []types.Field{a}, []string{"7", "-7", "x", ""}, "1|7|1 1|-7|1", `"x" is not a value of INTEGER`},
		{"one of JSON", "json", []types.Field{b}, []string{`{"b":"x"}`, `{"b":null}`, `{}`, `"x"`}, "1|x|1", "it is NULL"},
		{"two", "", []types.Field{a, b}, []string{`{"b":"x","a":1}`, `{"a":1}`, `{"a":"1","b":"x"}`, `{"a":2,"b":"","c":3}`, ""}, "1|1|x|1 1|2||1", `field "b": it is missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, addr := broker(t, "t")
			options := map[string]string{"brokers": addr, "topic": "t"}
			if c.format != "" {
				options["key_format"] = c.format
			}
			var recs []*kgo.Record
			for _, k := range c.keys {
				recs = append(recs, record(k))
			}
			produce(t, addr, nil, recs...)
			var names []string
			for _, f := range c.key {
				names = append(names, f.Name)
			}
			s, err := keyed(options, names, append([]types.Field{vInt}, c.key...)...)
			if err != nil {
				t.Fatal(err)
			}
			rows, bad := said(t, s)
			if strings.Join(rows, " ") != c.rows || len(rows)+len(bad) != len(c.keys) || !strings.Contains(strings.Join(bad, "\n"), c.bad) {
				t.Errorf("rows %q, bad %q", rows, bad)
			}
		})
	}
}

func TestKeyColumnsAreAddedToInferredOnes(t *testing.T) {
	_, addr := broker(t, "t")
	produce(t, addr, nil, &kgo.Record{Topic: "t", Key: []byte("a"), Value: []byte(`{"v":1}`)}, &kgo.Record{Topic: "t", Key: []byte("a")})
	s, err := keyed(map[string]string{"brokers": addr, "topic": "t"}, []string{"k"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ct.Columns(s.Fields()); got != "k VARCHAR, v BIGINT" {
		t.Errorf("columns %s", got)
	}
	if rows, _ := said(t, s); strings.Join(rows, " ") != "a|1|1 a|NULL|-1" {
		t.Errorf("rows %q", rows)
	}
}

func TestUpsertIsRefused(t *testing.T) {
	_, addr := broker(t, "t")
	offset, key := types.Field{Name: "_offset", Type: types.Int64}, types.Field{Name: "_key", Type: types.String}
	for _, c := range []struct {
		options map[string]string
		key     []string
		kind    errs.Kind
		part    string
	}{
		{nil, nil, errs.Schema, "PRIMARY KEY"},
		{nil, []string{"kk"}, errs.Schema, `did you mean "k"?`},
		{nil, []string{"k", "K"}, errs.Schema, "twice"},
		{nil, []string{"_offset"}, errs.Schema, "_offset is not a part of a record's key"},
		{map[string]string{"tombstones": "keep"}, []string{"k"}, errs.Usage, "tombstones"},
		{map[string]string{"key_format": "text"}, []string{"k", "v"}, errs.Schema, "it takes json"},
	} {
		options := map[string]string{"brokers": addr, "topic": "t"}
		for k, v := range c.options {
			options[k] = v
		}
		_, err := keyed(options, c.key, kText, vInt, offset, key)
		wantError(t, err, c.kind, c.part)
	}
	if _, err := keyed(map[string]string{"brokers": addr, "topic": "t"}, []string{"_key"}, key, vInt); err != nil {
		t.Errorf("_key as the PRIMARY KEY: %v", err)
	}
}
