package exec

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// inOrder is rows in memory that are handed out in a total order. Their keys are packed into entries of 128 bits, which are
// parted by ranges; a worker takes the next part, sorts it in its cache, and makes its batches: columns that are keys come out
// of the entries, others are gathered from the chunks in which they came, or, of many rows, from records that were written
// beside the entries. So nothing is merged, and rows that a LIMIT leaves out are not sorted.
type inOrder struct {
	env    *Env
	schema *arrow.Schema
	rows   int

	chunks  []*flow.Morsel
	keys    []kernels.SortKey // those that count
	kept    []int             // by key of the order: its place in keys, or -1
	arrays  [][]arrow.Array   // of the keys, by chunk
	pack    *kernels.KeyPack
	shift   uint  // of a row's chunk in its number
	low     uint  // bits of an entry that hold that number, or the place of its record; 0: rows need none
	decoded []int // by column: the key that it is, or -1
	cols    []*kernels.Chunked

	records  *kernels.Records // nil: none
	recorded []int            // by column of the records: which it is
	inRecord []int            // by column: which of the records, or -1

	parts  *kernels.EntryParts // nil: one is all
	one    []kernels.SortEntry
	starts []int64 // of each part; the last is the end
	from   int64   // rows before it and from to on are not wanted
	to     int64
	next   atomic.Int64
	local  []orderedPart

	tied sync.Once
	rest []*kernels.Chunked // keys that the entries do not hold whole
}

// orderedPart is the part that one worker is handing out.
type orderedPart struct {
	sorter  *kernels.EntrySorter
	scratch kernels.PackScratch
	e, tmp  []kernels.SortEntry
	rows    []uint32
	places  []uint32
	left    []kernels.SortEntry
	at      int64
}

const (
	// fewSorted is up to how many rows are one part.
	fewSorted = 2 * ChunkRows
	// sampled is how many rows of a part are looked at before it is cut.
	sampled = 32
	// fewChunk is how few rows a chunk may have in the mean, before chunks are put together.
	fewChunk = 1 << 10
)

// recordRows is from how many rows on records are worth their memory: fewer rows stay in a cache. Tests lower it.
var recordRows = 1 << 19

// recordLines is how many lines of the cache a row must take otherwise.
const recordLines = 3

// newInOrder orders rows that are in chunks, of which the account holds the memory.
func newInOrder(ctx context.Context, env *Env, acct *account, t *total, s *arrow.Schema, chunks []*flow.Morsel) (*inOrder, error) {
	o, err := planInOrder(ctx, env, acct, t, s, chunks)
	if err != nil {
		return nil, err
	}
	return o, o.fill(ctx, 64)
}

// planInOrder decides how the rows are to be ordered, which fill then begins.
func planInOrder(ctx context.Context, env *Env, acct *account, t *total, s *arrow.Schema, chunks []*flow.Morsel) (*inOrder, error) {
	sortBySeq(chunks)
	o := &inOrder{env: env, schema: s, chunks: putTogether(s, chunks), local: make([]orderedPart, env.Workers)}
	most := 1
	for _, m := range o.chunks {
		n := int(m.Batch.NumRows())
		o.rows, most = o.rows+n, max(most, n)
	}
	o.to, o.starts = int64(o.rows), []int64{0, int64(o.rows)}
	if o.rows == 0 {
		return o, nil
	}
	o.shift = uint(bits.Len(uint(most - 1)))
	named := o.shift + uint(bits.Len(uint(max(len(o.chunks), 1)-1)))
	if named > 32 {
		return nil, errs.New(errs.Usage, "run", "%d rows are too many to be sorted in memory", o.rows).WithHint("set memory_limit, so that they are sorted in runs")
	}
	ranges, err := o.look(ctx, t)
	if err != nil {
		return nil, err
	}
	places := kernels.EntryPlaces(o.rows, kernels.MaxParts, env.Workers)
	few := o.rows < recordRows || places > math.MaxUint32
	if !few {
		named = max(named, uint(bits.Len(uint(places-1))))
	}
	o.plan(t, o.drop(t, ranges), max(named, 1))
	if !few && o.low > 0 {
		o.record(acct)
	}
	batches := o.batches()
	for c, k := range o.decoded {
		if k < 0 && (o.records == nil || o.inRecord[c] < 0) {
			o.cols[c] = kernels.NewChunked(columnOf(c, batches), o.shift)
		}
	}
	return o, nil
}

