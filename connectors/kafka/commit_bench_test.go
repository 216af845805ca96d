package kafka

import (
	"fmt"
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// BenchmarkCommit commits epochs of 100,000 rows of 130 bytes to the broker of KAFKA_BROKERS, or to the embedded one.
func BenchmarkCommit(b *testing.B) {
	addr := os.Getenv("KAFKA_BROKERS")
	if addr == "" {
		_, addr = broker(b, "out")
	}
	fields := []types.Field{{Name: "k", Type: types.String}, {Name: "v", Type: types.Int64}, {Name: "d", Type: types.Float64}, {Name: "pad", Type: types.String}}
	const rows = 100_000
	k, v, d, pad := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator), array.NewFloat64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	for i := range rows {
		k.Append(fmt.Sprintf("key %d", i))
		v.Append(int64(i))
		d.Append(float64(i) / 3)
		pad.Append("0123456789012345678901234567890123456789012345678901234567890123")
	}
	batch := array.NewRecordBatch(types.ArrowSchema(fields), []arrow.Array{k.NewArray(), v.NewArray(), d.NewArray(), pad.NewArray()}, rows)
	s, err := Sink.Options.Parse("sink", map[string]string{"brokers": addr, "topic": "out", "key": "k"})
	if err != nil {
		b.Fatal(err)
	}
	w, err := Sink.Open(b.Context(), connectors.SinkRequest{Settings: s, Pipeline: "bench", ExactlyOnce: true, Fields: fields})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	c := w.(connectors.Committer)
	last, err := c.Begin(b.Context(), "bench:0")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		next := connectors.Marker(fmt.Sprintf("%s+%d", "bench", n))
		if err := c.Commit(b.Context(), connectors.StagedEpoch{Epoch: flow.Epoch(n), Marker: next, Previous: last, Rows: []arrow.RecordBatch{batch}}); err != nil {
			b.Fatal(err)
		}
		last = next
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
