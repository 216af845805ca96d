package state

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Log is a table of rows without identity that are added, never changed, and dropped: it keeps them in the arrays in which they came, in
// segments, so that adding rows copies none of them. A row is named by its number, which rises in the order of coming; so a
// checkpoint's changes are the rows from a number on.
//
// The arrays belong to the log: nobody writes to them, and their memory is not taken away. It declares itself and writes parts as a
// Table with a sequence for its key does.
type Log struct {
	Decl     Decl
	types    []types.Type
	same     []Same // columns behind them that are one number in all rows
	segments []*Segment
	next     uint64 // number of the next row
	n        int
	bytes    int64 // counted along: a step asks, and there may be ten thousand segments
	looks    int64

	tracking bool
	epoch    uint64
	marks    []mark // of epochs that ended and are not durable yet
	gone     []goneSegment

	cold *coldLog // nil: rows do not leave memory
}

// Segment is some rows of a log, which came together.
type Segment struct {
	Cols    []arrow.Array
	Keys    []arrow.Array // by whose hash the rows have their key groups; of a segment that was just restored they are not known
	n       int
	first   uint64
	numbers []uint64 // nil: first, first + 1, …
	most    uint64   // of them, 0 until somebody has asked
	groups  []uint8  // nil: nobody has asked yet
	bytes   int64    // counted in the log's
}

// mark is where an epoch of the dirty list ended.
type mark struct{ epoch, next uint64 }

// goneSegment is rows that were dropped in an epoch.
type goneSegment struct {
	epoch   uint64
	groups  []uint8
	numbers []uint64
}

// NewLog makes an empty log. The declaration's last values are the columns same.
func NewLog(d Decl, ts []types.Type, same ...Same) *Log {
	if len(ts)+len(same) != len(d.Values) || d.Key != Sequence {
		panic(errs.Bug("state", "table %s declares %d values and has %d columns", d.Name, len(d.Values), len(ts)+len(same)))
	}
	return &Log{Decl: d, types: ts, same: same, epoch: 1}
}

var _ Stored = (*Log)(nil)

// Name is that of the declaration.
func (l *Log) Name() string { return l.Decl.Name }

// Len is the number of rows.
func (l *Log) Len() int { return l.n + l.Out() }

// Touched is how many rows were added or dropped so far.
func (l *Log) Touched() int64 { return l.looks }

// Segments are the rows, in the order of their coming; valid until the next change.
func (l *Log) Segments() []*Segment { return l.segments }

// Len is the number of rows.
func (s *Segment) Len() int { return s.n }

func (s *Segment) number(i int) uint64 {
	if s.numbers != nil {
		return s.numbers[i]
	}
	return s.first + uint64(i)
}

// newest is the highest number.
func (s *Segment) newest() uint64 {
	switch {
	case s.numbers == nil:
		return s.first + uint64(s.n) - 1
	case s.most == 0:
		s.most = slices.Max(s.numbers)
	}
	return s.most
}

func (l *Log) group(s *Segment, i int) uint8 {
	if s.groups == nil {
		hash := kernels.Room[uint64](s.n)
		kernels.HashColumns(s.Keys, s.n, hash)
		s.groups = make([]uint8, s.n)
		for i, h := range hash {
			s.groups[i] = uint8(kernels.KeyGroup(h))
		}
		s.bytes += int64(s.n)
		l.bytes += int64(s.n)
	}
	return s.groups[i]
}

// Bytes is the memory held, roughly.
func (l *Log) Bytes() int64 { return l.bytes }

// held is the memory of a segment. A key that is a column is held once.
func (s *Segment) held() int64 {
	n := 8*len(s.numbers) + len(s.groups)
	arrays := slices.Concat(s.Cols, s.Keys)
	for i, a := range arrays {
		if !slices.Contains(arrays[:i], a) {
			n += kernels.Held(a)
		}
	}
	return int64(n)
}

func (g goneSegment) held() int64 { return int64(9 * len(g.numbers)) }

// replace puts segments in the place of n others.
func (l *Log) replace(at, n int, by ...*Segment) {
	for _, s := range l.segments[at : at+n] {
		l.bytes -= s.bytes
	}
	for _, s := range by {
		s.bytes = s.held()
		l.bytes += s.bytes
	}
	l.segments = slices.Replace(l.segments, at, at+n, by...)
}

// Add takes n rows and their keys, whose arrays are the log's from now on.
func (l *Log) Add(cols, keys []arrow.Array, n int) *Segment {
	s := &Segment{Cols: cols, Keys: keys, n: n, first: l.next}
	l.next += uint64(n)
	l.n += n
	l.looks += int64(n)
	l.replace(len(l.segments), 0, s)
	return s
}

