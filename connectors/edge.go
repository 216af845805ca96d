package connectors

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// ChangelogOption is the option of append sinks that lets them take updating edges.
var ChangelogOption = Option{Name: "changelog", Type: Bool, Default: "false",
	Doc: "Write the weight of each row as the column __weight (+1 came, -1 went), so that a query whose rows change can be written."}

// AppendFields are the columns an append sink writes, and whether the weight is the last of them. A query whose rows
// change is refused unless the sink writes a changelog.
func AppendFields(what string, req SinkRequest) (fields []types.Field, changelog bool, err error) {
	changelog = req.Settings.Bool(ChangelogOption.Name)
	if req.Updating && !changelog {
		return nil, false, errs.New(errs.Unsupported, "open sink", "%s can only add rows, and the rows of this query change", what).
			WithHint("use EMIT ON WATERMARK, or set changelog = true to write each change with its __weight")
	}
	fields = append([]types.Field{}, req.Fields...)
	if changelog {
		fields = append(fields, types.Field{Name: flow.WeightColumn, Type: types.Int64})
	}
	return fields, changelog, nil
}

// ChangeColumns returns the columns of d with the weight as the last one, +1 where d has none.
func ChangeColumns(d flow.Delta) []arrow.Array {
	if d.Weighted() {
		return d.Batch.Columns()
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for range d.Rows() {
		b.Append(1)
	}
	return append(append([]arrow.Array{}, d.Columns()...), b.NewArray())
}

// Repeats returns how often each row of d is written by a sink that only adds rows; nil is once each.
func Repeats(what string, d flow.Delta) ([]int64, error) {
	weights := d.Weights()
	for i, w := range weights {
		if w < 0 {
			return nil, errs.New(errs.Unsupported, "write", "%s can only add rows, and row %d of a delta is taken back", what, i).
				WithHint("set changelog = true to write each change with its __weight")
		}
	}
	return weights, nil
}

// Repeated spells out each row as often as Repeats says.
func Repeated(cols []arrow.Array, rows int, times []int64) ([]arrow.Array, int) {
	if !slices.ContainsFunc(times, func(n int64) bool { return n != 1 }) {
		return cols, rows
	}
	var idx []int32
	for row, n := range times {
		for range n {
			idx = append(idx, int32(row))
		}
	}
	return kernels.TakeBatch(cols, idx), len(idx)
}

// Forwarder is a Writer that hands watermarks on. One that does is given deltas without rows, too, whose Batch may be nil.
type Forwarder interface {
	Writer
	Forwards() bool
}
