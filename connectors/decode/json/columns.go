package json

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// column gathers one column or one part of a nested one. On an error of read the column holds no part of the value.
type column interface {
	Len() int
	AppendNull()
	Truncate(n int)
	Finish() arrow.Array
	read(p *parser) error
}

// form says which JSON values a leaf takes.
type form uint8

const (
	asNumber form = iota // numbers
	asString             // strings: text, dates, times
	asBool               // true and false
	asJSON               // anything, kept as text
)

func newColumn(t types.Type, lax bool) (column, error) {
	switch t.Kind {
	case types.List:
		elem, err := newColumn(*t.Elem, lax)
		if err != nil {
			return nil, err
		}
		return &list{typ: t.Arrow(), elem: elem}, nil
	case types.Struct:
		s := &structs{typ: t.Arrow(), names: map[string]int{}}
		for i, f := range t.Fields {
			c, err := newColumn(f.Type, lax)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", f.Name, err)
			}
			s.names[f.Name] = i
			s.parts = append(s.parts, c)
		}
		return s, nil
	case types.Map:
		keys, err := decode.NewBuilder(*t.Key)
		if err != nil || t.Key.Kind == types.Blob {
			return nil, fmt.Errorf("the keys of JSON objects are text, which is not read as %s", t.Key)
		}
		value, err := newColumn(*t.Elem, lax)
		if err != nil {
			return nil, err
		}
		return &maps{typ: t.Arrow().(*arrow.MapType), keys: keys, values: value}, nil
	}
	b, err := decode.NewBuilder(t)
	if err != nil {
		return nil, err
	}
	l := &leaf{Builder: b, form: asString, lax: lax, t: t}
	switch {
	case t.Kind == types.JSON:
		l.form = asJSON
	case t.Kind == types.Boolean:
		l.form = asBool
	case t.IsNumeric():
		l.form = asNumber
	}
	return l, nil
}

// leaf is a column without parts.
type leaf struct {
	decode.Builder
	form form
	lax  bool
	t    types.Type
	buf  []byte
}

func (l *leaf) read(p *parser) error {
	c := p.peek()
	if l.form == asJSON && c != 'n' {
		text, err := p.raw()
		if err != nil {
			return err
		}
		l.buf = compact(l.buf[:0], text)
		return l.AppendText(l.buf)
	}
	switch c {
	case '"':
		s, err := p.str()
		if err != nil {
			return err
		}
		if l.form == asString || l.form == asNumber && (l.lax || l.t.Kind == types.Decimal || isSpecialFloat(l.t, s)) || l.form == asBool && l.lax {
			return l.AppendText(s)
		}
		return l.wrong("a string")
	case 'n':
		if _, err := p.literal(); err != nil {
			return err
		}
		l.AppendNull()
		return nil
	case 't', 'f':
		s, err := p.literal()
		if err != nil {
			return err
		}
		if l.form == asBool || l.lax && l.t.Kind == types.Varchar {
			return l.AppendText(s)
		}
		return l.wrong("a boolean")
	case '{', '[':
		if err := p.skip(); err != nil {
			return err
		}
		if c == '{' {
			return l.wrong("an object")
		}
		return l.wrong("an array")
	}
	s, err := p.number()
	if err != nil {
		return err
	}
	if l.form == asNumber || l.lax && l.t.Kind == types.Varchar {
		return l.AppendText(s)
	}
	return l.wrong("a number")
}

// isSpecialFloat takes the texts by which floats without JSON form are written.
func isSpecialFloat(t types.Type, s []byte) bool {
	if !t.IsFloat() {
		return false
	}
	switch string(s) {
	case "NaN", "Infinity", "-Infinity":
		return true
	}
	return false
}

func (l *leaf) wrong(is string) error { return fmt.Errorf("it is %s, the column is %s", is, l.t) }

// skipped is a column that nobody reads.
type skipped struct {
	typ arrow.DataType
	n   int
}

func (s *skipped) Len() int                { return s.n }
func (s *skipped) AppendNull()             { s.n++ }
func (s *skipped) AppendText([]byte) error { s.n++; return nil }
func (s *skipped) Truncate(n int)          { s.n = n }

func (s *skipped) read(p *parser) error {
	if err := p.skip(); err != nil {
		return err
	}
	s.n++
	return nil
}

func (s *skipped) Finish() arrow.Array {
	a := kernels.Nulls(s.typ, s.n)
	s.n = 0
	return a
}

// valid gathers the validity of nested columns.
type valid struct{ ok []bool }

func (v *valid) Len() int { return len(v.ok) }

func (v *valid) finish() (bits *memory.Buffer, nulls int) {
	for _, ok := range v.ok {
		if !ok {
			nulls++
		}
	}
	if nulls > 0 {
		b := make([]byte, (len(v.ok)+7)/8)
		for i, ok := range v.ok {
			if ok {
				bitutil.SetBit(b, i)
			}
		}
		bits = memory.NewBufferBytes(b)
	}
	v.ok = v.ok[:0]
	return bits, nulls
}

// list is a LIST column.
type list struct {
	valid
	typ  arrow.DataType
	elem column
	ends []int32
}

func (l *list) AppendNull() {
	l.ok = append(l.ok, false)
	l.ends = append(l.ends, int32(l.elem.Len()))
}

