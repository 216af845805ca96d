package eo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/connectors/postgres/pgtest"
)

// changingTable is a table of PostgreSQL that is followed, in the database of the sink.
type changingTable struct {
	pg *pgtest.Server
	db string
	n  int // rows that were added
}

// newChangingTable makes one with rows in it. full: the log of the server has old rows.
func newChangingTable(t *testing.T, full bool) *changingTable {
	c := &changingTable{pg: pgtest.Start(t, "wal_sender_timeout = 5s")}
	c.db = c.pg.Database(t, "eo")
	t.Setenv("PGPASSWORD", pgtest.Password)
	identity := map[bool]string{false: "DEFAULT", true: "FULL"}[full]
	c.pg.SQL(t, c.db, "CREATE TABLE s (id int PRIMARY KEY, k int, v int); ALTER TABLE s REPLICA IDENTITY "+identity+"; INSERT INTO s SELECT i, abs(i % 7), 0 FROM generate_series(-50, -1) i")
	return c
}

// feed adds rows in one transaction; in another, rows change, some of them to another key of the query, and others go.
func (c *changingTable) feed(rows int) error {
	_, err := c.pg.TrySQL(context.Background(), c.db, fmt.Sprintf(`INSERT INTO s SELECT i, i %% 7, 1 FROM generate_series(%d, %d) i;
		BEGIN; UPDATE s SET v = v + 1, k = (k + 1) %% 7 WHERE id %% 13 = %d; DELETE FROM s WHERE id %% 17 = %d; COMMIT`, c.n, c.n+rows-1, c.n/100%13, c.n/100%17))
	c.n += rows
	return err
}

func (c *changingTable) stream() string {
	return "CREATE STREAM s WITH (connector = 'postgres', url = '" + c.pg.URL(c.db) + "', table = 's', slot = 'eo', create_publication = true)"
}

func (c *changingTable) sink(options string) string {
	return "CREATE SINK o WITH (connector = 'postgres', url = '" + c.pg.URL(c.db) + "', table = 'o', " + options + ")"
}

// rows reads by psql; the last column says how often a row is there.
func (c *changingTable) rows(text string) (map[string]int, error) {
	lines, err := c.pg.TrySQL(context.Background(), c.db, text)
	out := map[string]int{}
	for _, l := range lines {
		at := strings.LastIndexByte(l, '|')
		if out[l[:at]], err = strconv.Atoi(l[at+1:]); err != nil {
			return nil, err
		}
	}
	return out, err
}

// database is a server that is killed and recovers.
func database(pg *pgtest.Server) service {
	return service{"database", func() error { pg.Kill(); return nil }, pg.Up}
}

// postgresToPostgres keeps a table equal to a query over another whose log has keys of old rows.
func postgresToPostgres(t *testing.T) *plumbing {
	c := newChangingTable(t, false)
	return &plumbing{
		settings:   settings(t),
		statements: []string{c.stream(), c.sink("key = 'k'"), "INSERT INTO o SELECT k, count(*) AS n, sum(id)::BIGINT AS ids, sum(v)::BIGINT AS vs FROM s GROUP BY k EMIT IMMEDIATE"},
		feed:       c.feed,
		read:       func() (map[string]int, error) { return c.rows("SELECT k, n, ids, vs, 1 FROM o") },
		want: func() (map[string]int, error) {
			return c.rows("SELECT k, count(*), sum(id), sum(v), 1 FROM s GROUP BY k")
		},
		services: []service{database(c.pg)},
		until:    "latest",
	}
}

// postgresChanges writes every change of a table whose log has old rows to one that only grows: what was written twice, or not at all, does
// not add up to the table.
func postgresChanges(t *testing.T) *plumbing {
	c := newChangingTable(t, true)
	return &plumbing{
		settings:   settings(t),
		statements: []string{c.stream(), c.sink("changelog = true"), "INSERT INTO o SELECT id, k, v FROM s"},
		feed:       c.feed,
		read: func() (map[string]int, error) {
			return c.rows("SELECT id, k, v, sum(__weight) FROM o GROUP BY 1, 2, 3 HAVING sum(__weight) <> 0")
		},
		want:     func() (map[string]int, error) { return c.rows("SELECT id, k, v, 1 FROM s") },
		services: []service{database(c.pg)},
		until:    "latest",
	}
}
