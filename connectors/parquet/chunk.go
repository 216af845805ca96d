package parquet

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
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
	pages    file.PageReader
	optional bool

	left int // records left in the page
	defs hybrid
}

func (c *chunk) close() { _ = c.pages.Close() }

// page moves to the next page that has records.
func (c *chunk) page(v values) error {
	for c.left == 0 {
		if !c.pages.Next() {
			if err := c.pages.Err(); err != nil {
				return err
			}
			return fmt.Errorf("a column has fewer values than the row group has rows")
		}
		page := c.pages.Page()
		data := page.Data()
		switch p := page.(type) {
		case *file.DictionaryPage:
			if err := v.dictionary(data, int(p.NumValues())); err != nil {
				return err
			}
			continue
		case *file.DataPageV1:
			if c.optional {
				if p.DefinitionLevelEncoding() != pq.Encodings.RLE {
					return fmt.Errorf("definition levels in encoding %s are not supported", p.DefinitionLevelEncoding())
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
		case *file.DataPageV2:
			rep, def := int(p.RepetitionLevelByteLen()), int(p.DefinitionLevelByteLen())
			if rep < 0 || def < 0 || rep+def > len(data) {
				return errTruncated
			}
			c.defs.reset(data[rep:rep+def], 1)
			data = data[rep+def:]
		default:
			continue
		}
		c.left = int(page.NumValues())
		if c.left < 0 {
			return errTruncated
		}
		if c.left > 0 {
			if err := v.start(pq.Encoding(page.Encoding()), data); err != nil {
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
