package csv

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/types"
)

// Decoder gathers rows from records.
type Decoder struct {
	fields   []types.Field
	columns  []int // of the record, by field
	width    int
	nullText string
	schema   *arrow.Schema
	builders []decode.Builder
	rows     int
}

// NewDecoder makes a decoder: field i is value columns[i] of a record of width values.
func NewDecoder(fields []types.Field, columns []int, width int, nullText string) (*Decoder, error) {
	d := &Decoder{fields: fields, columns: columns, width: width, nullText: nullText, schema: types.ArrowSchema(fields)}
	for _, f := range fields {
		b, err := decode.NewBuilder(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		d.builders = append(d.builders, b)
	}
	return d, nil
}

// Rows is the number of rows gathered.
func (d *Decoder) Rows() int { return d.rows }

// WidthError is a record of more or fewer values than the file has columns.
type WidthError struct{ Values, Columns int }

func (e *WidthError) Error() string {
	return fmt.Sprintf("it has %d values where the file has %d columns", e.Values, e.Columns)
}

// Append adds one record. Empty values are NULL, quoted or not, as in DuckDB.
func (d *Decoder) Append(rec []Field) error {
	if len(rec) != d.width {
		return &WidthError{len(rec), d.width}
	}
	for i, b := range d.builders {
		f := rec[d.columns[i]]
		if len(f.Text) == 0 || d.nullText != "" && string(f.Text) == d.nullText {
			b.AppendNull()
			continue
		}
		err := b.AppendText(f.Text)
		if err == nil && d.fields[i].Type.Kind == types.Varchar && !utf8.Valid(f.Text) {
			b.Truncate(d.rows)
			err = fmt.Errorf("%q is not UTF-8", decode.Clip(string(f.Text)))
		}
		if err != nil {
			for _, done := range d.builders[:i] {
				done.Truncate(d.rows)
			}
			return fmt.Errorf("column %q: %w", d.fields[i].Name, err)
		}
	}
	d.rows++
	return nil
}

// AppendNulls adds a row of NULLs.
func (d *Decoder) AppendNulls() {
	for _, b := range d.builders {
		b.AppendNull()
	}
	d.rows++
}

// Finish returns the columns gathered and starts again.
func (d *Decoder) Finish() []arrow.Array {
	cols := make([]arrow.Array, len(d.builders))
	for i, b := range d.builders {
		cols[i] = b.Finish()
	}
	d.rows = 0
	return cols
}

// Batch is Finish as a record batch.
func (d *Decoder) Batch() arrow.RecordBatch {
	n := d.rows
	return array.NewRecordBatch(d.schema, d.Finish(), int64(n))
}

// Messages takes messages that are one record each, in the order of the fields.
type Messages struct {
	*Decoder
	dialect Dialect
}

// NewMessages makes a decoder of messages.
func NewMessages(fields []types.Field, d Dialect) (*Messages, error) {
	columns := make([]int, len(fields))
	for i := range columns {
		columns[i] = i
	}
	dec, err := NewDecoder(fields, columns, len(fields), "")
	return &Messages{dec, d}, err
}

// Append decodes one message.
func (m *Messages) Append(msg []byte) error {
	r := Reader{d: m.dialect, buf: msg, eof: true, line: 1}
	rec, err := r.Next()
	if err == io.EOF {
		return errors.New("the message is empty")
	}
	if err != nil {
		return err
	}
	if err := m.Decoder.Append(rec); err != nil {
		return err
	}
	if r.pos < len(msg) {
		m.truncate()
		return errors.New("the message holds more than one record")
	}
	return nil
}

// truncate drops the last row.
func (d *Decoder) truncate() {
	d.rows--
	for _, b := range d.builders {
		b.Truncate(d.rows)
	}
}