func (l *list) read(p *parser) error {
	switch p.peek() {
	case 'n':
		if _, err := p.literal(); err != nil {
			return err
		}
		l.AppendNull()
		return nil
	case '[':
	default:
		if err := p.skip(); err != nil {
			return err
		}
		return errors.New("it is no array, the column is a LIST")
	}
	before := l.elem.Len()
	if err := p.array(func() error { return l.elem.read(p) }); err != nil {
		l.elem.Truncate(before)
		return err
	}
	l.ok = append(l.ok, true)
	l.ends = append(l.ends, int32(l.elem.Len()))
	return nil
}

func (l *list) Truncate(n int) {
	l.ok, l.ends = l.ok[:n], l.ends[:n]
	l.elem.Truncate(endOf(l.ends))
}

func endOf(ends []int32) int {
	if len(ends) == 0 {
		return 0
	}
	return int(ends[len(ends)-1])
}

func (l *list) Finish() arrow.Array {
	n := len(l.ok)
	offsets := make([]int32, n+1)
	copy(offsets[1:], l.ends)
	bits, nulls := l.finish()
	elem := l.elem.Finish()
	l.ends = l.ends[:0]
	return array.MakeFromData(array.NewData(l.typ, n, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.GetBytes(offsets))}, []arrow.ArrayData{elem.Data()}, nulls, 0))
}

// structs is a STRUCT column.
type structs struct {
	valid
	typ   arrow.DataType
	parts []column
	names map[string]int
}

func (s *structs) AppendNull() {
	s.ok = append(s.ok, false)
	for _, c := range s.parts {
		c.AppendNull()
	}
}

func (s *structs) read(p *parser) error {
	switch p.peek() {
	case 'n':
		if _, err := p.literal(); err != nil {
			return err
		}
		s.AppendNull()
		return nil
	case '{':
	default:
		if err := p.skip(); err != nil {
			return err
		}
		return errors.New("it is no object, the column is a STRUCT")
	}
	row := len(s.ok)
	err := p.object(func(key []byte) error {
		i, ok := s.names[string(key)]
		if !ok {
			return p.skip()
		}
		c := s.parts[i]
		if c.Len() > row {
			c.Truncate(row)
		}
		if err := c.read(p); err != nil {
			return fmt.Errorf("in its part %d: %w", i+1, err)
		}
		return nil
	})
	if err != nil {
		for _, c := range s.parts {
			c.Truncate(min(row, c.Len()))
		}
		return err
	}
	for _, c := range s.parts {
		if c.Len() == row {
			c.AppendNull()
		}
	}
	s.ok = append(s.ok, true)
	return nil
}

func (s *structs) Truncate(n int) {
	s.ok = s.ok[:n]
	for _, c := range s.parts {
		c.Truncate(n)
	}
}

func (s *structs) Finish() arrow.Array {
	n := len(s.ok)
	bits, nulls := s.finish()
	children := make([]arrow.ArrayData, len(s.parts))
	for i, c := range s.parts {
		children[i] = c.Finish().Data()
	}
	return array.MakeFromData(array.NewData(s.typ, n, []*memory.Buffer{bits}, children, nulls, 0))
}

// maps is a MAP column.
type maps struct {
	valid
	typ    *arrow.MapType
	keys   decode.Builder
	values column
	ends   []int32
	seen   map[string]bool
}

func (m *maps) AppendNull() {
	m.ok = append(m.ok, false)
	m.ends = append(m.ends, int32(m.keys.Len()))
}

func (m *maps) read(p *parser) error {
	switch p.peek() {
	case 'n':
		if _, err := p.literal(); err != nil {
			return err
		}
		m.AppendNull()
		return nil
	case '{':
	default:
		if err := p.skip(); err != nil {
			return err
		}
		return errors.New("it is no object, the column is a MAP")
	}
	before := m.keys.Len()
	m.seen = map[string]bool{}
	err := p.object(func(key []byte) error {
		if m.seen[string(key)] {
			return fmt.Errorf("the key %q comes twice", decode.Clip(string(key)))
		}
		m.seen[string(key)] = true
		if err := m.keys.AppendText(key); err != nil {
			return err
		}
		return m.values.read(p)
	})
	if err != nil {
		m.keys.Truncate(before)
		m.values.Truncate(min(before, m.values.Len()))
		return err
	}
	m.ok = append(m.ok, true)
	m.ends = append(m.ends, int32(m.keys.Len()))
	return nil
}

func (m *maps) Truncate(n int) {
	m.ok, m.ends = m.ok[:n], m.ends[:n]
	m.keys.Truncate(endOf(m.ends))
	m.values.Truncate(endOf(m.ends))
}

func (m *maps) Finish() arrow.Array {
	n := len(m.ok)
	offsets := make([]int32, n+1)
	copy(offsets[1:], m.ends)
	bits, nulls := m.finish()
	keys, values := m.keys.Finish(), m.values.Finish()
	m.ends = m.ends[:0]
	entries := array.NewData(m.typ.Elem(), keys.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{keys.Data(), values.Data()}, 0, 0)
	return array.MakeFromData(array.NewData(m.typ, n, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.GetBytes(offsets))}, []arrow.ArrayData{entries}, nulls, 0))
}
