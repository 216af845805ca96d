package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// once opens the sink as a pipeline under exactly_once does.
func once(t testing.TB, addr, topic, pipeline string, more map[string]string) connectors.Committer {
	t.Helper()
	options := map[string]string{"brokers": addr, "topic": topic, "transaction_timeout": "5s"}
	for k, v := range more {
		options[k] = v
	}
	s, err := Sink.Options.Parse("sink", options)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Sink.Open(t.Context(), connectors.SinkRequest{Settings: s, Pipeline: pipeline, ExactlyOnce: true, Fields: []types.Field{{Name: "s", Type: types.String}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w.(connectors.Committer)
}

func begin(t testing.TB, c connectors.Committer, first, want connectors.Marker) {
	t.Helper()
	if got, err := c.Begin(t.Context(), first); err != nil || got != want {
		t.Fatalf("the sink holds the marker %q, %v; want %q", got, err, want)
	}
}

// epoch n of a run has the rows "n.0" and "n.1".
func epoch(n int) connectors.StagedEpoch {
	return connectors.StagedEpoch{Epoch: flow.Epoch(n), Marker: link(n), Previous: link(n - 1),
		Rows: []arrow.RecordBatch{sinkDelta(nil, fmt.Sprintf("%d.0", n)).Batch, sinkDelta(nil, fmt.Sprintf("%d.1", n)).Batch}}
}

func link(n int) connectors.Marker { return connectors.Marker(fmt.Sprintf("run:%d", n)) }

func commit(t testing.TB, c connectors.Committer, n int) {
	t.Helper()
	if err := c.Commit(t.Context(), epoch(n)); err != nil {
		t.Fatal(err)
	}
}

// holds compares what a reader of committed records finds with the rows of epochs 1 to n, each once.
func holds(t testing.TB, addr, topic string, n int) {
	t.Helper()
	rows, bad := read(t, map[string]string{"brokers": addr, "topic": topic}, types.Field{Name: "s", Type: types.String})
	var want []string
	for i := 1; i <= n; i++ {
		want = append(want, fmt.Sprintf("%d.0", i), fmt.Sprintf("%d.1", i))
	}
	slices.Sort(rows)
	slices.Sort(want)
	if len(bad) > 0 || !slices.Equal(rows, want) {
		t.Fatalf("the topic holds %v (bad %v), want %v", rows, bad, want)
	}
}

func TestEpochsAreCommittedOnce(t *testing.T) {
	_, addr := broker(t, "out")
	c := once(t, addr, "out", "p", nil)
	begin(t, c, "", "")
	begin(t, c, link(0), link(0))
	commit(t, c, 1)
	commit(t, c, 1) // the answer was lost, say
	commit(t, c, 2)
	holds(t, addr, "out", 2)

	// Started again: the marker tells what is there.
	again := once(t, addr, "out", "p", nil)
	begin(t, again, link(0), link(2))
	commit(t, again, 2)
	commit(t, again, 3)
	holds(t, addr, "out", 3)

	err := again.Commit(t.Context(), epoch(7))
	wantError(t, err, errs.ExactlyOnce, `"run:3"`, `"run:7"`)

	other := once(t, addr, "out", "q", nil)
	begin(t, other, "", "")
	holds(t, addr, "out", 3)
}

// A process that was fenced and wakes up says so and harms nobody, whatever it does and in whatever order.
func TestZombiesAreFenced(t *testing.T) {
	_, addr := broker(t, "out")
	old := once(t, addr, "out", "p", nil)
	begin(t, old, link(0), link(0))
	commit(t, old, 1)
	young := once(t, addr, "out", "p", nil)
	begin(t, young, link(0), link(1))
	wantError(t, old.Commit(t.Context(), epoch(2)), errs.ExactlyOnce, "another process", "riverbed/p/out")
	commit(t, young, 2) // the zombie took the id for a moment, to look at the marker
	wantError(t, old.Commit(t.Context(), epoch(3)), errs.ExactlyOnce, "another process")
	commit(t, young, 3)
	holds(t, addr, "out", 3)
}

// A transaction that a process left open is over when its successor begins.
func TestOpenTransactionsAreAborted(t *testing.T) {
	_, addr := broker(t, "out")
	left, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("riverbed/p/out"), kgo.DefaultProduceTopic("out"))
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if err := left.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := left.ProduceSync(t.Context(), rec("out", 0, `{"s":"left"}`)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c := once(t, addr, "out", "p", nil)
	begin(t, c, link(0), link(0))
	commit(t, c, 1)
	holds(t, addr, "out", 1)
}

// Whatever request of a commit is lost, or its answer, the epoch is there once.
func TestLostRequestsAndAnswers(t *testing.T) {
	gone := errors.New("the connection is gone")
	for name, key := range map[string]kmsg.Key{"init": kmsg.InitProducerID, "produce": kmsg.Produce, "end": kmsg.EndTxn, "fetch": kmsg.Fetch, "metadata": kmsg.Metadata} {
		for _, carriedOut := range []bool{false, true} {
			for nth := range 3 {
				t.Run(fmt.Sprintf("%s %d carried out %t", name, nth, carriedOut), func(t *testing.T) {
					t.Parallel()
					cluster, addr := broker(t, "out")
					client, err := kgo.NewClient(kgo.SeedBrokers(addr))
					if err != nil {
						t.Fatal(err)
					}
					defer client.Close()
					c := once(t, addr, "out", "p", nil)
					begin(t, c, link(0), link(0))
					commit(t, c, 1)
					seen, ours := 0, false
					cluster.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
						cluster.KeepControl()
						if ours {
							return nil, nil, false
						}
						if seen++; seen != nth+1 {
							return nil, nil, false
						}
						if carriedOut {
							ours = true
							cluster.SleepControl(func() {
								if _, err := client.Request(context.Background(), r); err != nil {
									t.Error(err)
								}
							})
							ours = false
						}
						return nil, gone, true
					})
					commit(t, c, 2)
					again := once(t, addr, "out", "p", nil)
					begin(t, again, link(0), link(2))
					commit(t, again, 3)
					wantError(t, c.Commit(t.Context(), epoch(3)), errs.ExactlyOnce)
					holds(t, addr, "out", 3)
				})
			}
		}
	}
}

func TestMarkerTopic(t *testing.T) {
	_, addr := broker(t, "out", "deleted")
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	begin(t, once(t, addr, "out", "p", nil), "", "")
	configs, err := kadm.NewClient(client).DescribeTopicConfigs(t.Context(), "__riverbed_markers")
	if err != nil {
		t.Fatal(err)
	}
	policy := ""
	for _, c := range configs[0].Configs {
		if c.Key == "cleanup.policy" {
			policy = c.MaybeValue()
		}
	}
	if topics, err := kadm.NewClient(client).ListTopics(t.Context(), "__riverbed_markers"); err != nil || len(topics["__riverbed_markers"].Partitions) != 1 || policy != "compact" {
		t.Errorf("%v, %v, policy %q", topics, err, policy)
	}
	_, err = once(t, addr, "out", "p", map[string]string{"marker_topic": "deleted"}).Begin(t.Context(), link(0))
	wantError(t, err, errs.ExactlyOnce, `"deleted"`, "cleanup.policy = delete")
}

// What cannot be committed fails for good, and leaves nothing open.
func TestCommitFailsForGood(t *testing.T) {
	_, addr := broker(t, "out", "wide")
	c := once(t, addr, "out", "p", nil)
	begin(t, c, link(0), link(0))
	e := epoch(1)
	e.Rows = append(e.Rows, sinkDelta(nil, strings.Repeat("x", 2<<20)).Batch)
	wantError(t, c.Commit(t.Context(), e), errs.Source, "max.message.bytes")
	commit(t, c, 1)
	holds(t, addr, "out", 1)
	limit := "5000000"
	if _, err := adm(t, addr).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, "wide"); err != nil {
		t.Fatal(err)
	}
	wide := once(t, addr, "wide", "p", map[string]string{"compression": "none"})
	begin(t, wide, link(0), link(0))
	e.Rows = []arrow.RecordBatch{sinkDelta(nil, strings.Repeat("x", 2<<20)).Batch}
	if err := wide.Commit(t.Context(), e); err != nil {
		t.Errorf("a row that the topic takes: %v", err)
	}
	e = epoch(2)
	e.Rows = []arrow.RecordBatch{sinkDelta([]int64{-1}, "1.0").Batch}
	wantError(t, c.Commit(t.Context(), e), errs.Unsupported, "changelog")
	commit(t, c, 2)
	holds(t, addr, "out", 2)
}

