package riverbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
)

// lentRows counts who holds a batch, and makes its memory senseless when nobody does.
type lentRows struct {
	mu    sync.Mutex
	refs  int
	batch arrow.RecordBatch
}

func (l *lentRows) Retain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refs++
}

func (l *lentRows) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refs--; l.refs > 0 {
		return
	}
	for _, b := range l.buffers() {
		for i := range b {
			b[i] = 0xdb
		}
	}
}

func (l *lentRows) buffers() (out [][]byte) {
	for _, c := range l.batch.Columns() {
		for _, b := range c.Data().Buffers() {
			if b != nil && b.Len() > 0 {
				out = append(out, b.Bytes())
			}
		}
	}
	return out
}

func (l *lentRows) Holds(b []byte) bool {
	for _, own := range l.buffers() {
		for i := range own {
			if &own[i] == &b[0] {
				return true
			}
		}
	}
	return false
}

func (l *lentRows) held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refs
}

// lend pushes rows in memory that is taken away when nobody holds it.
func (d db) lend(stream string, rows ...row) *lentRows {
	d.t.Helper()
	p, err := d.PushStream(stream)
	if err != nil {
		d.t.Fatal(err)
	}
	l := &lentRows{refs: 1, batch: batchOf(d.cat.Load().get(stream).source.Fields, rows...)}
	if err := p.Push(d.t.Context(), "", flow.LentBatch{RecordBatch: l.batch, Lent: l}, nil); err != nil {
		d.t.Fatal(err)
	}
	l.Release()
	return l
}

func TestLentRowsGoBack(t *testing.T) {
	for _, c := range []struct {
		query string
		lies  bool // the changes lie in the pushed memory
		want  []string
	}{
		{"SELECT k, v FROM clicks", true, []string{"+1 a|1", "+1 b|2"}},
		{"SELECT v, k, v + 1 AS w FROM clicks WHERE v > 0", true, []string{"+1 1|a|2", "+1 2|b|3"}},
		{"SELECT k FROM clicks WHERE v > 1", false, []string{"+1 b"}},
		{"SELECT k, sum(v) AS s FROM clicks GROUP BY k", false, []string{"+1 a|1", "+1 b|2"}},
		{"SELECT k, max(k) AS m FROM clicks GROUP BY k", false, []string{"+1 a|a", "+1 b|b"}},
		{"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM clicks) WHERE n = 1 EMIT IMMEDIATE", false,
			[]string{"+1 a|1|1970-01-01 00:00:01|1", "+1 b|2|1970-01-01 00:00:02|1"}},
	} {
		d := openDB(t)
		d.run(clicks)
		sub := d.follow(c.query, SubscribeOptions{})
		l := d.lend("clicks", row{"a", 1, sec(1)}, row{"b", 2, sec(2)})
		delta, err := sub.Next(t.Context())
		for err == nil && delta.Rows() == 0 {
			delta, err = sub.Next(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := len(delta.Lent) > 0; got != c.lies {
			t.Errorf("%s: the changes lie in what was pushed: %v", c.query, got)
		}
		expect(t, deltaLines(sub.Fields(), delta), c.want...)
		releaseLent(delta)
		until(t, c.query, func() bool { return l.held() == 0 })
		// What the state keeps are copies: the next change is right although the memory is senseless by now.
		again := d.lend("clicks", row{"a", 1, sec(3)}, row{"c", 0, sec(3)})
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
		d.Close()
		until(t, c.query+", closed", func() bool { return again.held() == 0 })
	}
}

func TestStateKeepsCopiesOfLentRows(t *testing.T) {
	d := openDB(t)
	d.run(clicks)
	for _, query := range []string{
		"SELECT k, sum(v) AS s, min(k) AS m, max(ts) AS t FROM clicks GROUP BY k",
		"SELECT DISTINCT k, v FROM clicks",
		"SELECT a.k, b.v FROM clicks a JOIN clicks b ON a.k = b.k",
		"SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM clicks QUALIFY r <= 2",
		"SELECT k, list(v ORDER BY v) AS l, string_agg(k, ',' ORDER BY v) AS s FROM clicks GROUP BY k",
		"SELECT k, count(*) AS n FROM clicks GROUP BY k, HOP(ts, INTERVAL '2 seconds', INTERVAL '10 seconds') EMIT IMMEDIATE",
	} {
		sub := d.follow(query, SubscribeOptions{Until: "latest"})
		_ = accumulate(t, sub)
		sub = d.follow(query, SubscribeOptions{})
		var rows []row
		for i := range 20 {
			rows = append(rows, row{fmt.Sprintf("key %d", i%3), i, sec(int64(i))})
			d.lend("clicks", rows[len(rows)-1])
		}
		until(t, query, func() bool { return sub.Metrics().RowsIn == 20 })
		sub.Stop(true)
		got := accumulate(t, sub)
		plain := openDB(t)
		plain.run(clicks)
		other := plain.follow(query, SubscribeOptions{})
		plain.push("clicks", "", rows...)
		until(t, query, func() bool { return other.Metrics().RowsIn == 20 })
		other.Stop(true)
		expect(t, got, accumulate(t, other)...)
	}
}

// A sink, a view and a function of the host get copies.
func TestOthersGetCopiesOfLentRows(t *testing.T) {
	d := openDB(t)
	d.run(clicks)
	var kept []flow.Delta
	p, err := d.query("SELECT k, v FROM clicks").Sink(SinkSpec{Func: func(_ context.Context, delta flow.Delta) error {
		kept = append(kept, delta)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	l := d.lend("clicks", row{"a", 1, sec(1)}, row{"b", 2, sec(2)})
	until(t, "given back", func() bool { return l.held() == 0 })
	if err := h.Stop(true); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, delta := range kept {
		got = append(got, deltaLines(d.query("SELECT k, v FROM clicks").Fields(), delta)...)
	}
	expect(t, got, "+1 a|1", "+1 b|2")
}

// A step without state joins small reads, and shows a large one as it lies in the pushed memory.
func TestLargeReadsAreNotJoined(t *testing.T) {
	many := make([]row, statelessRows)
	for i := range many {
		many[i] = row{"k", i, sec(1)}
	}
	follow := func(end string) (db, *Subscription, []*lentRows) {
		d := openDB(t)
		d.run(clicks)
		lent := []*lentRows{d.lend("clicks", many...), d.lend("clicks", row{"a", 1, sec(1)}), d.lend("clicks", many...)}
		return d, d.follow("SELECT k, v FROM clicks", SubscribeOptions{QueueSize: 1, Until: end}), lent
	}
	d, sub, lent := follow("latest")
	var sizes []int
	for {
		delta, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if delta.Rows() > 0 {
			sizes = append(sizes, delta.Rows())
		}
		releaseLent(delta)
	}
	if !slices.Equal(sizes, []int{statelessRows, 1, statelessRows}) {
		t.Errorf("changes of %v rows", sizes)
	}
	d.Close()
	// A step waits for the reader, who is slow, and the third push for its step. There may be a step without rows before the first push is read.
	closed, slow, waiting := follow("")
	until(t, "the third push waits", func() bool {
		m := slow.Metrics()
		return m.RowsIn >= statelessRows && m.QueueRows >= statelessRows
	})
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for i, l := range append(lent, waiting...) {
		until(t, fmt.Sprintf("push %d given back", i), func() bool { return l.held() == 0 })
	}
}
