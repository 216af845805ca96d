package csv

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/types"
)

// What the encoder writes the reader reads, wherever the underlying reads are cut.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", ",", ";", "\"", "\n", "\r", "'", "é", "\\", " "}
	for _, d := range []Dialect{Default, {';', '\'', '\\'}, {'\t', '"', '\\'}} {
		fields := []types.Field{{Name: "a", Type: types.String}, {Name: "b,\"", Type: types.String}}
		b := []*array.StringBuilder{array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)}
		for range 500 {
			for _, col := range b {
				s := ""
				for range r.IntN(6) {
					s += alphabet[r.IntN(len(alphabet))]
				}
				col.Append(s)
			}
		}
		cols := []arrow.Array{b[0].NewArray(), b[1].NewArray()}
		enc, err := NewEncoder(d, fields, cols)
		if err != nil {
			t.Fatal(err)
		}
		text := d.Header(fields)
		for row := range 500 {
			text = enc.Append(text, row)
		}
		for _, src := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text))} {
			rd := NewReader(src, d)
			head, err := rd.Next()
			if err != nil || string(head[1].Text) != "b,\"" {
				t.Fatalf("%+v: header %v, %v", d, head, err)
			}
			for row := range 500 {
				rec, err := rd.Next()
				if err != nil || len(rec) != 2 {
					t.Fatalf("%+v, row %d: %v, %v", d, row, rec, err)
				}
				for i := range rec {
					if want := cols[i].(*array.String).Value(row); string(rec[i].Text) != want {
						t.Fatalf("%+v, row %d: %q, want %q", d, row, rec[i].Text, want)
					}
				}
			}
			if _, err := rd.Next(); err != io.EOF {
				t.Errorf("after the last record: %v", err)
			}
		}
	}
}
