package riverbed

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// settling is a stream whose splits begin somewhere else each time.
type settling struct{ *scriptStream }

func (settling) Settles() bool { return true }

// No checkpoint is taken before all splits of such a stream have told where they began: a run that goes on would look for it again.
func TestCheckpointsWaitForBeginnings(t *testing.T) {
	d := openDB(t, "checkpoint_url", t.TempDir(), "checkpoint_interval_ms", "1")
	gate := make(chan struct{})
	st := &scriptStream{fields: numbers, open: true, splits: map[string][]read{"a": {gives(row{1, sec(1)}), gives(row{2, sec(2)})}, "bb": {func() (flow.Rows, error) {
		<-gate
		return flow.Rows{}, nil
	}}}}
	if err := d.AddStream("s", settling{st}, "ts", ""); err != nil {
		t.Fatal(err)
	}
	p, err := d.query("SELECT v FROM s").Sink(SinkSpec{ID: "p", Func: func(context.Context, flow.Delta) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the rows of the first split were stepped", func() bool { return h.Metrics().RowsOut == 2 })
	time.Sleep(50 * time.Millisecond) // for many intervals
	if n := h.Metrics().Epoch; n != 0 {
		t.Errorf("epoch %d, and a split has not told where it began", n)
	}
	close(gate)
	until(t, "there is a checkpoint", func() bool { return h.Metrics().Epoch > 0 })
	if err := h.Stop(false); err != nil {
		t.Fatal(err)
	}
}

// A file that a join had read whole is not the same any more: its rows are in the state, and nobody would take them back.
func TestFilesOfJoinsThatChanged(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	_ = v
	feedFolder(t, dir, 0, 3, 10)
	names := filepath.Join(t.TempDir(), "names.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(names, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("k,name\n1,one\n2,two\n")
	url := t.TempDir()
	start := func() error {
		d := openDB(t, "checkpoint_url", url, "checkpoint_interval_ms", "1")
		d.run("CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')")
		p, err := d.query("SELECT s.v, n.name FROM s JOIN '" + names + "' n ON n.k = s.k").Sink(SinkSpec{ID: "p", ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": t.Name()}}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), "")
		if err != nil {
			return err
		}
		until(t, "there is a checkpoint", func() bool { return h.Metrics().Epoch > 0 && h.Metrics().RowsOut > 0 })
		return h.Stop(false)
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	write("k,name\n1,another\n2,two\n3,three\n")
	failsWith(t, "started again", start(), errs.State, "the table "+names+" is not what it was", names+" had 19 bytes of 20", "and has 31 bytes of 20", "begin anew with another id")
}
