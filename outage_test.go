package riverbed

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// hurry moves a clock on all the time.
func hurry(t *testing.T) *clock.Fake {
	c := clock.NewFake(time.Unix(0, 0))
	stop := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
				c.Advance(time.Second)
			}
		}
	})
	t.Cleanup(func() { close(stop); over.Wait() })
	return c
}

// A pipeline waits for a source that is away, for longer than five attempts take, and says so; it ends when max_outage_ms is over.
func TestPipelinesRideOutOutages(t *testing.T) {
	away := errs.New(errs.Source, "read", "nobody is there").AsTransient()
	for _, c := range []struct {
		failures int
		outage   string
		ends     bool
	}{{30, "600000", false}, {10_000, "60000", true}} {
		d := openDB(t, "max_outage_ms", c.outage).withClock(hurry(t))
		var seen atomic.Int64
		var h atomic.Pointer[Handle]
		d.script(map[string][]read{"0": {gives(row{1, sec(1)}), fault(c.failures, away, func() (flow.Rows, error) {
			if m := h.Load().Metrics(); m.Outages != 1 || m.WaitingFor != "nobody is there" {
				t.Errorf("while it waits: %d outages, waiting for %q", m.Outages, m.WaitingFor)
			}
			return gives(row{2, sec(2)})()
		})}})
		p, err := d.query("SELECT v FROM s").Sink(SinkSpec{Func: func(_ context.Context, d flow.Delta) error {
			seen.Add(int64(d.Rows()))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		run, err := p.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		h.Store(run)
		err = run.Wait(t.Context())
		if c.ends {
			failsWith(t, "an outage that does not end", err, errs.Source, "nobody is there")
			continue
		}
		if m := run.Metrics(); err != nil || seen.Load() != 2 || m.WaitingFor != "" {
			t.Errorf("%v: %d rows, waiting for %q", err, seen.Load(), m.WaitingFor)
		}
	}
}

// A commit that is away is waited for once, whoever tries it again within.
func TestAnOutageOfTheSinkHasOneLimit(t *testing.T) {
	c := hurry(t)
	p := clock.NewPatience(c, 5*time.Minute)
	away := errs.New(errs.Source, "commit", "nobody is there").AsTransient()
	r := &runner{s: openDB(t).withClock(c).Session, patience: p}
	begun := c.Now()
	err := r.newRetry().within(p.In(t.Context()), func(ctx context.Context) error {
		return r.newRetry().within(ctx, func(context.Context) error { return away })
	})
	if took := c.Now().Sub(begun); !errs.As(err).Transient || took < 5*time.Minute || took > 8*time.Minute {
		t.Errorf("%v after %s", err, took)
	}
}

// A pipeline that is stopped does not wait for a sink that is away; the epoch is committed when it is started again.
func TestStopLeavesASinkThatIsAway(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	feedFolder(t, dir, 0, 5, 10)
	var away atomic.Bool
	away.Store(true)
	v.fail = func(applied bool) error {
		if away.Load() && !applied {
			return errs.New(errs.Source, "commit", "the vault is closed").AsTransient()
		}
		return nil
	}
	statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"}
	config := []string{"checkpoint_url", t.TempDir(), "checkpoint_interval_ms", "1", "max_outage_ms", "100000000"}
	begin := func(until string) *Handle {
		t.Helper()
		d := openDB(t, config...).withClock(hurry(t))
		for _, text := range statements {
			d.run(text)
		}
		p, err := d.query("SELECT k, v FROM s").Sink(SinkSpec{ID: "p", ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": t.Name()}}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), until)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := begin("")
	until(t, "the commit waits", func() bool { return h.Metrics().WaitingFor != "" })
	failsWith(t, "stopped meanwhile", h.Stop(false), errs.Checkpoint, "was stopped while a service did not answer", "the vault is closed", "when it is started again")
	away.Store(false)
	if err := begin("latest").Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := wantRows(t, statements, "SELECT k, v FROM s"); !maps.Equal(v.all(), want) {
		t.Errorf("%v", diff(v.all(), want))
	}
}
