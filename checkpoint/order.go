package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/state"
)

// The columns of a state part that we know; see state.Part.
const (
	groupColumn   = 0
	keyColumn     = 2
	deletedColumn = 3
)

// rowShift cuts the number of a row in chunks into chunk and row: chunks have at most 1<<rowShift rows.
const rowShift = 14

// chunk is some rows of a state table with their keys at hand.
type chunk struct {
	rows    arrow.RecordBatch
	group   []uint8
	keyAt   []int32
	keys    []byte
	deleted *array.Boolean
}

func newChunk(rows arrow.RecordBatch) (*chunk, error) {
	c := &chunk{rows: rows}
	if rows.NumCols() > deletedColumn && rows.NumRows() <= 1<<rowShift {
		group, ok1 := rows.Column(groupColumn).(*array.Uint8)
		key, ok2 := rows.Column(keyColumn).(*array.Binary)
		deleted, ok3 := rows.Column(deletedColumn).(*array.Boolean)
		if ok1 && ok2 && ok3 {
			c.group, c.deleted = group.Uint8Values(), deleted
			c.keyAt, c.keys = kernels.Spans(key)
			return c, nil
		}
	}
	return nil, errs.Bug("checkpoint", "%d rows of state have the columns %v", rows.NumRows(), rows.Schema())
}

func (c *chunk) key(i int) []byte { return c.keys[c.keyAt[i]:c.keyAt[i+1]] }

// chunksOf cuts batches into chunks.
func chunksOf(batches []arrow.RecordBatch) ([]*chunk, error) {
	var out []*chunk
	for _, b := range batches {
		for from := int64(0); from < b.NumRows(); from += 1 << rowShift {
			c, err := newChunk(b.NewSlice(from, min(b.NumRows(), from+1<<rowShift)))
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// orderKey is a row to be sorted: the first bytes of its key behind those that all keys have in common, and its number.
type orderKey struct {
	first uint64
	row   uint32
}

// order sorts the rows of a state table by key group, then by the bytes of the key. That order is total, since a key is there once; of rows of
// one key, which parts of one epoch do not have, the last one stays.
func order(chunks []*chunk) []uint32 {
	n := 0
	var ends [state.Groups + 1]int
	for _, c := range chunks {
		n += len(c.group)
		for _, g := range c.group {
			ends[int(g)+1]++
		}
	}
	for g := range state.Groups {
		ends[g+1] += ends[g]
	}
	common := commonPrefix(chunks)
	keys := make([]orderKey, n)
	next := ends
	for i, c := range chunks {
		for j, g := range c.group {
			keys[next[g]] = orderKey{leading(c.key(j)[common:]), uint32(i)<<rowShift | uint32(j)}
			next[g]++
		}
	}
	keyOf := func(row uint32) []byte { return chunks[row>>rowShift].key(int(row & (1<<rowShift - 1))) }
	out := make([]uint32, 0, n)
	for g := range state.Groups {
		of := keys[ends[g]:ends[g+1]]
		slices.SortFunc(of, func(a, b orderKey) int {
			if a.first != b.first {
				return cmp.Compare(a.first, b.first)
			}
			if c := bytes.Compare(keyOf(a.row), keyOf(b.row)); c != 0 {
				return c
			}
			return cmp.Compare(a.row, b.row)
		})
		for i, k := range of {
			if i+1 < len(of) && k.first == of[i+1].first && bytes.Equal(keyOf(k.row), keyOf(of[i+1].row)) {
				continue
			}
			out = append(out, k.row)
		}
	}
	return out
}

// leading is the first eight bytes as a number, of which shorter keys have zeros.
func leading(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// commonPrefix is how many bytes all keys begin with.
func commonPrefix(chunks []*chunk) int {
	first := chunks[0].key(0)
	n := len(first)
	for _, c := range chunks {
		for i := range c.group {
			k := c.key(i)
			n = min(n, len(k))
			if bytes.Equal(k[:n], first[:n]) {
				continue
			}
			for n > 0 && !bytes.Equal(k[:n], first[:n]) {
				n--
			}
		}
		if n == 0 {
			break
		}
	}
	return n
}

// gatherer takes rows out of chunks.
type gatherer struct {
	schema *arrow.Schema
	cols   []*kernels.Chunked
}

func newGatherer(chunks []*chunk) *gatherer {
	g := &gatherer{schema: chunks[0].rows.Schema()}
	for i := range int(chunks[0].rows.NumCols()) {
		of := make([]arrow.Array, len(chunks))
		for j, c := range chunks {
			of[j] = c.rows.Column(i)
		}
		g.cols = append(g.cols, kernels.NewChunked(of, rowShift))
	}
	return g
}

func (g *gatherer) take(rows []uint32) arrow.RecordBatch {
	cols := make([]arrow.Array, len(g.cols))
	for i, c := range g.cols {
		cols[i] = c.Take(rows)
	}
	return array.NewRecordBatch(g.schema, cols, int64(len(rows)))
}

// batchRows is how many rows a batch of an object has: as many as a chunk takes, and less where rows are long.
func batchRows(chunks []*chunk) int {
	bytes, rows := 0, 0
	for _, c := range chunks {
		rows += len(c.group)
		for _, col := range c.rows.Columns() {
			bytes += kernels.Taken(col)
		}
	}
	const wished = 4 << 20
	if rows == 0 || bytes == 0 {
		return 1 << rowShift
	}
	return min(max(wished/(bytes/rows+1), 1), 1<<rowShift)
}
