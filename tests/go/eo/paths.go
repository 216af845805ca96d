package eo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors/kafka/kafkatest"
	"github.com/riverbed/riverbed/connectors/postgres/pgtest"
)

var paths = []path{
	{name: "files to json files", open: filesToFiles("json")},
	{name: "files to parquet on s3", open: filesToS3},
	{name: "files to iceberg", open: filesToIceberg(", partition_by = 'day(minute)', commit_every = 2")},
	{name: "files to iceberg by key", open: filesToIceberg(", key = 'k, minute'")},
	{name: "files to iceberg on s3", open: filesToIcebergOnS3, long: true},
	{name: "kafka to kafka", open: kafkaToKafka},
	{name: "kafka to postgres", open: kafkaToPostgres},
	{name: "kafka to iceberg", open: kafkaToIceberg, long: true},
	{name: "postgres to postgres", open: postgresToPostgres},
	{name: "postgres changes to postgres", open: postgresChanges},
	{name: "kafka and postgres to kafka", open: kafkaAndPostgres, long: true},
	{name: "kafka and postgres to iceberg", open: kafkaAndPostgresToIceberg},
}

// doubling are the paths on which rows come twice without markers, so that the test must fail. A sink by key takes the same row again without harm.
var doubling = []string{"files to json files", "files to parquet on s3", "kafka to kafka", "postgres changes to postgres", "kafka to iceberg", "kafka and postgres to kafka", "kafka and postgres to iceberg"}

// windows is the query of the paths: counts and sums by key and minute of event time, once each.
const windows = "SELECT k, TUMBLE_START(ts, INTERVAL '1 minute') AS minute, count(*) AS n, sum(id) AS total FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK"

// event is one row of the sources: its time goes on by a second each row.
type event struct {
	ID int    `json:"id"`
	K  int    `json:"k"`
	TS string `json:"ts"`
}

func eventOf(id int) event {
	return event{id, id % 5, time.Unix(1767225600+int64(id), 0).UTC().Format("2006-01-02T15:04:05")}
}

// tally counts by the query what was fed: what one undisturbed run writes.
func tally(n int) map[string]int {
	type group struct {
		k      int
		minute string
	}
	counts, sums := map[group]int{}, map[group]int{}
	for id := range n {
		e := eventOf(id)
		g := group{e.K, strings.Replace(e.TS[:16], "T", " ", 1)}
		counts[g]++
		sums[g] += id
	}
	out := map[string]int{}
	for g, c := range counts {
		out[fmt.Sprintf("%d|%s|%d|%d", g.k, g.minute, c, sums[g])] = 1
	}
	return out
}

// folder is a source of JSON files.
type folder struct {
	dir string
	n   int // rows so far
}

