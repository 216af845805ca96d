package parquet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// TestPartitionBy writes values that are hard on folders' names and reads them back.
func TestPartitionBy(t *testing.T) {
	fields := []types.Field{{Name: "d", Type: types.Date32}, {Name: "n", Type: types.Int64}, {Name: "a key", Type: types.String}}
	texts := []string{"", "a/b", "..", "x=y", "50 %", "%2F", "ä\n", "NULL", "z"}
	b := array.NewRecordBuilder(memory.DefaultAllocator, types.ArrowSchema(fields))
	var want []string
	for i := range 300 {
		text := texts[i%len(texts)]
		day := 20_000 + i/100
		b.Field(0).(*array.Date32Builder).Append(arrow.Date32(day))
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		if i%10 == 7 {
			b.Field(2).AppendNull()
			text = "NULL"
		} else {
			b.Field(2).(*array.StringBuilder).Append(text)
		}
		want = append(want, fmt.Sprintf("%d|%s|%s", i, text, arrow.Date32(day).FormattedString()))
	}
	dir := filepath.Join(t.TempDir(), "out")
	open := func(options map[string]string) (connectors.Writer, error) {
		options["path"] = dir
		return Sink.Open(t.Context(), connectors.SinkRequest{Settings: ct.Parse(t, Sink.Options, options), Fields: fields, Pipeline: "p"})
	}
	w, err := open(map[string]string{"partition_by": "d, A Key", "file_rows": "7"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), flow.Delta{Batch: b.NewRecordBatch()}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stage(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rel := ct.OpenRelation(t, Source, map[string]string{"path": dir})
	if got := ct.Columns(rel.Fields()); got != "n BIGINT, a key VARCHAR, d DATE" {
		t.Error(got)
	}
	got := ct.Scan(t, rel, flow.ScanRequest{})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := open(map[string]string{"partition_by": "x"}); !errs.Is(err, errs.Schema) {
		t.Error(err)
	}
}