// Merge puts two segments together, the second of which came right behind the first. They are none any more.
func (l *Log) Merge(a, b *Segment) *Segment {
	m := &Segment{n: a.n + b.n, first: a.first}
	m.Cols, m.Keys = columns(a, func(i int, c arrow.Array) arrow.Array {
		if i < len(a.Cols) {
			return kernels.Concat([]arrow.Array{c, b.Cols[i]})
		}
		return kernels.Concat([]arrow.Array{c, b.Keys[i-len(a.Cols)]})
	})
	if a.groups != nil && b.groups != nil {
		m.groups = slices.Concat(a.groups, b.groups)
	}
	if a.numbers != nil || b.numbers != nil || a.first+uint64(a.Len()) != b.first {
		m.numbers = slices.Concat(a.every(), b.every())
	}
	l.replace(l.at(a), 2, m)
	return m
}

// columns makes columns and keys of others; a key that is a column stays one.
func columns(s *Segment, made func(i int, c arrow.Array) arrow.Array) (cols, keys []arrow.Array) {
	for i, c := range s.Cols {
		cols = append(cols, made(i, c))
	}
	for i, k := range s.Keys {
		if at := slices.Index(s.Cols, k); at >= 0 {
			keys = append(keys, cols[at])
		} else {
			keys = append(keys, made(len(s.Cols)+i, k))
		}
	}
	return cols, keys
}

// every is the numbers of the rows.
func (s *Segment) every() []uint64 {
	if s.numbers != nil {
		return s.numbers
	}
	out := make([]uint64, s.Len())
	for i := range out {
		out[i] = s.first + uint64(i)
	}
	return out
}

func (l *Log) at(s *Segment) int { return slices.Index(l.segments, s) }

// Drop drops all rows of a segment.
func (l *Log) Drop(s *Segment) {
	l.forget(s, nil)
	l.replace(l.at(s), 1)
}

// Narrow keeps some rows of a segment, in their order, and drops the others.
func (l *Log) Narrow(s *Segment, rows []int32) *Segment {
	l.forget(s, rows)
	out := s.take(rows)
	l.replace(l.at(s), 1, out)
	return out
}

func (s *Segment) take(rows []int32) *Segment {
	out := &Segment{n: len(rows), numbers: make([]uint64, len(rows))}
	out.Cols, out.Keys = columns(s, func(_ int, c arrow.Array) arrow.Array { return kernels.Take(c, rows) })
	for i, r := range rows {
		out.numbers[i] = s.number(int(r))
	}
	if s.groups != nil {
		out.groups = make([]uint8, len(rows))
		for i, r := range rows {
			out.groups[i] = s.groups[r]
		}
	}
	return out
}

// Clear drops all rows.
func (l *Log) Clear() error {
	for _, s := range l.segments {
		l.forget(s, nil)
	}
	l.replace(0, len(l.segments))
	return l.cold.clear(l)
}

// forget counts the rows of a segment out but for some, and lists them as deleted.
func (l *Log) forget(s *Segment, but []int32) {
	dropped := s.Len() - len(but)
	l.n -= dropped
	l.looks += int64(dropped)
	if !l.tracking || dropped == 0 {
		return
	}
	g := goneSegment{l.epoch, make([]uint8, 0, dropped), make([]uint64, 0, dropped)}
	for i := range s.Len() {
		if len(but) > 0 && but[0] == int32(i) {
			but = but[1:]
			continue
		}
		g.groups, g.numbers = append(g.groups, l.group(s, i)), append(g.numbers, s.number(i))
	}
	l.gone = append(l.gone, g)
	l.bytes += g.held()
}

// Track starts the dirty list.
func (l *Log) Track() {
	l.tracking = true
	l.marks = []mark{{0, l.next}}
}

// Cut ends an epoch of the dirty list.
func (l *Log) Cut() uint64 {
	l.epoch++
	l.marks = append(l.marks, mark{l.epoch - 1, l.next})
	return l.epoch - 1
}

// Forget drops what the dirty list holds of epochs up to one that is durable.
func (l *Log) Forget(epoch uint64) {
	for len(l.marks) > 1 && l.marks[1].epoch <= epoch {
		l.marks = l.marks[1:]
	}
	l.gone = slices.DeleteFunc(l.gone, func(g goneSegment) bool {
		durable := g.epoch <= epoch
		if durable {
			l.bytes -= g.held()
		}
		return durable
	})
}

// Dirty returns the rows that came and the names of those dropped after the epoch that Cut named. A row that came and went
// after it is not named.
func (l *Log) Dirty(since uint64) (Part, error) {
	from := uint64(math.MaxUint64)
	for i, m := range l.marks {
		if i == 0 || m.epoch <= since {
			from = m.next
		}
	}
	var gone []goneSegment
	for _, g := range l.gone {
		if g.epoch > since {
			gone = append(gone, g)
		}
	}
	return l.part(from, gone)
}

// Snapshot returns all rows.
func (l *Log) Snapshot() (Part, error) {
	p, err := l.part(0, nil)
	if err != nil {
		return Part{}, err
	}
	return l.withCold(p)
}

