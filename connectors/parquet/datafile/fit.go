package datafile

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// A data file holds its columns under the names and in the types that the table had when it was written. A fit brings an array of the
// file into the table's column; nil leaves it as it is.
type fit func(a arrow.Array) arrow.Array

func apply(f fit, a arrow.Array) arrow.Array {
	if f == nil {
		return a
	}
	return f(a)
}

// numbered reports whether a file numbers any of these columns or their parts.
func numbered(ids []parquet.FieldID) bool {
	return slices.ContainsFunc(ids, func(f parquet.FieldID) bool { return f.ID > 0 || numbered(f.Parts) })
}

// find gives the place of a column among the fields of a file or of a struct in it; -1 when it is not there.
func (c *Column) find(have []types.Field, ids []parquet.FieldID) int {
	if c.ID > 0 {
		if at := slices.IndexFunc(ids, func(f parquet.FieldID) bool { return f.ID == c.ID }); at >= 0 {
			return at
		}
		if slices.ContainsFunc(ids, func(f parquet.FieldID) bool { return f.ID > 0 }) {
			return -1 // the file numbers its columns, and this one came later
		}
	}
	return slices.IndexFunc(have, func(f types.Field) bool { return slices.Contains(c.Names, f.Name) })
}

// fit makes the fit of a column, or of a part of one, that a file holds as the type have.
func (c *Column) fit(have types.Type, id parquet.FieldID) (fit, error) {
	if have.Kind != c.Type.Kind || !c.Type.IsNested() {
		return c.fitScalar(have)
	}
	if c.Type.Kind == types.Struct {
		return c.fitStruct(have, id)
	}
	parts := []types.Type{*have.Elem}
	if c.Type.Kind == types.Map {
		parts = []types.Type{*have.Key, *have.Elem}
	}
	fits, plain := make([]fit, len(parts)), true
	for i, p := range parts {
		var err error
		if fits[i], err = c.Parts[i].fit(p, partOf(id, i)); err != nil {
			return nil, c.otherwise(have) // elements have no names
		}
		plain = plain && fits[i] == nil
	}
	if plain {
		return nil, nil
	}
	form := c.Type.Arrow()
	return func(a arrow.Array) arrow.Array {
		d := a.Data()
		child := d.Children()[0]
		if m, ok := form.(*arrow.MapType); ok {
			entries := array.MakeFromData(child).(*array.Struct)
			child = structOf(entries, m.Elem(), []arrow.Array{apply(fits[0], entries.Field(0)), apply(fits[1], entries.Field(1))})
		} else {
			child = fits[0](array.MakeFromData(child)).Data()
		}
		return array.MakeFromData(array.NewData(form, d.Len(), d.Buffers(), []arrow.ArrayData{child}, d.NullN(), d.Offset()))
	}, nil
}

func partOf(id parquet.FieldID, i int) parquet.FieldID {
	if i < len(id.Parts) {
		return id.Parts[i]
	}
	return parquet.FieldID{}
}

// fitScalar takes a column without parts.
func (c *Column) fitScalar(have types.Type) (fit, error) {
	want := c.Type
	switch {
	case have.Equal(want):
		return nil, nil
	case c.UTC && have.Kind == types.Timestamp && want.Kind == types.TimestampTZ,
		have.Kind == types.Varchar && want.Kind == types.JSON, have.Kind == types.JSON && want.Kind == types.Varchar:
		return func(a arrow.Array) arrow.Array {
			d := a.Data()
			return array.MakeFromData(array.NewData(want.Arrow(), d.Len(), d.Buffers(), nil, d.NullN(), d.Offset()))
		}, nil
	case have.Kind == types.Blob && want.Kind == types.UUID:
		return func(a arrow.Array) arrow.Array { return uuids(a.(*array.Binary)) }, nil
	case !want.IsNested() && files.Widens(have, want):
		return func(a arrow.Array) arrow.Array { return files.Widen(a, have, want) }, nil
	}
	return nil, c.otherwise(have)
}

// uuids takes UUIDs that a file holds as bytes without saying what they are. Other lengths are NULL.
func uuids(a *array.Binary) arrow.Array {
	b := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, types.UUIDType.Arrow().(*arrow.FixedSizeBinaryType))
	defer b.Release()
	for i := range a.Len() {
		if a.IsNull(i) || a.ValueLen(i) != 16 {
			b.AppendNull()
			continue
		}
		b.Append(a.Value(i))
	}
	return b.NewArray()
}

func (c *Column) otherwise(have types.Type) error {
	return fmt.Errorf("column %q is %s in the file and %s in the table", c.Name, have, c.Type)
}

// fitStruct finds the fields of a struct, whose order in the file may be another, and gives their default for those that came later.
func (c *Column) fitStruct(have types.Type, id parquet.FieldID) (fit, error) {
	from, fits := make([]int, len(c.Parts)), make([]fit, len(c.Parts))
	plain := len(have.Fields) == len(c.Parts)
	for i := range c.Parts {
		p := &c.Parts[i]
		if from[i] = p.find(have.Fields, id.Parts); from[i] < 0 {
			plain = false
			continue
		}
		var err error
		if fits[i], err = p.fit(have.Fields[from[i]].Type, partOf(id, from[i])); err != nil {
			return nil, err
		}
		plain = plain && from[i] == i && fits[i] == nil && p.Name == have.Fields[i].Name
	}
	if plain {
		return nil, nil
	}
	form := c.Type.Arrow()
	return func(a arrow.Array) arrow.Array {
		s := a.(*array.Struct)
		children := make([]arrow.Array, len(from))
		for i, at := range from {
			switch p := &c.Parts[i]; {
			case at >= 0:
				children[i] = apply(fits[i], s.Field(at))
			case p.Default != nil:
				children[i] = kernels.Take(types.ArrayOf([]types.Value{p.Default}, p.Type), make([]int32, s.Len()))
			default:
				children[i] = kernels.Nulls(p.Type.Arrow(), s.Len())
			}
		}
		return array.MakeFromData(structOf(s, form, children))
	}, nil
}

// structOf is a struct with the NULLs of s and other children, which begin where its rows do.
func structOf(s *array.Struct, form arrow.DataType, children []arrow.Array) arrow.ArrayData {
	data := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		data[i] = c.Data()
	}
	validity := s.Data().Buffers()[0]
	if s.Data().Offset() != 0 && s.NullN() > 0 {
		bits := make([]byte, (s.Len()+7)/8)
		for i := range s.Len() {
			if s.IsValid(i) {
				bits[i/8] |= 1 << (i % 8)
			}
		}
		validity = memory.NewBufferBytes(bits)
	}
	if s.NullN() == 0 {
		validity = nil
	}
	return array.NewData(form, s.Len(), []*memory.Buffer{validity}, data, s.NullN(), 0)
}
