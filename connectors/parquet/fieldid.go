package parquet

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/files"
)

// FieldID is the number that the schema of a file gives a column, 0 when none, and those of its parts: the fields of a STRUCT, the
// element of a LIST, key and value of a MAP. Table formats find columns by it whose names have changed.
type FieldID struct {
	ID    int
	Parts []FieldID
}

// FieldIDs are the numbers of the columns of a file that Format opened, in the order of its fields.
func FieldIDs(f files.File) []FieldID {
	p := f.(*parquetFile)
	out := make([]FieldID, len(p.manifest.Fields))
	for i := range out {
		out[i] = fieldID(*p.manifest.Fields[i].Field)
	}
	return out
}

func fieldID(f arrow.Field) (id FieldID) {
	if text, ok := f.Metadata.GetValue("PARQUET:field_id"); ok {
		if n, err := strconv.Atoi(text); err == nil && n > 0 { // -1 is none
			id.ID = n
		}
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		for _, part := range t.Fields() {
			id.Parts = append(id.Parts, fieldID(part))
		}
	case *arrow.MapType:
		id.Parts = []FieldID{fieldID(t.KeyField()), fieldID(t.ItemField())}
	case arrow.ListLikeType:
		id.Parts = []FieldID{fieldID(t.ElemField())}
	}
	return id
}
