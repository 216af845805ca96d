package riverbed

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// What statements do while a subscriber is behind goes to a file, and comes from there in its order.
func TestASlowSubscriberIsBehindOnDisk(t *testing.T) {
	dir := t.TempDir()
	d := openDB(t, "state_dir", dir, "step_rows", "1")
	d.run("CREATE TABLE t (k BIGINT, s VARCHAR); INSERT INTO t VALUES (0, 'first')")
	sub := d.follow("SELECT k, length(s) AS n FROM t EMIT IMMEDIATE", SubscribeOptions{QueueSize: 1})
	const statements = 60
	d.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t") // no statement waits for the subscriber, all for the view
	feed := &sub.run.tables
	for i := range statements {
		d.run(fmt.Sprintf("INSERT INTO t SELECT %d, repeat('x', 1000000)", i+1))
	}
	d.run("DELETE FROM t WHERE k % 2 = 1")
	d.is("SELECT n FROM v", fmt.Sprint(statements/2+1))
	feed.mu.Lock()
	held, waiting, onDisk := feed.held, len(feed.pending), feed.file != nil
	feed.mu.Unlock()
	if waiting < statements/2 || !onDisk || held > feedBytes {
		t.Errorf("%d statements wait, %d MB of them in memory, on disk: %v", waiting, held>>20, onDisk)
	}
	sum := NewAccumulated(sub.Fields())
	want := d.rows("SELECT k, length(s) FROM t ORDER BY k")
	var got []string
	for steps := 0; steps < 2+statements; {
		delta, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if delta.Rows() > 0 {
			steps++
			sum.Add(delta)
		}
	}
	got = rowLines(sub.Fields(), sum.Batches())
	slices.Sort(got)
	slices.Sort(want)
	expect(t, got, want...)
	until(t, "the file goes", func() bool {
		feed.mu.Lock()
		defer feed.mu.Unlock()
		return feed.file == nil && feed.held == 0
	})
}

// A disk that fails ends the subscription, not the statement.
func TestASubscriberThatCannotSpillFails(t *testing.T) {
	dir := t.TempDir() + "/file"
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDB(t, "state_dir", dir, "step_rows", "1")
	d.run("CREATE TABLE t (k BIGINT, s VARCHAR)")
	sub := d.follow("SELECT k, s FROM t EMIT IMMEDIATE", SubscribeOptions{QueueSize: 1})
	for i := range 30 {
		d.run(fmt.Sprintf("INSERT INTO t SELECT %d, repeat('x', 1000000)", i))
	}
	d.is("SELECT count(*) FROM t", "30")
	var err error
	for err == nil {
		_, err = sub.Next(t.Context())
	}
	failsWith(t, "the subscription", err, errs.Source, "state_dir")
}

// A transaction of a source that does not end is an error at memory_limit, not the end of the process.
func TestAnEndlessTransactionOfASource(t *testing.T) {
	d := openDB(t, "memory_limit", "1MB")
	long := strings.Repeat("x", 100_000)
	fields := slices.Clone(numbers)
	fields[0].Type = types.String
	var reads []read
	for range 100 {
		reads = append(reads, func() (flow.Rows, error) {
			return flow.Rows{Batch: batchOf(fields, row{long, sec(1)}), TxnOpen: true}, nil
		})
	}
	if err := d.AddStream("s", &scriptStream{fields: fields, splits: map[string][]read{"0": reads}}, "", ""); err != nil {
		t.Fatal(err)
	}
	sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
	var err error
	for err == nil {
		_, err = sub.Next(t.Context())
	}
	failsWith(t, "the run", err, errs.Source, `a transaction of the source "s" does not end`, "memory_limit is 1 MB")
	if n := d.openTxns.Load(); n != 0 {
		t.Errorf("%d bytes are still booked", n)
	}
}
