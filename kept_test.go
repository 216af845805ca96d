package riverbed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// badLines writes a file of rows that are all bad, and one that is right.
func badLines(t *testing.T, dir, name string, n int) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"k":1,"ts":"2026-01-01"}` + "\n")
	for i := range n {
		fmt.Fprintf(&b, `{"k":"no %s %d"}`+"\n", name, i)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An epoch with more bad rows than memory keeps has all of them in its checkpoint, and rows that come after a restart go on with their numbers.
func TestMoreBadRowsThanMemory(t *testing.T) {
	newVault(t)
	const many = keptLimit + 9000
	dir, url := t.TempDir(), t.TempDir()
	badLines(t, dir, "a", many)
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "3600000"} // no barrier but for what must leave memory
	run := func(rows int64) {
		t.Helper()
		d := openDB(t, "checkpoint_url", config["checkpoint_url"], "checkpoint_interval_ms", config["checkpoint_interval_ms"])
		h := d.startMain(dir)
		for h.run.s.bad.end("p") < rows || h.Metrics().Epoch == 0 { // an epoch ends although none is due
			if h.Metrics().State == "failed" {
				t.Fatal(h.Metrics().Error)
			}
		}
		if err := h.Stop(false); err != nil {
			t.Fatal(err)
		}
		d.is("SELECT max(number) FROM __bad", fmt.Sprint(rows-1))
	}
	check := func(want int64) {
		t.Helper()
		var n int64
		if _, err := readKept(t.Context(), url, "p", flow.BadRelation, func(b arrow.RecordBatch) error {
			for r := range int(b.NumRows()) {
				raw := string(keptValues(badFields, b, r)[5].([]byte))
				if expected := fmt.Sprintf(`{"k":"no a %d"}`, n); n < many && raw != expected {
					t.Fatalf("the row of the number %d is %s", n, raw)
				}
				n++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Fatalf("the checkpoint has %d rows, not %d", n, want)
		}
	}
	run(many)
	check(many)
	badLines(t, dir, "b", 2)
	run(many + 2)
	check(many + 2)
	d := openDB(t, "checkpoint_url", url)
	d.is("SELECT decode(raw) FROM state('p', '__bad') WHERE number = "+fmt.Sprint(many+1), `{"k":"no b 1"}`)
}

// A log of any length is read from checkpoints with the values of its last rows only.
func TestKeptTail(t *testing.T) {
	const all = keptLimit + 10
	tail := keptTail{fields: lateFields}
	piece := make([]keptRow, 1<<12)
	for i := range piece {
		piece[i].values = []types.Value{"before", "s", "", int64(0), "", int64(1)}
	}
	for n := 0; n < all; n += len(piece) {
		tail.take(keptBatch(lateFields, piece[:min(len(piece), all-n)]), all)
	}
	if tail.next != all || len(tail.rows) != keptLimit {
		t.Fatalf("%d rows, %d values", tail.next, len(tail.rows))
	}
	k := newKeptRows(flow.LateRelation, lateFields)
	k.replace("p", tail)
	if first := k.rows[0]; k.end("p") != all || first.number != 10 || first.values[0] != "p" {
		t.Errorf("%d rows, the first %v", k.end("p"), first)
	}
}

// Those who follow are woken once a step, find the rows of a run where they are, and have done with a run that has ended.
func TestFollowedInMemory(t *testing.T) {
	d := openDB(t)
	k := d.late
	rows := func(run string, n int) (out [][]types.Value) {
		for range n {
			out = append(out, []types.Value{run, "s", "", int64(0), "", int64(1)})
		}
		return out
	}
	k.add("a", rows("a", 3))
	k.add("b", rows("b", keptLimit-1)) // the first rows go
	k.add("a", rows("a", 4))
	st := &keptStream{s: d.Session, k: k}
	a := &keptReader{of: st, run: "a", at: keptPosition{number: 3}}
	for _, want := range []int64{3, 1} {
		got, err := a.Read(t.Context(), 3)
		if err != nil || got.Batch.NumRows() != want {
			t.Fatalf("%v, not %d rows: %v", got.Batch, want, err)
		}
	}
	if _, missing, _, _ := (&keptReader{of: st, run: "a"}).fromMemory(1); missing != 3 {
		t.Errorf("%d rows of a are missing", missing)
	}
	if b := k.log("b"); int(b.next)-len(b.rows)+3 != keptLimit/8 {
		t.Errorf("%d rows of b are in memory", len(b.rows))
	}
	news := k.changed()
	k.add("a", nil)
	select {
	case <-news:
		t.Error("woken for nothing")
	default:
	}
	k.add("a", rows("a", 1))
	<-news
	d.endKept("a", false)
	if got, err := a.Read(t.Context(), 3); err != nil || got.Batch.NumRows() != 1 {
		t.Errorf("the last row: %v", err)
	}
	if _, err := a.Read(t.Context(), 3); !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %v", err)
	}
}
