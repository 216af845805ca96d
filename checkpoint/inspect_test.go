package checkpoint

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

func TestInspect(t *testing.T) {
	d, ctx := objstore.NewDouble(), context.Background()
	s := open(t, testOptions(d, newHasty()))
	m := epoch(t, s, nil, func(m *Manifest) {
		m.SQL, m.Operators = "SELECT 1", map[string]string{"a": "print"}
		m.Sources = []Source{{Name: "trades", State: json.RawMessage(`{"watermark":5}`), Splits: map[string]SplitPosition{"0": {Position: "17"}}}}
	})
	for i := range 7 {
		m = epoch(t, s, m, func(m *Manifest) {
			m.Step = flow.Step(i)
			m.Sinks = []Sink{{Name: "out", Done: "r:3", Pending: []Link{{Epoch: m.Epoch, Committable: []byte("secret")}}}}
		}, stateOf("a", "t", change{"x", i}, change{"y", i}))
	}
	flip(t, d, at(manifestName(6)), 300)
	o := testOptions(d, newHasty())
	o.ReadOnly = true
	got, err := open(t, o).Inspect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Epochs) != 3 || got.Epochs[0].Error != "" || got.Epochs[1].Error == "" || got.Epochs[2].Epoch != 7 || got.Epochs[2].New == 0 {
		t.Errorf("epochs %+v", got.Epochs)
	}
	if len(got.Tables) != 1 || got.Tables[0].Fingerprint != "print" || got.Tables[0].Rows < 2 || got.Tables[0].Bytes == 0 {
		t.Errorf("tables %+v", got.Tables)
	}
	if got.Holder == nil || got.Holder.Fence != 1 || got.Holder.Released {
		t.Errorf("holder %+v", got.Holder)
	}
	for _, says := range []string{`"position": "17"`, `"watermark": 5`, `"done": "r:3"`, "SELECT 1"} {
		if !strings.Contains(string(data), says) {
			t.Errorf("%s is not in %s", says, data)
		}
	}
	if strings.Contains(string(data), "secret") || strings.Contains(string(data), "c2VjcmV0") {
		t.Error("what a sink staged is shown")
	}
}

func TestStateIsReadAsItIs(t *testing.T) {
	s := open(t, testOptions(objstore.NewDouble(), newHasty()))
	m := epoch(t, s, nil, nil)
	for i := range 11 {
		m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", i}, change{"y", i}, change{string(rune('a' + i)), 1}), stateOf("a", "u", change{"x", 1}))
		m = epoch(t, s, m, nil, stateOf("a", "t", change{"y", nil}))
	}
	var keys []string
	err := s.State(context.Background(), m, "a", "t", func(b arrow.RecordBatch) error {
		for i := range int(b.NumRows()) {
			keys = append(keys, string(b.Column(2).(*array.Binary).Value(i)))
		}
		return nil
	})
	slices.Sort(keys)
	if err != nil || strings.Join(keys, "") != "abcdefghijkx" {
		t.Errorf("%v, %v", keys, err)
	}
}

func TestASavepointStandsByItself(t *testing.T) {
	d, ctx := objstore.NewDouble(), context.Background()
	s := open(t, testOptions(d, newHasty()))
	m := epoch(t, s, nil, nil)
	for i := range 6 {
		m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", i}, change{string(rune('a' + i)), i}))
	}
	want := contentOf(t, s, m)
	var elsewhere *objstore.Double
	for n := 1; ; n++ { // each operation fails once; a second call makes it whole
		elsewhere = objstore.NewDouble()
		elsewhere.Plan = func(i int, _, _ string) objstore.Fault {
			if i == n {
				return objstore.Ambiguous
			}
			return objstore.NoFault
		}
		err := s.savepoint(ctx, m, elsewhere, "/save")
		if err != nil {
			err = s.savepoint(ctx, m, elsewhere, "/save")
		}
		if err != nil {
			t.Fatal(err)
		}
		if elsewhere.Ops() < n {
			break
		}
	}
	elsewhere.Plan = nil
	for range 5 { // the pipeline goes on, and collects what it had
		m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", "later"}))
	}
	if err := s.savepoint(ctx, m, elsewhere, "/save"); !errs.Is(err, errs.Usage) {
		t.Errorf("a savepoint over another: %v", err)
	}

	o := testOptions(elsewhere, newHasty())
	o.Dir, o.Pipeline, o.ReadOnly = "/save", "", true
	point := open(t, o)
	saved, err := point.Newest(ctx)
	if err != nil || saved.Epoch != 6 || !contentOf(t, point, saved).equal(want) {
		t.Fatalf("%+v, %v", saved, err)
	}

	o = testOptions(d, newHasty())
	o.Pipeline = "other"
	other := open(t, o)
	begun, err := other.from(ctx, elsewhere, "/save")
	if err != nil {
		t.Fatal(err)
	}
	begun.Run = "s"
	if err := other.Publish(ctx, begun); err != nil {
		t.Fatal(err)
	}
	if !contentOf(t, other, begun).equal(want) || begun.Pipeline != "other" {
		t.Errorf("the new pipeline begins with %+v", begun)
	}
	if _, err := other.from(ctx, elsewhere, "/save"); !errs.Is(err, errs.Usage) {
		t.Errorf("a pipeline that has checkpoints: %v", err)
	}
	next := epoch(t, other, begun, nil, stateOf("a", "t", change{"x", "mine"}))
	if got := contentOf(t, other, next); got.state["a/t/x"] != "mine" || len(got.state) != len(want.state) {
		t.Errorf("got %v", got)
	}
	if got := contentOf(t, s, m); got.state["a/t/x"] != "later" {
		t.Errorf("the first pipeline has %v", got)
	}
}
