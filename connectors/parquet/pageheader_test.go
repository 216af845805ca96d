package parquet

import (
	"testing"

	pq "github.com/apache/arrow-go/v18/parquet"
)

// Fields that nobody needs are passed over, whatever they hold; a header that ends too early is an error and never a panic.
func TestPageHeader(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes []byte
		want  pageHeader
	}{
		{"data", []byte{0x15, 0, 0x15, 200, 1, 0x15, 100, 0x15, 9 /* crc */, 0x1c, 0x15, 20, 0x15, 16, 0x15, 6, 0x15, 6,
			0x1c, 0x18, 2, 'x', 'y', 0x16, 8, 0x00 /* statistics */, 0x00, 0x00},
			pageHeader{kind: dataPage, size: 100, packed: 50, values: 10, encoding: pq.Encodings.RLEDict, levels: pq.Encodings.RLE, compressed: true}},
		{"dictionary", []byte{0x15, 4, 0x15, 16, 0x15, 16, 0x4c, 0x15, 4, 0x15, 4, 0x11, 0x00, 0x00},
			pageHeader{kind: dictionaryPage, size: 8, packed: 8, values: 2, encoding: pq.Encodings.PlainDict, compressed: true}},
		{"version 2", []byte{0x15, 6, 0x15, 16, 0x15, 12, 0x5c, 0x15, 6, 0x15, 2, 0x15, 6, 0x15, 0, 0x15, 4, 0x15, 0, 0x12, 0x00, 0x00},
			pageHeader{kind: dataPage2, size: 8, packed: 6, values: 3, defBytes: 2}},
		{"unknown fields", []byte{0x15, 2, 0x15, 0, 0x15, 0,
			0x67, 1, 2, 3, 4, 5, 6, 7, 8, // field 9: a double
			0x19, 0x31, 1, 1, 2, // a list of three booleans
			0x1b, 1, 0x83, 1, 'k', 7, // a map of a text and a byte
			0x1a, 0x1c, 0x11, 0x00, // a set of one structure with a true
			0x05, 0x54, 0x02, // field 42, by its number: an integer
			0x00}, pageHeader{kind: 1, compressed: true}},
	} {
		var h pageHeader
		n, err := h.read(append(c.bytes, 0xEE))
		if err != nil || n != len(c.bytes) || h != c.want {
			t.Errorf("%s: %+v, %d bytes of %d, %v; want %+v", c.name, h, n, len(c.bytes), err, c.want)
		}
		for cut := range c.bytes {
			if _, err := h.read(c.bytes[:cut]); err == nil {
				t.Errorf("%s: its first %d bytes are taken for a header", c.name, cut)
			}
		}
	}
}

func FuzzPageHeader(f *testing.F) {
	f.Add([]byte{0x15, 0, 0x15, 200, 1, 0x1c, 0x15, 20, 0x00, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h pageHeader
		if n, err := h.read(b); err == nil && (n <= 0 || n > len(b)) {
			t.Fatalf("a header of %d bytes in %d", n, len(b))
		}
	})
}
