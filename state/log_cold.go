package state

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// coldLog are rows of a Log that are in a store and not in memory, each under its key and number. They do not come back: who asks for a key reads
// its rows there, for as long as he needs them. So a key may have any number of them.
type coldLog struct {
	in    *Cold
	store Store // nil: nothing has left yet
	pre   []byte
	has   [Groups]bool
	rows  int
	enc   *rowkey.Encoder // of keys
	exact []rowkey.Key    // of rows
	row   *rowkey.Encoder
	seen  seen
	due   *Due // the rows by the time that settles them
}

// Limit lets rows leave memory, to a store under a path that no other log has but those with other key groups. ts are the types of the keys.
func (l *Log) Limit(in *Cold, path string, ts []types.Type) {
	c := &coldLog{in: in, pre: storePrefix(path, l.Decl.Name), exact: make([]rowkey.Key, len(l.types))}
	for i := range c.exact {
		c.exact[i].Exact = true
	}
	c.enc, c.row = rowkey.NewEncoder(ts, make([]rowkey.Key, len(ts))), rowkey.NewEncoder(l.types, c.exact)
	c.due = NewDue(in)
	l.cold = c
}

// Out is how many rows are in the store.
func (l *Log) Out() int {
	if l.cold == nil {
		return 0
	}
	return l.cold.rows
}

// Saved reports whether a checkpoint has all rows of a segment, or none is to.
//
// AIDEV-NOTE: Dirty takes the rows from a number on from memory, so those stay there.
func (l *Log) Saved(s *Segment) bool {
	if !l.tracking {
		return true
	}
	if s.numbers != nil {
		return slices.Max(s.numbers) < l.marks[0].next
	}
	return s.first+uint64(s.n) <= l.marks[0].next
}

// noColumns is a row of which no column is read. A store takes an empty value as the key's end.
var noColumns = []byte{0}

// Leave puts the rows of a segment, which is none any more, into the store. settled is when each may be dropped (DropSettled), nil for never.
func (l *Log) Leave(s *Segment, settled []int64) error {
	c := l.cold
	if c.store == nil {
		var err error
		if c.store, err = c.in.get(); err != nil {
			return err
		}
	}
	hash := make([]uint64, s.n)
	kernels.HashColumns(s.Keys, s.n, hash)
	keys, rows := c.enc.Encode(s.Keys, s.n), c.row.Encode(s.Cols, s.n)
	pairs := make([]Pair, s.n)
	mem := make([]byte, 0, len(keys.Data)+s.n*(len(c.pre)+9))
	for i := range pairs {
		g := l.group(s, i)
		c.has[g] = true
		c.seen.add(hash[i])
		from := len(mem)
		mem = append(append(append(mem, c.pre...), g), keys.Row(i)...)
		mem = binary.BigEndian.AppendUint64(mem, s.number(i))
		value := rows.Row(i)
		if len(value) == 0 {
			value = noColumns
		}
		pairs[i] = Pair{mem[from:len(mem):len(mem)], value}
	}
	if settled != nil {
		due := make([]Pair, s.n)
		for i, p := range pairs {
			due[i] = Pair{append(c.due.at(settled[i]), p.Key[len(c.pre):]...), binary.BigEndian.AppendUint64(nil, hash[i])}
		}
		if err := c.due.put(due, settled); err != nil {
			return err
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return bytes.Compare(a.Key, b.Key) })
	if err := c.store.Apply(pairs); err != nil {
		return err
	}
	c.rows += s.n
	l.n -= s.n
	l.replace(l.at(s), 1)
	return nil
}

// DropSettled drops rows that are in the store and settled by then.
func (l *Log) DropSettled(by int64) error {
	c := l.cold
	for c != nil {
		k, err := c.due.Take(by)
		if err != nil || k.Len() == 0 {
			return err
		}
		pairs := make([]Pair, k.Len())
		g := goneSegment{epoch: l.epoch, groups: k.Group}
		for i := range pairs {
			key := k.At(i)
			pairs[i].Key = slices.Concat(c.pre, k.Group[i:i+1], key)
			g.numbers = append(g.numbers, binary.BigEndian.Uint64(key[len(key)-8:]))
		}
		slices.SortFunc(pairs, func(a, b Pair) int { return bytes.Compare(a.Key, b.Key) })
		if err := c.store.Apply(pairs); err != nil {
			return err
		}
		c.rows -= k.Len()
		l.looks += int64(k.Len())
		if l.tracking {
			l.gone = append(l.gone, g)
			l.bytes += g.held()
		}
	}
	return nil
}

