package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/postgres/pgtest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// followed opens a stream with a publication of its own.
func followed(t testing.TB, options map[string]string, schema ...types.Field) *stream {
	t.Helper()
	s, err := tryFollow(t, options, nil, schema...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryFollow(t testing.TB, options map[string]string, key []string, schema ...types.Field) (*stream, error) {
	t.Helper()
	if options["create_publication"] == "" {
		options["create_publication"] = "true"
	}
	s, err := Source.Stream(context.Background(), connectors.OpenRequest{Name: "s", Settings: connectortest.Parse(t, Source.Options, options), Schema: schema, Key: key})
	if err != nil {
		return nil, err
	}
	return s.(*stream), nil
}

// change is a row with its weight, and where the reading stands behind it.
type change struct {
	row  string
	next flow.Position
	open bool
}

func openReader(t testing.TB, s *stream, from flow.Position) flow.Reader {
	t.Helper()
	r, err := s.Open(t.Context(), flow.Split{ID: theSplit}, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// readSome reads at least n changes, and to the end of their transaction.
func readSome(t testing.TB, r flow.Reader, n, limit int) (out []change) {
	t.Helper()
	for open := false; len(out) < n || open; {
		rows, err := r.Read(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		if rows.Batch == nil {
			continue
		}
		open = rows.TxnOpen
		for i := range int(rows.Batch.NumRows()) {
			out = append(out, change{connectortest.Row(rows.Batch, i), rows.Next, rows.TxnOpen})
		}
	}
	return out
}

func rowsOf(changes []change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.row
	}
	return out
}

func wantRows(t testing.TB, got []change, want ...string) {
	t.Helper()
	if g := rowsOf(got); !slices.Equal(g, want) {
		t.Fatalf("read\n%s\nwant\n%s", strings.Join(g, "\n"), strings.Join(want, "\n"))
	}
}

// TestStreamByKey follows a table whose log has keys of old rows: rows, new rows in their place, keys that go or change, transactions whole.
func TestStreamByKey(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE other (x int); CREATE TABLE t (a text, v int, b int, PRIMARY KEY (b, a)); INSERT INTO t VALUES ('x', 1, 1), ('y', NULL, 1)")
	st := followed(t, with(s, db, "table", "t"))
	if !slices.Equal(st.Key(), []int{2, 0}) || !st.Updating() || st.Replayable() {
		t.Fatalf("key %v", st.Key())
	}
	r := openReader(t, st, "")
	wantRows(t, readSome(t, r, 2, 100), "x|1|1|1", "y|NULL|1|1")
	s.SQL(t, db, "BEGIN; UPDATE t SET v = 5 WHERE a = 'x'; INSERT INTO other VALUES (1); DELETE FROM t WHERE a = 'y'; INSERT INTO t VALUES ('z', 7, 2); UPDATE t SET b = 3 WHERE a = 'z'; COMMIT; BEGIN; INSERT INTO t VALUES ('no', 0, 0); ROLLBACK; INSERT INTO t VALUES ('', 8, 4)")
	got := readSome(t, r, 6, 2)
	wantRows(t, got[:6], "x|5|1|1", "y|NULL|1|-1", "z|7|2|1", "z|NULL|2|-1", "z|7|3|1", "|8|4|1")
	if !got[0].open || !got[2].open || got[4].open {
		t.Fatalf("the transaction is not whole: %v", got)
	}
	expect(t, s, db, "SELECT count(*) FROM pg_replication_slots WHERE NOT temporary AND database = current_database()", "0")
}

// TestStreamOfRows follows a table whose log has old rows, values that are long and were not touched among them.
func TestStreamOfRows(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE t (v int, long text); ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t ALTER long SET STORAGE EXTERNAL; INSERT INTO t VALUES (1, repeat('x', 9000)), (1, repeat('x', 9000))")
	st := followed(t, with(s, db, "table", "t"))
	if st.Key() != nil {
		t.Fatal("it has a key")
	}
	r := openReader(t, st, "")
	long := strings.Repeat("x", 9000)
	wantRows(t, readSome(t, r, 2, 100), "1|"+long+"|1", "1|"+long+"|1")
	s.SQL(t, db, "UPDATE t SET v = 2; DELETE FROM t; INSERT INTO t VALUES (NULL, NULL)")
	wantRows(t, readSome(t, r, 7, 100), "1|"+long+"|-1", "2|"+long+"|1", "1|"+long+"|-1", "2|"+long+"|1", "2|"+long+"|-1", "2|"+long+"|-1", "NULL|NULL|1")
}

// TestStreamOfPartitions follows a table of partitions as one.
func TestStreamOfPartitions(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, `CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id); CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10); CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20);
		INSERT INTO t VALUES (1, 1), (11, 11)`)
	r := openReader(t, followed(t, with(s, db, "table", "t")), "")
	wantRows(t, readSome(t, r, 2, 100), "1|1|1", "11|11|1")
	s.SQL(t, db, "UPDATE t SET v = 2 WHERE id = 1; UPDATE t SET id = 12 WHERE id = 1; INSERT INTO t2 VALUES (13, 13); DELETE FROM t WHERE id = 11")
	wantRows(t, readSome(t, r, 5, 100), "1|2|1", "1|NULL|-1", "12|2|1", "13|13|1", "11|NULL|-1")
}

// TestStreamTypes: what comes by the log is what a scan of the table gives.
func TestStreamTypes(t *testing.T) {
	s, db := fresh(t)
	create, insert, typesOf, want := samplesTable(t)
	s.SQL(t, db, create+"; "+insert)
	st := followed(t, with(s, db, "table", "samples"))
	if got := connectortest.Columns(st.Fields()); got != typesOf {
		t.Fatalf("columns\n%s", got)
	}
	r := openReader(t, st, "")
	wantRows(t, readSome(t, r, 1, 100), "1|"+want+"|1")
	s.SQL(t, db, insert)
	wantRows(t, readSome(t, r, 1, 100), "2|"+want+"|1")
}

// TestStreamConformance runs the tests of all streams. Each reading begins with the table as it is.
func TestStreamConformance(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 1000) i")
	connectortest.Stream(t, connectortest.StreamConfig{Limit: 90, Open: func(t testing.TB) flow.Stream { return followed(t, with(s, db, "table", "t")) }})
	s.SQL(t, db, "TRUNCATE t")
	connectortest.Stream(t, connectortest.StreamConfig{Limit: 90, Open: func(t testing.TB) flow.Stream { return followed(t, with(s, db, "table", "t")) }})
}

// ack is what a durable checkpoint at a position does.
func ack(t testing.TB, s *stream, at flow.Position) {
	t.Helper()
	if err := s.Acknowledge(t.Context(), map[string]flow.Position{theSplit: at}); err != nil {
		t.Fatal(err)
	}
}

// TestSlotLife: the slot belongs to nobody until a checkpoint has a position, then to the checkpoint; from every position behind it,
// those within transactions included, the same changes are read again, whatever the size of reads.
func TestSlotLife(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 20) i")
	options := with(s, db, "table", "t", "slot", "life")
	slots := "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() ORDER BY 1"

	// A run that ends before a checkpoint leaves nothing that matters.
	r := openReader(t, followed(t, options), "")
	first := readSome(t, r, 20, 7)
	if first[19].open || !first[18].open && first[18].next != first[19].next || !strings.HasPrefix(string(first[0].next), firstRead) {
		t.Fatalf("the first rows are not one transaction: %v", first)
	}
	expect(t, s, db, slots, "life_new")
	_ = r.Close()
	if _, err := followed(t, options).Open(t.Context(), flow.Split{ID: theSplit}, first[3].next); !errs.Is(err, errs.Source) {
		t.Fatalf("going on within the first rows: %v", err)
	}

	st := followed(t, options)
	r = openReader(t, st, "")
	begun := readSome(t, r, 20, 100)
	// The process is killed behind the checkpoint, before it has told us: the next run takes the slot that is there.
	_ = r.Close()
	st = followed(t, options)
	r = openReader(t, st, begun[19].next)
	expect(t, s, db, slots, "life")
	ack(t, st, begun[19].next)
	s.SQL(t, db, "UPDATE t SET v = v + 1 WHERE id <= 10; DELETE FROM t WHERE id = 20; BEGIN; INSERT INTO t SELECT i, i FROM generate_series(30, 37) i; UPDATE t SET v = 0 WHERE id = 1; COMMIT; INSERT INTO t VALUES (99, 9)")
	whole := readSome(t, r, 21, 4)
	if len(whole) != 21 {
		t.Fatalf("%d changes", len(whole))
	}
	_ = r.Close()
	seen := map[flow.Position]bool{}
	for i, c := range whole {
		if i+1 < len(whole) && whole[i+1].next == c.next || seen[c.next] {
			continue
		}
		seen[c.next] = true
		for _, limit := range []int{1, 5, 100} {
			again := openReader(t, followed(t, options), c.next)
			if rest := whole[i+1:]; len(rest) > 0 {
				wantRows(t, readSome(t, again, len(rest), limit), rowsOf(rest)...)
			}
			_ = again.Close()
		}
	}
	if len(seen) < 5 {
		t.Fatalf("only %d positions were passed", len(seen))
	}
	// A run that ended between the copy of the slot and the drop of the other left both.
	s.SQL(t, db, "SELECT pg_copy_logical_replication_slot('life', 'life_new')")
	_ = openReader(t, followed(t, options), whole[3].next).Close()
	expect(t, s, db, slots, "life")
	// Who begins at the beginning must say that the slot may go.
	if _, err := followed(t, options).Open(t.Context(), flow.Split{ID: theSplit}, ""); !errs.Is(err, errs.Source) || !strings.Contains(err.Error(), "drop_slot") {
		t.Fatalf("beginning over a slot: %v", err)
	}
	options["drop_slot"] = "true"
	r = openReader(t, followed(t, options), "")
	if n := len(readSome(t, r, 28, 100)); n != 28 {
		t.Fatalf("%d rows", n)
	}
	expect(t, s, db, slots, "life_new")
	_ = r.Close()
	delete(options, "drop_slot")
	s.SQL(t, db, "SELECT pg_drop_replication_slot('life_new')")
	if _, err := followed(t, options).Open(t.Context(), flow.Split{ID: theSplit}, whole[3].next); !errs.Is(err, errs.State) || !strings.Contains(err.Error(), "is gone") {
		t.Fatalf("a slot that was dropped: %v", err)
	}
}

// TestSlotOfAShortRun: a run that ends at its first checkpoint leaves the slot of the checkpoint alone, whether it ends before or behind the word
// that the checkpoint is durable.
func TestSlotOfAShortRun(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 20) i")
	for slot, closesFirst := range map[string]bool{"closed": true, "acked": false} {
		st := followed(t, with(s, db, "table", "t", "slot", slot))
		r := openReader(t, st, "")
		begun := readSome(t, r, 20, 100)
		if closesFirst {
			_ = r.Close()
		}
		if err := st.Acknowledge(t.Context(), map[string]flow.Position{theSplit: begun[19].next}); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		expect(t, s, db, "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() AND slot_name LIKE '"+slot+"%'", slot)
	}
}

