package riverbed

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/flow"
)

// A stream over files has a split for each, which has to be remembered for ever, since it would be read again. So manifests name only the
// splits that are being read; of one that has ended a row says so, which goes into the object of its epoch and is merged with the others there. An epoch
// writes what ended in it, however many have before.

// splitSchema is of those rows. Position tells a stream which file it was.
var splitSchema = arrow.NewSchema([]arrow.Field{{Name: "split", Type: arrow.BinaryTypes.String}, {Name: "position", Type: arrow.BinaryTypes.String}}, nil)

// endedSplits takes the splits of a source that have ended out of what the loop looks at, and gives their positions. Those of before the
// run are added to what the stream is told once: it has to know them.
func (in *input) endedSplits(upTo map[string]flow.Position) []arrow.RecordBatch {
	for id, at := range in.past {
		if at != "" {
			upTo[id] = at
		}
	}
	in.past = nil
	if in.stream == nil {
		return nil
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, splitSchema)
	for id, sp := range in.splits {
		if sp.ended {
			b.Field(0).(*array.StringBuilder).Append(id)
			b.Field(1).(*array.StringBuilder).Append(string(sp.at))
			if sp.at != "" {
				upTo[id] = sp.at
			}
			delete(in.splits, id)
			in.done++
		}
	}
	rows := b.NewRecordBatch()
	if rows.NumRows() == 0 {
		return nil
	}
	return []arrow.RecordBatch{rows}
}

// splitsOf reads the positions of ended splits.
func splitsOf(s checkpoint.Section, into map[string]flow.Position) {
	for _, b := range s.Rows {
		ids, at := b.Column(0).(*array.String), b.Column(1).(*array.String)
		for i := range ids.Len() {
			into[strings.Clone(ids.Value(i))] = flow.Position(strings.Clone(at.Value(i))) // their own memory: the batch is not kept
		}
	}
}
