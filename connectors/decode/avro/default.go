package avro

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// appendDefault appends the binary form of a default, as a schema writes it in JSON; of a union it is of the first branch.
func appendDefault(dst []byte, s *Schema, text json.RawMessage) ([]byte, error) {
	long := func(v int64) []byte { return binary.AppendUvarint(dst, uint64(v<<1)^uint64(v>>63)) }
	read := func(into any) error {
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("%s is no value of %s", text, s.kind)
		}
		return nil
	}
	switch s.kind {
	case kNull:
		if strings.TrimSpace(string(text)) != "null" {
			return nil, fmt.Errorf("%s is no value of null", text)
		}
		return dst, nil
	case kBoolean:
		var v bool
		err := read(&v)
		if v {
			return append(dst, 1), err
		}
		return append(dst, 0), err
	case kInt, kLong:
		var v int64
		err := read(&v)
		return long(v), err
	case kFloat:
		var v float32
		err := read(&v)
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v)), err
	case kDouble:
		var v float64
		err := read(&v)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v)), err
	case kString:
		var v string
		err := read(&v)
		return append(long(int64(len(v))), v...), err
	case kBytes, kFixed:
		var v string
		if err := read(&v); err != nil {
			return nil, err
		}
		var octets []byte // a character is a byte
		for _, r := range v {
			if r > 255 {
				return nil, fmt.Errorf("%s has a character that is no byte", text)
			}
			octets = append(octets, byte(r))
		}
		if s.kind == kBytes {
			dst = long(int64(len(octets)))
		} else if len(octets) != s.size {
			return nil, fmt.Errorf("%s is not of %d bytes", text, s.size)
		}
		return append(dst, octets...), nil
	case kEnum:
		var v string
		if err := read(&v); err != nil {
			return nil, err
		}
		at := slices.Index(s.symbols, v)
		if at < 0 {
			return nil, fmt.Errorf("the enum %q has no symbol %q", s.name, v)
		}
		return long(int64(at)), nil
	case kUnion:
		dst = append(dst, 0)
		return appendDefault(dst, s.branches[0], text)
	case kArray:
		var items []json.RawMessage
		if err := read(&items); err != nil {
			return nil, err
		}
		if len(items) > 0 {
			dst = long(int64(len(items)))
		}
		for _, item := range items {
			var err error
			if dst, err = appendDefault(dst, s.items, item); err != nil {
				return nil, err
			}
		}
		return append(dst, 0), nil
	}
	var members map[string]json.RawMessage
	if err := read(&members); err != nil {
		return nil, err
	}
	var err error
	if s.kind == kMap {
		if len(members) > 0 {
			dst = long(int64(len(members)))
		}
		for _, key := range slices.Sorted(maps.Keys(members)) {
			dst = append(binary.AppendUvarint(dst, uint64(len(key))<<1), key...)
			if dst, err = appendDefault(dst, s.items, members[key]); err != nil {
				return nil, err
			}
		}
		return append(dst, 0), nil
	}
	for _, f := range s.fields {
		value, ok := members[f.name]
		if !ok {
			value = f.fallback
		}
		if value == nil {
			return nil, fmt.Errorf("it lacks the field %q", f.name)
		}
		if dst, err = appendDefault(dst, f.schema, value); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
