package riverbed

import (
	"context"
	"testing"
	"time"

	"github.com/riverbed/riverbed/connectors/memory"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// A stream may name its event time without a watermark expression; then only watermarks set by hand move it.
func TestEventTimeWithoutExpression(t *testing.T) {
	s, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fields := []types.Field{{Name: "k", Type: types.String}, {Name: "ts", Type: types.TsUS}}
	if err := s.AddStream("bad", memory.New(fields, memory.Options{}), "", "t"); !errs.Is(err, errs.Schema) {
		t.Errorf("an event time that is no column: %v", err)
	}
	if err := s.AddStream("e", memory.New(fields, memory.Options{}), "", "ts"); err != nil {
		t.Fatal(err)
	}
	q, err := s.Query(context.Background(), "SELECT k, count(*) AS n FROM e GROUP BY k, TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := q.Manual(ManualOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2024, 1, 1, 0, 0, 30, 0, time.UTC).UnixMicro()
	if err := m.Push("e", "", batchOf(fields, []types.Value{"a", at}, []types.Value{"a", at + 1}), nil); err != nil {
		t.Fatal(err)
	}
	for step, want := range []int{0, 1} {
		if step == 1 {
			if err := m.Watermark("e", flow.Watermark(at+30e6)); err != nil {
				t.Fatal(err)
			}
		}
		d, err := m.Step()
		if err != nil {
			t.Fatal(err)
		}
		if d.Rows() != want {
			t.Errorf("step %d shows %d rows, want %d", step+1, d.Rows(), want)
		}
	}
}
