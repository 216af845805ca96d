package pages

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/riverbed/riverbed/state"
)

// A page is a checksum of its length, what its keys begin with and its keys, up to where these end; then those lengths; the beginning that all keys share; for each row the
// length of the key's rest, the rest, and the room of the value; and for each row the value and its checksum, which is of the key too. The room of a value is a multiple of four bytes, of
// which the last says how many are not the value's. So a value can be replaced by one that has the same room where it lies, and nothing else is read or written.

const (
	unit   = 4 << 10 // of the file; a page has one or, where a row is larger, more
	head   = 20      // checksum, length, length of the beginning, end of the keys
	filled = unit * 7 / 8
	sum    = 4 // of a value
)

// whole reports whether a page is as it was written, but for its values.
func whole(b []byte) bool {
	if len(b) < head || int(binary.LittleEndian.Uint32(b[8:])) != len(b) {
		return false
	}
	keys := int(binary.LittleEndian.Uint32(b[16:]))
	return keys <= len(b) && binary.LittleEndian.Uint64(b) == xxh3.Hash(b[8:keys])
}

// seal writes the head of a page.
func seal(b []byte, begin, keys int) {
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], uint32(begin))
	binary.LittleEndian.PutUint32(b[16:], uint32(keys))
	binary.LittleEndian.PutUint64(b, xxh3.Hash(b[8:keys]))
}

// sumOf is the checksum of a value, of a key with this hash.
func sumOf(key uint64, value []byte) uint32 { return uint32(xxh3.HashSeed(value, key)) }

// roomOf is the room of a value of so many bytes.
func roomOf(bytes int) int { return bytes/4*4 + 4 }

// appendValue appends a value in its room and the checksum of that.
func appendValue(b []byte, key uint64, value []byte) []byte {
	at, unused := len(b), roomOf(len(value))-len(value)
	b = append(b, value...)
	for range unused - 1 {
		b = append(b, 0)
	}
	b = append(b, byte(unused))
	return binary.LittleEndian.AppendUint32(b, sumOf(key, b[at:]))
}

// bare is a value without what comes with it, if that says that the value, of a key with this hash, is as it was written.
func bare(b []byte, key uint64) (value []byte, sound bool) {
	n := len(b) - sum
	if sumOf(key, b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, false
	}
	n -= int(b[n-1])
	return b[:n:n], true
}

// rows walks over the rows of a page.
type rows struct {
	begin  []byte // of all keys
	rest   []byte // of this one
	row    []byte // that and the room of the value, as they lie there
	value  []byte // in its room, and its checksum
	keys   []byte // that follow
	values []byte // that follow
}

func rowsOf(page []byte) rows {
	if len(page) == 0 {
		return rows{}
	}
	n := head + int(binary.LittleEndian.Uint32(page[12:]))
	keys := binary.LittleEndian.Uint32(page[16:])
	return rows{begin: page[head:n:n], keys: page[n:keys], values: page[keys:]}
}

func (r *rows) next() bool {
	if len(r.keys) == 0 {
		return false
	}
	row := r.keys
	r.rest, r.keys = cutText(r.keys)
	n, at := uint64(r.keys[0]), 1
	if n >= 0x80 {
		n, at = binary.Uvarint(r.keys)
	}
	r.keys = r.keys[at:]
	r.row = row[:len(row)-len(r.keys)]
	end := int(n) + sum
	r.value, r.values = r.values[:end:end], r.values[end:]
	return true
}

// seek goes on to the row before which a key belongs, or that has it: then it returns the value as it lies there.
func (r *rows) seek(key []byte) []byte {
	n := len(r.begin)
	if len(key) < n || string(key[:n]) != string(r.begin) {
		if bytes.Compare(key, r.begin) > 0 {
			r.keys, r.values = nil, nil
		}
		return nil
	}
	key = key[n:]
	keys, skipped := r.keys, 0
	for len(keys) > 0 {
		size, at := uint64(keys[0]), 1
		if size >= 0x80 {
			size, at = binary.Uvarint(keys)
		}
		rest := keys[at : at+int(size)]
		at += int(size)
		room, next := uint64(keys[at]), at+1
		if room >= 0x80 {
			room, next = binary.Uvarint(keys[at:])
			next += at
		}
		if order := bytes.Compare(rest, key); order >= 0 {
			r.keys, r.values = keys, r.values[skipped:]
			if order > 0 {
				return nil
			}
			return r.values[:int(room)+sum]
		}
		keys, skipped = keys[next:], skipped+int(room)+sum
	}
	r.keys, r.values = nil, nil
	return nil
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
	begin  []byte // of all keys
	keys   []byte // of each row what a page has of it, but for the value
	values []byte
	ends   []end
	parts  []part
	made   []page
	buf    []byte
}

// end is where a row ends in keys and values.
type end struct{ key, value int }

// part is the rows that become a page, in buf.
type part struct{ from, to int }

// merge puts changes into the rows of a page.
func (m *merged) merge(page []byte, changes []state.Pair, hash func(key []byte) uint64) {
	r := rowsOf(page)
	shared := common(changes[0].Key, changes[len(changes)-1].Key)
	if len(page) > 0 {
		shared = min(common(r.begin, changes[0].Key), common(r.begin, changes[len(changes)-1].Key))
	}
	m.begin = append(m.begin[:0], changes[0].Key[:shared]...)
	m.keys, m.values, m.ends = m.keys[:0], m.values[:0], m.ends[:0]
	added := r.begin[min(shared, len(r.begin)):] // what the rests of keys begin with from now on
	old := func() {
		if len(added) == 0 {
			m.keys = append(m.keys, r.row...)
		} else {
			m.keys = binary.AppendUvarint(m.keys, uint64(len(added)+len(r.rest)))
			m.keys = append(append(m.keys, added...), r.rest...)
			m.keys = binary.AppendUvarint(m.keys, uint64(len(r.value)-sum))
		}
		m.values = append(m.values, r.value...)
		m.ends = append(m.ends, end{len(m.keys), len(m.values)})
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
			m.keys = appendText(m.keys, c.Key[shared:])
			m.keys = binary.AppendUvarint(m.keys, uint64(roomOf(len(c.Value))))
			m.values = appendValue(m.values, hash(c.Key), c.Value)
			m.ends = append(m.ends, end{len(m.keys), len(m.values)})
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
	total := head + len(m.begin) + len(m.keys) + len(m.values)
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
		for j < len(m.ends) && (j == i || size+m.size(j) <= most) {
			size += m.size(j)
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

func (m *merged) start(row int) end {
	if row == 0 {
		return end{}
	}
	return m.ends[row-1]
}

func (m *merged) size(row int) int {
	from, to := m.start(row), m.ends[row]
	return to.key - from.key + to.value - from.value
}

func (m *merged) rest(row int) []byte {
	text, _ := cutText(m.keys[m.start(row).key:])
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
		m.buf = append(m.buf, m.keys[m.start(from).key:m.ends[to-1].key]...)
	} else {
		for i := from; i < to; i++ {
			rest, left := cutText(m.keys[m.start(i).key:m.ends[i].key])
			m.buf = append(appendText(m.buf, rest[shared:]), left...)
		}
	}
	keys := len(m.buf)
	m.buf = append(m.buf, m.values[m.start(from).value:m.ends[to-1].value]...)
	seal(m.buf[at:], len(m.begin)+shared, keys-at)
}

func (m *merged) page(i int) []byte { return m.buf[m.parts[i].from:m.parts[i].to] }
