// Package json turns JSON objects into Arrow columns, finds the columns of JSON texts, and writes rows as JSON.
//
// Invariant: a message either gives exactly one row or an error and no row; memory of a message is not kept.
package json

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/types"
)

// Decoder gathers rows from JSON objects.
type Decoder struct {
	fields  []types.Field
	schema  *arrow.Schema
	columns []column
	index   map[string]int
	rows    int
	next    int // the field that probably comes next: messages of a stream repeat their order
	high    int // no field from it on was read in this message
	read    int // how many of the fields below it were
	p       parser
	member  func(key []byte) error
	notNull bool

	// UnknownFields counts fields of messages that are not columns; MissingFields counts columns that a message lacked.
	UnknownFields, MissingFields int64
}

// Options of a decoder.
type Options struct {
	// Skip names columns that are not decoded; they are NULL. The engine does not read them.
	Skip func(column int) bool
	// Lax takes numbers and booleans as text where a VARCHAR is asked for, and quoted numbers as numbers.
	Lax bool
	// NotNull refuses a message in which a column is NULL or missing.
	NotNull bool
}

// New makes a decoder of the fields.
func New(fields []types.Field, opt Options) (*Decoder, error) {
	d := &Decoder{fields: fields, schema: types.ArrowSchema(fields), index: map[string]int{}, columns: make([]column, len(fields)), notNull: opt.NotNull}
	for i, f := range fields {
		d.index[f.Name] = i
		if opt.Skip != nil && opt.Skip(i) {
			d.columns[i] = &skipped{typ: f.Type.Arrow()}
			continue
		}
		c, err := newColumn(f.Type, opt.Lax)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		d.columns[i] = c
	}
	d.member = d.field
	return d, nil
}

// Rows is the number of rows gathered.
func (d *Decoder) Rows() int { return d.rows }

// FieldError says which field of a message is not what its column asks for.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return fmt.Sprintf("field %q: %v", e.Field, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

var (
	errNotObject = errors.New("the message is not a JSON object")
	errNull      = errors.New("it is NULL")
	errMissing   = errors.New("it is missing")
)

// Append decodes one JSON object into the next row.
func (d *Decoder) Append(msg []byte) error {
	p := &d.p
	p.data, p.pos, p.depth = msg, 0, 0
	d.next, d.high, d.read = 0, 0, 0
	if c := p.peek(); c != '{' {
		if c == 0 {
			return errEnd
		}
		if p.skip() == nil && p.end() == nil {
			return errNotObject
		}
		p.pos = 0
		p.peek()
		return p.fail("an object")
	}
	err := p.object(d.member)
	if err == nil {
		err = p.end()
	}
	if err != nil {
		d.undo()
		return err
	}
	if d.read < len(d.columns) {
		if err := d.addMissing(); err != nil {
			return err
		}
	}
	d.rows++
	return nil
}

// addMissing adds NULLs for the columns that the message has no fields of.
func (d *Decoder) addMissing() error {
	for i, c := range d.columns {
		if c.Len() > d.rows {
			continue
		}
		if d.notNull {
			d.undo()
			return &FieldError{d.fields[i].Name, errMissing}
		}
		c.AppendNull()
		if _, unread := c.(*skipped); !unread {
			d.MissingFields++
		}
	}
	return nil
}

// field reads one member of the message.
func (d *Decoder) field(key []byte) error {
	i := d.next
	if i >= len(d.fields) || d.fields[i].Name != string(key) {
		var ok bool
		if i, ok = d.index[string(key)]; !ok {
			d.UnknownFields++
			return d.p.skip()
		}
	}
	d.next = i + 1
	c := d.columns[i]
	if d.notNull && d.p.peek() == 'n' {
		return &FieldError{d.fields[i].Name, errNull}
	}
	if i >= d.high {
		d.high = i + 1
		d.read++
	} else if c.Len() > d.rows {
		c.Truncate(d.rows) // the last of duplicate keys wins
	} else {
		d.read++
	}
	if err := c.read(&d.p); err != nil {
		return &FieldError{d.fields[i].Name, err}
	}
	return nil
}

// Truncate drops the rows from n on.
func (d *Decoder) Truncate(n int) {
	for _, c := range d.columns {
		c.Truncate(n)
	}
	d.rows = n
}

// undo drops what a failed message has left.
func (d *Decoder) undo() {
	for _, c := range d.columns {
		if c.Len() > d.rows {
			c.Truncate(d.rows)
		}
	}
}

// AppendNulls adds a row of NULLs.
func (d *Decoder) AppendNulls() {
	for _, c := range d.columns {
		c.AppendNull()
	}
	d.rows++
}

// Finish returns the columns gathered and starts again.
func (d *Decoder) Finish() []arrow.Array {
	out := make([]arrow.Array, len(d.columns))
	for i, c := range d.columns {
		out[i] = c.Finish()
	}
	d.rows = 0
	return out
}

// Batch is Finish as a record batch.
func (d *Decoder) Batch() arrow.RecordBatch {
	n := d.rows
	return array.NewRecordBatch(d.schema, d.Finish(), int64(n))
}
