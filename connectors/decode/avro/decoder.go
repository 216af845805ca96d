package avro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// Options say how a message tells by which schema it was written, and what the reader's schema adds. One of ByID and Writer may be
// set; with neither each message is an object container file, which has its schema inside.
type Options struct {
	// Reader has aliases of fields, and defaults for those that a writer's schema lacks; nil: such columns are NULL.
	Reader *Schema
	// Writer is the schema of messages that say nothing of theirs.
	Writer *Schema
	// ByID finds the schema of a message in the wire format of schema registries: a zero byte, a number of four bytes, the value.
	ByID func(id int32) (*Schema, error)
}

// Decoder gathers rows from messages that hold one record each.
type Decoder struct {
	fields  []types.Field
	columns []*column
	opt     Options
	rows    int
	plans   map[string]op // by the schema's text, or its id
	in      input

	unknown, missing int64
}

// New makes a decoder of the fields.
func New(fields []types.Field, opt Options) (*Decoder, error) {
	d := &Decoder{fields: fields, opt: opt, plans: map[string]op{}}
	for _, f := range fields {
		c, err := newColumn(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		d.columns = append(d.columns, c)
	}
	if opt.Writer != nil { // what does not fit is said at once
		if _, err := d.compile(opt.Writer); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// UnknownFields counts fields of messages that are not columns.
func (d *Decoder) UnknownFields() int64 { return d.unknown }

// MissingFields counts columns that a message lacked and that became NULL.
func (d *Decoder) MissingFields() int64 { return d.missing }

// Rows is the number of rows gathered.
func (d *Decoder) Rows() int { return d.rows }

// mostPlans bounds what is kept of writers' schemas.
const mostPlans = 1000

// plan finds how data of a schema is read; key names the schema.
func (d *Decoder) plan(key []byte, schema func() (*Schema, error)) (op, error) {
	if read := d.plans[string(key)]; read != nil {
		return read, nil
	}
	w, err := schema()
	if err != nil {
		return nil, err
	}
	read, err := d.compile(w)
	if err != nil {
		return nil, err
	}
	if len(d.plans) >= mostPlans {
		clear(d.plans)
	}
	d.plans[string(key)] = read
	return read, nil
}

func (d *Decoder) compile(w *Schema) (op, error) {
	if w.kind != kRecord {
		return nil, fmt.Errorf("the message's schema is %s, and rows are read from a record", w.kind)
	}
	p := &planner{skips: map[*Schema]op{}, unknown: func() { d.unknown++ }, missing: func() { d.missing++ }}
	return p.record(w, d.opt.Reader, d.fields, d.columns)
}

// Append decodes one message into the next row.
func (d *Decoder) Append(msg []byte) error {
	read, data, err := d.open(msg)
	if err != nil {
		return err
	}
	d.in = input{data: data}
	if err = read(&d.in); err == nil && d.in.pos < len(data) {
		err = fmt.Errorf("%d bytes follow the record", len(data)-d.in.pos)
	}
	if err != nil {
		d.Truncate(d.rows)
		return err
	}
	d.rows++
	return nil
}

// open finds the record in a message, and how it is read.
func (d *Decoder) open(msg []byte) (op, []byte, error) {
	switch {
	case d.opt.ByID != nil:
		id, err := ID(msg)
		if err != nil {
			return nil, nil, err
		}
		read, err := d.plan(msg[:5], func() (*Schema, error) { return d.opt.ByID(id) })
		return read, msg[5:], err
	case d.opt.Writer != nil && !bytes.HasPrefix(msg, magic):
		read, err := d.plan(nil, func() (*Schema, error) { return d.opt.Writer, nil })
		return read, msg, err
	}
	schema, data, err := container(msg)
	if err != nil {
		return nil, nil, err
	}
	read, err := d.plan(schema, func() (*Schema, error) { return ParseSchema(schema, nil) })
	return read, data, err
}

// ID is the schema's id in a message in the wire format of schema registries.
func ID(msg []byte) (int32, error) {
	if len(msg) < 5 || msg[0] != 0 {
		return 0, errors.New("the message does not begin with a zero byte and the id of a schema, as messages of a schema registry do")
	}
	return int32(binary.BigEndian.Uint32(msg[1:5])), nil
}

// Truncate drops the rows from n on.
func (d *Decoder) Truncate(n int) {
	for _, c := range d.columns {
		c.Truncate(n)
	}
	d.rows = n
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
