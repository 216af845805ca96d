package debezium

import (
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ msg, op, before, after string }{
		{`{"op":"c","before":null,"after":{"a":1}}`, "c", "", `{"a":1}`},
		{` {"schema":{},"payload":{"before":{"a":[{}]},"after":{"a":"}"},"op":"u"}} `, "u", `{"a":[{}]}`, `{"a":"}"}`},
		{`{"\u006fp":"d","before":{}}`, "d", "{}", ""},
	} {
		got, err := Parse([]byte(c.msg))
		if err != nil || got.Op != c.op || string(got.Before) != c.before || string(got.After) != c.after {
			t.Errorf("%s: %+v, %v", c.msg, got, err)
		}
	}
	for _, msg := range []string{``, `null`, `[]`, `{"op":1}`, `{"op":"create"}`, `{"payload":null}`, `{"payload":{"payload":{}}}`, `{"op":"c"`, `{"op":"c"} x`} {
		if c, err := Parse([]byte(msg)); err == nil {
			t.Errorf("%s is the event %+v", msg, c)
		}
	}
}

// An event whose second row does not decode leaves nothing of its first.
func TestEventsAreWholeOrNothing(t *testing.T) {
	d, err := New([]types.Field{{Name: "a", Type: types.Int32}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, msg := range []string{`{"op":"c","after":{"a":1}}`, `{"op":"u","before":{"a":1},"after":{"a":"x"}}`, `{"op":"u","before":{"a":1},"after":null}`} {
		_ = d.Append([]byte(msg))
	}
	if d.Rows() != 1 || len(d.Weights()) != 1 || d.Weights()[0] != 1 {
		t.Errorf("%d rows, weights %v", d.Rows(), d.Weights())
	}
	if err := d.Append([]byte(`{"op":"u","before":{"a":1},"after":{"a":2,"b":3}}`)); err != nil {
		t.Fatal(err)
	}
	weights := d.Weights()
	if cols := d.Finish(); cols[0].Len() != 3 || len(weights) != 3 || weights[1] != -1 || weights[2] != 1 || d.UnknownFields() != 1 {
		t.Errorf("%v, weights %v, %d unknown", cols, weights, d.UnknownFields())
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"payload":{"op":"u","before":{"a":1},"after":{"a":2}}}`))
	f.Fuzz(func(t *testing.T, msg []byte) {
		d, err := New([]types.Field{{Name: "a", Type: types.Int32}}, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		_ = d.Append(msg)
		weights := d.Weights()
		if n := d.Finish()[0].Len(); n != len(weights) {
			t.Fatalf("%d rows and %d weights", n, len(weights))
		}
	})
}