// part writes the rows numbered from a number on, and those of the dropped that are numbered below it.
func (l *Log) part(from uint64, gone []goneSegment) (Part, error) {
	group, hash := array.NewUint8Builder(memory.DefaultAllocator), array.NewUint64Builder(memory.DefaultAllocator)
	key, deleted := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary), array.NewBooleanBuilder(memory.DefaultAllocator)
	var name [8]byte
	row := func(g uint8, number uint64, dead bool) {
		binary.BigEndian.PutUint64(name[:], number)
		group.Append(g)
		hash.Append(0)
		key.Append(name[:])
		deleted.Append(dead)
	}
	values := make([][]arrow.Array, len(l.types))
	rows := 0
	for _, s := range l.segments {
		if s.newest() < from {
			continue
		}
		picked := make([]int32, 0, s.Len())
		for i := range s.Len() {
			if s.number(i) >= from {
				picked = append(picked, int32(i))
				row(l.group(s, i), s.number(i), false)
			}
		}
		rows += len(picked)
		for i, c := range s.Cols {
			if len(picked) == s.Len() {
				values[i] = append(values[i], c)
			} else if len(picked) > 0 {
				values[i] = append(values[i], kernels.Take(c, picked))
			}
		}
	}
	dead := 0
	for _, g := range gone {
		for i, n := range g.numbers {
			if n < from {
				row(g.groups[i], n, true)
				dead++
			}
		}
	}
	fields, cols := slices.Clone(partFields), []arrow.Array{group.NewArray(), hash.NewArray(), key.NewArray(), deleted.NewArray()}
	for i, t := range l.types {
		if dead > 0 || len(values[i]) == 0 {
			values[i] = append(values[i], kernels.Nulls(t.Arrow(), dead))
		}
		f := t.ArrowField(l.Decl.Values[i])
		fields, cols = append(fields, f), append(cols, kernels.Concat(values[i]))
	}
	for i, c := range l.same {
		a, err := c.Save(make([]uint32, rows))
		if err != nil {
			return Part{}, err
		}
		if dead > 0 {
			a = kernels.Concat([]arrow.Array{a, kernels.Nulls(a.DataType(), dead)})
		}
		fields, cols = append(fields, c.State().ArrowField(l.Decl.Values[len(l.types)+i])), append(cols, a)
	}
	return Part{Table: l.Decl.Name, Version: l.Decl.Version, Rows: array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(rows+dead))}, nil
}

// Restore takes the rows of a part whose key groups are mine. Their keys are not in the part: whoever knows them says so (Rearrange).
func (l *Log) Restore(p Part, mine func(group uint8) bool) error {
	if err := checkPart(p, l.Decl); err != nil {
		return err
	}
	groups, keys, deleted := p.Rows.Column(0).(*array.Uint8), p.Rows.Column(2).(*array.Binary), p.Rows.Column(3).(*array.Boolean)
	named := map[sequence]bool{} // rows that this part has or drops
	added := &Segment{}
	var rows []int32
	for i := range groups.Len() {
		g, n := groups.Value(i), binary.BigEndian.Uint64(keys.Value(i))
		if !mine(g) {
			continue
		}
		if l.n > 0 && !p.Fresh {
			named[sequence{g, n}] = true
		}
		if !deleted.Value(i) {
			rows = append(rows, int32(i))
			added.groups, added.numbers = append(added.groups, g), append(added.numbers, n)
		}
		l.next = max(l.next, n+1)
	}
	for i := range l.same {
		at := len(partFields) + len(l.types) + i
		if err := l.same[i].Load(nil, kernels.Take(p.Rows.Column(at), rows)); err != nil {
			return err
		}
	}
	if len(named) > 0 {
		l.without(named)
	}
	if len(rows) > 0 {
		for i := range l.types {
			added.Cols = append(added.Cols, kernels.Take(p.Rows.Column(len(partFields)+i), rows))
		}
		added.n = len(rows)
		l.n += len(rows)
		l.replace(len(l.segments), 0, added)
	}
	for i := range l.marks {
		l.marks[i].next = l.next
	}
	return nil
}

// without leaves out what a later part names.
func (l *Log) without(named map[sequence]bool) {
	var kept []*Segment
	l.n = 0
	for _, s := range l.segments {
		var rows []int32
		for i := range s.Len() {
			if !named[sequence{l.group(s, i), s.number(i)}] {
				rows = append(rows, int32(i))
			}
		}
		if len(rows) == 0 {
			continue
		}
		kept, l.n = append(kept, s.take(rows)), l.n+len(rows)
	}
	l.replace(0, len(l.segments), kept...)
}

// Rearrange replaces what was restored by the same rows in their order, in segments of at most so many, and with keys.
func (l *Log) Rearrange(most int, keys func(cols []arrow.Array, n int) ([]arrow.Array, error)) error {
	var cut []*Segment
	for _, s := range l.segments {
		for from := 0; from < s.n; from += most {
			to := min(from+most, s.n)
			part := &Segment{n: to - from, numbers: s.numbers[from:to], groups: s.groups[from:to]}
			for _, c := range s.Cols {
				part.Cols = append(part.Cols, kernels.Compact(array.NewSlice(c, int64(from), int64(to)))) // else each would hold all rows
			}
			var err error
			if part.Keys, err = keys(part.Cols, part.n); err != nil {
				return err
			}
			cut = append(cut, part)
		}
	}
	l.replace(0, len(l.segments), cut...)
	return nil
}
