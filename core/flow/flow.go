// Package flow holds what travels between operators and across the edges: deltas with their
// step, watermark and barrier, and the interfaces by which the engine reads.
//
// Invariant: an Arrow RecordBatch is the only data that crosses an operator boundary. Batches are
// immutable; whoever keeps part of one keeps its *memory.Buffer, never bare bytes. This is the one
// package that knows the reserved column and metadata names.
package flow

import (
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Reserved names of columns and relations.
const (
	WeightColumn = "__weight" // int64, last column of an updating delta
	SplitColumn  = "__split"  // int64, below a normalize operator: which split a row is of
	LateRelation = "__late"   // rows behind the watermark
	BadRelation  = "__bad"    // what could not be decoded or cast
)

// Reserved metadata keys at the edges.
const (
	MetaStep      = "riverbed.step"
	MetaWatermark = "riverbed.watermark" // microseconds UTC
	MetaBarrier   = "riverbed.barrier"   // epoch that the barrier ends
)

// Reserved reports whether a user may not give this name to a column.
func Reserved(name string) bool { return name == WeightColumn }

// Watermark is event time in microseconds UTC: no earlier event time will come.
type Watermark int64

const (
	NoWatermark  Watermark = math.MinInt64 // nothing is known yet
	EndWatermark Watermark = math.MaxInt64 // the input has ended
)

// Step is one advance of the logical clock.
type Step int64

// Epoch is the steps between two barriers.
type Epoch int64

// WeightField is the field of the weight column.
var WeightField = arrow.Field{Name: WeightColumn, Type: arrow.PrimitiveTypes.Int64}

// SplitField is the field of the split column.
var SplitField = arrow.Field{Name: SplitColumn, Type: arrow.PrimitiveTypes.Int64}

// Delta is a batch of changes. Without a weight column every row is an insert (+1).
// An empty Batch carries a watermark alone.
type Delta struct {
	Batch     arrow.RecordBatch
	Step      Step
	Watermark Watermark
	Barrier   Epoch // 0: none; otherwise this delta ends the epoch
	// Places of the rows, between a source and the scans of it; nil elsewhere and where they are not known.
	Places *Places
	// Lent is what Batch lies in beside the engine's own memory. Who reads the delta releases it.
	Lent []Lent
}

// Weighted reports whether the delta carries a weight column.
func (d Delta) Weighted() bool { return d.Batch != nil && HasWeights(d.Batch.Schema()) }

// HasWeights reports whether the last column of s is the weight.
func HasWeights(s *arrow.Schema) bool {
	n := s.NumFields()
	return n > 0 && s.Field(n-1).Name == WeightColumn
}

// Rows is the number of rows, retractions included.
func (d Delta) Rows() int {
	if d.Batch == nil {
		return 0
	}
	return int(d.Batch.NumRows())
}

// Weights returns the weight of each row, or nil when all are +1.
func (d Delta) Weights() []int64 {
	if !d.Weighted() {
		return nil
	}
	return d.Batch.Column(int(d.Batch.NumCols()) - 1).(*array.Int64).Int64Values()
}

// Columns returns the data columns, without the weight.
func (d Delta) Columns() []arrow.Array {
	if d.Batch == nil {
		return nil
	}
	cols := d.Batch.Columns()
	if d.Weighted() {
		return cols[:len(cols)-1]
	}
	return cols
}

// WithWeights returns s with the weight column at its end.
func WithWeights(s *arrow.Schema) *arrow.Schema {
	if HasWeights(s) {
		return s
	}
	return arrow.NewSchema(append(append([]arrow.Field{}, s.Fields()...), WeightField), nil)
}

// EdgeSchema returns s carrying the delta's step, watermark and barrier as metadata, as batches
// cross the C boundary, IPC and Flight.
func (d Delta) EdgeSchema() *arrow.Schema {
	keys := []string{MetaStep, MetaWatermark}
	vals := []string{strconv.FormatInt(int64(d.Step), 10), strconv.FormatInt(int64(d.Watermark), 10)}
	if d.Barrier > 0 {
		keys, vals = append(keys, MetaBarrier), append(vals, strconv.FormatInt(int64(d.Barrier), 10))
	}
	md := arrow.NewMetadata(keys, vals)
	return arrow.NewSchema(d.Batch.Schema().Fields(), &md)
}

// ReadEdge takes step, watermark and barrier from the metadata of a batch that came over an edge.
func ReadEdge(b arrow.RecordBatch) Delta {
	md := b.Schema().Metadata()
	get := func(key string, absent int64) int64 {
		if s, ok := md.GetValue(key); ok {
			if v, err := strconv.ParseInt(s, 10, 64); err == nil {
				return v
			}
		}
		return absent
	}
	return Delta{Batch: b, Step: Step(get(MetaStep, 0)), Watermark: Watermark(get(MetaWatermark, int64(NoWatermark))), Barrier: Epoch(get(MetaBarrier, 0))}
}
