package riverbed

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// zset is the accumulated output of a changelog: how often each row stands in it. Rows are kept as their exact keys,
// so that a row is retracted by the very row that was inserted (-0.0 is another row than 0.0).
//
// To find rows among many costs as much as to compute them, and nobody may ask for them: changes wait until somebody does, as
// long as they are not too many. Beyond that the oldest are put in their place, so that no change pays for all of those before it.
type zset struct {
	fields  []types.Field
	types   []types.Type
	exact   []rowkey.Key
	enc     *rowkey.Encoder
	ids     *hashtable.Groups
	weights []int64
	cached  *ArrowTable  // of the present rows
	waiting []flow.Delta // changes that are not in their place yet, in their order
	rows    int          // in waiting
}

// waitingRows is how many rows of changes may wait.
const waitingRows = 128 << 10

func newZset(fields []types.Field) *zset {
	z := &zset{fields: fields, exact: make([]rowkey.Key, len(fields)), ids: hashtable.NewGroups([]types.Type{types.Binary})}
	for i, f := range fields {
		z.types = append(z.types, f.Type)
		z.exact[i].Exact = true
	}
	z.enc = rowkey.NewEncoder(z.types, z.exact)
	return z
}

func (z *zset) add(d flow.Delta) {
	n := d.Rows()
	if n == 0 {
		return
	}
	z.cached = nil
	z.waiting, z.rows = append(z.waiting, d), z.rows+n
	for z.rows > waitingRows {
		z.place()
	}
}

// addAll adds what a step shows.
func (z *zset) addAll(out incremental.Output) {
	z.add(out.Delta)
	for _, d := range out.Pieces {
		z.add(d)
	}
}

// settle puts all changes in their place; whoever looks at rows does so first.
func (z *zset) settle() {
	for len(z.waiting) > 0 {
		z.place()
	}
	z.waiting = nil
}

// place puts the oldest change that waits in its place.
func (z *zset) place() {
	d := z.waiting[0]
	n := d.Rows()
	z.waiting[0] = flow.Delta{} // its memory goes
	z.waiting, z.rows = z.waiting[1:], z.rows-n
	rows := z.enc.Encode(d.Columns(), n)
	offs := make([]int32, n+1)
	for i := range offs {
		offs[i] = int32(rows.Offs[i])
	}
	ids := make([]uint32, n)
	z.ids.FindOrAdd([]arrow.Array{kernels.NewBytes(arrow.BinaryTypes.Binary, offs, rows.Data, nil)}, n, ids)
	for len(z.weights) < z.ids.Len() {
		z.weights = append(z.weights, 0)
	}
	w := d.Weights()
	for i, id := range ids {
		if w == nil {
			z.weights[id]++
		} else {
			z.weights[id] += w[i]
		}
	}
	const freed = math.MinInt64 // each once
	var gone []uint32
	for _, id := range ids {
		if z.weights[id] == 0 {
			z.weights[id] = freed
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		z.weights[id] = 0
	}
	z.ids.Free(gone)
}

// table is the rows, each as often as it stands there.
func (z *zset) table() *ArrowTable {
	if z.cached == nil {
		z.cached = &ArrowTable{fields: z.fields, chunks: chunksOf(z.batches())}
	}
	return z.cached
}

func (z *zset) batches() []arrow.RecordBatch {
	z.settle()
	var live, times []uint32
	n := 0
	for id, w := range z.weights {
		if w > 0 {
			live, times = append(live, uint32(id)), append(times, uint32(w))
			n += int(w)
		}
	}
	if n == 0 {
		return nil
	}
	offs, data := kernels.Spans(z.ids.KeysOf(live)[0])
	cols := rowkey.Decode(z.types, z.exact, len(live), func(i int) []byte { return data[offs[i]:offs[i+1]] })
	if n > len(live) {
		rows := make([]int32, 0, n)
		for i, times := range times {
			for range times {
				rows = append(rows, int32(i))
			}
		}
		cols = kernels.TakeBatch(cols, rows)
	}
	return []arrow.RecordBatch{array.NewRecordBatch(types.ArrowSchema(z.fields), cols, int64(n))}
}

// Accumulated adds changes up to the result that a batch run would give. It is the measure of every parity test.
type Accumulated struct{ z *zset }

// NewAccumulated starts empty.
func NewAccumulated(fields []types.Field) *Accumulated { return &Accumulated{newZset(fields)} }

// Add takes a step's changes.
func (a *Accumulated) Add(d flow.Delta) { a.z.add(d) }

// Batches are the rows.
func (a *Accumulated) Batches() []arrow.RecordBatch { return a.z.batches() }

// Negative reports whether some row stands there less than zero times, which no correct changelog gives.
func (a *Accumulated) Negative() bool {
	a.z.settle()
	for _, w := range a.z.weights {
		if w < 0 {
			return true
		}
	}
	return false
}
