package fn

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// An ordered aggregate is a function of its group's rows in a total order: of the first row (MIN, ARG_MAX, FIRST), or of
// all (MEDIAN, LIST). A row is encoded by rowkey so that byte order is that order; the value that the result is made of
// is its last column.
//
// Three accumulators serve all of them: bestAcc keeps the first row only, collectAcc keeps the rows and sorts them when
// asked, and bagAcc, for retractions, keeps them sorted with their weights. Since the same bytes go in, the same
// result comes out of each.
type ordered struct {
	form func(c AggConfig) rowForm
	// pick chooses the rows that the result is made of.
	pick func(c AggConfig, rows sortedRows, emit func(row []byte, n int64))
	// build makes the results: group i has the picked values offs[i] to offs[i+1] of values, and their weights.
	build func(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error)
}

// rowForm says which arguments make a row, and how each is ordered.
type rowForm struct {
	args  []int
	types []types.Type
	keys  []rowkey.Key
}

func (f *rowForm) column(c AggConfig, arg int, k rowkey.Key) {
	f.args, f.types, f.keys = append(f.args, arg), append(f.types, c.Args[arg]), append(f.keys, k)
}

// value decodes the last column of rows.
func (f *rowForm) value(rows [][]byte) arrow.Array {
	return rowkey.DecodeFrom(f.types, f.keys, len(f.types)-1, len(rows), func(i int) []byte { return rows[i] })[0]
}

// plain is the number of arguments proper; order keys and tie-break columns follow them.
func plain(c AggConfig) int {
	if c.Plain > 0 {
		return c.Plain
	}
	return len(c.Args)
}

var (
	first    = ordered{form: byValue(false), pick: pickFirst, build: buildOne}
	last     = ordered{form: byValue(true), pick: pickFirst, build: buildOne}
	argFirst = ordered{form: byKey(false), pick: pickFirst, build: buildOne}
	argLast  = ordered{form: byKey(true), pick: pickFirst, build: buildOne}
	oldest   = ordered{form: byOrder(false), pick: pickFirst, build: buildOne}
	newest   = ordered{form: byOrder(true), pick: pickFirst, build: buildOne}
)

// byValue orders by the first argument.
func byValue(desc bool) func(c AggConfig) rowForm {
	return func(c AggConfig) (f rowForm) {
		f.column(c, 0, rowkey.Key{Desc: desc, Exact: true})
		return f
	}
}

// byKey orders by the second argument, then by the first.
func byKey(desc bool) func(c AggConfig) rowForm {
	return func(c AggConfig) (f rowForm) {
		f.column(c, 1, rowkey.Key{Desc: desc})
		f.column(c, 0, rowkey.Key{Exact: true})
		return f
	}
}

// byOrder orders by the ORDER BY keys, then by the tie-break columns, then by the first argument. backwards turns all round.
func byOrder(backwards bool) func(c AggConfig) rowForm {
	return func(c AggConfig) (f rowForm) {
		for i := plain(c); i < len(c.Args); i++ {
			k := rowkey.Key{Exact: true}
			if o := i - plain(c); o < len(c.Order) {
				k = rowkey.Key{Desc: c.Order[o].Desc, NullsFirst: c.Order[o].NullsFirst}
			}
			if backwards {
				k.Desc, k.NullsFirst = !k.Desc, !k.NullsFirst
			}
			f.column(c, i, k)
		}
		f.column(c, 0, rowkey.Key{Desc: backwards, NullsFirst: backwards, Exact: true})
		return f
	}
}

// sortedRows is the rows of one group in order, each with its weight, which is positive.
type sortedRows interface {
	total() int64
	each(f func(row []byte, w int64) bool)
}

func pickFirst(_ AggConfig, rows sortedRows, emit func([]byte, int64)) {
	rows.each(func(row []byte, w int64) bool {
		emit(row, w)
		return false
	})
}

func pickAll(_ AggConfig, rows sortedRows, emit func([]byte, int64)) {
	rows.each(func(row []byte, w int64) bool {
		emit(row, w)
		return true
	})
}

// buildOne gives the one value picked, or NULL.
func buildOne(_ AggConfig, values arrow.Array, offs []int32, _ []int64) (arrow.Array, error) {
	idx := make([]int32, len(offs)-1)
	for i := range idx {
		if idx[i] = offs[i]; offs[i+1] == offs[i] {
			idx[i] = -1
		}
	}
	return kernels.Take(values, idx), nil
}