// bits is how many bits of an entry the first keys of the order take; ok is false where they are not whole in it.
func (o *inOrder) bits(keys int) (n uint, ok bool) {
	if o.rows == 0 {
		return 0, true
	}
	at := 0
	for _, k := range o.kept[:keys] {
		if k >= 0 {
			at++
		}
	}
	if at > o.pack.Whole() {
		return 0, false
	}
	return o.pack.Bits(at), true
}

// putTogether joins chunks that are too small to be worth a place of their own.
func putTogether(s *arrow.Schema, chunks []*flow.Morsel) []*flow.Morsel {
	rows := int64(0)
	for _, m := range chunks {
		rows += m.Batch.NumRows()
	}
	if len(chunks) < 2 || rows >= fewChunk*int64(len(chunks)) {
		return chunks
	}
	var out []*flow.Morsel
	for from := 0; from < len(chunks); {
		to, n := from, int64(0)
		for to < len(chunks) && (to == from || n+chunks[to].Batch.NumRows() <= blockRows) {
			n += chunks[to].Batch.NumRows()
			to++
		}
		d := joinMorsels(s, chunks[from:to])
		out = append(out, morsel(s, int64(len(out)), d.cols, d.rows))
		from = to
	}
	return out
}

// each calls work for every chunk, on all workers.
func (o *inOrder) each(ctx context.Context, work func(worker, chunk int) error) error {
	var next atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := min(o.env.Workers, max(len(o.chunks), 1))
	return parallel(cancel, workers, func(w int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(o.chunks) {
				return nil
			}
			if ctx.Err() != nil {
				return errs.New(errs.Cancelled, "run", "the query was cancelled")
			}
			if err := work(w, i); err != nil {
				return err
			}
		}
	})
}

// look evaluates the keys and finds their ranges.
func (o *inOrder) look(ctx context.Context, t *total) ([]kernels.KeyRange, error) {
	o.keys = t.keys
	o.arrays = make([][]arrow.Array, len(o.chunks))
	found := make([][]kernels.KeyRange, o.env.Workers)
	for w := range found {
		found[w] = make([]kernels.KeyRange, len(t.keys))
	}
	err := o.each(ctx, func(w, i int) (err error) {
		b := o.chunks[i].Batch
		if o.arrays[i], err = t.prog.EvalArrays(o.env.Fn, b.Columns(), int(b.NumRows())); err != nil {
			return err
		}
		for k, a := range o.arrays[i] {
			found[w][k].Add(a, t.keys[k])
		}
		return nil
	})
	for _, f := range found[1:] {
		for k := range f {
			found[0][k].Merge(&f[k])
		}
	}
	return found[0], err
}

// drop leaves out keys that an earlier key decides: the same column, when its words forget nothing.
func (o *inOrder) drop(t *total, ranges []kernels.KeyRange) []kernels.KeyRange {
	o.keys = nil
	var left []kernels.KeyRange
	for k, first := range t.same {
		at := -1
		if first < 0 || ranges[first].Lossy {
			at = len(o.keys)
			o.keys, left = append(o.keys, t.keys[k]), append(left, ranges[k])
		}
		o.kept = append(o.kept, at)
	}
	if len(left) < len(ranges) {
		for i, all := range o.arrays {
			some := make([]arrow.Array, 0, len(left))
			for k, at := range o.kept {
				if at >= 0 {
					some = append(some, all[k])
				}
			}
			o.arrays[i] = some
		}
	}
	return left
}

// plan decides what is in an entry. Where the keys are all that is to be known of a row, it has no number.
func (o *inOrder) plan(t *total, ranges []kernels.KeyRange, named uint) {
	o.decoded = make([]int, o.schema.NumFields())
	for _, o.low = range []uint{0, named} {
		o.pack = kernels.NewKeyPack(o.keys, ranges, o.low)
		all := o.pack.Whole() == len(o.keys)
		for c := range o.decoded {
			o.decoded[c] = -1
			if k := t.keyOf[c]; k >= 0 && o.pack.Decodes(o.kept[k]) {
				o.decoded[c] = o.kept[k]
			}
			all = all && o.decoded[c] >= 0
		}
		if all {
			break
		}
	}
	o.cols = make([]*kernels.Chunked, len(o.decoded))
}

// batches is the columns of each chunk.
func (o *inOrder) batches() [][]arrow.Array {
	out := make([][]arrow.Array, len(o.chunks))
	for i, m := range o.chunks {
		out[i] = m.Batch.Columns()
	}
	return out
}

