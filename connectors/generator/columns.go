package generator

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/types"
)

// columns are the values of one batch, by column. A column uses the slice of its type.
type columns struct {
	fields []types.Field
	rows   int
	ints   [][]int64
	floats [][]float64
	ends   [][]int32
	text   [][]byte
	bits   [][]byte // validity; nil: no NULL
	nulls  []int
}

func newColumns(fields []types.Field, rows int) *columns {
	n := len(fields)
	c := &columns{fields: fields, rows: rows, ints: make([][]int64, n), floats: make([][]float64, n), ends: make([][]int32, n), text: make([][]byte, n), bits: make([][]byte, n), nulls: make([]int, n)}
	for i, f := range fields {
		switch f.Type.Kind {
		case types.Double:
			c.floats[i] = make([]float64, rows)
		case types.Varchar:
			c.ends[i] = make([]int32, 1, rows+1)
			c.text[i] = make([]byte, 0, rows*12)
		default:
			c.ints[i] = make([]int64, rows)
		}
	}
	return c
}

// add appends a value to a text column.
func (c *columns) add(col int, s string) {
	c.text[col] = append(c.text[col], s...)
	c.ends[col] = append(c.ends[col], int32(len(c.text[col])))
}

// null marks a value as NULL.
func (c *columns) null(col, row int) {
	if c.bits[col] == nil {
		c.bits[col] = make([]byte, (c.rows+7)/8)
		bitutil.SetBitsTo(c.bits[col], 0, int64(c.rows), true)
	}
	bitutil.ClearBit(c.bits[col], row)
	c.nulls[col]++
}

func (c *columns) finish() []arrow.Array {
	out := make([]arrow.Array, len(c.fields))
	for i, f := range c.fields {
		buffers := []*memory.Buffer{nil}
		if c.nulls[i] > 0 {
			buffers[0] = memory.NewBufferBytes(c.bits[i])
		}
		switch {
		case c.floats[i] != nil:
			buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.floats[i])))
		case c.ends[i] != nil:
			buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.ends[i])), memory.NewBufferBytes(c.text[i]))
		default:
			buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.ints[i])))
		}
		out[i] = array.MakeFromData(array.NewData(f.Type.Arrow(), c.rows, buffers, nil, c.nulls[i], 0))
	}
	return out
}

// golden is 2^64 / golden ratio.
const golden = 0x9e3779b97f4a7c15

// dice gives the random numbers of one row: the nth depends on seed, row and n alone.
type dice struct{ state uint64 }

func roll(seed uint64, stream string, row int64) dice {
	h := seed*golden ^ uint64(row)*0xd1342543de82ef95
	for i := range len(stream) {
		h = (h ^ uint64(stream[i])) * 0x100000001b3
	}
	return dice{h}
}

// next is splitmix64.
func (d *dice) next() uint64 {
	d.state += golden
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit is uniform in [0, 1).
func (d *dice) unit() float64 { return float64(d.next()>>11) / (1 << 53) }

// below is uniform in [0, n).
func (d *dice) below(n int64) int64 { return int64(d.next() % uint64(n)) }
