package eo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/capi/iceload"
)

// icebergTable is a table in a catalog in SQLite.
type icebergTable struct{ dir string }

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
	return icebergTable{t.TempDir()}
}

// sink is the statement that makes the table a sink; options go behind the others.
func (i icebergTable) sink(options string) string {
	return "CREATE SINK o WITH (connector = 'iceberg', catalog = 'sqlite:///" + filepath.Join(i.dir, "catalog.db") + "', table = 'n.t'" + options + ")"
}

const readIcebergProgram = `import sys
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError, NoSuchNamespaceError
catalog = SqlCatalog("default", uri="sqlite:///" + sys.argv[1] + "/catalog.db", warehouse="file://" + sys.argv[1])
try:
    rows = catalog.load_table("n.t").scan().to_arrow().to_pylist()
except (NoSuchTableError, NoSuchNamespaceError):
    rows = []
for row in rows:
    print("|".join(str(row[name])[:16] for name in ("k", "minute", "n", "total")))
`

// read reads the table with pyiceberg.
func (i icebergTable) read() (map[string]int, error) {
	python := os.Getenv("RIVERBED_PYTHON")
	if python == "" {
		python = filepath.Join("..", "..", "..", ".venv", "bin", "python")
	}
	cmd := exec.Command(python, "-c", readIcebergProgram, i.dir)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("pyiceberg: %w\n%s", err, failed.String())
	}
	out := map[string]int{}
	for _, row := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if row != "" {
			out[row]++
		}
	}
	return out, nil
}

// filesToIceberg adds rows, two epochs to a snapshot, or keeps the table by key.
func filesToIceberg(options string) func(t *testing.T) *plumbing {
	return func(t *testing.T) *plumbing {
		in, table := &folder{dir: t.TempDir()}, newIcebergTable(t)
		return &plumbing{
			settings: settings(t),
			statements: []string{
				"CREATE STREAM s (id INT, k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'json', path = '" + in.dir + "/*.json')",
				table.sink(options),
				"INSERT INTO o " + windows,
			},
			feed:  in.feed,
			read:  table.read,
			want:  func() (map[string]int, error) { return tally(in.n), nil },
			until: "latest",
		}
	}
}
