package json

import (
	"bytes"
	"strconv"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/types"
)

// Inferrer finds the columns of JSON objects: BIGINT (or HUGEINT), DOUBLE, BOOLEAN, VARCHAR, DATE, TIME, TIMESTAMP,
// UUID, STRUCT and LIST; JSON where values of different forms meet, or where only NULL was seen.
type Inferrer struct {
	// UTCAsTimestamp: timestamps that are all in UTC become TIMESTAMP instead of TIMESTAMPTZ. Streams do so.
	UTCAsTimestamp bool

	root shape
	p    parser
}

// shape is what was seen at one place of the records.
type shape struct {
	kinds  uint8
	texts  decode.Shapes
	fields []member
	elem   *shape
}

type member struct {
	name  string
	shape *shape
}

const (
	sawBool uint8 = 1 << iota
	sawInt
	sawHuge
	sawFloat
	sawString
	sawObject
	sawArray
)

// See takes one record into account.
func (in *Inferrer) See(record []byte) error {
	in.p.data, in.p.pos, in.p.depth = record, 0, 0
	if in.p.peek() != '{' {
		return errNotObject
	}
	if err := in.see(&in.root); err != nil {
		return err
	}
	return in.p.end()
}

func (in *Inferrer) see(s *shape) error {
	p := &in.p
	switch p.peek() {
	case '{':
		s.kinds |= sawObject
		return p.object(func(key []byte) error { return in.see(s.field(string(key))) })
	case '[':
		s.kinds |= sawArray
		if s.elem == nil {
			s.elem = &shape{}
		}
		return p.array(func() error { return in.see(s.elem) })
	case '"':
		text, err := p.str()
		if err == nil {
			s.kinds |= sawString
			s.texts.See(text)
		}
		return err
	case 'n', 't', 'f':
		lit, err := p.literal()
		if err == nil && lit[0] != 'n' {
			s.kinds |= sawBool
		}
		return err
	}
	text, err := p.number()
	if err != nil {
		return err
	}
	switch {
	case bytes.ContainsAny(text, ".eENI"):
		s.kinds |= sawFloat
	default:
		if _, err := strconv.ParseInt(string(text), 10, 64); err != nil {
			s.kinds |= sawHuge
		} else {
			s.kinds |= sawInt
		}
	}
	return nil
}

func (s *shape) field(name string) *shape {
	for i := range s.fields {
		if s.fields[i].name == name {
			return s.fields[i].shape
		}
	}
	f := &shape{}
	s.fields = append(s.fields, member{name, f})
	return f
}

// Fields are the columns of the records seen.
func (in *Inferrer) Fields() []types.Field { return in.members(&in.root) }

func (in *Inferrer) members(s *shape) []types.Field {
	out := make([]types.Field, len(s.fields))
	for i, f := range s.fields {
		out[i] = types.Field{Name: f.name, Type: in.typeOf(f.shape)}
	}
	return out
}

func (in *Inferrer) typeOf(s *shape) types.Type {
	switch s.kinds {
	case sawBool:
		return types.Bool
	case sawInt:
		return types.Int64
	case sawHuge, sawInt | sawHuge:
		return types.Int128
	case sawFloat, sawFloat | sawInt, sawFloat | sawHuge, sawFloat | sawInt | sawHuge:
		return types.Float64
	case sawString:
		t := s.texts.Type(isTextual)
		if t.Kind == types.TimestampTZ && in.UTCAsTimestamp && s.texts.OnlyUTC() {
			return types.TsUS
		}
		return t
	case sawObject:
		if len(s.fields) > 0 {
			return types.StructOf(in.members(s)...)
		}
	case sawArray:
		return types.ListOf(in.typeOf(s.elem))
	}
	return types.JSONType
}

// isTextual: a JSON string is never guessed to be a number or a boolean.
func isTextual(k types.Kind) bool {
	return k == types.Date || k == types.Time || k == types.UUID || k == types.Timestamp || k == types.TimestampTZ
}
