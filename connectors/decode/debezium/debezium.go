// Package debezium turns change events, as Debezium writes them in JSON, into rows with weights.
//
// Invariant: an event gives all its rows or none: +1 for what came, −1 for what went, both for an update.
package debezium

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Change is one event. Before and After are JSON objects, nil when the event has none.
type Change struct {
	Op            string // c created, r read by a snapshot, u updated, d deleted, t truncated, m message
	Before, After []byte
}

// Parse reads an event, with or without the envelope of its schema. It keeps parts of msg.
func Parse(msg []byte) (Change, error) {
	var c Change
	var payload []byte
	err := djson.Members(msg, func(key, value []byte) error {
		switch string(key) {
		case "payload":
			payload = value
		case "op":
			if len(value) != 3 || value[0] != '"' {
				return fmt.Errorf("op is %.20s, which is no operation of Debezium", value)
			}
			c.Op = string(value[1:2])
		case "before":
			c.Before = object(value)
		case "after":
			c.After = object(value)
		}
		return nil
	})
	if err == nil && c.Op == "" && object(payload) != nil {
		return Parse(payload)
	}
	if err == nil && c.Op == "" {
		err = errors.New("the message has no op, so it is no change event of Debezium")
	}
	return c, err
}

func object(value []byte) []byte {
	if len(value) == 0 || value[0] != '{' {
		return nil
	}
	return value
}

// Decoder gathers the rows of change events.
type Decoder struct {
	rows    *djson.Decoder
	key     []string // of a stream by key; empty: before and after are whole rows
	byKey   bool
	weights []int64
}

// New makes a decoder of the fields. key are the columns by which the stream is known, where it is: then what comes after is the new row
// of its key, and of what was before the key alone is needed.
func New(fields []types.Field, key []string) (*Decoder, error) {
	rows, err := djson.New(fields, djson.Options{})
	return &Decoder{rows: rows, key: key, byKey: len(key) > 0}, err
}

// Append adds the rows of an event: none, one or two.
func (d *Decoder) Append(msg []byte) error {
	c, err := Parse(msg)
	if err != nil {
		return err
	}
	was := d.rows.Rows()
	if err := d.add(c); err != nil {
		d.Truncate(was)
		return err
	}
	return nil
}

func (d *Decoder) add(c Change) error {
	switch c.Op {
	case "c", "r":
		return d.row(c.After, 1, "after")
	case "u":
		if d.byKey {
			return d.row(c.After, 1, "after")
		}
		if err := d.row(c.Before, -1, "before"); err != nil {
			return err
		}
		return d.row(c.After, 1, "after")
	case "d":
		return d.row(c.Before, -1, "before")
	case "m":
		return nil
	case "t":
		return errs.New(errs.Source, "read", "the table of the change events was truncated, and which rows went is not said").
			WithHint("begin anew; and let the connector leave out truncations (skipped.operations = t) where they can be")
	}
	return fmt.Errorf("op is %q, which is no operation of Debezium", c.Op)
}

func (d *Decoder) row(object []byte, weight int64, part string) error {
	if object == nil {
		if part == "before" && !d.byKey {
			return errors.New("the event lacks the row before it; let the database write it (REPLICA IDENTITY FULL), or read by key (upsert = true with a PRIMARY KEY)")
		}
		return fmt.Errorf("the event lacks the row %s it", part)
	}
	if d.byKey {
		if err := d.hasKey(object); err != nil {
			return err
		}
	}
	if err := d.rows.Append(object); err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	d.weights = append(d.weights, weight)
	return nil
}

// hasKey sees that an object says of whose row it is.
func (d *Decoder) hasKey(object []byte) error {
	found := 0
	err := djson.Members(object, func(key, value []byte) error {
		if slices.Contains(d.key, string(key)) && string(value) != "null" {
			found++
		}
		return nil
	})
	if err == nil && found < len(d.key) {
		err = errors.New("the event has NULL in its key, or lacks it, so it is about nobody's row")
	}
	return err
}

// AppendNulls is not called: a message without a value follows a deletion, and says nothing new.
func (d *Decoder) AppendNulls() {
	d.rows.AppendNulls()
	d.weights = append(d.weights, 1)
}

// Rows is the number of rows gathered.
func (d *Decoder) Rows() int { return d.rows.Rows() }

// Truncate drops the rows from n on.
func (d *Decoder) Truncate(n int) {
	d.rows.Truncate(n)
	d.weights = d.weights[:n]
}

// Weights are those of the rows that Finish returns next.
func (d *Decoder) Weights() []int64 { return d.weights }

// Finish returns the columns gathered and starts again.
func (d *Decoder) Finish() []arrow.Array {
	d.weights = nil
	return d.rows.Finish()
}

// UnknownFields counts fields of rows that are not columns.
func (d *Decoder) UnknownFields() int64 { return d.rows.UnknownFields }

// MissingFields counts columns that rows lacked.
func (d *Decoder) MissingFields() int64 { return d.rows.MissingFields }