// confirmed waits until the server may forget what is before a place.
func confirmed(t testing.TB, s *pgtest.Server, db, slot, place string) {
	t.Helper()
	for !slices.Equal(s.SQL(t, db, "SELECT confirmed_flush_lsn >= '"+place+"' FROM pg_replication_slots WHERE slot_name = '"+slot+"'"), []string{"t"}) {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestConfirm: the server keeps its log until a checkpoint is durable and no longer, also while nothing happens in our table.
func TestConfirm(t *testing.T) {
	s := pgtest.Start(t, "wal_sender_timeout = 2s")
	const db = "postgres"
	s.SQL(t, db, "CREATE TABLE other (x int); CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
	st := followed(t, with(s, db, "table", "t", "slot", "c"))
	r := openReader(t, st, "")
	begun := readSome(t, r, 1, 10)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan change)
	ended := make(chan error, 1)
	go func() {
		for {
			rows, err := r.Read(ctx, 10)
			if err != nil {
				ended <- err
				return
			}
			if rows.Batch != nil {
				got <- change{connectortest.Row(rows.Batch, 0), rows.Next, rows.TxnOpen}
			}
		}
	}()
	s.SQL(t, db, "INSERT INTO t VALUES (2)")
	second := <-got
	time.Sleep(3 * time.Second) // longer than the server waits for a sign of life
	flushed := s.SQL(t, db, "SELECT confirmed_flush_lsn < '"+string(second.next)+"' FROM pg_replication_slots WHERE slot_name = 'c_new'")
	if !slices.Equal(flushed, []string{"t"}) {
		t.Fatalf("the server may forget what no checkpoint has: %v", flushed)
	}
	ack(t, st, begun[0].next)
	confirmed(t, s, db, "c", string(begun[0].next))
	ack(t, st, second.next)
	confirmed(t, s, db, "c", string(second.next))
	s.SQL(t, db, "INSERT INTO other SELECT * FROM generate_series(1, 1000)")
	end := s.SQL(t, db, "SELECT pg_current_wal_flush_lsn()")[0]
	confirmed(t, s, db, "c", end) // nothing is pending
	s.SQL(t, db, "INSERT INTO t VALUES (3)")
	third := <-got
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_ = r.Close()
	expect(t, s, db, "SELECT slot_name FROM pg_replication_slots", "c")
	// A process of the past still reads: who goes on from the checkpoint takes its place.
	past := openReader(t, followed(t, with(s, db, "table", "t", "slot", "c")), second.next)
	wantRows(t, readSome(t, past, 1, 10), third.row)
	// The position of the last checkpoint lies before what was confirmed, and is still good.
	r = openReader(t, followed(t, with(s, db, "table", "t", "slot", "c")), second.next)
	wantRows(t, readSome(t, r, 1, 10), third.row)
}

// TestStreamWhileServerDies kills the server again and again while a table changes and is followed. What was read adds up to the table.
func TestStreamWhileServerDies(t *testing.T) {
	s := pgtest.Start(t)
	const db, kills = "postgres", 3
	s.SQL(t, db, "CREATE TABLE t (id int, v int); ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t SELECT i, 0 FROM generate_series(1, 500) i")
	options := with(s, db, "table", "t", "slot", "k")
	st := followed(t, options)
	r := openReader(t, st, "")
	sum := map[string]int{}
	add := func(changes []change) flow.Position {
		for _, c := range changes {
			row, weight := c.row[:strings.LastIndexByte(c.row, '|')], 1
			if strings.HasSuffix(c.row, "|-1") {
				weight = -1
			}
			if sum[row] += weight; sum[row] == 0 {
				delete(sum, row)
			}
		}
		return changes[len(changes)-1].next
	}
	at := add(readSome(t, r, 500, 300))
	ack(t, st, at)
	rand := clock.NewRand(3)
	changes := 0
	for n := range kills {
		s.SQL(t, db, fmt.Sprintf("UPDATE t SET v = %d WHERE id %% 2 = 0; BEGIN; DELETE FROM t WHERE id <= %d; INSERT INTO t SELECT i, %d FROM generate_series(%d, %d) i; COMMIT", n+1, 10*n, n, 1000*(n+1), 1000*(n+1)+400))
		at = add(readSome(t, r, 200+rand.IntN(100), 50)) // in the middle
		s.Kill()
		if err := s.Up(); err != nil {
			t.Fatal(err)
		}
		if n == 1 { // our process ends too
			_ = r.Close()
			r = openReader(t, followed(t, options), at)
		}
		changes++
	}
	s.SQL(t, db, "INSERT INTO t VALUES (-1, -1)")
	for sum["-1|-1"] == 0 {
		add(readSome(t, r, 1, 64))
	}
	want := s.SQL(t, db, "SELECT id || '|' || v FROM t")
	if len(sum) != len(want) {
		t.Fatalf("%d rows, and should be %d", len(sum), len(want))
	}
	for _, row := range want {
		if sum[row] != 1 {
			t.Fatalf("the row %s is there %d times", row, sum[row])
		}
	}
}

// TestStreamRefuses: what cannot be followed is said when the stream is opened.
func TestStreamRefuses(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, `CREATE TABLE nokey (a int); CREATE TABLE nothing (a int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING; CREATE VIEW v AS SELECT * FROM nokey;
		CREATE TABLE t (a int PRIMARY KEY, b int, g int GENERATED ALWAYS AS (b * 2) STORED); CREATE TABLE f (a int PRIMARY KEY); ALTER TABLE f REPLICA IDENTITY FULL;
		CREATE PUBLICATION inserts FOR TABLE t WITH (publish = 'insert'); CREATE PUBLICATION part FOR TABLE t WHERE (a > 1)`)
	for _, c := range []struct {
		options []string
		key     []string
		column  string
		kind    errs.Kind
		want    string
	}{
		{[]string{"table", "nokey"}, nil, "", errs.Unsupported, "REPLICA IDENTITY FULL"},
		{[]string{"table", "nothing"}, nil, "", errs.Unsupported, "REPLICA IDENTITY FULL"},
		{[]string{"table", "v"}, nil, "", errs.Unsupported, "not a table of its own"},
		{[]string{"table", "t", "create_publication", "false"}, nil, "", errs.Source, `CREATE PUBLICATION "riverbed" FOR TABLE "public"."t"`},
		{[]string{"table", "t", "publication", "inserts"}, nil, "", errs.Source, "lacks update, delete, truncate"},
		{[]string{"table", "t", "publication", "part"}, nil, "", errs.Source, "leaves out rows"},
		{[]string{"table", "t", "slot", "No Slot"}, nil, "", errs.Usage, "small letters"},
		{[]string{"table", "t"}, []string{"b"}, "", errs.Schema, "the key of the table public.t is (a)"},
		{[]string{"table", "t"}, nil, "b INTEGER", errs.Schema, `lacks the column "a"`},
		{[]string{"table", "t"}, nil, "g INTEGER", errs.Unsupported, "generated"},
		{[]string{"table", "f"}, []string{"a"}, "", errs.Usage, "leave it out"},
	} {
		var schema []types.Field
		if c.column != "" {
			schema = columns(t, c.column)
		}
		_, err := tryFollow(t, with(s, db, c.options...), c.key, schema...)
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, and should be of kind %s and say %q", c.options, err, c.kind, c.want)
		}
	}
	s.SQL(t, db, "CREATE ROLE reader LOGIN PASSWORD 'r'; GRANT SELECT ON f TO reader; CREATE PUBLICATION riverbed FOR TABLE f")
	options := with(s, db, "table", "f", "password", "r", "create_publication", "false")
	options["url"] = strings.Replace(options["url"], "postgres@", "reader@", 1)
	if _, err := followed(t, options).Open(t.Context(), flow.Split{ID: theSplit}, ""); !errs.Is(err, errs.Source) || !strings.Contains(err.Error(), `ALTER ROLE "reader" REPLICATION`) {
		t.Errorf("a user who may not: %v", err)
	}
	st := followed(t, with(s, db, "table", "t"))
	if got := connectortest.Columns(st.Fields()); got != "a INTEGER, b INTEGER" {
		t.Errorf("columns %s", got)
	}
	st = followed(t, with(s, db, "table", "t", "slot", "busy"))
	openReader(t, st, "")
	fast := followed(t, with(s, db, "table", "t", "slot", "busy"))
	fast.db.clock = hasty{}
	if _, err := fast.Open(t.Context(), flow.Split{ID: theSplit}, ""); !errs.Is(err, errs.Source) || !strings.Contains(err.Error(), "a slot has one reader") {
		t.Errorf("two readers: %v", err)
	}
}

