package service

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/objstore/objtest"
)

// Metadata and data on S3, by our own requests.
func TestS3(t *testing.T) {
	objtest.S3(t)
	l := sqliteLake(t)
	l.warehouse = "s3://" + objtest.Bucket + "/lake"
	l.catalog.Properties["warehouse"] = l.warehouse
	l.roundTrip()
}

// A table of a hadoop catalog that others wrote is read from S3.
func TestHadoopOnS3(t *testing.T) {
	service := objtest.S3(t)
	l := sqliteLake(t)
	l.warehouse = filepath.Join(service.Folder, objtest.Bucket, "lake")
	// Written as files where the service has its objects; paths in the metadata are those of the files.
	l.catalog = meta.Catalog{Type: "hadoop", Properties: map[string]string{"warehouse": l.warehouse}}
	l.create()
	l.begin("p")
	one := l.write(row{id: 1})
	l.must(commitOf("p", 1, one))
	l.catalog = meta.Catalog{Type: "hadoop", Properties: map[string]string{"warehouse": "s3://" + objtest.Bucket + "/lake"}}
	if a := l.must(meta.Request{Op: "load"}); a.Table.Snapshot == 0 {
		t.Errorf("%+v", a.Table)
	}
	if a := l.call(commitOf("p", 2, one)); a.Kind != "usage" {
		t.Errorf("%+v", a)
	}
	if a := l.call(meta.Request{Op: "load", Table: "shop.nothing"}); a.Kind != "absent" {
		t.Errorf("%+v", a)
	}
}

// roundTrip creates a table, appends, replaces and reads by another client.
func (l *lake) roundTrip() {
	l.Helper()
	l.create()
	l.begin("p")
	one := l.write(row{id: 1}, row{id: 2})
	first := l.must(commitOf("p", 1, one))
	l.must(commitOf("p", 2, l.write(row{id: 3})))
	if again := l.must(commitOf("p", 2, one)); again.Marker != "p/2" {
		l.Errorf("%+v", again)
	}
	l.must(replaceOf("p", 3, first.Snapshot, []string{l.write(row{id: 10})}, []string{one}))
	if got := l.ids(""); !slices.Equal(got, []int64{3, 10}) {
		l.Errorf("pyiceberg reads %v", got)
	}
	if got := l.paths(meta.Ref{Snapshot: first.Snapshot}); !slices.Equal(got, bases(one)) {
		l.Errorf("files %v", got)
	}
	changed := l.must(meta.Request{Op: "changes", After: first.Snapshot}).Changes
	if len(changed) != 2 || len(changed[0].Added) != 1 || len(changed[1].Added) != 1 || len(changed[1].Removed) != 1 {
		l.Errorf("changes %+v", changed)
	}
	l.must(meta.Request{Op: "evolve", Schema: append(slices.Clone(columns), meta.Field{Name: "note", Type: "string"})})
	if got := l.must(meta.Request{Op: "load"}).Table.Schema; len(got) != len(columns)+1 {
		l.Errorf("columns %v", got)
	}
	if a := l.call(meta.Request{Op: "load", Table: "shop.nothing"}); a.Kind != "absent" {
		l.Errorf("%+v", a)
	}
}

// The catalog service of the specification's own tests, in Java.
func TestREST(t *testing.T) {
	l := sqliteLake(t)
	l.catalog = meta.Catalog{Type: "rest", Properties: map[string]string{"uri": restService(t, l.warehouse), "token": "unused"}}
	l.roundTrip()
	t.Run("writers race", func(t *testing.T) {
		l := &lake{TB: t, catalog: l.catalog, table: "shop.raced", warehouse: l.warehouse + "/raced"}
		l.create()
		done := make(chan error)
		const writers, commits = 4, 5
		for w := range writers {
			pipeline := fmt.Sprintf("w%d", w)
			l.begin(pipeline)
			var jobs []meta.Request
			for e := range commits {
				jobs = append(jobs, commitOf(pipeline, e+1, l.write(row{id: int64(w*commits + e)})))
			}
			go func() {
				for _, r := range jobs {
					if a := l.call(r); a.Error != "" {
						done <- fmt.Errorf("%s: %s", r.Commit.Marker, a.Error)
						return
					}
				}
				done <- nil
			}()
		}
		for range writers {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := l.ids(""); !slices.Equal(got, sequence(0, writers*commits-1)) {
			t.Errorf("pyiceberg reads %v", got)
		}
	})
}

// restService starts the service, which ends with the test, also when that is killed.
func restService(t *testing.T, warehouse string) string {
	t.Helper()
	script := filepath.Join("..", "..", "..", "tools", "services", "iceberg.sh")
	cmd := exec.Command(script, "run", warehouse)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log strings.Builder
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	uri, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		if os.Getenv("CI") == "" && strings.Contains(log.String(), "java") {
			t.Skipf("the catalog service of the tests cannot be started: %s", log.String())
		}
		t.Fatalf("the catalog service did not start: %v\n%s", err, log.String())
	}
	return strings.TrimSpace(uri)
}
