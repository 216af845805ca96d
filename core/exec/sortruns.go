package exec

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/spill"
)

// runs is an external merge sort. Each worker sorts what its share of the account holds and spills it as a run: its rows
// with their normalised keys, byte strings that order as the rows do. The runs are then merged by comparing keys.
type runs struct {
	env    *Env
	acct   *account
	order  *total
	schema *arrow.Schema // of the rows
	stored *arrow.Schema // with the key behind them

	mu    sync.Mutex
	file  *spill.File
	held  int64
	pools []runPool
	runs  []sortRun
}

// runPool is the rows that a worker has gathered for its next run.
type runPool struct {
	kept []*flow.Morsel
	size int64
}

// sortRun is the batches of one run.
type sortRun []spill.Span

const (
	runBytes  = 256 << 10 // of a batch of a run
	mergeRuns = 64        // at a time
)

func newRuns(env *Env, acct *account, order *total, schema *arrow.Schema) *runs {
	fields := append(append([]arrow.Field{}, schema.Fields()...), arrow.Field{Name: "key", Type: arrow.BinaryTypes.Binary})
	return &runs{env: env, acct: acct, order: order, schema: schema, stored: arrow.NewSchema(fields, nil), pools: make([]runPool, env.Workers)}
}

func (r *runs) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	return r.file.Close()
}

// add gathers a morsel; what has no room is sorted and spilled.
func (r *runs) add(worker int, m *flow.Morsel) error {
	p := &r.pools[worker]
	p.kept = append(p.kept, m)
	size := batchBytes(m.Batch) + rowOverhead*m.Batch.NumRows()
	p.size += size
	r.mu.Lock()
	ok := r.acct.set(r.held + size)
	if ok {
		r.held += size
	}
	r.mu.Unlock()
	if ok {
		return nil
	}
	return r.spill(p, size)
}

// spill sorts a pool into a run. rest is what the account has not given.
func (r *runs) spill(p *runPool, rest int64) error {
	d := joinMorsels(r.schema, p.kept)
	granted := p.size - rest
	p.kept, p.size = nil, 0
	keys, err := r.order.prog.EvalArrays(r.env.Fn, d.cols, d.rows)
	if err != nil {
		return err
	}
	perm := kernels.SortIndices(keys, r.order.keys, d.rows)
	ks := make([]rowkey.Key, len(r.order.keys))
	for i, k := range r.order.keys {
		ks[i] = rowkey.Key{Desc: k.Desc, NullsFirst: k.NullsFirst, Exact: k.Exact}
	}
	enc := rowkey.NewEncoder(r.order.types, ks)
	var run sortRun
	step := r.batchRows(d)
	for from := 0; from < len(perm); from += step {
		part := perm[from:min(from+step, len(perm))]
		rows := enc.Encode(kernels.TakeBatch(keys, part), len(part))
		offs := make([]int32, len(rows.Offs))
		for i, o := range rows.Offs {
			offs[i] = int32(o)
		}
		cols := append(kernels.TakeBatch(d.cols, part), kernels.NewBytes(arrow.BinaryTypes.Binary, offs, bytes.Clone(rows.Data), nil))
		if run, err = r.write(run, cols, len(part)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, run)
	r.held -= granted
	r.acct.set(r.held)
	return nil
}

// batchRows is how many rows make a batch of a run.
func (r *runs) batchRows(d collected) int {
	size := int64(0)
	for _, c := range d.cols {
		size += arrayBytes(c.Data())
	}
	return int(min(max(runBytes*int64(d.rows)/(size+1), 64), 8<<10))
}

func (r *runs) write(run sortRun, cols []arrow.Array, n int) (sortRun, error) {
	r.mu.Lock()
	var err error
	if r.file == nil {
		r.file, err = r.env.Spill.Create()
	}
	r.mu.Unlock()
	if err != nil {
		return run, err
	}
	span, err := r.file.Write(array.NewRecordBatch(r.stored, cols, int64(n)))
	return append(run, span), err
}

// finish spills what is left and merges until one merge is left to do.
func (r *runs) finish(ctx context.Context) (*runMerge, error) {
	for w := range r.pools {
		if p := &r.pools[w]; len(p.kept) > 0 {
			if err := r.spill(p, 0); err != nil {
				return nil, err
			}
		}
	}
	for len(r.runs) > mergeRuns {
		m, err := r.open(r.runs[:mergeRuns])
		if err != nil {
			return nil, err
		}
		var run sortRun
		for {
			cols, n, err := m.batch(ctx, ChunkRows/4)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				break
			}
			if run, err = r.write(run, cols, n); err != nil {
				return nil, err
			}
		}
		r.runs = append(r.runs[mergeRuns:], run)
	}
	return r.open(r.runs)
}

