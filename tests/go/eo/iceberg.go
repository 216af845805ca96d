package eo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/capi/iceload"
	"github.com/riverbed/riverbed/connectors/kafka/kafkatest"
	"github.com/riverbed/riverbed/core/objstore/objtest"
)

// icebergTable is a table in a catalog in SQLite, which is in dir. Its files are there too, or where warehouse says.
type icebergTable struct{ dir, warehouse string }

func newIcebergTable(t *testing.T) icebergTable {
	t.Helper()
	if os.Getenv(iceload.Variable) == "" {
		built, err := filepath.Abs(filepath.Join("..", "..", "..", "python", "riverbed", "libriverbed_iceberg.so"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(built); err != nil {
			t.Fatal("the library of Iceberg metadata is not there; `make iceberg` builds it")
		}
		t.Setenv(iceload.Variable, built) // for the children too
	}
	dir := t.TempDir()
	return icebergTable{dir, "file://" + dir}
}

// sink is the statement that makes the table a sink; options go behind the others.
func (i icebergTable) sink(options string) string {
	return "CREATE SINK o WITH (connector = 'iceberg', catalog = 'sqlite:///" + filepath.Join(i.dir, "catalog.db") + "', warehouse = '" + i.warehouse + "', table = 'n.t'" + options + ")"
}

const readIcebergProgram = `import os, sys
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError, NoSuchNamespaceError
folder, warehouse, columns = sys.argv[1], sys.argv[2], sys.argv[3:]
s3 = {"s3.endpoint": "AWS_ENDPOINT_URL", "s3.access-key-id": "AWS_ACCESS_KEY_ID", "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY", "s3.region": "AWS_REGION"}
catalog = SqlCatalog("default", uri="sqlite:///" + folder + "/catalog.db", warehouse=warehouse, **{name: os.environ[by] for name, by in s3.items() if by in os.environ})
try:
    rows = catalog.load_table("n.t").scan().to_arrow().to_pylist()
except (NoSuchTableError, NoSuchNamespaceError):
    rows = []
for row in rows:
    print(row.get("__weight", 1), "|".join(str(row[name]) for name in columns), sep="|")
`

// read reads columns of the table with pyiceberg, how often each row is there. A table of changes is what they add up to.
func (i icebergTable) read(columns ...string) (map[string]int, error) {
	python := os.Getenv("RIVERBED_PYTHON")
	if python == "" {
		python = filepath.Join("..", "..", "..", ".venv", "bin", "python")
	}
	cmd := exec.Command(python, append([]string{"-c", readIcebergProgram, i.dir, i.warehouse}, columns...)...)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("pyiceberg: %w\n%s", err, failed.String())
	}
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times, row, _ := strings.Cut(strings.TrimSpace(line), "|")
		n, err := strconv.Atoi(times)
		if err != nil {
			return nil, fmt.Errorf("pyiceberg: %q: %w", line, err)
		}
		if out[row] += n; out[row] == 0 {
			delete(out, row)
		}
	}
	return out, nil
}

// windows reads the rows of the query of that name as tally writes them, whose minutes have no seconds.
func (i icebergTable) windows() (map[string]int, error) {
	rows, err := i.read("k", "minute", "n", "total")
	out := map[string]int{}
	for row, n := range rows {
		out[strings.Replace(row, ":00|", "|", 1)] = n
	}
	return out, err
}

// filesToIceberg adds rows, two epochs to a snapshot, or keeps the table by key.
func filesToIceberg(options string) func(t *testing.T) *plumbing {
	return func(t *testing.T) *plumbing { return filesTo(t, newIcebergTable(t), options) }
}

// filesToIcebergOnS3 has the files of the table, and the checkpoints, in an S3 service.
func filesToIcebergOnS3(t *testing.T) *plumbing {
	table, s3 := newIcebergTable(t), objtest.S3(t)
	table.warehouse = "s3://" + objtest.Bucket + "/lake"
	pl := filesTo(t, table, "")
	pl.settings["checkpoint_url"], pl.services = "s3://"+objtest.Bucket+"/checkpoints", []service{objectStore(s3)}
	return pl
}

func filesTo(t *testing.T, table icebergTable, options string) *plumbing {
	in := &folder{dir: t.TempDir()}
	return &plumbing{
		settings: settings(t),
		statements: []string{
			"CREATE STREAM s (id INT, k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'json', path = '" + in.dir + "/*.json')",
			table.sink(options),
			"INSERT INTO o " + windows,
		},
		feed:  in.feed,
		read:  table.windows,
		want:  func() (map[string]int, error) { return tally(in.n), nil },
		until: "latest",
	}
}

// kafkaToIceberg adds rows, a snapshot an epoch.
func kafkaToIceberg(t *testing.T) *plumbing {
	b, table := kafkatest.Start(t), newIcebergTable(t)
	in := &records{client: b.Topic(t, "in", partitions)}
	return &plumbing{
		settings:   settings(t),
		statements: []string{fromKafka(b, "in"), table.sink(""), "INSERT INTO o " + windows},
		feed:       in.feed,
		read:       table.windows,
		want:       func() (map[string]int, error) { return tally(in.n), nil },
		services:   []service{{"broker", b.Kill, b.Up}},
		until:      "latest",
	}
}