// record plans records of the columns that have to be gathered, when they are worth it and the account has room for them.
func (o *inOrder) record(acct *account) {
	r, batches := kernels.NewRecords(), o.batches()
	inRecord, recorded := make([]int, len(o.decoded)), []int(nil)
	lines := 0 // of the cache, that a row would take otherwise
	for c, k := range o.decoded {
		inRecord[c] = -1
		if k >= 0 {
			continue
		}
		if inRecord[c] = r.AddColumn(columnOf(c, batches)); inRecord[c] >= 0 {
			recorded = append(recorded, c)
			lines++
			if _, fixed := o.schema.Field(c).Type.(arrow.FixedWidthDataType); !fixed {
				lines++
			}
		}
	}
	if lines < recordLines || !acct.set(acct.held+int64(o.rows)*int64(r.Size())) {
		return
	}
	o.records, o.recorded, o.inRecord = r, recorded, inRecord
}

// fill makes the entries, in parts. Those that are equal in the first together bits, of up to 64, are in one part.
func (o *inOrder) fill(ctx context.Context, together uint) error {
	if o.rows == 0 {
		return nil
	}
	if o.rows <= fewSorted {
		o.one = make([]kernels.SortEntry, o.rows)
		var s kernels.PackScratch
		at := 0
		for i, m := range o.chunks {
			n := int(m.Batch.NumRows())
			o.pack.Fill(o.arrays[i], uint64(i)<<o.shift, o.one[at:at+n], &s)
			at += n
		}
		return nil
	}
	parts := o.rows / ChunkRows
	cuts := kernels.NewEntryCuts(o.sample(parts*sampled), parts, together)
	o.parts = kernels.NewEntryParts(cuts, o.rows, o.env.Workers)
	if o.records != nil {
		o.records.Make(kernels.EntryPlaces(o.rows, cuts.Parts, o.env.Workers))
	}
	type room struct {
		e      []kernels.SortEntry
		s      kernels.PackScratch
		places []uint32
	}
	local := make([]room, o.env.Workers)
	err := o.each(ctx, func(w, i int) error {
		r := &local[w]
		n := int(o.chunks[i].Batch.NumRows())
		if cap(r.e) == 0 {
			r.e, r.places = make([]kernels.SortEntry, fillRows), make([]uint32, fillRows)
		}
		recorded := make([]arrow.Array, len(o.recorded))
		for k, c := range o.recorded {
			recorded[k] = o.chunks[i].Batch.Column(c)
		}
		for from := 0; from < n; from += fillRows {
			e := r.e[:min(fillRows, n-from)]
			first := uint64(i)<<o.shift + uint64(from)
			o.pack.Fill(slice(o.arrays[i], from, from+len(e)), first, e, &r.s)
			if o.records == nil {
				o.parts.Writer(w).Add(e)
				continue
			}
			places := o.parts.Writer(w).AddPlaced(e, o.low, r.places)
			o.records.Put(slice(recorded, from, from+len(e)), uint32(first), places)
		}
		return nil
	})
	if o.pack.Whole() == len(o.keys) {
		o.arrays = nil // what nobody reads any more goes
	}
	o.chunks = nil
	o.starts = make([]int64, cuts.Parts+1)
	for p := range cuts.Parts {
		o.starts[p+1] = o.starts[p] + int64(o.parts.Rows(p))
	}
	return err
}

// fillRows is how many entries are made before they go to their parts.
const fillRows = 2 << 10

// sample makes the entries of about n rows out of all chunks.
func (o *inOrder) sample(n int) []kernels.SortEntry {
	var out []kernels.SortEntry
	var s kernels.PackScratch
	for i, m := range o.chunks {
		rows := int(m.Batch.NumRows())
		idx := kernels.Sample(rows, int(int64(n)*int64(rows)/int64(o.rows))+1)
		e := make([]kernels.SortEntry, len(idx))
		o.pack.Fill(kernels.TakeBatch(o.arrays[i][:o.pack.Keys()], idx), 0, e, &s)
		out = append(out, e...)
	}
	return out
}

// only wants limit rows behind offset of them; a negative limit is none.
func (o *inOrder) only(offset, limit int64) {
	o.from = min(offset, o.to)
	if limit >= 0 && limit < o.to-o.from {
		o.to = o.from + limit
	}
}

// part sorts the next part that is wanted; ok is false behind the last.
func (o *inOrder) part(worker int) (e []kernels.SortEntry, at int64, ok bool) {
	for {
		p := int(o.next.Add(1)) - 1
		if p+1 >= len(o.starts) {
			return nil, 0, false
		}
		at, end := o.starts[p], o.starts[p+1]
		if at == end || end <= o.from || at >= o.to {
			continue
		}
		l := &o.local[worker]
		if l.sorter == nil {
			l.sorter = kernels.NewEntrySorter(o.low)
		}
		n := int(end - at)
		if cap(l.tmp) < n {
			l.tmp = make([]kernels.SortEntry, n)
		}
		if e = o.one; o.parts != nil {
			if cap(l.e) < n {
				l.e = make([]kernels.SortEntry, n)
			}
			e = o.parts.Part(p, l.e[:n])
		}
		l.sorter.Sort(e, l.tmp[:n])
		if o.pack.Whole() < len(o.keys) {
			o.breakTies(l, e)
		}
		return e, at, true
	}
}

