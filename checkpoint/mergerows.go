package checkpoint

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
)

// mergedRows merges sorted sections of a state table, oldest first: of the rows of a key the newest stays. Where nothing is older, deletions
// say nothing and go. A batch of each section is in memory, and the batches that the next rows to be handed out lie in.
func mergedRows(in []*sectionReader, oldest bool) func() (arrow.RecordBatch, error) {
	if len(in) == 1 {
		return func() (arrow.RecordBatch, error) {
			b, err := in[0].next()
			for b != nil && err == nil && oldest {
				if b, err = live(b); err != nil || b.NumRows() > 0 {
					break
				}
				b, err = in[0].next()
			}
			return b, err
		}
	}
	m := &rowMerge{in: in, oldest: oldest}
	return m.next
}

// live leaves out deletions.
func live(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	c, err := newChunk(b)
	if err != nil {
		return nil, err
	}
	var rows []uint32
	for i := range len(c.group) {
		if !c.deleted.Value(i) {
			rows = append(rows, uint32(i))
		}
	}
	if len(rows) == len(c.group) {
		return b, nil
	}
	return newGatherer([]*chunk{c}).take(rows), nil
}

type rowMerge struct {
	in     []*sectionReader
	oldest bool
	heads  cursors
	chunks []*chunk // that rows were taken from, or are to be
	taken  []uint32 // rows to be handed out
	began  bool
}

// cursor is the next row of a section.
type cursor struct {
	from  int // its age: the number of the section
	chunk *chunk
	nr    int // of the chunk
	row   int
	key   []byte
	words [2]uint64 // the key group, and the first bytes of the key: nearly always they tell rows apart
}

func (c *cursor) look() {
	c.key = c.chunk.key(c.row)
	var first [15]byte
	b := c.key
	if len(b) < len(first) {
		copy(first[:], b)
		b = first[:]
	}
	c.words[0] = uint64(c.chunk.group[c.row])<<56 | binary.BigEndian.Uint64(b)>>8
	c.words[1] = binary.BigEndian.Uint64(b[7:])
}

// before: rows are ordered by key group and key; of one key the newest comes first.
func (c *cursor) before(o *cursor) bool {
	if c.words[0] != o.words[0] {
		return c.words[0] < o.words[0]
	}
	if c.words[1] != o.words[1] {
		return c.words[1] < o.words[1]
	}
	if k := bytes.Compare(c.key, o.key); k != 0 {
		return k < 0
	}
	return c.from > o.from
}

// cursors are a heap: the one that is before all others is the first.
type cursors []*cursor

// sink puts a cursor that has moved on where it belongs below its place.
func (c cursors) sink(i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c); child++ {
			if c[child].before(c[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		c[i], c[best] = c[best], c[i]
		i = best
	}
}

func (c *cursors) add(one *cursor) {
	*c = append(*c, one)
	for i := len(*c) - 1; i > 0 && (*c)[i].before((*c)[(i-1)/2]); i = (i - 1) / 2 {
		(*c)[i], (*c)[(i-1)/2] = (*c)[(i-1)/2], (*c)[i]
	}
}

// drop takes the first one out.
func (c *cursors) drop() {
	last := len(*c) - 1
	(*c)[0] = (*c)[last]
	*c = (*c)[:last]
	c.sink(0)
}

// next is the next batch of rows, nil behind the last one.
func (m *rowMerge) next() (arrow.RecordBatch, error) {
	if !m.began {
		m.began = true
		for i := range m.in {
			if err := m.enter(&cursor{from: i}); err != nil {
				return nil, err
			}
		}
	}
	for len(m.heads) > 0 {
		m.forget()
		if err := m.fill(); err != nil {
			return nil, err
		}
		if len(m.taken) > 0 {
			return newGatherer(m.chunks).take(m.taken), nil
		}
	}
	return nil, nil
}

// fill takes rows for a batch. It stops early when many batches gave few rows, since it holds on to them.
func (m *rowMerge) fill() error {
	most, held := batchRows(m.chunks), len(m.chunks)+2*len(m.in)
	for len(m.heads) > 0 && len(m.taken) < most && len(m.chunks) <= held {
		best := m.heads[0]
		if !m.oldest || !best.chunk.deleted.Value(best.row) {
			m.taken = append(m.taken, uint32(best.nr)<<rowShift|uint32(best.row))
		}
		words, key := best.words, best.key
		for { // past the key, in all sections
			if err := m.advance(); err != nil {
				return err
			}
			if len(m.heads) == 0 {
				break
			}
			if h := m.heads[0]; h.words != words || !bytes.Equal(h.key, key) {
				break
			}
		}
	}
	return nil
}

// forget drops the chunks whose rows were all handed out.
func (m *rowMerge) forget() {
	m.chunks, m.taken = m.chunks[:0:0], m.taken[:0]
	for _, c := range m.heads {
		c.nr = len(m.chunks)
		m.chunks = append(m.chunks, c.chunk)
	}
}

// advance moves the first cursor to its next row.
func (m *rowMerge) advance() error {
	c := m.heads[0]
	if c.row+1 < len(c.chunk.group) {
		c.row++
		c.look()
		m.heads.sink(0)
		return nil
	}
	m.heads.drop()
	return m.enter(c)
}

// enter reads the next batch of a section and puts the cursor on its first row.
func (m *rowMerge) enter(c *cursor) error {
	for {
		b, err := m.in[c.from].next()
		if err != nil || b == nil {
			return err
		}
		if b.NumRows() == 0 {
			continue
		}
		if c.chunk, err = newChunk(b); err != nil {
			return err
		}
		c.row, c.nr = 0, len(m.chunks)
		m.chunks = append(m.chunks, c.chunk)
		c.look()
		m.heads.add(c)
		return nil
	}
}
