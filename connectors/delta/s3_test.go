package delta_test

import (
	"os"
	"path/filepath"
	"testing"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore/objtest"
)

// A table on S3 is read, followed and told about as one in a folder is.
func TestS3(t *testing.T) {
	service := objtest.S3(t)
	m := changing(t)
	if err := os.CopyFS(filepath.Join(service.Folder, objtest.Bucket, "a lake [1]"), os.DirFS(m.dir)); err != nil {
		t.Fatal(err)
	}
	options := map[string]string{"path": "s3://" + objtest.Bucket + "/a lake [1]/", "version": "4", "poll_interval": "1ms"}
	want(t, ct.Scan(t, ct.OpenRelation(t, source, options), flow.ScanRequest{}), m.scan("version", "4")...)
	options["version"] = "0"
	s, err := ct.OpenStream(t, source, options).(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := transactions(t, s, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var txns []string
	for _, rows := range m.follow("version", "0") {
		txns = append(txns, join(rows))
	}
	wantTransactions(t, got, txns...)

	_, err = ct.TryRelation(source, map[string]string{"path": "s3://" + objtest.Bucket + "/nothing"})
	failed(t, err, "s3://bucket/nothing", "is no Delta table")
	if err := os.Remove(filepath.Join(service.Folder, objtest.Bucket, "a lake [1]", "a")); err != nil {
		t.Fatal(err)
	}
	options["version"] = "1"
	_, err = ct.TryScan(ct.OpenRelation(t, source, options), flow.ScanRequest{})
	failed(t, err, `"a"`, "no longer there")
}