// breakTies orders entries that are equal by the keys that they do not hold.
func (o *inOrder) breakTies(l *orderedPart, e []kernels.SortEntry) {
	var at []int
	var tied []kernels.SortEntry
	var runs []int32
	run := int32(0)
	for from := 0; from < len(e); {
		to := from + 1
		for to < len(e) && l.sorter.Equal(e[from], e[to]) {
			to++
		}
		if to-from > 1 {
			for i := from; i < to; i++ {
				at, tied, runs = append(at, i), append(tied, e[i]), append(runs, run)
			}
			run++
		}
		from = to
	}
	if len(at) == 0 {
		return
	}
	whole := o.pack.Whole()
	o.tied.Do(func() {
		for k := range o.keys[whole:] {
			o.rest = append(o.rest, kernels.NewChunked(columnOf(whole+k, o.arrays), o.shift))
		}
	})
	rows := o.rowsOf(l, o.named(l, tied))
	cols := []arrow.Array{kernels.NewFixed(arrow.PrimitiveTypes.Int32, runs, nil)}
	for _, c := range o.rest {
		cols = append(cols, c.Take(rows))
	}
	keys := append([]kernels.SortKey{{Type: types.Int32}}, o.keys[whole:]...)
	for i, k := range kernels.SortIndices(cols, keys, len(at)) {
		e[at[i]] = tied[k]
	}
}

// columnOf is one column of every chunk.
func columnOf(c int, of [][]arrow.Array) []arrow.Array {
	out := make([]arrow.Array, len(of))
	for i, cols := range of {
		out[i] = cols[c]
	}
	return out
}

// named reads the numbers of the entries: of their rows, or of their records.
func (o *inOrder) named(l *orderedPart, e []kernels.SortEntry) []uint32 {
	l.places = l.places[:0]
	mask := uint64(1)<<o.low - 1
	for _, x := range e {
		l.places = append(l.places, uint32(x.Lo&mask))
	}
	return l.places
}

// rowsOf gives the rows of such numbers.
func (o *inOrder) rowsOf(l *orderedPart, named []uint32) []uint32 {
	if o.records == nil {
		return named
	}
	l.rows = o.records.Rows(named, l.rows)
	return l.rows
}

// gather gives the columns of entries.
func (o *inOrder) gather(worker int, e []kernels.SortEntry) []arrow.Array {
	l := &o.local[worker]
	var named, rows []uint32
	if o.low > 0 {
		named = o.named(l, e)
	}
	out := make([]arrow.Array, len(o.decoded))
	for c, k := range o.decoded {
		switch {
		case k >= 0:
			out[c] = o.pack.Decode(k, e, &l.scratch)
		case o.cols[c] == nil:
			out[c] = o.records.Take(o.inRecord[c], named)
		default:
			if rows == nil {
				rows = o.rowsOf(l, named)
			}
			out[c] = o.cols[c].Take(rows)
		}
	}
	return out
}

// Next hands out a batch; those of one worker come in order.
func (o *inOrder) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	l := &o.local[worker]
	for len(l.left) == 0 {
		if ctx.Err() != nil {
			return nil, errs.New(errs.Cancelled, "run", "the query was cancelled")
		}
		e, at, ok := o.part(worker)
		if !ok {
			return nil, nil
		}
		from, to := max(o.from-at, 0), min(o.to-at, int64(len(e)))
		l.left, l.at = e[from:to], at+from
	}
	n := len(l.left)
	if n > ChunkRows+ChunkRows/2 {
		n = ChunkRows
	}
	e, at := l.left[:n], l.at
	l.left, l.at = l.left[n:], l.at+int64(n)
	return morsel(o.schema, at, o.gather(worker, e), n), nil
}

// sameColumns says which keys are a column that an earlier key is, too, and forgets nothing that equal values may differ in.
func sameColumns(es []expr.Expr) []int {
	same := make([]int, len(es))
	seen := map[expr.ColID]int{}
	for i, e := range es {
		same[i] = -1
		c, ok := e.(*expr.Col)
		if !ok {
			continue
		}
		if k, ok := seen[c.ID]; ok && kernels.WordsTell(c.T) {
			same[i] = k
		} else {
			seen[c.ID] = i
		}
	}
	return same
}
