package csv

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/decode"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/types"
)

// Encoder writes rows of one batch as records. NULL is nothing; an empty text is "", so that people can tell them
// apart; columns with parts are JSON.
type Encoder struct {
	d     Dialect
	cols  []arrow.Array
	write []decode.TextWriter
	buf   []byte
}

// NewEncoder makes an encoder of the columns.
func NewEncoder(d Dialect, fields []types.Field, cols []arrow.Array) (*Encoder, error) {
	e := &Encoder{d: d, cols: cols}
	for i, f := range fields {
		w, err := decode.Text(f.Type, cols[i])
		if f.Type.IsNested() {
			w, err = djson.Value(f.Type, cols[i])
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		e.write = append(e.write, w)
	}
	return e, nil
}

// Append appends the record of a row, with a newline.
func (e *Encoder) Append(dst []byte, row int) []byte {
	for i, w := range e.write {
		if i > 0 {
			dst = append(dst, e.d.Delim)
		}
		if e.cols[i].IsValid(row) {
			e.buf = w(e.buf[:0], row)
			dst = e.d.appendValue(dst, e.buf)
		}
	}
	return append(dst, '\n')
}

// Header is the record of the column names.
func (d Dialect) Header(fields []types.Field) []byte {
	var dst []byte
	for i, f := range fields {
		if i > 0 {
			dst = append(dst, d.Delim)
		}
		dst = d.appendValue(dst, []byte(f.Name))
	}
	return append(dst, '\n')
}

func (d Dialect) appendValue(dst, text []byte) []byte {
	if len(text) > 0 && bytes.IndexByte(text, d.Delim) < 0 && !bytes.ContainsAny(text, "\"\r\n") && bytes.IndexByte(text, d.Quote) < 0 {
		return append(dst, text...)
	}
	dst = append(dst, d.Quote)
	for _, c := range text {
		if c == d.Quote || c == d.Escape {
			dst = append(dst, d.Escape)
		}
		dst = append(dst, c)
	}
	return append(dst, d.Quote)
}