// TestStreamStops at what it cannot follow, behind all that it can.
func TestStreamStops(t *testing.T) {
	s, db := fresh(t)
	for i, c := range []struct {
		do, want string
		kind     errs.Kind
	}{
		{"UPDATE doc SET id = 20 WHERE id = 1", `left its column "body" as it was`, errs.Source},
		{"TRUNCATE doc", "TRUNCATE", errs.Unsupported},
		{"ALTER TABLE doc DROP COLUMN title; INSERT INTO doc VALUES (9)", `lost the column "title"`, errs.Schema},
		{"ALTER TABLE doc RENAME COLUMN title TO t; INSERT INTO doc VALUES (9)", `lost the column "title"`, errs.Schema},
		{"ALTER TABLE doc ALTER COLUMN title TYPE varchar; INSERT INTO doc VALUES (9)", `another type for the column "title"`, errs.Schema},
		{"ALTER TABLE doc REPLICA IDENTITY FULL; INSERT INTO doc VALUES (9)", "another replica identity", errs.Schema},
		{"ALTER TABLE doc ADD COLUMN k serial UNIQUE NOT NULL; ALTER TABLE doc REPLICA IDENTITY USING INDEX doc_k_key; INSERT INTO doc VALUES (9, 'x', 'y', 10)", "another key", errs.Schema},
		{"DROP TABLE doc; CREATE TABLE doc (id int PRIMARY KEY, title text, body text); ALTER PUBLICATION riverbed ADD TABLE doc; INSERT INTO doc VALUES (9)", "made again", errs.Schema},
	} {
		s.SQL(t, db, "DROP TABLE IF EXISTS doc; CREATE TABLE doc (id int PRIMARY KEY, title text, body text); ALTER TABLE doc ALTER body SET STORAGE EXTERNAL; INSERT INTO doc VALUES (1, 'a', repeat('L', 5000)), (2, 'b', NULL)")
		r := openReader(t, followed(t, with(s, db, "table", "doc")), "")
		readSome(t, r, 2, 10)
		s.SQL(t, db, "INSERT INTO doc VALUES (3, 'c', '__debezium_unavailable_value'); UPDATE doc SET title = 'b2' WHERE id = 2; UPDATE doc SET title = 'a2' WHERE id = 1; "+c.do)
		wantRows(t, readSome(t, r, 3, 10), "3|c|__debezium_unavailable_value|1", "2|b2|NULL|1", "1|a2|NULL|"+strconv.FormatInt(flow.Keeping(2), 10))
		var err error
		for err == nil {
			_, err = r.Read(t.Context(), 10)
		}
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || errs.As(err).Transient {
			t.Errorf("%d, %s: %v", i, c.do, err)
		}
		_ = r.Close()
	}
	// With whole old rows the value is taken from there.
	s.SQL(t, db, "DROP TABLE doc; CREATE TABLE doc (id int PRIMARY KEY, title text, body text); ALTER TABLE doc REPLICA IDENTITY FULL; ALTER TABLE doc ALTER body SET STORAGE EXTERNAL; INSERT INTO doc VALUES (2, 'b', repeat('L', 5000))")
	r := openReader(t, followed(t, with(s, db, "table", "doc")), "")
	readSome(t, r, 1, 10)
	s.SQL(t, db, "UPDATE doc SET id = 20; ALTER TABLE doc ADD COLUMN more int; UPDATE doc SET title = 'c', more = 1")
	long := strings.Repeat("L", 5000)
	wantRows(t, readSome(t, r, 4, 10), "2|b|"+long+"|-1", "20|b|"+long+"|1", "20|b|"+long+"|-1", "20|c|"+long+"|1")
}

