package hashtable

import (
	"math/bits"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Join finds the build rows with a probe row's key. The build rows of one key stand together, in build order, so a
// probe's pairs come in the order of the probe rows and, within one, of the build rows.
//
// Keys are numbered by a Groups, with its array for dense integers; where every build row has a key of its own the
// number is the row, and a probe reads nothing else.
type Join struct {
	groups   *Groups
	nullSafe []bool
	rows     int
	hasNull  bool
	unique   bool
	rowOf    []int32  // build rows by number: the identity is nil
	starts   []uint32 // of each number in rowOf, and the end; nil when unique
	matched  []uint64 // bitmap of build rows; see Mark
	keys     []uint64 // bitmap of numbers; see MarkKeys
}

// NewJoin makes a join on keys of these types. nullSafe says, per key, that NULL matches NULL; nil: for none.
func NewJoin(ts []types.Type, nullSafe []bool) *Join {
	if nullSafe == nil {
		nullSafe = make([]bool, len(ts))
	}
	bare := make([]bool, len(ts)) // a row with a NULL that matches nothing is masked
	for i, safe := range nullSafe {
		bare[i] = !safe
	}
	return &Join{groups: newGroups(ts, bare), nullSafe: nullSafe}
}

// Build takes the key columns of all build rows, once, before any probe.
func (j *Join) Build(cols []arrow.Array, n int) {
	j.rows = n
	mask := j.mask(cols)
	j.hasNull = mask != nil && kernels.CountBits(mask, n) < n
	ids := make([]uint32, n)
	const chunk = 1 << 16 // packed keys of one chunk stay in cache
	for from := 0; from < n; from += chunk {
		to := min(from+chunk, n)
		j.groups.findOrAdd(sliceAll(cols, from, to), to-from, tail(mask, from), ids[from:to])
	}
	keys := j.groups.Len()
	j.unique = true
	if keys == n {
		return // number i is row i
	}
	counts := make([]uint32, keys+1)
	for _, id := range ids {
		if id != Absent {
			counts[id+1]++
			j.unique = j.unique && counts[id+1] == 1
		}
	}
	for i := 1; i <= keys; i++ {
		counts[i] += counts[i-1]
	}
	j.rowOf = make([]int32, counts[keys])
	at := append([]uint32(nil), counts...)
	for row, id := range ids {
		if id != Absent {
			j.rowOf[at[id]] = int32(row)
			at[id]++
		}
	}
	if !j.unique {
		j.starts = counts
	}
}

// mask is the rows that may match: no key is NULL that is compared by SQL equality. nil: all.
func (j *Join) mask(cols []arrow.Array) []byte {
	var mask []byte
	for i, c := range cols {
		if !j.nullSafe[i] {
			mask = kernels.AndBits(mask, kernels.Valid(c))
		}
	}
	return mask
}

func sliceAll(cols []arrow.Array, from, to int) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		if from == 0 && to == c.Len() {
			out[i] = c
		} else {
			out[i] = kernels.Slice(c, from, to)
		}
	}
	return out
}

// Rows is the number of build rows.
func (j *Join) Rows() int { return j.rows }

// Unique reports whether no two build rows have the same key: a probe row has at most one match.
func (j *Join) Unique() bool { return j.unique }

// HasNull reports whether a build row has a NULL key that can match nothing: what makes IN give NULL instead of false.
func (j *Join) HasNull() bool { return j.hasNull }

// Bytes is the memory held.
func (j *Join) Bytes() int64 {
	return j.groups.Bytes() + int64(4*cap(j.rowOf)+4*cap(j.starts)+8*cap(j.matched))
}

// Prober probes a built join from one goroutine among several.
type Prober struct {
	j    *Join
	load loader
	ids  []uint32
	n    int
	row  int    // next probe row
	at   uint32 // next match of that row, counted from its first
	// Outer makes Next give a probe row without a match as a pair with build row -1.
	Outer bool
}

// Prober returns a prober.
func (j *Join) Prober() *Prober {
	return &Prober{j: j, load: j.loader()}
}

func (j *Join) loader() loader { return newLoader(j.groups.types, j.groups.load.bare, j.groups.lay) }

// Probe begins with n probe rows.
func (p *Prober) Probe(cols []arrow.Array, n int) {
	if cap(p.ids) < n {
		p.ids = make([]uint32, n)
	}
	p.ids = p.ids[:n]
	p.j.groups.find(&p.load, cols, n, p.j.mask(cols), p.ids)
	p.n, p.row, p.at = n, 0, 0
}

