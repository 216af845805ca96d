package eo

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/riverbed/riverbed/connectors/kafka/kafkatest"
	"github.com/riverbed/riverbed/connectors/postgres/pgtest"
)

// customers is how many rows the table has that the events are joined to.
const customers = 50

// joined joins a topic to a table of PostgreSQL that changes, both in the same epochs, and writes what came and went to a sink that only grows:
// what was written twice, or not at all, of either side does not add up to the join. The sink is one of changes; read says what they add up to.
func joined(t *testing.T, b *kafkatest.Broker, sink string, read func() (map[string]int, error)) *plumbing {
	pg := pgtest.Start(t, "wal_sender_timeout = 5s")
	t.Setenv("PGPASSWORD", pgtest.Password)
	db, in := pg.Database(t, "eo"), &records{client: b.Topic(t, "in", partitions)}
	pg.SQL(t, db, fmt.Sprintf("CREATE TABLE customers (k int PRIMARY KEY, moves int); INSERT INTO customers SELECT i, 0 FROM generate_series(0, %d) i", customers-1))
	return &plumbing{
		settings: settings(t),
		statements: []string{
			fromKafka(b, "in"),
			"CREATE STREAM customers WITH (connector = 'postgres', url = '" + pg.URL(db) + "', table = 'customers', slot = 'eo', create_publication = true)",
			sink,
			fmt.Sprintf("INSERT INTO o SELECT s.id, c.moves FROM s JOIN customers c ON c.k = s.id %% %d EMIT IMMEDIATE", customers),
		},
		feed: func(n int) error {
			if err := in.feed(n); err != nil {
				return err
			}
			_, err := pg.TrySQL(context.Background(), db, fmt.Sprintf("UPDATE customers SET moves = moves + 1 WHERE k %% 25 = %d", in.n/n%25))
			return err
		},
		read: read,
		want: func() (map[string]int, error) {
			lines, err := pg.TrySQL(context.Background(), db, fmt.Sprintf("SELECT e, moves FROM generate_series(0, %d) e JOIN customers ON k = e %% %d", in.n-1, customers))
			out := map[string]int{}
			for _, l := range lines {
				out[l] = 1
			}
			return out, err
		},
		services: []service{{"broker", b.Kill, b.Up}, database(pg)},
		until:    "latest",
	}
}

// kafkaAndPostgres writes the join to a topic.
func kafkaAndPostgres(t *testing.T) *plumbing {
	b := kafkatest.Start(t)
	sink := "CREATE SINK o WITH (connector = 'kafka', brokers = '" + b.Addr + "', topic = 'out', partitions = 3, changelog = true)"
	return joined(t, b, sink, func() (map[string]int, error) {
		recs, err := b.Committed(t.Context(), "out")
		out := map[string]int{}
		for _, rec := range recs {
			var row struct {
				ID, Moves int
				Weight    int `json:"__weight"`
			}
			if err := json.Unmarshal(rec.Value, &row); err != nil {
				return nil, fmt.Errorf("%s: %w", rec.Value, err)
			}
			text := fmt.Sprintf("%d|%d", row.ID, row.Moves)
			if out[text] += row.Weight; out[text] == 0 {
				delete(out, text)
			}
		}
		return out, err
	})
}

// kafkaAndPostgresToIceberg writes the join to a table, two epochs to a snapshot.
func kafkaAndPostgresToIceberg(t *testing.T) *plumbing {
	table := newIcebergTable(t)
	return joined(t, kafkatest.Start(t), table.sink(", changelog = true, commit_every = 2"), func() (map[string]int, error) { return table.read("id", "moves") })
}
