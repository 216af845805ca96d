package flow

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// lentBytes lends one buffer.
type lentBytes struct{ first *byte }

func (lentBytes) Retain()               {}
func (lentBytes) Release()              {}
func (l lentBytes) Holds(b []byte) bool { return &b[0] == l.first }

func TestLiesIn(t *testing.T) {
	ints := array.NewInt32Builder(memory.DefaultAllocator)
	ints.AppendValues([]int32{0, 1}, nil)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	texts.AppendValues([]string{"a", "b"}, nil)
	indices, words := ints.NewArray(), texts.NewArray()
	dict := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, indices, words)
	row, err := array.NewStructArray([]arrow.Array{dict}, []string{"d"})
	if err != nil {
		t.Fatal(err)
	}
	first := func(a arrow.Array, buffer int) lentBytes { return lentBytes{&a.Data().Buffers()[buffer].Bytes()[0]} }
	other := []byte{0}
	for name, c := range map[string]struct {
		column arrow.Array
		lent   lentBytes
		want   bool
	}{
		"values":                   {words, first(words, 2), true},
		"other memory":             {words, lentBytes{&other[0]}, false},
		"indices":                  {dict, first(indices, 1), true},
		"dictionary":               {dict, first(words, 2), true},
		"dictionary in a struct":   {row, first(words, 1), true},
		"dictionary, other memory": {row, lentBytes{&other[0]}, false},
	} {
		b := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.column.DataType()}}, nil), []arrow.Array{c.column}, 2)
		if got := LiesIn(b, c.lent); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if LiesIn(nil, lentBytes{}) {
		t.Error("no batch lies anywhere")
	}
}