// Next writes the next pairs and returns their number; 0 when there are no more. probe and build have one length, at least 1.
func (p *Prober) Next(probe, build []int32) int {
	if p.j.starts == nil {
		return p.nextUnique(probe, build)
	}
	k, ids, j := 0, p.ids, p.j
	for p.row < p.n && k < len(probe) {
		id := ids[p.row]
		if id == Absent {
			if p.Outer {
				probe[k], build[k] = int32(p.row), -1
				k++
			}
			p.row++
			continue
		}
		from, to := j.starts[id]+p.at, j.starts[id+1]
		m := min(int(to-from), len(probe)-k)
		for i, b := range j.rowOf[from : from+uint32(m)] {
			probe[k+i], build[k+i] = int32(p.row), b
		}
		k += m
		if p.at += uint32(m); from+uint32(m) == to {
			p.row, p.at = p.row+1, 0
		}
	}
	return k
}

// nextUnique is Next where a probe row has at most one match; without branches on whether it has.
func (p *Prober) nextUnique(probe, build []int32) int {
	k := 0
	build = build[:len(probe)]
	for p.row < p.n && k < len(probe) {
		ids := p.ids[p.row:min(p.n, p.row+len(probe)-k)]
		base := int32(p.row)
		for i, id := range ids {
			probe[k], build[k] = base+int32(i), int32(id)
			if p.Outer || id != Absent {
				k++
			}
		}
		p.row += len(ids)
	}
	if rowOf := p.j.rowOf; rowOf != nil {
		for i, id := range build[:k] {
			if id >= 0 {
				build[i] = rowOf[id]
			}
		}
	}
	return k
}

// Exists sets out[i] to whether probe row i has a match, for semi and anti joins and marks.
func (p *Prober) Exists(cols []arrow.Array, n int, out []bool) {
	p.Probe(cols, n)
	for i, id := range p.ids {
		out[i] = id != Absent
	}
	p.row = n
}

// TrackMatches prepares Mark and Unmatched. It must be called before probing starts.
func (j *Join) TrackMatches() { j.matched = make([]uint64, (j.rows+63)/64) }

// Mark records that these build rows have a match (-1 is none). Probers may call it concurrently.
func (j *Join) Mark(build []int32) {
	for _, b := range build {
		if b < 0 {
			continue
		}
		setShared(j.matched, uint32(b))
	}
}

// setShared sets a bit that other goroutines may set too; most are set already.
func setShared(bits []uint64, i uint32) {
	w, bit := &bits[i>>6], uint64(1)<<(i&63)
	if atomic.LoadUint64(w)&bit == 0 {
		atomic.OrUint64(w, bit)
	}
}

// TrackKeys prepares MarkKeys. It must be called before probing starts.
func (j *Join) TrackKeys() { j.keys = make([]uint64, (j.groups.Len()+63)/64) }

// MarkKeys records that all build rows with the key of some probe row have a match, without forming the pairs. Probers may
// call it concurrently; SpreadKeys follows when all are done.
func (p *Prober) MarkKeys(cols []arrow.Array, n int) {
	p.Probe(cols, n)
	for _, id := range p.ids {
		if id != Absent {
			setShared(p.j.keys, id)
		}
	}
	p.row = n
}

// SpreadKeys brings what MarkKeys recorded to the build rows, as Mark would have.
func (j *Join) SpreadKeys() {
	for w, m := range j.keys {
		for ; m != 0; m &= m - 1 {
			id := uint32(w<<6 + bits.TrailingZeros64(m))
			switch {
			case j.rowOf == nil:
				j.Mark([]int32{int32(id)})
			case j.starts == nil:
				j.Mark(j.rowOf[id : id+1])
			default:
				j.Mark(j.rowOf[j.starts[id]:j.starts[id+1]])
			}
		}
	}
	j.keys = nil
}

// Unmatched lists the build rows from row from on that nothing matched, at most as many as out holds, and returns their
// number and where to go on; what right and full joins add once all probes are done.
func (j *Join) Unmatched(from int, out []int32) (k, next int) { return j.list(from, out, ^uint64(0)) }

// Matched lists the others.
func (j *Join) Matched(from int, out []int32) (k, next int) { return j.list(from, out, 0) }

func (j *Join) list(from int, out []int32, flip uint64) (k, next int) {
	for w := from >> 6; w < len(j.matched); w++ {
		m := j.matched[w] ^ flip
		if w == from>>6 {
			m &= ^uint64(0) << (from & 63)
		}
		for ; m != 0; m &= m - 1 {
			row := w<<6 + bits.TrailingZeros64(m)
			if row >= j.rows {
				return k, j.rows
			}
			if k == len(out) {
				return k, row
			}
			out[k] = int32(row)
			k++
		}
	}
	return k, j.rows
}