func (f *folder) feed(n int) error {
	var b strings.Builder
	for i := range n {
		line, err := json.Marshal(eventOf(f.n + i))
		if err != nil {
			return err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	name := filepath.Join(f.dir, fmt.Sprintf("%09d.json", f.n))
	f.n += n
	if err := os.WriteFile(name+".tmp", []byte(b.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

func filesToFiles(format string) func(t *testing.T) *plumbing {
	return func(t *testing.T) *plumbing {
		in, out := &folder{dir: t.TempDir()}, t.TempDir()
		return &plumbing{
			settings: settings(t),
			statements: []string{
				"CREATE STREAM s (id INT, k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'json', path = '" + in.dir + "/*.json')",
				"CREATE SINK o WITH (connector = '" + format + "', path = '" + out + "')",
				"INSERT INTO o " + windows,
			},
			feed:  in.feed,
			read:  func() (map[string]int, error) { return readLines(out) },
			want:  func() (map[string]int, error) { return tally(in.n), nil },
			until: "latest",
		}
	}
}

// records is a topic that is fed.
type records struct {
	client *kgo.Client
	n      int
}

// partitions of the topics. Each gets the rows in the order of their time, so none is late.
const partitions = 3

func (r *records) feed(n int) error {
	recs := make([]*kgo.Record, n)
	for i := range recs {
		value, err := json.Marshal(eventOf(r.n + i))
		if err != nil {
			return err
		}
		recs[i] = &kgo.Record{Value: value, Partition: int32((r.n + i) % partitions)}
	}
	r.n += n
	return r.client.ProduceSync(context.Background(), recs...).FirstErr()
}

func fromKafka(b *kafkatest.Broker, topic string) string {
	return fmt.Sprintf("CREATE STREAM s (id INT, k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'kafka', brokers = '%s', topic = '%s')", b.Addr, topic)
}

func kafkaToKafka(t *testing.T) *plumbing {
	b := kafkatest.Start(t)
	in := &records{client: b.Topic(t, "in", partitions)}
	return &plumbing{
		settings: settings(t),
		statements: []string{
			fromKafka(b, "in"),
			"CREATE SINK o WITH (connector = 'kafka', brokers = '" + b.Addr + "', topic = 'out', partitions = 3)",
			"INSERT INTO o " + windows,
		},
		feed: in.feed,
		read: func() (map[string]int, error) {
			recs, err := b.Committed(t.Context(), "out")
			out := map[string]int{}
			for _, rec := range recs {
				row, err := rowOf(rec.Value)
				if err != nil {
					return nil, err
				}
				out[row]++
			}
			return out, err
		},
		want:     func() (map[string]int, error) { return tally(in.n), nil },
		services: []service{{"broker", b.Kill, b.Up}},
		until:    "latest",
	}
}

// changing is a query whose rows change, so that the sink has to replace them.
const changing = "SELECT k, count(*) AS n, sum(id)::BIGINT AS total, max(ts) AS newest FROM s GROUP BY k EMIT IMMEDIATE"

func kafkaToPostgres(t *testing.T) *plumbing {
	pg := pgtest.Start(t)
	b := kafkatest.Start(t)
	in := &records{client: b.Topic(t, "in", partitions)}
	name := pg.Database(t, "eo")
	t.Setenv("PGPASSWORD", pgtest.Password)
	return &plumbing{
		settings: settings(t),
		statements: []string{
			fromKafka(b, "in"),
			"CREATE SINK o WITH (connector = 'postgres', url = '" + pg.URL(name) + "', table = 'totals', key = 'k')",
			"INSERT INTO o " + changing,
		},
		feed: in.feed,
		read: func() (map[string]int, error) {
			rows, err := pg.TrySQL(context.Background(), name, "SELECT k, n, total, newest FROM totals")
			out := map[string]int{}
			for _, r := range rows {
				out[r]++
			}
			return out, err
		},
		want: func() (map[string]int, error) {
			n, total, last := map[int]int{}, map[int]int{}, map[int]string{}
			for id := range in.n {
				e := eventOf(id)
				n[e.K]++
				total[e.K] += id
				last[e.K] = strings.Replace(e.TS, "T", " ", 1)
			}
			out := map[string]int{}
			for k := range n {
				out[fmt.Sprintf("%d|%d|%d|%s", k, n[k], total[k], last[k])] = 1
			}
			return out, nil
		},
		services: []service{{"broker", b.Kill, b.Up}, database(pg)},
		until:    "latest",
	}
}

// settings let a pipeline checkpoint as often as it can, in steps of few rows.
func settings(t *testing.T) map[string]string {
	return map[string]string{"checkpoint_url": t.TempDir(), "checkpoint_interval_ms": "1", "step_rows": "100", "parallelism": "2"}
}

// readLines reads all files of JSON lines of a folder as rows of the query.
func readLines(dir string) (map[string]int, error) {
	out := map[string]int{}
	names, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		s := bufio.NewScanner(f)
		for s.Scan() {
			row, err := rowOf(s.Bytes())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out[row]++
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
		_ = f.Close()
	}
	return out, nil
}

func rowOf(text []byte) (string, error) {
	var row struct {
		K      int    `json:"k"`
		Minute string `json:"minute"`
		N      int    `json:"n"`
		Total  int    `json:"total"`
	}
	err := json.Unmarshal(text, &row)
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return fmt.Sprintf("%d|%s|%d|%d", row.K, strings.Replace(row.Minute, "T", " ", 1)[:16], row.N, row.Total), nil
}
