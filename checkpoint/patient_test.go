package checkpoint

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// A restore of which every second answer of the store is lost comes to its end, without beginning anew.
func TestAReadThatFailsIsTriedAgain(t *testing.T) {
	d, ctx := objstore.NewDouble(), context.Background()
	s := open(t, testOptions(d, clock.Wall{}))
	m := epoch(t, s, nil, nil, stateOf("agg", "groups", change{"a", 1}, change{"b", 2}))
	m = epoch(t, s, m, nil, stateOf("agg", "groups", change{"a", nil}, change{"c", 3}), Section{Kind: Log, Owner: "__late", Rows: []arrow.RecordBatch{texts("x")}})
	want := contentOf(t, s, m)

	faults := 0
	d.Plan = func(n int, op, _ string) objstore.Fault {
		if (op == "open" || op == "read") && n%2 == 0 {
			faults++
			return objstore.Fail
		}
		return objstore.NoFault
	}
	if err := s.Read(ctx, m, func(Section) error { return nil }); err == nil || !errs.As(err).Transient {
		t.Fatalf("without patience: %v", err)
	}
	o := testOptions(d, clock.Wall{})
	o.ReadOnly = true
	o.Again = func(_ context.Context, do func() error) error {
		for {
			if err := do(); err == nil || !errs.As(err).Transient {
				return err
			}
		}
	}
	patient := open(t, o)
	if got := contentOf(t, patient, m); !reflect.DeepEqual(got, want) || faults < 3 {
		t.Errorf("got %v, want %v, after %d faults", got, want, faults)
	}
	// What does not pass is not tried again.
	d.Plan = nil
	if err := d.Delete(ctx, at(m.Objects[0].Name)); err != nil {
		t.Fatal(err)
	}
	if err := patient.Verify(ctx, m); !errs.Is(err, errs.State) || !errors.Is(err, errDamaged) {
		t.Error(err)
	}
}

// A whole table replaces the changes before it and not those behind it, whatever is merged.
func TestAWholeTableReplacesItsLog(t *testing.T) {
	s := open(t, testOptions(objstore.NewDouble(), clock.Wall{}))
	log := func(v string) Section {
		return Section{Kind: Log, Owner: "tables", Table: "t", Rows: []arrow.RecordBatch{texts(v)}}
	}
	other := Section{Kind: Log, Owner: "tables", Table: "u", Rows: []arrow.RecordBatch{texts("u")}}
	m := epoch(t, s, nil, nil, log("1"), other)
	m = epoch(t, s, m, nil, log("2"))
	m = epoch(t, s, m, nil, Section{Kind: Whole, Owner: "tables", Table: "t", Rows: []arrow.RecordBatch{texts("1 2")}})
	if n := m.Rows(Log, "tables", "t"); n != 0 || m.Rows(Whole, "tables", "t") != 1 || len(m.Objects) != 2 {
		t.Errorf("%d changes count behind the whole table, in %d objects", n, len(m.Objects))
	}
	for range 20 { // until some are merged
		m = epoch(t, s, m, nil, log("3"))
	}
	got := contentOf(t, s, m)
	if n := len(got.lists["log/tables/t"]); n != 20 || len(got.lists["whole/tables/t"]) != 1 || len(got.lists["log/tables/u"]) != 1 {
		t.Errorf("%v", got.lists)
	}
	rows := 0
	if err := s.ReadRows(context.Background(), m, "tables", "t", func(sec Section) error {
		for _, b := range sec.Rows {
			rows += int(b.NumRows())
		}
		return nil
	}); err != nil || rows != 21 {
		t.Error(rows, err)
	}
}
