package repo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/postgres/pgtest"
	"github.com/riverbed/riverbed/core/errs"
)

// TestRealPostgres goes through SQL: a table as it stands, the changes of two others in a view that joins and in a sink that follows, and a
// key that cannot be one.
func TestRealPostgres(t *testing.T) {
	pg := pgtest.Start(t)
	db := pg.Database(t, "shop")
	t.Setenv("PGPASSWORD", pgtest.Password)
	t.Setenv("SHOP_URL", pg.URL(db))
	pg.SQL(t, db, `CREATE TABLE customers (id int PRIMARY KEY, name text); INSERT INTO customers VALUES (1, 'ann'), (2, 'bob');
		CREATE TABLE orders (id int PRIMARY KEY, customer int, price numeric(10,2)); ALTER TABLE orders REPLICA IDENTITY FULL; INSERT INTO orders VALUES (10, 1, 5.50), (11, 2, 1)`)
	s, err := riverbed.Open(map[string]string{"parallelism": "2", "strict_retractions": "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows := func(text string) (out []string) {
		t.Helper()
		q, err := s.Query(t.Context(), text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q == nil {
			return nil
		}
		res, err := q.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer res.Release()
		for res.Next() {
			b := res.RecordBatch()
			for i := range int(b.NumRows()) {
				out = append(out, connectortest.Row(b, i))
			}
		}
		if err := res.Err(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	same := func(what string, read func() []string, want ...string) {
		t.Helper()
		for got := read(); !slices.Equal(got, want); got = read() {
			if t.Context().Err() != nil {
				t.Fatalf("%s: %q, want %q", what, got, want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	if got := rows("SELECT name FROM read_postgres('customers', url = '${SHOP_URL}') WHERE id >= 2"); !slices.Equal(got, []string{"bob"}) {
		t.Fatalf("read_postgres: %q", got)
	}
	rows("CREATE TABLE people WITH (connector = 'postgres', url = '${SHOP_URL}', table = 'customers')")
	rows("CREATE STREAM customers WITH (connector = 'postgres', url = '${SHOP_URL}', table = 'public.customers', create_publication = true)")
	rows("CREATE STREAM orders WITH (connector = 'postgres', url = '${SHOP_URL}', table = 'orders', create_publication = true)")
	rows("CREATE MATERIALIZED VIEW spent AS SELECT c.name, sum(o.price) AS total, p.name IS NULL AS unknown FROM orders o JOIN customers c ON c.id = o.customer LEFT JOIN people p ON p.id = c.id GROUP BY ALL")
	view := func() []string { return rows("SELECT * FROM spent ORDER BY name") }
	same("the first rows", view, "ann|5.5|false", "bob|1|false")
	pg.SQL(t, db, `BEGIN; UPDATE orders SET customer = 2 WHERE id = 10; INSERT INTO customers VALUES (3, 'cid'); INSERT INTO orders VALUES (12, 3, 7); COMMIT;
		UPDATE customers SET name = 'bo' WHERE id = 2; DELETE FROM orders WHERE id = 11`)
	same("what came of them", view, "bo|5.5|false", "cid|7|true")

	// The case 061: a long value that an update did not touch is not in the log. It is what it was, neither NULL nor a text, and the text that
	// others write in its place is data.
	pg.SQL(t, db, "CREATE TABLE doc (id int PRIMARY KEY, title text, body text); ALTER TABLE doc ALTER body SET STORAGE EXTERNAL")
	rows("CREATE STREAM doc WITH (connector = 'postgres', url = '${SHOP_URL}', table = 'doc', create_publication = true)")
	rows("CREATE MATERIALIZED VIEW docs AS SELECT id, title, left(body, 6) AS body, length(body) AS n FROM doc")
	rows("CREATE MATERIALIZED VIEW nulls AS SELECT count(*) FILTER (WHERE body IS NULL) AS n, sum(length(body)) AS l FROM doc")
	docs := func() []string { return rows("SELECT * FROM docs ORDER BY id") }
	pg.SQL(t, db, "INSERT INTO doc VALUES (1, 'a', repeat('LONG-1', 1000)); INSERT INTO doc VALUES (2, 'b', NULL); UPDATE doc SET title = 'a2' WHERE id = 1")
	same("a value that was left out", docs, "1|a2|LONG-1|6000", "2|b|NULL|NULL")
	pg.SQL(t, db, "UPDATE doc SET title = 'a3', body = NULL WHERE id = 1; UPDATE doc SET title = 'b2', body = repeat('LONG-2', 1000) WHERE id = 2; UPDATE doc SET title = 'b3' WHERE id = 2; INSERT INTO doc VALUES (3, 'c', '__debezium_unavailable_value')")
	same("what became of it", docs, "1|a3|NULL|NULL", "2|b3|LONG-2|6000", "3|c|__debe|28")
	same("over all", func() []string { return rows("SELECT * FROM nulls") }, "1|6028")

	// A table that follows another: rows by their primary key, which the planner has from the server.
	rows("CREATE SINK copies WITH (connector = 'postgres', url = '${SHOP_URL}', table = 'copies', key = 'id')")
	q, err := s.Query(t.Context(), "INSERT INTO copies SELECT id, price, customer FROM orders WHERE price > 2", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := q.AsPipeline(false)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	copies := func() []string {
		got, err := pg.TrySQL(t.Context(), db, "SELECT * FROM copies ORDER BY id")
		if err != nil && !strings.Contains(err.Error(), "does not exist") {
			t.Fatal(err)
		}
		return got
	}
	same("copies", copies, "10|5.50|2", "12|7.00|3")
	pg.SQL(t, db, "UPDATE orders SET price = 3, id = 20 WHERE id = 10; UPDATE orders SET price = 1 WHERE id = 12")
	same("copies", copies, "20|3.00|2")
	if err := h.Stop(true); err != nil {
		t.Fatal(err)
	}

	_, err = s.Query(t.Context(), "CREATE SINK by_customer WITH (connector = 'postgres', url = '${SHOP_URL}', table = 'by_customer', key = 'customer')", nil)
	if err == nil {
		q, err = s.Query(t.Context(), "INSERT INTO by_customer SELECT customer, price FROM orders", nil)
	}
	if err == nil {
		if p, err = q.AsPipeline(false); err == nil {
			if h, err = p.Start(t.Context(), ""); err == nil {
				err = h.Wait(t.Context())
			}
		}
	}
	if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "several rows of the query may have the same") {
		t.Fatalf("a key that several rows have: %v", err)
	}
}