// orderedAcc is what the three accumulators have in common.
type orderedAcc struct {
	cfg  AggConfig
	kind ordered
	form rowForm
	enc  *rowkey.Encoder
	cols []arrow.Array
}

func newOrderedAcc(c AggConfig, kind ordered) orderedAcc {
	f := kind.form(c)
	return orderedAcc{cfg: c, kind: kind, form: f, enc: rowkey.NewEncoder(f.types, f.keys)}
}

// encode encodes the arguments as rows.
func (o *orderedAcc) encode(n int, args []Arg) rowkey.Rows {
	o.cols = o.cols[:0]
	for _, a := range o.form.args {
		o.cols = append(o.cols, rowsOf(args[a], n))
	}
	return o.enc.Encode(o.cols, n)
}

func (o *orderedAcc) result(groups []uint32, rows func(g uint32) sortedRows) (arrow.Array, error) {
	var picked [][]byte
	var weights []int64
	offs := make([]int32, len(groups)+1)
	for i, g := range groups {
		o.kind.pick(o.cfg, rows(g), func(row []byte, n int64) { picked, weights = append(picked, row), append(weights, n) })
		offs[i+1] = int32(len(picked))
	}
	return o.kind.build(o.cfg, o.form.value(picked), offs, weights)
}

// saveRows writes a group's rows; loadRows reads them.
func saveRows(dst []byte, rows sortedRows) []byte {
	rows.each(func(row []byte, w int64) bool {
		dst = appendRow(dst, row, w)
		return true
	})
	return dst
}

func appendRow(dst, row []byte, w int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(row)))
	return binary.AppendVarint(append(dst, row...), w)
}

func loadRows(b []byte, add func(row []byte, w int64)) {
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		row := b[n : n+int(size)]
		w, m := binary.Varint(b[n+int(size):])
		b = b[n+int(size)+m:]
		add(row, w)
	}
}

// bestAcc keeps the first row of each group.
type bestAcc struct {
	orderedAcc
	rows    []span
	arena   []byte
	garbage int
}

// span is bytes in an arena; the empty span is no row.
type span struct {
	at       int
	len, cap int32
}

func newBest(kind ordered) func(c AggConfig) Accumulator {
	return func(c AggConfig) Accumulator { return &bestAcc{orderedAcc: newOrderedAcc(c, kind)} }
}

func (a *bestAcc) Resize(n int) { a.rows = grow(a.rows, n) }

func (a *bestAcc) row(g uint32) []byte {
	s := a.rows[g]
	return a.arena[s.at : s.at+int(s.len)]
}

func (a *bestAcc) offer(g uint32, row []byte) {
	s := &a.rows[g]
	if s.len > 0 && bytes.Compare(row, a.row(g)) >= 0 {
		return
	}
	if int(s.cap) < len(row) {
		a.garbage += int(s.cap)
		*s = span{at: len(a.arena), cap: int32(len(row))}
		a.arena = append(a.arena, row...)
	}
	s.len = int32(copy(a.arena[s.at:], row))
	if a.garbage > 1<<16 && 2*a.garbage > len(a.arena) {
		a.compact()
	}
}

func (a *bestAcc) compact() {
	fresh := make([]byte, 0, len(a.arena)-a.garbage)
	for g := range a.rows {
		at := len(fresh)
		fresh = append(fresh, a.row(uint32(g))...)
		a.rows[g] = span{at, a.rows[g].len, a.rows[g].len}
	}
	a.arena, a.garbage = fresh, 0
}

func (a *bestAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	rows := a.encode(len(groups), args)
	for i, g := range groups {
		if weights == nil || weights[i] > 0 {
			a.offer(g, rows.Row(i))
		}
	}
	return nil
}

func (a *bestAcc) Merge(other Accumulator, into []uint32) error {
	o := other.(*bestAcc)
	for i, g := range into {
		if row := o.row(uint32(i)); len(row) > 0 {
			a.offer(g, row)
		}
	}
	return nil
}

// oneRow is a group of at most one row.
type oneRow []byte

func (r oneRow) total() int64 { return int64(min(len(r), 1)) }
func (r oneRow) each(f func(row []byte, w int64) bool) {
	if len(r) > 0 {
		f(r, 1)
	}
}