// A marker topic that is deleted while we write is an error that names it, not a second first epoch.
func TestMarkersThatAreDeleted(t *testing.T) {
	_, addr := broker(t, "out")
	c := once(t, addr, "out", "p", nil)
	begin(t, c, link(0), link(0))
	commit(t, c, 1)
	if _, err := adm(t, addr).DeleteTopic(t.Context(), "__riverbed_markers"); err != nil {
		t.Fatal(err)
	}
	begin(t, once(t, addr, "other", "p", nil), "", "") // another sink makes it anew
	wantError(t, c.Commit(t.Context(), epoch(2)), errs.Source, "__riverbed_markers", "UNKNOWN_TOPIC_ID")
	wantError(t, c.Commit(t.Context(), epoch(2)), errs.ExactlyOnce, "__riverbed_markers", "no marker")
	holds(t, addr, "out", 1)
}

func TestCommitGivesUp(t *testing.T) {
	cluster, addr := broker(t, "out")
	c := once(t, addr, "out", "p", map[string]string{"commit_timeout": "1s", "transaction_timeout": "1s"})
	begin(t, c, link(0), link(0))
	cluster.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := r.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
		return resp, nil, true
	})
	start := time.Now()
	err := c.Commit(t.Context(), epoch(1))
	wantError(t, err, errs.Source, "for 1s", "when the pipeline is started again")
	if errs.As(err).Transient || time.Since(start) > 10*time.Second { // it was said how long: nobody is to try again
		t.Errorf("transient %t, after %s", errs.As(err).Transient, time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, c.Commit(ctx, epoch(1)), errs.Cancelled)
}
