package flow

import (
	"encoding/json"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Further keys of the metadata, of servers that say more than a delta does.
const (
	MetaPosition   = "riverbed.position"   // where a reader goes on behind the batch
	MetaReplayable = "riverbed.replayable" // "true": a position can be read again
)

// Beside is what travels beside a batch where the schema says nothing of it, as app metadata of Flight: a JSON object of texts
// with the reserved keys. Keys that are not known are passed over, and so is what is no such object: a plain server's own.
type Beside struct {
	Step       Step
	Watermark  Watermark // NoWatermark where nothing is said of it
	Barrier    Epoch
	Position   Position
	Replayable bool
}

// Beside is what d says beside its rows.
func (d Delta) Beside() Beside {
	return Beside{Step: d.Step, Watermark: d.Watermark, Barrier: d.Barrier}
}

// Bytes writes b as it travels.
func (b Beside) Bytes() []byte {
	out := map[string]string{}
	if b.Step != 0 {
		out[MetaStep] = strconv.FormatInt(int64(b.Step), 10)
	}
	if b.Watermark != NoWatermark {
		out[MetaWatermark] = strconv.FormatInt(int64(b.Watermark), 10)
	}
	if b.Barrier > 0 {
		out[MetaBarrier] = strconv.FormatInt(int64(b.Barrier), 10)
	}
	if b.Position != "" {
		out[MetaPosition] = string(b.Position)
	}
	if b.Replayable {
		out[MetaReplayable] = "true"
	}
	text, _ := json.Marshal(out) // a map of texts always can be
	return text
}

// ReadBeside reads what came beside a batch.
func ReadBeside(text []byte) Beside {
	var in map[string]any
	out := Beside{Watermark: NoWatermark}
	if len(text) == 0 || json.Unmarshal(text, &in) != nil {
		return out
	}
	number := func(key string, absent int64) int64 {
		if s, ok := in[key].(string); ok {
			if v, err := strconv.ParseInt(s, 10, 64); err == nil {
				return v
			}
		}
		return absent
	}
	out.Step, out.Barrier = Step(number(MetaStep, 0)), Epoch(number(MetaBarrier, 0))
	out.Watermark = Watermark(number(MetaWatermark, int64(NoWatermark)))
	position, _ := in[MetaPosition].(string)
	out.Position = Position(position)
	out.Replayable = in[MetaReplayable] == "true"
	return out
}

// NoRows is a batch of a schema without rows: how a schema crosses where only batches do.
func NoRows(s *arrow.Schema) arrow.RecordBatch {
	cols := make([]arrow.Array, s.NumFields())
	for i, f := range s.Fields() {
		cols[i] = array.NewBuilder(memory.DefaultAllocator, f.Type).NewArray()
	}
	return array.NewRecordBatch(s, cols, 0)
}
