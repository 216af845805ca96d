package incremental_test

import (
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
)

// TestParallelInstancesGiveTheSameRows runs steps that are large enough for goroutines.
func TestParallelInstancesGiveTheSameRows(t *testing.T) {
	for _, q := range benchQueries {
		t.Run(q.name, func(t *testing.T) {
			var want [][]string
			for _, p := range []int{1, 4} {
				op := optest.New(t, bidDDL, q.query, optest.Parallel(p))
				var input [][]arrow.RecordBatch
				for _, s := range op.Graph().Sources() {
					input = append(input, benchBatches(s.Source.Fields, 2))
				}
				for k := range 2 {
					in := incremental.Input{Now: time.Unix(int64(k), 0)}
					for s := range input {
						b := input[s][k]
						in.Pushes = append(in.Pushes, // two splits, so that a stateless operator has several deltas
							incremental.Push{Source: s, Split: "a", Batch: b.NewSlice(0, 6000)},
							incremental.Push{Source: s, Split: "b", Batch: b.NewSlice(6000, benchRows)})
						if k == 1 {
							in.Ticks = append(in.Ticks, incremental.Tick{Source: s, Kind: incremental.SourceEnded})
						}
					}
					out, err := op.Graph().Step(in)
					if err != nil {
						t.Fatal(err)
					}
					rows := op.Render(out.Delta)
					slices.Sort(rows)
					if p == 1 {
						want = append(want, rows)
					} else if !slices.Equal(rows, want[k]) {
						t.Fatalf("step %d: 4 instances give %d other rows than 1 gives (%d)", k, len(rows), len(want[k]))
					}
				}
			}
		})
	}
}
