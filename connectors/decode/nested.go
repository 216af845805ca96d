package decode

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/types"
)

// Column gathers one column, or one part of a nested one.
type Column interface {
	Len() int
	AppendNull()
	// Truncate drops the values from n on, and what parts hold of values that were begun and not closed.
	Truncate(n int)
	Finish() arrow.Array
}

// Appender gives the way to append values as they are, for builders of fixed-width types whose Arrow values are T.
func Appender[T arrow.FixedWidthType](b Builder) (func(T), bool) {
	f, ok := b.(*fixed[T])
	if !ok {
		return nil, false
	}
	return func(v T) {
		f.nulls.valid(len(f.vals))
		f.append(v)
	}, true
}

// Lists is a LIST column: what its elements have gathered since the last value becomes a value by Close.
type Lists struct {
	typ   arrow.DataType
	elem  Column
	nulls nulls
	ends  []int32
}

// NewLists makes a column of LISTs, t, over the column of their elements.
func NewLists(t types.Type, elem Column) *Lists { return &Lists{typ: t.Arrow(), elem: elem} }

func (l *Lists) Len() int { return len(l.ends) }

func (l *Lists) AppendNull() {
	l.nulls.null(len(l.ends))
	l.ends = append(l.ends, int32(l.elem.Len()))
}

// Close ends a value.
func (l *Lists) Close() {
	l.nulls.valid(len(l.ends))
	l.ends = append(l.ends, int32(l.elem.Len()))
}

func (l *Lists) Truncate(n int) {
	l.nulls.truncate(n, len(l.ends))
	l.ends = l.ends[:n]
	l.elem.Truncate(lastEnd(l.ends))
}

func lastEnd(ends []int32) int {
	if len(ends) == 0 {
		return 0
	}
	return int(ends[len(ends)-1])
}

// startsOf makes Arrow's offsets of the ends of values.
func startsOf(ends []int32) *memory.Buffer {
	offsets := make([]int32, len(ends)+1)
	copy(offsets[1:], ends)
	return memory.NewBufferBytes(arrow.GetBytes(offsets))
}

func (l *Lists) Finish() arrow.Array {
	a := l.nulls.finishOver(l.typ, len(l.ends), []arrow.ArrayData{l.elem.Finish().Data()}, startsOf(l.ends))
	l.ends = l.ends[:0]
	return a
}

// Structs is a STRUCT column: a value is closed when each part has one more.
type Structs struct {
	typ   arrow.DataType
	parts []Column
	nulls nulls
	n     int
}

// NewStructs makes a column of STRUCTs, t, over the columns of their parts.
func NewStructs(t types.Type, parts []Column) *Structs { return &Structs{typ: t.Arrow(), parts: parts} }

func (s *Structs) Len() int { return s.n }

func (s *Structs) AppendNull() {
	for _, p := range s.parts {
		p.AppendNull()
	}
	s.nulls.null(s.n)
	s.n++
}

// Close ends a value.
func (s *Structs) Close() {
	s.nulls.valid(s.n)
	s.n++
}

func (s *Structs) Truncate(n int) {
	s.nulls.truncate(n, s.n)
	s.n = n
	for _, p := range s.parts {
		p.Truncate(n) // a value that was begun has some of its parts, or parts of these
	}
}

func (s *Structs) Finish() arrow.Array {
	parts := make([]arrow.ArrayData, len(s.parts))
	for i, p := range s.parts {
		parts[i] = p.Finish().Data()
	}
	a := s.nulls.finishOver(s.typ, s.n, parts)
	s.n = 0
	return a
}

// Maps is a MAP column: what its keys and values have gathered since the last value becomes a value by Close.
type Maps struct {
	typ          *arrow.MapType
	keys, values Column
	nulls        nulls
	ends         []int32
}

// NewMaps makes a column of MAPs, t, over the columns of keys and values.
func NewMaps(t types.Type, keys, values Column) *Maps {
	return &Maps{typ: t.Arrow().(*arrow.MapType), keys: keys, values: values}
}

func (m *Maps) Len() int { return len(m.ends) }

func (m *Maps) AppendNull() {
	m.nulls.null(len(m.ends))
	m.ends = append(m.ends, int32(m.keys.Len()))
}

// Close ends a value.
func (m *Maps) Close() {
	m.nulls.valid(len(m.ends))
	m.ends = append(m.ends, int32(m.keys.Len()))
}

func (m *Maps) Truncate(n int) {
	m.nulls.truncate(n, len(m.ends))
	m.ends = m.ends[:n]
	last := lastEnd(m.ends)
	m.keys.Truncate(last)
	m.values.Truncate(last)
}

func (m *Maps) Finish() arrow.Array {
	keys, values := m.keys.Finish(), m.values.Finish()
	entries := array.NewData(m.typ.Elem(), keys.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{keys.Data(), values.Data()}, 0, 0)
	a := m.nulls.finishOver(m.typ, len(m.ends), []arrow.ArrayData{entries}, startsOf(m.ends))
	m.ends = m.ends[:0]
	return a
}
