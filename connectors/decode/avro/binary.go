package avro

import (
	"encoding/binary"
	"errors"
	"math"
)

// input is what is left of a message.
type input struct {
	data  []byte
	pos   int
	empty int // items that took no bytes
	depth int // of records that contain themselves
}

var (
	errShort  = errors.New("the message ends in the midst of a value")
	errNumber = errors.New("a number is longer than 64 bits")
)

// long reads a number of variable length.
func (in *input) long() (int64, error) {
	u, n := binary.Uvarint(in.data[in.pos:])
	if n <= 0 {
		if n < 0 {
			return 0, errNumber
		}
		return 0, errShort
	}
	in.pos += n
	return int64(u>>1) ^ -int64(u&1), nil
}

func (in *input) take(n int) ([]byte, error) {
	if n < 0 || n > len(in.data)-in.pos {
		return nil, errShort
	}
	b := in.data[in.pos : in.pos+n]
	in.pos += n
	return b, nil
}

// bytes reads a length and as many bytes.
func (in *input) bytes() ([]byte, error) {
	n, err := in.long()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(in.data)-in.pos) {
		return nil, errShort
	}
	return in.take(int(n))
}

func (in *input) boolean() (bool, error) {
	b, err := in.take(1)
	if err != nil {
		return false, err
	}
	if b[0] > 1 {
		return false, errors.New("a boolean is neither 0 nor 1")
	}
	return b[0] == 1, nil
}

func (in *input) float() (float32, error) {
	b, err := in.take(4)
	if err != nil {
		return 0, err
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
}

func (in *input) double() (float64, error) {
	b, err := in.take(8)
	if err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}

// blocks calls item for each item of an array or map.
func (in *input) blocks(item func() error) error {
	for {
		n, err := in.long()
		if err != nil || n == 0 {
			return err
		}
		if n < 0 { // with the bytes of the block, by which it can be skipped
			if n = -n; n < 0 {
				return errNumber
			}
			if _, err := in.long(); err != nil {
				return err
			}
		}
		for range n {
			before := in.pos
			if err := item(); err != nil {
				return err
			}
			// Items may take no bytes at all (null, an empty record), so a length that lies must end elsewhere.
			if in.pos == before {
				if in.empty++; in.empty > mostEmpty {
					return errors.New("the message has more empty items than can be")
				}
			}
		}
	}
}

// mostEmpty bounds the items of a message that take no bytes.
const mostEmpty = 1 << 16
