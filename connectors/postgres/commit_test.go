package postgres

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/postgres/pgtest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

func marker(n int) connectors.Marker { return connectors.Marker(fmt.Sprintf("run:%d", n)) }

// staged is the epoch n with these rows.
func staged(n int, rows ...arrow.RecordBatch) connectors.StagedEpoch {
	return connectors.StagedEpoch{Epoch: flow.Epoch(n), Marker: marker(n), Previous: marker(n - 1), Rows: rows}
}

func begin(t testing.TB, w *writer, first, want connectors.Marker) {
	t.Helper()
	got, err := w.Begin(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("the sink holds the marker %q, and should hold %q", got, want)
	}
}

func commit(t testing.TB, w *writer, e connectors.StagedEpoch) {
	t.Helper()
	if err := w.Commit(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// TestCommit goes along a chain of markers, again, and off it.
func TestCommit(t *testing.T) {
	s, db := fresh(t)
	fields := columns(t, "k INTEGER", "v VARCHAR")
	for _, key := range []bool{false, true} {
		options, table := with(s, db, "table", "added", "marker_table", "marks"), "added"
		if key {
			options, table = with(s, db, "table", "keyed", "key", "k", "marker_table", "marks"), "keyed"
		}
		req := connectors.SinkRequest{Fields: fields, Updating: key, Pipeline: "p", ExactlyOnce: true}
		w := open(t, options, req)
		begin(t, w, "", "")
		begin(t, w, marker(0), marker(0))
		commit(t, w, staged(1, batch(t, fields, "1|a"), batch(t, fields, "2|b")))
		commit(t, w, staged(1, batch(t, fields, "9|again"))) // its answer was lost
		if err := w.Commit(t.Context(), staged(3, batch(t, fields, "9|gap"))); !errs.Is(err, errs.ExactlyOnce) || !strings.Contains(err.Error(), `"run:2"`) {
			t.Fatalf("an epoch whose predecessor is missing: %v", err)
		}
		// Rows that the table refuses leave the marker where it was.
		if err := w.Commit(t.Context(), staged(2, batch(t, columns(t, "k BIGINT", "v VARCHAR"), "3|c", "99999999999|d"))); !errs.Is(err, errs.Data) {
			t.Fatalf("a number that does not fit: %v", err)
		}
		expect(t, s, db, "SELECT * FROM "+table+" ORDER BY k", "1|a", "2|b")

		// Another process takes over; the first one is fenced, whatever it tries.
		next := open(t, options, req)
		begin(t, next, "other:0", marker(1))
		if err := w.Commit(t.Context(), staged(2, batch(t, fields, "9|zombie"))); !errs.Is(err, errs.ExactlyOnce) || !strings.Contains(err.Error(), "another run") {
			t.Fatalf("a zombie commits: %v", err)
		}
		commit(t, next, staged(2, batch(t, fields, "3|c")))
		commit(t, w, staged(2, batch(t, fields, "9|zombie"))) // it is there
		expect(t, s, db, "SELECT * FROM "+table+" ORDER BY k", "1|a", "2|b", "3|c")
		expect(t, s, db, "SELECT pipeline, marker, fence FROM marks WHERE sink = 'public."+table+"'", "p|run:2|2")

		other := open(t, options, connectors.SinkRequest{Fields: fields, Updating: key, Pipeline: "q", ExactlyOnce: true})
		begin(t, other, "q:0", "q:0")
		s.SQL(t, db, "DELETE FROM marks WHERE pipeline = 'p' AND sink = 'public."+table+"'")
		if err := next.Commit(t.Context(), staged(3)); !errs.Is(err, errs.ExactlyOnce) || !strings.Contains(err.Error(), "no marker") {
			t.Fatalf("a marker that was deleted: %v", err)
		}
	}
}

// TestCommitOfHungWriter: a writer that hangs in the middle of its commit neither holds up its successor nor comes through later.
func TestCommitOfHungWriter(t *testing.T) {
	s, db := fresh(t)
	fields := columns(t, "k INTEGER")
	req := connectors.SinkRequest{Fields: fields, Pipeline: "p", ExactlyOnce: true}
	zombie := open(t, with(s, db, "table", "t"), req)
	begin(t, zombie, marker(0), marker(0))
	hung, inside := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		conn, err := zombie.session(t.Context())
		if err == nil {
			err = exec(t.Context(), conn, "BEGIN")
		}
		if err == nil {
			err = zombie.lock(t.Context(), conn)
		}
		if err == nil {
			err = exec(t.Context(), conn, "UPDATE riverbed_markers SET marker = 'run:1'; INSERT INTO t VALUES (9)")
		}
		close(inside)
		<-hung
		if err == nil {
			err = exec(t.Context(), conn, "COMMIT")
		}
		ended <- err
	}()
	<-inside
	next := open(t, with(s, db, "table", "t"), req)
	begin(t, next, "", marker(0))
	commit(t, next, staged(1, batch(t, fields, "1")))
	close(hung)
	if err := <-ended; err == nil {
		t.Fatal("the zombie's transaction was committed")
	}
	if err := zombie.Commit(t.Context(), staged(2, batch(t, fields, "9"))); !errs.Is(err, errs.ExactlyOnce) {
		t.Fatalf("the zombie commits: %v", err)
	}
	expect(t, s, db, "SELECT k FROM t", "1")
}

// cutter is a network between us and the server that is cut when a text passes: before the server sees it, or behind it with
// the answer lost.
type cutter struct {
	addr  string
	when  atomic.Pointer[string]
	after atomic.Bool
	cuts  atomic.Int64
}

func newCutter(t *testing.T, port int) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &cutter{addr: l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				_ = client.Close()
				continue
			}
			go c.forward(client, server)
			go func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			}()
		}
	}()
	return c
}

