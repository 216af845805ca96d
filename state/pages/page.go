package pages

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/riverbed/riverbed/state"
)

// A page is a checksum of what follows, its length, the length of the beginning that all keys share, that beginning, and the rows: the length
// of the key's rest, the rest, the length of the value, and the value.

const (
	unit   = 4 << 10 // of the file; a page has one or, where a row is larger, more
	head   = 16      // checksum, length, length of the beginning
	filled = unit * 7 / 8
)

// whole reports whether a page is as it was written.
func whole(b []byte) bool {
	return len(b) >= head && int(binary.LittleEndian.Uint32(b[8:])) == len(b) && binary.LittleEndian.Uint64(b) == xxh3.Hash(b[8:])
}

// seal writes the head of a page.
func seal(b []byte, begin int) {
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], uint32(begin))
	binary.LittleEndian.PutUint64(b, xxh3.Hash(b[8:]))
}

// rows walks over the rows of a page.
type rows struct {
	begin []byte // of all keys
	rest  []byte // of this one
	value []byte
	row   []byte // both, as they lie there
	left  []byte
}

func rowsOf(page []byte) rows {
	if len(page) == 0 {
		return rows{}
	}
	n := head + int(binary.LittleEndian.Uint32(page[12:]))
	return rows{begin: page[head:n:n], left: page[n:]}
}

func (r *rows) next() bool {
	if len(r.left) == 0 {
		return false
	}
	row := r.left
	r.rest, r.left = cutText(r.left)
	r.value, r.left = cutText(r.left)
	r.row = row[:len(row)-len(r.left)]
	return true
}

// cutText takes a length and as many bytes.
func cutText(b []byte) (text, left []byte) {
	n, at := uint64(b[0]), 1
	if n >= 0x80 {
		n, at = binary.Uvarint(b)
	}
	end := at + int(n)
	return b[at:end:end], b[end:]
}

func appendText(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// key is the whole key, in memory of its own.
func (r *rows) key() []byte {
	return append(append(make([]byte, 0, len(r.begin)+len(r.rest)), r.begin...), r.rest...)
}

// compare orders this row's key and another.
func (r *rows) compare(key []byte) int {
	if n := len(r.begin); len(key) >= n && string(key[:n]) == string(r.begin) {
		return bytes.Compare(r.rest, key[n:])
	}
	return bytes.Compare(r.begin, key) // they part within the beginning
}

// merged is rows on their way into pages; its memory is used again.
type merged struct {
	begin []byte // of all keys
	rows  []byte
	ends  []int // of each row in rows
	parts []part
	made  []page
	buf   []byte
}

// part is the rows that become a page, in buf.
type part struct{ from, to int }

// merge puts changes into the rows of a page.
func (m *merged) merge(page []byte, changes []state.Pair) {
	r := rowsOf(page)
	shared := common(changes[0].Key, changes[len(changes)-1].Key)
	if len(page) > 0 {
		shared = min(common(r.begin, changes[0].Key), common(r.begin, changes[len(changes)-1].Key))
	}
	m.begin = append(m.begin[:0], changes[0].Key[:shared]...)
	m.rows, m.ends = m.rows[:0], m.ends[:0]
	added := r.begin[min(shared, len(r.begin)):] // what the rests of keys begin with from now on
	old := func() {
		if len(added) == 0 {
			m.rows = append(m.rows, r.row...)
		} else {
			m.rows = binary.AppendUvarint(m.rows, uint64(len(added)+len(r.rest)))
			m.rows = append(append(m.rows, added...), r.rest...)
			m.rows = appendText(m.rows, r.value)
		}
		m.ends = append(m.ends, len(m.rows))
	}
	ok := r.next()
	for i := range changes {
		c := &changes[i]
		order := -1
		for ok {
			if order = r.compare(c.Key); order >= 0 {
				break
			}
			old()
			ok = r.next()
		}
		if ok && order == 0 {
			ok = r.next() // replaced
		}
		if c.Value != nil {
			m.rows = appendText(m.rows, c.Key[shared:])
			m.rows = appendText(m.rows, c.Value)
			m.ends = append(m.ends, len(m.rows))
		}
	}
	for ; ok; ok = r.next() {
		old()
	}
}

// common is how many bytes two keys begin with alike.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// cut makes pages of the rows, of which the first takes keys from first on. Where they are written is open.
func (m *merged) cut(first string) []page {
	m.parts, m.made, m.buf = m.parts[:0], m.made[:0], m.buf[:0]
	total := head + len(m.begin) + len(m.rows)
	if len(m.ends) == 0 {
		m.made = append(m.made, page{first: first})
		m.parts = append(m.parts, part{})
		return m.made
	}
	most := unit
	if total > unit {
		n := (total + filled - 1) / filled
		most = total/n + 1
	}
	for i := 0; i < len(m.ends); {
		j, size := i, head+len(m.begin)
		for j < len(m.ends) && (j == i || size+m.ends[j]-m.start(j) <= most) {
			size += m.ends[j] - m.start(j)
			j++
		}
		if i > 0 {
			first = m.between(i)
		}
		at := len(m.buf)
		m.write(i, j, len(m.parts) > 0 || j < len(m.ends))
		m.parts = append(m.parts, part{at, len(m.buf)})
		m.made = append(m.made, page{first: first, bytes: uint32(len(m.buf) - at)})
		i = j
	}
	return m.made
}

func (m *merged) start(row int) int {
	if row == 0 {
		return 0
	}
	return m.ends[row-1]
}

func (m *merged) rest(row int) []byte {
	text, _ := cutText(m.rows[m.start(row):])
	return text
}

// between is a short key behind all before a row, and not behind that row.
func (m *merged) between(row int) string {
	before, at := m.rest(row-1), m.rest(row)
	return string(m.begin) + string(at[:min(len(at), common(before, at)+1)])
}

// write makes a page of some rows; of some of all, whose keys have more in common.
func (m *merged) write(from, to int, some bool) {
	at := len(m.buf)
	var zero [head]byte
	m.buf = append(append(m.buf, zero[:]...), m.begin...)
	shared := 0
	if some {
		first := m.rest(from)
		shared = common(first, m.rest(to-1))
		m.buf = append(m.buf, first[:shared]...)
	}
	if shared == 0 {
		m.buf = append(m.buf, m.rows[m.start(from):m.ends[to-1]]...)
	} else {
		for i := from; i < to; i++ {
			rest, left := cutText(m.rows[m.start(i):m.ends[i]])
			m.buf = append(appendText(m.buf, rest[shared:]), left...)
		}
	}
	seal(m.buf[at:], len(m.begin)+shared)
}

func (m *merged) page(i int) []byte { return m.buf[m.parts[i].from:m.parts[i].to] }
