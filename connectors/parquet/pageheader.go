package parquet

import (
	"encoding/binary"

	pq "github.com/apache/arrow-go/v18/parquet"
)

// Kinds of pages; others are passed over.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPage2      = 3
)

// pageHeader is what we need of a page's header, a structure of Thrift's compact protocol.
type pageHeader struct {
	kind         int
	size, packed int // bytes of the page, uncompressed and as stored
	values       int
	encoding     pq.Encoding
	levels       pq.Encoding // of definition levels

	defBytes, repBytes int  // version 2
	compressed         bool // version 2: the values are
}

// Types of Thrift's compact protocol.
const (
	compactTrue   = 1
	compactFalse  = 2
	compactByte   = 3
	compactI64    = 6
	compactDouble = 7
	compactBinary = 8
	compactList   = 9
	compactSet    = 10
	compactMap    = 11
	compactStruct = 12
)

// read reads a header and returns its bytes.
func (h *pageHeader) read(b []byte) (int, error) {
	*h = pageHeader{compressed: true}
	c := compact{b: b}
	c.structure(func(id, typ int) {
		switch {
		case id == 1:
			h.kind = c.number()
		case id == 2:
			h.size = c.number()
		case id == 3:
			h.packed = c.number()
		case typ == compactStruct && (id == 5 || id == 7):
			c.structure(func(id, typ int) {
				switch id {
				case 1:
					h.values = c.number()
				case 2:
					h.encoding = pq.Encoding(c.number())
				case 3:
					if typ == compactTrue || typ == compactFalse {
						c.skip(typ, 2) // a dictionary says whether it is sorted
					} else {
						h.levels = pq.Encoding(c.number())
					}
				default:
					c.skip(typ, 2)
				}
			})
		case typ == compactStruct && id == 8:
			c.structure(func(id, typ int) {
				switch id {
				case 1:
					h.values = c.number()
				case 4:
					h.encoding = pq.Encoding(c.number())
				case 5:
					h.defBytes = c.number()
				case 6:
					h.repBytes = c.number()
				case 7:
					h.compressed = typ == compactTrue
				default:
					c.skip(typ, 2)
				}
			})
		default:
			c.skip(typ, 1)
		}
	})
	if c.short {
		return 0, errTruncated
	}
	return c.at, nil
}

// compact reads Thrift's compact protocol; short is set for good when the bytes end too early or make no sense.
type compact struct {
	b     []byte
	at    int
	short bool
}

func (c *compact) fail() int {
	c.short = true
	return 0
}

func (c *compact) byte() byte {
	if c.short || c.at >= len(c.b) {
		return byte(c.fail())
	}
	c.at++
	return c.b[c.at-1]
}

func (c *compact) uvarint() uint64 {
	if c.short {
		return 0
	}
	v, n := binary.Uvarint(c.b[c.at:])
	if n <= 0 {
		return uint64(c.fail())
	}
	c.at += n
	return v
}

// number reads an integer of 32 bits.
func (c *compact) number() int {
	v := c.uvarint()
	return int(int32(v>>1) ^ -int32(v&1))
}

// structure calls field for each field, which reads or skips its value.
func (c *compact) structure(field func(id, typ int)) {
	for id := 0; !c.short; {
		x := c.byte()
		if x == 0 {
			return
		}
		if delta := int(x >> 4); delta != 0 {
			id += delta
		} else {
			id = c.number()
		}
		field(id, int(x&15))
	}
}

func (c *compact) pass(n uint64) {
	if c.short || n > uint64(len(c.b)-c.at) {
		c.fail()
		return
	}
	c.at += int(n)
}

// skip passes over a value.
func (c *compact) skip(typ, depth int) {
	if depth > 16 {
		c.fail()
		return
	}
	switch {
	case typ == compactTrue || typ == compactFalse:
	case typ == compactByte:
		c.pass(1)
	case typ > compactByte && typ <= compactI64:
		c.uvarint()
	case typ == compactDouble:
		c.pass(8)
	case typ == compactBinary:
		c.pass(c.uvarint())
	case typ == compactList || typ == compactSet:
		x := c.byte()
		n := uint64(x >> 4)
		if n == 15 {
			n = c.uvarint()
		}
		c.elements(n, depth, int(x&15))
	case typ == compactMap:
		if n := c.uvarint(); n > 0 {
			x := c.byte()
			c.elements(n, depth, int(x>>4), int(x&15))
		}
	case typ == compactStruct:
		c.structure(func(_, typ int) { c.skip(typ, depth+1) })
	default:
		c.fail()
	}
}

// elements passes over n elements of a container; each takes a byte at least, booleans too.
func (c *compact) elements(n uint64, depth int, types ...int) {
	for ; n > 0 && !c.short; n-- {
		for _, t := range types {
			if t == compactTrue || t == compactFalse {
				t = compactByte
			}
			c.skip(t, depth+1)
		}
	}
}