func (a *bestAcc) Result(groups []uint32) (arrow.Array, error) {
	return a.result(groups, func(g uint32) sortedRows { return oneRow(a.row(g)) })
}

func (a *bestAcc) Reset(groups []uint32) {
	for _, g := range groups {
		a.garbage += int(a.rows[g].cap)
		a.rows[g] = span{}
	}
}

func (a *bestAcc) State() types.Type { return types.Binary }
func (a *bestAcc) Bytes() int64      { return int64(16*cap(a.rows) + cap(a.arena)) }

func (a *bestAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, func(dst []byte, g uint32) []byte { return saveRows(dst, oneRow(a.row(g))) }), nil
}

func (a *bestAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) { loadRows(b, func(row []byte, _ int64) { a.offer(g, row) }) })
	return nil
}

// collectAcc keeps all rows, in one arena, chained by group.
type collectAcc struct {
	orderedAcc
	heads []chain
	rows  []collected
	arena []byte
}

type chain struct{ first, last, n int32 } // index + 1

type collected struct {
	at   int
	len  int32
	next int32 // index + 1
	n    int64
}

func newCollect(kind ordered) func(c AggConfig) Accumulator {
	return func(c AggConfig) Accumulator { return &collectAcc{orderedAcc: newOrderedAcc(c, kind)} }
}

func (a *collectAcc) Resize(n int) { a.heads = grow(a.heads, n) }

func (a *collectAcc) put(g uint32, row []byte, n int64) {
	if n <= 0 {
		return
	}
	a.rows = append(a.rows, collected{at: len(a.arena), len: int32(len(row)), n: n})
	a.arena = append(a.arena, row...)
	h, at := &a.heads[g], int32(len(a.rows))
	if h.last > 0 {
		a.rows[h.last-1].next = at
	} else {
		h.first = at
	}
	h.last, h.n = at, h.n+1
}

func (a *collectAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	rows := a.encode(len(groups), args)
	for i, g := range groups {
		a.put(g, rows.Row(i), weightOf(weights, i))
	}
	return nil
}

func (a *collectAcc) Merge(other Accumulator, into []uint32) error {
	o := other.(*collectAcc)
	for i, g := range into {
		for at := o.heads[i].first; at > 0; {
			r := o.rows[at-1]
			a.put(g, o.arena[r.at:r.at+int(r.len)], r.n)
			at = r.next
		}
	}
	return nil
}

// rowList is rows with weights, sorted.
type rowList []bagRow

type bagRow struct {
	row []byte
	n   int64
}

func (l rowList) total() (n int64) {
	for _, r := range l {
		n += r.n
	}
	return n
}

func (l rowList) each(f func(row []byte, n int64) bool) {
	for i := 0; i < len(l); {
		row, n := l[i].row, l[i].n
		for i++; i < len(l) && bytes.Equal(l[i].row, row); i++ {
			n += l[i].n
		}
		if n > 0 && !f(row, n) {
			return
		}
	}
}

func (a *collectAcc) list(g uint32) sortedRows {
	out := make(rowList, 0, a.heads[g].n)
	for at := a.heads[g].first; at > 0; {
		r := &a.rows[at-1]
		out = append(out, bagRow{a.arena[r.at : r.at+int(r.len)], r.n})
		at = r.next
	}
	slices.SortFunc(out, func(x, y bagRow) int { return bytes.Compare(x.row, y.row) })
	return out
}

func (a *collectAcc) Result(groups []uint32) (arrow.Array, error) { return a.result(groups, a.list) }

func (a *collectAcc) Reset(groups []uint32) {
	for _, g := range groups {
		a.heads[g] = chain{}
	}
	if !slices.ContainsFunc(a.heads, func(h chain) bool { return h.first > 0 }) {
		a.rows, a.arena = a.rows[:0], a.arena[:0]
	}
}

func (a *collectAcc) State() types.Type { return types.Binary }
func (a *collectAcc) Bytes() int64 {
	return int64(12*cap(a.heads) + 24*cap(a.rows) + cap(a.arena))
}

func (a *collectAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, func(dst []byte, g uint32) []byte { return saveRows(dst, a.list(g)) }), nil
}

func (a *collectAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) { loadRows(b, func(row []byte, n int64) { a.put(g, row, n) }) })
	return nil
}
