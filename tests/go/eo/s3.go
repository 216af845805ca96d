package eo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/objstore/objtest"
)

// filesToS3 writes Parquet to an S3 service, where its checkpoints are too. Its folder is read by DuckDB.
func filesToS3(t *testing.T) *plumbing {
	in, s3 := &folder{dir: t.TempDir()}, objtest.S3(t)
	set := settings(t)
	set["checkpoint_url"] = "s3://" + objtest.Bucket + "/checkpoints"
	return &plumbing{
		settings: set,
		statements: []string{
			"CREATE STREAM s (id INT, k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'json', path = '" + in.dir + "/*.json')",
			"CREATE SINK o WITH (connector = 'parquet', path = 's3://" + objtest.Bucket + "/out')",
			"INSERT INTO o " + windows,
		},
		feed:     in.feed,
		read:     func() (map[string]int, error) { return readParquet(filepath.Join(s3.Folder, objtest.Bucket, "out")) },
		want:     func() (map[string]int, error) { return tally(in.n), nil },
		until:    "latest",
		services: []service{objectStore(s3)},
	}
}

func objectStore(s3 *objtest.Service) service {
	return service{"object store", func() error { s3.Kill(); return nil }, func() error { s3.Start(); return nil }}
}

const readParquetProgram = `import duckdb, sys
query = "SELECT k, strftime(minute, '%Y-%m-%d %H:%M'), n, total FROM read_parquet('" + sys.argv[1] + "/*.parquet')"
for row in duckdb.sql(query).fetchall():
    print("|".join(str(value) for value in row))
`

// readParquet reads a folder's files with DuckDB.
func readParquet(dir string) (map[string]int, error) {
	python := os.Getenv("RIVERBED_PYTHON")
	if python == "" {
		python = filepath.Join("..", "..", "..", ".venv", "bin", "python")
	}
	cmd := exec.Command(python, "-c", readParquetProgram, dir)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("DuckDB: %w\n%s", err, failed.String())
	}
	out := map[string]int{}
	for _, row := range strings.Fields(strings.ReplaceAll(string(text), " ", "_")) {
		out[strings.ReplaceAll(row, "_", " ")]++
	}
	return out, nil
}
