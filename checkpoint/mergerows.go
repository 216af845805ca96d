package checkpoint

import (
	"bytes"
	"container/heap"

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
	first uint64
}

// cursors are ordered by key group and key; of one key the newest comes first.
type cursors []*cursor

func (c cursors) Len() int { return len(c) }
func (c cursors) Less(i, j int) bool {
	a, b := c[i], c[j]
	if ga, gb := a.chunk.group[a.row], b.chunk.group[b.row]; ga != gb {
		return ga < gb
	}
	if a.first != b.first {
		return a.first < b.first
	}
	if k := bytes.Compare(a.key, b.key); k != 0 {
		return k < 0
	}
	return a.from > b.from
}
func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)   { *c = append(*c, x.(*cursor)) }
func (c *cursors) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

func (c *cursor) look() { c.key = c.chunk.key(c.row); c.first = leading(c.key) }

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
		group, key := best.chunk.group[best.row], best.key
		for { // past the key, in all sections
			if err := m.advance(); err != nil {
				return err
			}
			if len(m.heads) == 0 {
				break
			}
			if h := m.heads[0]; h.chunk.group[h.row] != group || !bytes.Equal(h.key, key) {
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
		heap.Fix(&m.heads, 0)
		return nil
	}
	heap.Pop(&m.heads)
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
		heap.Push(&m.heads, c)
		return nil
	}
}