// Ask reads the rows of some keys that are in the store, and says for each which of the rows that ask it goes with: one that goes with several comes
// once, and is named several times. hash is that of the keys.
func (l *Log) Ask(hash []uint64, keys []arrow.Array) (s *Segment, of [][]int32, err error) {
	c := l.cold
	if c == nil || c.rows == 0 {
		return nil, nil, nil
	}
	var missing []int32
	for i, h := range hash {
		if c.seen.has(h) {
			missing = append(missing, int32(i))
		}
	}
	if len(missing) == 0 {
		return nil, nil, nil
	}
	enc := c.enc.Encode(kernels.TakeBatch(keys, missing), len(missing))
	order := iota32(len(missing))
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(enc.Row(int(a)), enc.Row(int(b))) })
	var values [][]byte
	for at := 0; at < len(order); {
		key := enc.Row(int(order[at]))
		var askers []int32
		for ; at < len(order) && bytes.Equal(enc.Row(int(order[at])), key); at++ {
			askers = append(askers, missing[order[at]])
		}
		from := slices.Concat(c.pre, []byte{group(hash[askers[0]])}, key)
		to := append(slices.Clone(from), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		if err := c.store.Range(from, to, func(p Pair) bool {
			values, of = append(values, p.Value), append(of, askers)
			return true
		}); err != nil {
			return nil, nil, err
		}
	}
	if len(values) == 0 {
		return nil, nil, nil
	}
	return &Segment{n: len(values), Cols: c.columns(l, values)}, of, nil
}

func (c *coldLog) columns(l *Log, values [][]byte) []arrow.Array {
	return rowkey.Decode(l.types, c.exact, len(values), func(i int) []byte { return values[i] })
}

// each gives all rows that are in the store.
func (c *coldLog) each(use func(group uint8, number uint64, value []byte)) error {
	for g, has := range c.has {
		if !has {
			continue
		}
		from, to := groupRange(c.pre, uint8(g))
		if err := c.store.Range(from, to, func(p Pair) bool {
			use(uint8(g), binary.BigEndian.Uint64(p.Key[len(p.Key)-8:]), p.Value)
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}

// Undo brings all rows back. Their keys are not known, as those of rows that were restored.
func (l *Log) Undo() error {
	c := l.cold
	if c == nil || c.rows == 0 {
		return nil
	}
	s := &Segment{}
	var values [][]byte
	if err := c.each(func(group uint8, number uint64, value []byte) {
		s.groups, s.numbers, values = append(s.groups, group), append(s.numbers, number), append(values, value)
	}); err != nil {
		return err
	}
	s.Cols, s.n = c.columns(l, values), len(values)
	l.n += s.n
	l.replace(len(l.segments), 0, s)
	for g, has := range c.has {
		if has {
			from, to := groupRange(c.pre, uint8(g))
			if err := c.store.DeleteRange(from, to); err != nil {
				return err
			}
		}
	}
	c.rows = 0
	return c.due.clear()
}

// clear drops all rows, and lists them as deleted.
func (c *coldLog) clear(l *Log) error {
	if c == nil || c.rows == 0 {
		return nil
	}
	if l.tracking {
		g := goneSegment{epoch: l.epoch}
		if err := c.each(func(group uint8, number uint64, _ []byte) {
			g.groups, g.numbers = append(g.groups, group), append(g.numbers, number)
		}); err != nil {
			return err
		}
		l.gone = append(l.gone, g)
		l.bytes += g.held()
	}
	for g, has := range c.has {
		if has {
			from, to := groupRange(c.pre, uint8(g))
			if err := c.store.DeleteRange(from, to); err != nil {
				return err
			}
		}
	}
	c.rows, c.seen, c.has = 0, seen{}, [Groups]bool{}
	return c.due.clear()
}

// withCold adds the rows that are in the store to a part.
func (l *Log) withCold(p Part) (Part, error) {
	c := l.cold
	if c == nil || c.rows == 0 {
		return p, nil
	}
	group, hash := array.NewUint8Builder(memory.DefaultAllocator), array.NewUint64Builder(memory.DefaultAllocator)
	key, deleted := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary), array.NewBooleanBuilder(memory.DefaultAllocator)
	var values [][]byte
	if err := c.each(func(g uint8, number uint64, value []byte) {
		group.Append(g)
		hash.Append(0)
		key.Append(binary.BigEndian.AppendUint64(nil, number))
		deleted.Append(false)
		values = append(values, value)
	}); err != nil {
		return Part{}, err
	}
	more := append([]arrow.Array{group.NewArray(), hash.NewArray(), key.NewArray(), deleted.NewArray()}, c.columns(l, values)...)
	for _, s := range l.same {
		a, err := s.Save(make([]uint32, len(values)))
		if err != nil {
			return Part{}, err
		}
		more = append(more, a)
	}
	return p.with(more)
}

// with is a part with more rows.
func (p Part) with(more []arrow.Array) (Part, error) {
	cols := make([]arrow.Array, len(more))
	for i, a := range more {
		both, err := array.Concatenate([]arrow.Array{p.Rows.Column(i), a}, memory.DefaultAllocator)
		if err != nil {
			return Part{}, errs.New(errs.State, "snapshot", "column %d of state table %s: %w", i, p.Table, err)
		}
		cols[i] = both
	}
	p.Rows = array.NewRecordBatch(p.Rows.Schema(), cols, p.Rows.NumRows()+int64(more[0].Len()))
	return p, nil
}

// Pieces are a segment of no log in pieces of at most so many rows.
func (s *Segment) Pieces(most int) []*Segment {
	if s.n <= most {
		return []*Segment{s}
	}
	var out []*Segment
	for from := 0; from < s.n; from += most {
		to := min(from+most, s.n)
		piece := &Segment{n: to - from}
		for _, c := range s.Cols {
			piece.Cols = append(piece.Cols, array.NewSlice(c, int64(from), int64(to)))
		}
		out = append(out, piece)
	}
	return out
}