func (c *cutter) forward(client, server net.Conn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if when := c.when.Load(); when != nil && bytes.Contains(buf[:n], []byte(*when)) {
			c.when.Store(nil)
			c.cuts.Add(1)
			if c.after.Load() {
				_ = client.Close() // the answer meets nobody
				_, _ = server.Write(buf[:n])
				return // the server's end stays open, as behind a network that swallows everything
			}
			_ = client.Close()
			return // and the transaction stays open in the server
		}
		if err != nil {
			_ = server.Close()
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (c *cutter) cut(text string, after bool) {
	c.after.Store(after)
	c.when.Store(&text)
}

// TestCommitOverBrokenNetwork loses the connection before and behind every message of a commit. The server hears nothing of it, so its
// transaction hangs with its locks.
func TestCommitOverBrokenNetwork(t *testing.T) {
	s, db := fresh(t)
	net := newCutter(t, s.Port)
	fields := columns(t, "k INTEGER", "v VARCHAR")
	options := map[string]string{"url": "postgres://postgres@" + net.addr + "/" + db + "?sslmode=disable", "table": "t", "key": "k"}
	w := open(t, options, connectors.SinkRequest{Fields: fields, Updating: true, Pipeline: "p", ExactlyOnce: true})
	begin(t, w, marker(0), marker(0))
	commit(t, w, staged(1, batch(t, fields, "+1: 1|x")))
	n := 1
	for _, message := range []string{"BEGIN", "pg_advisory_xact_lock", "SET marker", "COPY", "DELETE FROM", "ON CONFLICT", "COMMIT"} {
		for _, after := range []bool{false, true} {
			n++
			cuts := net.cuts.Load()
			net.cut(message, after)
			commit(t, w, staged(n, batch(t, fields, fmt.Sprintf("+1: %d|%s", n, strings.ReplaceAll(message, " ", "_")), fmt.Sprintf("-1: %d|x", n-1))))
			if net.cuts.Load() != cuts+1 {
				t.Fatalf("the network was not cut at %s", message)
			}
			expect(t, s, db, "SELECT k FROM t", fmt.Sprint(n))
		}
	}
	expect(t, s, db, "SELECT marker FROM riverbed_markers", string(marker(n)))
}

// TestCommitWhileServerDies kills the server again and again, at moments of chance, while epochs are committed to a table that only adds
// rows and to one by key. Read by psql, every row is there once.
func TestCommitWhileServerDies(t *testing.T) {
	s := pgtest.Start(t)
	const perEpoch = 50
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("RIVERBED_KILLS")); err == nil {
		kills = n
	}
	fields := columns(t, "id INTEGER", "v VARCHAR")
	added := open(t, with(s, "postgres", "table", "added"), connectors.SinkRequest{Fields: fields, Pipeline: "p", ExactlyOnce: true})
	keyed := open(t, with(s, "postgres", "table", "keyed", "key", "id"), connectors.SinkRequest{Fields: fields, Updating: true, Pipeline: "p", ExactlyOnce: true})
	begin(t, added, marker(0), marker(0))
	begin(t, keyed, marker(0), marker(0))
	r := clock.NewRand(7)
	killed := make(chan error, 1)
	var epochs atomic.Int64
	go func() {
		for range kills {
			for seen := epochs.Load(); epochs.Load() < seen+2; { // so that most epochs come through undisturbed
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
			s.Kill()
			if err := s.Up(); err != nil {
				killed <- err
				return
			}
		}
		killed <- nil
	}()
	n := 0
	for done := false; !done; {
		n++
		epochs.Store(int64(n))
		rows := make([]string, perEpoch)
		for i := range rows {
			rows[i] = fmt.Sprintf("%d|e%d", (n-1)*perEpoch+i, n)
		}
		e := staged(n, batch(t, fields, rows...))
		commit(t, added, e)
		var changes []string
		for i := range perEpoch { // the keys of the last epoch go
			changes = append(changes, "+1: "+rows[i])
			if n > 1 {
				changes = append(changes, fmt.Sprintf("-1: %d|e%d", (n-2)*perEpoch+i, n-1))
			}
		}
		e.Rows = []arrow.RecordBatch{batch(t, fields, changes...)}
		commit(t, keyed, e)
		if n%5 == 0 { // a restart of ours
			_ = added.Close()
			begin(t, added, "", marker(n))
		}
		select {
		case err := <-killed:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
	}
	t.Logf("%d epochs, %d kills", n, kills)
	expect(t, s, "", "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM added", fmt.Sprintf("%d|%d|0|%d", n*perEpoch, n*perEpoch, n*perEpoch-1))
	expect(t, s, "", "SELECT count(*), min(id), max(id), min(v) FROM keyed", fmt.Sprintf("%d|%d|%d|e%d", perEpoch, (n-1)*perEpoch, n*perEpoch-1, n))
}

// TestSecrets: a password is shown nowhere, whatever is wrong with it or beside it.
func TestSecrets(t *testing.T) {
	for _, u := range []string{
		"postgres://me:s3same@127.0.0.1:1/db", "postgres://me:s3same@[::1/db", "postgres://me:s3same@127.0.0.1:port/db", "postgres://me:s3same%zz@h/db",
		"postgres://me@127.0.0.1:1/db?password=s3same", "postgres://me:s3same@127.0.0.1:1/db?sslmode=odd", "host=h password=s3same", "postgres://h/db?sslrootcert=/none&password=s3same&sslmode=verify-full",
	} {
		_, err := url.Parse(u)
		_, err2 := tryOpen(t, map[string]string{"url": u, "table": "t"}, connectors.SinkRequest{Fields: columns(t, "a INTEGER"), Clock: hasty{}})
		if err2 == nil || strings.Contains(err2.Error(), "s3same") {
			t.Errorf("%s (%v): %v", u, err, err2)
		}
	}
}
