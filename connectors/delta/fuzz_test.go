package delta

import (
	"strings"
	"testing"

	"github.com/riverbed/riverbed/connectors/parquet/datafile"
)

// The examples of Delta.s specification.
func TestVectorsOfOthers(t *testing.T) {
	const inline = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
	data, err := z85(inline)
	if err != nil {
		t.Fatal(err)
	}
	b, err := datafile.ParseVector(data[:44], 30)
	if err != nil {
		t.Fatal(err)
	}
	var rows []int64
	for row := range int64(30) {
		if b.Has(row) {
			rows = append(rows, row)
		}
	}
	if len(rows) != 6 || rows[0] != 3 || rows[1] != 4 || rows[2] != 7 || rows[3] != 11 || rows[4] != 18 || rows[5] != 29 {
		t.Fatal(rows)
	}
	if _, err := datafile.ParseVector(data[:44], 29); err == nil || !strings.Contains(err.Error(), "deletes row 29") {
		t.Fatal(err)
	}
	name, err := vectorFile("ab^-aqEH.-t@S}K{vb[*k^")
	if err != nil || name != "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin" {
		t.Fatal(name, err)
	}
}

func FuzzLog(f *testing.F) {
	f.Add(`{"add":{"path":"a%20b","partitionValues":{"p":null,"q":"1"},"size":7,"dataChange":true,"stats":"{\"numRecords\":1,\"minValues\":{\"a\":1}}","deletionVector":{"storageType":"i","pathOrInlineDv":"00000","sizeInBytes":4,"cardinality":1}}}`)
	f.Add(`{"metaData":{"id":"x","schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":{\"type\":\"map\",\"keyType\":\"string\",\"valueType\":\"decimal(3,1)\"},\"metadata\":{}}]}","partitionColumns":["a"],"configuration":{"delta.columnMapping.mode":"id"}}}`)
	f.Add("{\"protocol\":{\"minReaderVersion\":3,\"readerFeatures\":[\"x\"]}}\n{\"commitInfo\":7}\n")
	f.Fuzz(func(t *testing.T, text string) {
		var a actions
		if parseActions(strings.NewReader(text), &a) != nil {
			return
		}
		if a.metadata != nil {
			if columns, err := a.metadata.columns(&protocol{MinReaderVersion: 2}); err == nil {
				for _, file := range a.adds {
					for i := range columns {
						file.stats(&columns[i])
					}
				}
				tableStats(columns, a.adds)
			}
		}
		if a.protocol != nil {
			_ = a.protocol.check("t")
		}
	})
}

func FuzzZ85(f *testing.F) {
	f.Add("ab^-aqEH.-t@S}K{vb[*k^")
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := z85(s); err == nil && len(b) != len(s)/5*4 {
			t.Fatal("a wrong number of bytes")
		}
		if name, err := vectorFile(s); err == nil && strings.Contains(name, "..") && !strings.Contains(s, "..") {
			t.Fatal(name)
		}
	})
}
