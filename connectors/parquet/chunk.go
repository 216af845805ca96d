package parquet

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	pq "github.com/apache/arrow-go/v18/parquet"
)

// column reads one column of one row group, batch after batch.
type column interface {
	// next reads the next rows rows.
	next(rows int) (arrow.Array, error)
	// pick reads the next rows rows and returns those of sel, which rises.
	pick(rows int, sel []int32, take takeFunc) (arrow.Array, error)
	close()
}

// lender is a column whose batches, when only filters see them, are given back to the reader.
type lender interface{ lend() }

// values decodes the values of the current page, without NULLs. decode is told where they go by its owner.
type values interface {
	dictionary(data []byte, n int) error
	// start begins the values of a page.
	start(enc pq.Encoding, data []byte) error
}

// chunk walks the pages of a flat column of one row group and hands their values to its owner.
type chunk struct {
	pages    *pageReader
	optional bool
	room     func(bytes int) []byte // nil: make

	left int // records left in the page
	defs hybrid
}

func (c *chunk) close() { c.pages.close() }

// page moves to the next page that has records.
func (c *chunk) page(v values) error {
	for c.left == 0 {
		p, err := c.pages.next()
		if err != nil {
			return err
		}
		data, h := p.data, &p.header
		switch h.kind {
		case dictionaryPage:
			if err := v.dictionary(data, h.values); err != nil {
				return err
			}
			continue
		case dataPage:
			if c.optional {
				if h.levels != pq.Encodings.RLE {
					return fmt.Errorf("definition levels in encoding %s are not supported", h.levels)
				}
				if len(data) < 4 {
					return errTruncated
				}
				n := int(binary.LittleEndian.Uint32(data))
				if n < 0 || n > len(data)-4 {
					return errTruncated
				}
				c.defs.reset(data[4:4+n], 1)
				data = data[4+n:]
			}
		case dataPage2:
			rep, def := h.repBytes, h.defBytes
			if rep+def > len(data) {
				return errTruncated
			}
			c.defs.reset(data[rep:rep+def], 1)
			data = data[rep+def:]
		default:
			continue
		}
		c.left = h.values
		if c.left < 0 {
			return errTruncated
		}
		if c.left > 0 {
			if err := v.start(h.encoding, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fills the rows from row from to rows: for each stretch that lies in one page it calls decode with the stretch's first row, its
// rows and the number of those that are not NULL.
func (c *chunk) read(v values, valid *validity, from, rows int, decode func(at, n, valid int) error) error {
	for at := from; at < rows; {
		if err := c.page(v); err != nil {
			return err
		}
		n := min(c.left, rows-at)
		some := n
		if c.optional {
			var err error
			if some, err = valid.levels(&c.defs, at, n); err != nil {
				return err
			}
		}
		if err := decode(at, n, some); err != nil {
			return err
		}
		c.left -= n
		at += n
	}
	return nil
}
