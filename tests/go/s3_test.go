package repo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/csv"
	"github.com/riverbed/riverbed/connectors/json"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore/objtest"
	"github.com/riverbed/riverbed/core/types"
)

// TestS3Files writes files of each format to S3 and reads them back: by name, by pattern, as a folder, and as a stream that finds new ones.
func TestS3Files(t *testing.T) {
	service := objtest.S3(t)
	s, err := riverbed.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	query := func(text string) []string {
		t.Helper()
		q, err := s.Query(t.Context(), text, nil)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		if q == nil { // DDL
			return nil
		}
		res, err := q.Run(t.Context())
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		defer res.Release()
		var rows []string
		for res.Next() {
			for i := range int(res.RecordBatch().NumRows()) {
				rows = append(rows, connectortest.Row(res.RecordBatch(), i))
			}
		}
		if res.Err() != nil {
			t.Fatalf("%s\n%v", text, res.Err())
		}
		return rows
	}
	is := func(text, want string) {
		t.Helper()
		if got := strings.Join(query(text), "; "); got != want {
			t.Errorf("%s\n%s, want %s", text, got, want)
		}
	}
	const rows = 40_000
	url := "s3://" + objtest.Bucket + "/in"
	for _, f := range []struct {
		ending, function string
		source           connectors.Source
	}{{"parquet", "read_parquet", parquet.Source}, {"csv", "read_csv", csv.Source}, {"json", "read_json", json.Source}} {
		t.Run(f.ending, func(t *testing.T) {
			dir := url + "/" + f.ending
			for part := range 2 {
				query(fmt.Sprintf("COPY (SELECT range AS n, range %% 7 AS k, 'text ' || range AS s FROM range(%d, %d)) TO '%s/p=%d/x.%s'", part*rows, (part+1)*rows, dir, part, f.ending))
			}
			sums := fmt.Sprintf("%d|%d", 2*rows, rows*(2*rows-1))
			for _, from := range []string{fmt.Sprintf("'%s/*/*.%s'", dir, f.ending), fmt.Sprintf("'%s/**/x.%s'", dir, f.ending), f.function + "('" + dir + "')"} {
				is("SELECT count(*), CAST(sum(n) AS BIGINT) FROM "+from, sums)
			}
			is(fmt.Sprintf("SELECT n, s, p FROM '%s/*/*.%s' WHERE p = 1 AND n = %d", dir, f.ending, rows+5), fmt.Sprintf("%d|text %d|1", rows+5, rows+5))
			is(fmt.Sprintf("SELECT count(*) FROM '%s/p=0/x.%s'", dir, f.ending), fmt.Sprint(rows))
			if _, err := s.Query(t.Context(), fmt.Sprintf("SELECT * FROM '%s/p=0/y.%s'", dir, f.ending), nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("did you mean %q?", dir+"/p=0/x."+f.ending)) {
				t.Errorf("a file that is not there: %v", err)
			}
			fields := []types.Field{{Name: "n", Type: types.Int64}, {Name: "k", Type: types.Int64}, {Name: "s", Type: types.String}}
			connectortest.Stream(t, connectortest.StreamConfig{Limit: 15_000, Open: func(t testing.TB) flow.Stream {
				return connectortest.OpenStream(t, f.source, map[string]string{"path": dir}, fields...)
			}})
		})
	}
	t.Run("a stream", func(t *testing.T) {
		folder := filepath.Join(service.Folder, objtest.Bucket, "live")
		write := func(name, text string) {
			t.Helper()
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("b.csv", "v\n1\n2\n")
		query(fmt.Sprintf("CREATE STREAM live (v BIGINT) WITH (connector = 'csv', path = 's3://%s/live')", objtest.Bucket))
		q, err := s.Query(t.Context(), "SELECT v FROM live EMIT IMMEDIATE", nil)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := q.Subscribe(t.Context(), riverbed.SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		var got []string
		more := func(until int) {
			t.Helper()
			for len(got) < until {
				d, err := sub.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i := range d.Rows() {
					got = append(got, connectortest.Row(d.Batch, i))
				}
			}
		}
		more(2)
		write("a.csv", "v\n3\n") // found though its name comes before
		write("c.csv", "v\n4\n")
		more(4)
		sort.Strings(got)
		if fmt.Sprint(got) != "[1|1 2|1 3|1 4|1]" {
			t.Error(got)
		}
	})
}

// TestS3ExactlyOnce follows a folder on S3 into Parquet files on S3, with its checkpoints there too. The pipeline is ended in one phase of an epoch after the
// other, and the service with it at times; pyarrow, by its own S3 client, then finds each row once.
func TestS3ExactlyOnce(t *testing.T) {
	interpreter := os.Getenv("RIVERBED_PYTHON")
	if interpreter == "" {
		interpreter = filepath.Join("..", "..", ".venv", "bin", "python")
	}
	if err := exec.Command(interpreter, "-c", "import pyarrow.dataset").Run(); err != nil {
		t.Skipf("no pyarrow, which reads what was written: %v", err)
	}
	service := objtest.S3(t)
	const files, rows, ends = 12, 500, 14
	in := filepath.Join(service.Folder, objtest.Bucket, "in")
	if err := os.MkdirAll(in, 0o755); err != nil {
		t.Fatal(err)
	}
	for f := range files {
		var text strings.Builder
		text.WriteString("v,k\n")
		for i := range rows {
			fmt.Fprintf(&text, "%d,%d\n", f*rows+i, i%3)
		}
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("%03d.csv", f)), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := "s3://" + objtest.Bucket
	phases := map[string]int{}
	run := func(ending int) (ended bool, err error) {
		s, err := riverbed.Open(map[string]string{"checkpoint_url": url + "/checkpoints", "checkpoint_interval_ms": "1", "step_rows": "400"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		if _, err := s.Query(t.Context(), "CREATE STREAM s (v BIGINT, k BIGINT) WITH (connector = 'csv', path = '"+url+"/in')", nil); err != nil {
			t.Fatal(err)
		}
		q, err := s.Query(t.Context(), "SELECT v, k, v * 2 AS twice FROM s", nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := q.Sink(riverbed.SinkSpec{ConnectorSpec: riverbed.ConnectorSpec{Connector: "parquet", Options: map[string]string{
			"path": url + "/out", "partition_by": "k", "file_rows": "100"}}, ID: "files", ExactlyOnce: true})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		count := 0
		before := checkpoint.Phase
		defer func() { checkpoint.Phase = before }()
		checkpoint.Phase = func(phase string, _ flow.Epoch) {
			mu.Lock()
			defer mu.Unlock()
			if count++; ending >= 0 && (ended || count > 4+ending) {
				if !ended {
					ended = true
					phases[phase]++
					if ending%5 == 4 {
						service.Kill()
						service.Start()
					}
				}
				panic(errors.New("ended here"))
			}
		}
		h, err := p.Start(t.Context(), "latest")
		if err == nil {
			err = h.Wait(t.Context())
		}
		if errs.Is(err, errs.Usage) && strings.Contains(err.Error(), "has ended for the pipeline") {
			err = nil // it was ended behind its last commit
		}
		return ended, err
	}
	for n := range ends {
		if ended, err := run(n); ended != (err != nil) || err != nil && !strings.Contains(err.Error(), "ended here") {
			t.Fatalf("run %d: ended %t, %v", n, ended, err)
		}
	}
	if _, err := run(-1); err != nil {
		t.Fatal(err)
	}
	t.Logf("ended in %v", phases)
	if len(phases) < 4 {
		t.Errorf("ended in %d phases only", len(phases))
	}
	python := exec.Command(interpreter, "-c", `
import os, urllib.parse
import pyarrow.dataset, pyarrow.fs
at = urllib.parse.urlparse(os.environ["AWS_ENDPOINT_URL"])
s3 = pyarrow.fs.S3FileSystem(endpoint_override=at.netloc, scheme=at.scheme, access_key="test", secret_key="testsecret", region="us-east-1")
data = pyarrow.dataset.dataset("bucket/out", filesystem=s3, format="parquet", partitioning="hive")
t = data.to_table().sort_by("v")
v = t["v"].to_pylist()
print(len(v), v == list(range(len(v))), t["twice"].to_pylist() == [2 * x for x in v], t["k"].to_pylist() == [x % 500 % 3 for x in v], max(f.count_rows() for f in data.get_fragments()) <= 100)
`)
	out, err := python.CombinedOutput()
	if want := fmt.Sprintf("%d True True True True", files*rows); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("pyarrow finds %s, not %s (%v)", out, want, err)
	}
}
