package delta_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

func (m *maker) stream(options ...string) flow.Stream {
	m.t.Helper()
	return ct.OpenStream(m.t, source, m.options(append(options, "poll_interval", "1ms")...))
}

// bounded is the stream up to the newest version.
func (m *maker) bounded(options ...string) flow.Stream {
	m.t.Helper()
	s, err := m.stream(options...).(flow.LatestStream).UntilLatest(context.Background())
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// transactions reads a stream to its end: the rows of each transaction, in their order.
func transactions(t testing.TB, s flow.Stream, from flow.Position, limit int) (out [][]string, err error) {
	t.Helper()
	r, err := s.Open(context.Background(), flow.Split{ID: "log"}, from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var open []string
	for {
		rows, err := r.Read(context.Background(), limit)
		if errors.Is(err, io.EOF) {
			if open != nil {
				t.Fatalf("the stream ended within a transaction: %v", open)
			}
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for i := range int(rows.Batch.NumRows()) {
			open = append(open, ct.Row(rows.Batch, i))
		}
		if !rows.TxnOpen {
			out, open = append(out, open), nil
		}
	}
}

func (m *maker) follow(options ...string) [][]string {
	m.t.Helper()
	out, err := transactions(m.t, m.bounded(options...), "", 100)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func join(rows []string) string { return strings.Join(rows, " ") }

func wantTransactions(t testing.TB, got [][]string, txns ...string) {
	t.Helper()
	var lines []string
	for _, rows := range got {
		lines = append(lines, join(rows))
	}
	want(t, lines, txns...)
}

// changing makes a table whose versions change in every way.
func changing(t testing.TB) *maker {
	m := newMaker(t)
	a := m.file("a", nil, longs("id", 1, 2, 3, 4, 5, 6))
	m.commit("protocol", protocol(3, "deletionVectors"), "metaData", table(field("id", "long")), "add", a)
	b := m.file("b", nil, longs("id", 7))
	m.commit("add", b)                                                                                                                   // 1: a file comes
	m.commit("commitInfo", map[string]any{"operation": "nothing"})                                                                       // 2: nothing
	m.commit("remove", a, "add", with(a, "deletionVector", inlineVector(1, 4)))                                                          // 3: rows 2 and 5 go
	m.commit("remove", with(a, "deletionVector", inlineVector(1, 4)), "remove", b, "add", with(a, "deletionVector", inlineVector(0, 4)), // 4: 1 and 7 go, 2 comes back
		"add", m.file("c", nil, longs("id", 8, 9)))
	c := m.file("d", map[string]any{"dataChange": false}, longs("id", 2, 3, 4, 6, 8, 9)) // 5: OPTIMIZE
	m.commit("remove", with(a, "deletionVector", inlineVector(0, 4), "dataChange", false), "remove", map[string]any{"path": "c", "dataChange": false}, "add", c)
	m.commit("cdc", m.file("_change_data/x", map[string]any{"dataChange": false}, longs("id", 2, 3, 30, 10), texts("_change_type", "delete", "update_preimage", "update_postimage", "insert")), // 6: by its feed
		"remove", with(c, "dataChange", true), "add", m.file("e", nil, longs("id", 30, 4, 6, 8, 9, 10)))
	m.commit("remove", map[string]any{"path": "e", "dataChange": true}) // 7: all go; the action says nothing else of the file
	return m
}

func TestChanges(t *testing.T) {
	m := changing(t)
	s := m.stream("version", "0")
	if !s.Updating() || s.Bounded() || !s.Replayable() {
		t.Error("what the stream says of itself")
	}
	// The first version is no transaction: it may be larger than memory.
	all := []string{"1|1 2|1 3|1 4|1", "5|1 6|1", "7|1", "2|-1 5|-1", "1|-1 2|1 7|-1 8|1 9|1", "2|-1 3|-1 30|1 10|1", "30|-1 4|-1 6|-1 8|-1 9|-1 10|-1"}
	wantTransactions(t, m.follow("version", "0"), all...)
	wantTransactions(t, m.follow("version", "0", "start", "latest"), all[2:]...)
	wantTransactions(t, m.follow("version", "3"), append([]string{"1|1 3|1 4|1", "6|1", "7|1"}, all[4:]...)...)
	wantTransactions(t, m.follow("start", "latest"))
	wantTransactions(t, m.follow()) // the newest version has no rows
	wantTransactions(t, m.follow("version", "6"), "30|1 4|1 6|1 8|1", "9|1 10|1", all[6])
}

// From every position that is passed, also within a transaction, the rest is read again, whatever the size of reads.
func TestStreamConformance(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 100} {
		m := changing(t)
		ct.Stream(t, ct.StreamConfig{Limit: limit, Open: func(testing.TB) flow.Stream { return m.stream("version", "0") }})
	}
	// Rows of several row groups, hidden ones among them.
	m := newMaker(t)
	a := m.file("a", map[string]any{"partitionValues": map[string]any{"p": "1"}}, longs("id", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))
	m.commit("protocol", protocol(3, "deletionVectors"), "metaData", table(field("p", "long")+","+field("id", "long"), "partitionColumns", []string{"p"}), "add", with(a, "deletionVector", inlineVector(0, 3, 4, 10)))
	m.commit("remove", with(a, "deletionVector", inlineVector(0, 3, 4, 10)))
	for _, limit := range []int{1, 2, 3, 5} {
		ct.Stream(t, ct.StreamConfig{Limit: limit, Open: func(testing.TB) flow.Stream { return m.stream("version", "0") }})
	}
}

// The rows of the stream up to a version add up to those of the version.
func TestStreamAddsUp(t *testing.T) {
	for last := range changing(t).next {
		m := changing(t)
		for v := last + 1; v < m.next; v++ {
			if err := os.Remove(filepath.Join(m.dir, fmt.Sprintf("_delta_log/%020d.json", v))); err != nil {
				t.Fatal(err)
			}
		}
		sums := map[string]int{}
		for _, txn := range m.follow("version", "0") {
			for _, row := range txn {
				row, weight, _ := strings.Cut(row, "|")
				n, err := strconv.Atoi(weight)
				if err != nil {
					t.Fatal(err)
				}
				sums[row] += n
			}
		}
		var got []string
		for row, n := range sums {
			for range n {
				got = append(got, row)
			}
			if n < 0 {
				t.Errorf("%s is there %d times", row, n)
			}
		}
		wanted := m.scan()
		slices.Sort(got)
		slices.Sort(wanted)
		want(t, got, wanted...)
	}
}

func TestAppendOnly(t *testing.T) {
	m := simple(t)
	_, err := transactions(t, m.bounded("version", "0", "append_only", "true"), "", 100)
	failed(t, err, "version 2", "takes rows away", "append-only", "leave append_only out")
	got, err := transactions(t, m.bounded("version", "2", "append_only", "true"), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	wantTransactions(t, got, "4|z", "5|w")

	m = newMaker(t)
	m.commit("protocol", protocol(1), "metaData", table(field("id", "long"), "configuration", map[string]any{"delta.appendOnly": "true"}), "add", m.file("a", nil, longs("id", 1)))
	m.commit("add", m.file("b", nil, longs("id", 2)))
	if m.stream().Updating() {
		t.Error("a table that is only added to gives no weights")
	}
	wantTransactions(t, m.follow("version", "0"), "1", "2")
}

// New versions are found while the stream is read, and a version is whole in one transaction.
func TestPolling(t *testing.T) {
	m := simple(t)
	r, err := m.stream().Open(t.Context(), flow.Split{ID: "log"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	read := func() (rows []string) {
		for quiet := 0; quiet < 3; {
			got, err := r.Read(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			if got.Batch == nil {
				quiet++
				continue
			}
			for i := range int(got.Batch.NumRows()) {
				rows = append(rows, ct.Row(got.Batch, i))
			}
		}
		return rows
	}
	want(t, read(), "4|z|1", "5|w|1")
	want(t, read())
	m.commit("add", m.file("x", nil, longs("id", 6, 7, 8), texts("s", "a", "b", "c")))
	m.commit("remove", map[string]any{"path": "x", "dataChange": true})
	want(t, read(), "6|a|1", "7|b|1", "8|c|1", "6|a|-1", "7|b|-1", "8|c|-1")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestStreamErrors(t *testing.T) {
	remove := func(m *maker, name string) {
		if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(m *maker)
		from  flow.Position
		words []string
	}{
		"a vacuumed file":    {func(m *maker) { remove(m, "e") }, "", []string{`"e"`, "vacuumed", "deletedFileRetentionDuration"}},
		"a lost version":     {func(m *maker) { remove(m, fmt.Sprintf("_delta_log/%020d.json", 3)) }, "c3.0.0", []string{"version 3", "no longer in its log"}},
		"a replaced table":   {func(*maker) {}, "c12.0.0", []string{"newest version", "is 7", "version 11", "replaced"}},
		"a column that went": {func(m *maker) { m.commit("metaData", table(field("key", "long"))) }, "", []string{"version 8", `no column "id"`, "make the stream anew"}},
		"a retyped column":   {func(m *maker) { m.commit("metaData", table(field("id", "string"))) }, "", []string{"version 8", `column "id" is VARCHAR, and BIGINT in the stream`}},
		"a new feature":      {func(m *maker) { m.commit("protocol", protocol(3, "catalogManaged")) }, "", []string{"catalogManaged"}},
		"no position":        {func(*maker) {}, "c1", []string{`"c1" is no position`}},
		"a wrong change":     {func(m *maker) { m.commit("cdc", m.file("f", nil, longs("id", 1), texts("_change_type", "upsert"))) }, "", []string{`"f"`, `"upsert"`}},
		"no change type":     {func(m *maker) { m.commit("cdc", m.file("f", nil, longs("id", 1))) }, "", []string{`"f"`, "_change_type"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := changing(t)
			m.t = t
			s := m.stream("version", "0")
			c.spoil(m)
			s, err := s.(flow.LatestStream).UntilLatest(t.Context())
			if err == nil {
				_, err = transactions(t, s, c.from, 100)
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error lacks %q:\n%s", w, err)
				}
			}
		})
	}
	// Columns that come are left out, within structs too; elements that change are not.
	nested := func(typ string) string {
		return field("id", "long") + "," + field("l", `{"type":"array","elementType":`+typ+`}`)
	}
	point := func(more string) string {
		return `{"type":"struct","fields":[` + field("a", "long") + more + `]}`
	}
	n := newMaker(t)
	n.commit("protocol", protocol(1), "metaData", table(nested(point(""))))
	ns := n.stream()
	n.commit("metaData", table(nested(point(","+field("b", "long")))))
	n.commit("metaData", table(nested(`"long"`)))
	bounded, err := ns.(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = transactions(t, bounded, "", 100)
	failed(t, err, "version 2", `column "l" is BIGINT[], and STRUCT(a BIGINT)[] in the stream`)

	m := changing(t)
	s := m.stream("version", "0")
	m.commit("metaData", table(field("more", "string")+","+field("id", "long")), "add", m.file("g", nil, texts("more", "x"), longs("id", 99)))
	if s, err = s.(flow.LatestStream).UntilLatest(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := transactions(t, s, "c8.0.0", 100)
	if err != nil {
		t.Fatal(err)
	}
	wantTransactions(t, got, "99|1")
}

// A pipeline that goes on after the table got columns reads the versions before as they are now seen.
func TestGoingOnAfterColumnsCame(t *testing.T) {
	m := newMaker(t)
	m.commit("protocol", protocol(3, "typeWidening"), "metaData", table(field("id", "integer")), "add", m.file("a", nil, col{name: "id", t: types.Int32, values: []types.Value{int64(1)}}))
	m.commit("add", m.file("b", nil, col{name: "id", t: types.Int32, values: []types.Value{int64(2)}}))
	m.commit("metaData", table(field("id", "long")+","+field("new", "string")))
	m.commit("add", m.file("c", nil, longs("id", 3), texts("new", "x")))
	s := m.bounded()
	got, err := transactions(t, s, "c1.0.0", 100)
	if err != nil {
		t.Fatal(err)
	}
	wantTransactions(t, got, "2|NULL|1", "3|x|1")
	m.commit("metaData", table(field("new", "string")))
	if s, err = s.(flow.LatestStream).UntilLatest(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = transactions(t, s, "c1.0.0", 100)
	failed(t, err, "version 4", `no column "id"`)
}
