package kafka

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

var changeFields = []types.Field{{Name: "id", Type: types.Int64}, {Name: "s", Type: types.String}}

// changed reads partition 0 of change events.
func changed(t *testing.T, s flow.Stream) (rows, bad []string) {
	t.Helper()
	if !s.Updating() {
		t.Fatal("the stream has no weights")
	}
	l, err := s.(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ct.Flat(ct.Drain(t, l, flow.Split{ID: "0"}, "", 4, 3))
}

func events(t *testing.T, values ...string) string {
	t.Helper()
	_, addr := broker(t, "t")
	for _, v := range values {
		r := &kgo.Record{Topic: "t", Key: []byte(`{"id":1}`), Value: []byte(v)}
		if v == "" {
			r.Value = nil
		}
		produce(t, addr, nil, r)
	}
	return addr
}

var someEvents = []string{
	`{"before":null,"after":{"id":1,"s":"a"},"source":{"lsn":1},"op":"r","ts_ms":1}`,
	`{"schema":{"type":"struct"},"payload":{"before":null,"after":{"id":2,"s":"b"},"op":"c","transaction":{"id":"7"}}}`,
	`{"op":"u","before":{"id":1,"s":"a"},"after":{"s":"c","id":1}}`,
	`{"op":"u","before":null,"after":{"id":2,"s":"d"}}`,
	`{"op":"d","before":{"id":1,"s":"c"},"after":null}`,
	"",
	`{"op":"m","message":{}}`,
	`{"op":"c","after":{"s":"nobody's"}}`,
	`{"after":{"id":1}}`,
	`{"op":"x","after":{"id":1}}`,
	`{"op":"u","before":{"id":3,"s":"x"},"after":{"id":"no number"}}`,
	`no JSON`,
}

func TestChangeEventsAreWhatCameAndWent(t *testing.T) {
	addr := events(t, someEvents...)
	options := map[string]string{"brokers": addr, "topic": "t", "format": "debezium"}
	s := ct.OpenStream(t, Source, options, append(changeFields, types.Field{Name: "_offset", Type: types.Int64})...)
	rows, bad := changed(t, s)
	if got, want := strings.Join(rows, " "), "1|a|0|1 2|b|1|1 1|a|2|-1 1|c|2|1 1|c|4|-1 NULL|nobody's|7|1"; got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
	if len(bad) != 5 || !strings.Contains(bad[0], "REPLICA IDENTITY FULL") || !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, `field "id"`) }) {
		t.Errorf("bad %q", bad)
	}
	if s := ct.OpenStream(t, Source, options); ct.Columns(s.Fields()) != "id JSON, s VARCHAR" { // a number and a text
		t.Errorf("columns %s", ct.Columns(s.Fields()))
	}
	ct.Stream(t, ct.StreamConfig{Limit: 3, Open: func(t testing.TB) flow.Stream { return ct.OpenStream(t, Source, options, changeFields...) }})
}

// By key, what was before need not be whole, and an event that comes twice says the same again.
func TestChangeEventsByKey(t *testing.T) {
	addr := events(t, append(someEvents, `{"op":"d","before":{"id":2}}`, `{"op":"d","before":{"s":"b"}}`)...)
	s, err := keyed(map[string]string{"brokers": addr, "topic": "t", "format": "debezium"}, []string{"ID"}, changeFields...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(flow.KeyOf(s), []int{0}) {
		t.Errorf("key %v", flow.KeyOf(s))
	}
	rows, bad := changed(t, s)
	if got, want := strings.Join(rows, " "), "1|a|1 2|b|1 1|c|1 2|d|1 1|c|-1 2|NULL|-1"; got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
	if len(bad) != 6 || !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, "nobody's row") }) {
		t.Errorf("bad %q", bad)
	}
}

func TestChangeEventsThatCannotBeRead(t *testing.T) {
	addr := events(t, someEvents[0], `{"op":"t"}`)
	s := ct.OpenStream(t, Source, map[string]string{"brokers": addr, "topic": "t", "format": "debezium"}, changeFields...)
	r, err := s.Open(t.Context(), flow.Split{ID: "0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	wantError(t, firstError(t, r), errs.Source, "was truncated")
	_, err = open(map[string]string{"brokers": addr, "topic": "t", "format": "debezium", "tombstones": "keep"}, changeFields...)
	wantError(t, err, errs.Usage, "tombstones")
	_, err = keyed(map[string]string{"brokers": addr, "topic": "t", "format": "debezium"}, []string{"_key"}, append(changeFields, types.Field{Name: "_key", Type: types.String})...)
	wantError(t, err, errs.Schema, "_key")
}