// runMerge merges runs: a heap of the runs by their next key.
type runMerge struct {
	r    *runs
	mu   sync.Mutex
	heap []*runCursor
	seq  int64
	// OFFSET and LIMIT, what is left of them; remain < 0: all.
	skip, remain int64
}

// runCursor is the place in one run.
type runCursor struct {
	spans  sortRun
	batch  arrow.RecordBatch
	offs   []int32
	data   []byte
	row, n int
	head   uint64 // first bytes of the key
	key    []byte
	part   int32 // of the batch that is being made; -1: not in it yet
	from   int
}

func (r *runs) open(list []sortRun) (*runMerge, error) {
	m := &runMerge{r: r, remain: -1}
	for _, run := range list {
		c := &runCursor{spans: run}
		if ok, err := m.load(c); err != nil {
			return nil, err
		} else if ok {
			m.heap = append(m.heap, c)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m, nil
}

// load brings the next batch of a run.
func (m *runMerge) load(c *runCursor) (bool, error) {
	if len(c.spans) == 0 {
		return false, nil
	}
	var err error
	if c.batch, err = m.r.file.Read(c.spans[0]); err != nil {
		return false, err
	}
	c.spans = c.spans[1:]
	c.offs, c.data = kernels.Spans(c.batch.Column(int(c.batch.NumCols()) - 1))
	c.row, c.n, c.part = 0, int(c.batch.NumRows()), -1
	c.look()
	return true, nil
}

// look reads the key of the cursor's row.
func (c *runCursor) look() {
	c.key = c.data[c.offs[c.row]:c.offs[c.row+1]]
	if len(c.key) >= 8 {
		c.head = binary.BigEndian.Uint64(c.key)
		return
	}
	var b [8]byte
	copy(b[:], c.key)
	c.head = binary.BigEndian.Uint64(b[:])
}

func (c *runCursor) before(o *runCursor) bool {
	if c.head != o.head {
		return c.head < o.head
	}
	return bytes.Compare(c.key, o.key) < 0
}

func (m *runMerge) down(i int) {
	h := m.heap
	for {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if r := least + 1; r < len(h) && h[r].before(h[least]) {
			least = r
		}
		if !h[least].before(h[i]) {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// batch merges up to n rows. It returns their columns, the key last.
func (m *runMerge) batch(ctx context.Context, n int) ([]arrow.Array, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	var parts []arrow.RecordBatch
	which := make([]int32, 0, n)
	end := func(c *runCursor) {
		if c.part >= 0 {
			parts[c.part] = c.batch.NewSlice(int64(c.from), int64(c.row))
			c.part = -1
		}
	}
	for len(which) < n && len(m.heap) > 0 {
		c := m.heap[0]
		if c.part < 0 {
			c.part, c.from = int32(len(parts)), c.row
			parts = append(parts, nil)
		}
		which = append(which, c.part)
		if c.row++; c.row < c.n {
			c.look()
		} else {
			end(c)
			ok, err := m.load(c)
			if err != nil {
				return nil, 0, err
			}
			if !ok {
				last := len(m.heap) - 1
				m.heap[0] = m.heap[last]
				m.heap = m.heap[:last]
			}
		}
		m.down(0)
	}
	for _, c := range m.heap {
		end(c)
	}
	if len(which) == 0 {
		return nil, 0, nil
	}
	cols := make([]arrow.Array, m.r.stored.NumFields())
	same := make([]arrow.Array, len(parts))
	for c := range cols {
		for i, p := range parts {
			same[i] = p.Column(c)
		}
		cols[c] = kernels.Merge(m.r.stored.Field(c).Type, same, which)
	}
	return cols, len(which), nil
}

// next is the next morsel in order.
func (m *runMerge) next(ctx context.Context) (*flow.Morsel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.remain != 0 {
		cols, n, err := m.batch(ctx, ChunkRows)
		if err != nil || n == 0 {
			return nil, err
		}
		cols = cols[:len(cols)-1]
		from := min(m.skip, int64(n))
		to := int64(n)
		m.skip -= from
		if m.remain >= 0 {
			to = from + min(to-from, m.remain)
			m.remain -= to - from
		}
		if from == to {
			continue
		}
		m.seq++
		if from > 0 || to < int64(n) {
			cols = slice(cols, int(from), int(to))
		}
		return morsel(m.r.schema, m.seq, cols, int(to-from)), nil
	}
	return nil, nil
}