// TestStreamBadRows: a row that cannot be read goes to __bad, and the row of its key does not stand any more.
func TestStreamBadRows(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE t (id int PRIMARY KEY, n numeric); CREATE TABLE f (n numeric); ALTER TABLE f REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 1), (2, 'NaN')")
	read := func(st *stream, after string) (rows, bad []string) {
		l, err := st.UntilLatest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := openReader(t, l.(*stream), "")
		if after != "" {
			s.SQL(t, db, after)
			l.(*stream).end = ^l.(*stream).end
		}
		for {
			out, err := r.Read(t.Context(), 10)
			if errors.Is(err, io.EOF) {
				return rows, bad
			}
			if err != nil {
				t.Fatal(err)
			}
			if out.Batch != nil {
				for i := range int(out.Batch.NumRows()) {
					rows = append(rows, connectortest.Row(out.Batch, i))
				}
			}
			for _, b := range out.Bad {
				bad = append(bad, string(b.Raw))
			}
			if slices.Contains(rows, "9|9|1") || slices.Contains(rows, "9|1") {
				return rows, bad
			}
		}
	}
	rows, bad := read(followed(t, with(s, db, "table", "t"), columns(t, "id INTEGER", "n DECIMAL(5,0)")...), "UPDATE t SET n = 'NaN' WHERE id = 1; UPDATE t SET n = 3 WHERE id = 2; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (9, 9)")
	if want := []string{"1|1|1", "1|NULL|-1", "2|3|1", "1|NULL|-1", "9|9|1"}; !slices.Equal(rows, want) || !slices.Equal(bad, []string{"2\tNaN", "1\tNaN"}) {
		t.Fatalf("rows %q, bad %q", rows, bad)
	}
	rows, bad = read(followed(t, with(s, db, "table", "f"), columns(t, "n DECIMAL(5,0)")...), "INSERT INTO f VALUES ('NaN'); UPDATE f SET n = 4; INSERT INTO f VALUES (9)")
	if want := []string{"4|1", "9|1"}; !slices.Equal(rows, want) || !slices.Equal(bad, []string{"NaN"}) {
		t.Fatalf("rows %q, bad %q", rows, bad)
	}
}
