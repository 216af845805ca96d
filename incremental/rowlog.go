package incremental

import (
	"bytes"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/state"
)

// rowLog is the rows of a join input that are only added and of which nothing is asked but their partners: as they came, in parts, which
// know the range of their keys. Rows that look for partners leave out the parts whose keys are all others. A part that is not
// left out is searched from end to end, by a small table of those rows, until that has cost as much as an index of it would: then it is
// put into the index of the log. So rows that wait a while for few, or that nobody asks for, are never indexed, and the others once.
//
// The rows are durable, in a state.Log; all else is derived.
type rowLog struct {
	rows    *state.Log
	kind    keyKind
	enc     *keyEncoders
	closing *closing // when the watermark settles a row for the join; nil: never
	parts   []*logPart
	named   []*logPart // by the number in a slot; nil: free
	free    []uint32
	due     int64 // no part is to lose rows before
	index   logIndex
	probes  probeTable
	places  []uint32   // scratch: by the number of a part, its place in a gather
	ours    []uint64   // scratch: hashes of a part
	asked   []uint64   // scratch: hashes of the rows that look for partners
	lent    []*logPart // rows in the store that this step has asked for
	stuck   bool       // parts that had to leave stayed: no checkpoint has their rows
	room    int64      // how much of the rows there is room for, where they may leave memory
}

// logPart is a segment with what is derived from it.
type logPart struct {
	*state.Segment
	id      uint32
	words   [][]uint64 // of keys that are words
	spans   []span
	hash    []uint64   // of others
	coded   state.Keys // of others, once somebody had to compare one
	closes  []int64    // nil: no row is settled before the end
	last    int64      // when all rows are settled
	half    int64      // when about half of them are
	paid    int        // rows looked at in searches of it
	indexed bool
	gone    bool
	next    []uint32 // while indexed: the slot of the next row of its hash + 1
}

// A slot is the number of a part and the row there.
const (
	partBits = 15
	partRows = 1 << partBits
	partMask = partRows - 1
	maxParts = 1 << (32 - partBits)
)

// Parts of fewer rows are merged, so that there are never many: a larger one with one that has at least half of its rows.
const mergedRows = 4096

// indexAfter is how often a part is searched before it is indexed: a search of a row takes a nanosecond, its indexing twenty or so.
const indexAfter = 16

func newRowLog(rows *state.Log, kind keyKind, enc *keyEncoders, closing *closing) *rowLog {
	return &rowLog{rows: rows, kind: kind, enc: enc, closing: closing, due: never}
}

func (l *rowLog) weightOf(uint32) int64 { return 1 }

func (l *rowLog) table() state.Stored { return l.rows }

// add takes the rows of a batch: its arrays, but for those that lie in memory which is taken away or hold much else.
func (l *rowLog) add(in *Batch, k *joinKeys, lent []flow.Lent) error {
	for from := 0; from < in.N; from += partRows {
		to := min(from+partRows, in.N)
		b := in.slice(from, to)
		kept := make([]arrow.Array, len(b.Cols))
		width := len(b.Cols) - len(k.cols)
		for i, c := range b.Cols {
			if at := slices.Index(b.Cols[:min(i, width)], c); at >= 0 {
				kept[i] = kept[at] // a key is most often a column as it is
				continue
			}
			kept[i] = keep(c, lent)
		}
		var closes []int64
		if l.closing != nil {
			closes = l.closing.at(kept)
		}
		p := l.part(l.rows.Add(kept[:width:width], kept[width:], to-from), b.Hash)
		if to-from == in.N && k.spans != nil {
			p.spans = k.spans
		}
		if err := l.take(p, closes); err != nil {
			return err
		}
	}
	return nil
}

// keep gives an array that may be kept for long.
func keep(a arrow.Array, lent []flow.Lent) arrow.Array {
	for _, l := range lent {
		if flow.DataLiesIn(a.Data(), l) {
			return kernels.Copy(a)
		}
	}
	return kernels.Compact(a)
}

// part makes a part of a segment.
func (l *rowLog) part(s *state.Segment, hash []uint64) *logPart {
	if l.kind.words {
		return &logPart{Segment: s, words: l.kind.wordsOf(s.Keys)}
	}
	return &logPart{Segment: s, hash: hash}
}

// span is the range of the keys; only of words.
func (p *logPart) span() []span {
	if p.spans == nil {
		p.spans = spansOf(p.words)
	}
	return p.spans
}

// mix is the hashes of the keys; valid until the next call.
func (l *rowLog) mix(p *logPart) []uint64 {
	if p.words == nil {
		return p.hash
	}
	return mixWords(p.words, p.Len(), &l.ours)
}

// take adds a part.
func (l *rowLog) take(p *logPart, closes []int64) error {
	p.setCloses(closes)
	for n := len(l.parts); n > 0; n-- {
		before := l.parts[n-1]
		if before.Len() >= mergedRows || before.Len() > 2*p.Len() || before.Len()+p.Len() > partRows {
			break
		}
		l.parts = l.parts[:n-1]
		p = l.merge(before, p)
	}
	if err := l.name(p); err != nil {
		return err
	}
	l.parts = append(l.parts, p)
	l.due = min(l.due, p.half)
	return nil
}

// name gives a part its number.
func (l *rowLog) name(p *logPart) error {
	if n := len(l.free); n > 0 {
		p.id, l.free = l.free[n-1], l.free[:n-1]
		l.named[p.id] = p
		return nil
	}
	if len(l.named) == maxParts-1 {
		return errs.New(errs.State, "step", "a side of a join has more than %d parts of up to %d rows", maxParts-1, partRows).
			WithHint("bound the join by event time, or use more parallelism")
	}
	p.id, l.named = uint32(len(l.named)), append(l.named, p)
	return nil
}

// leave is for a part that is no more. What is indexed stays in the index, as gone, and so does its number.
func (l *rowLog) leave(p *logPart) {
	p.gone = true
	if p.indexed {
		l.index.gone += p.Len()
		p.Segment, p.coded = nil, state.Keys{}
		return
	}
	l.named[p.id] = nil
	l.free = append(l.free, p.id)
}

func (l *rowLog) merge(a, b *logPart) *logPart {
	m := l.part(l.rows.Merge(a.Segment, b.Segment), slices.Concat(a.hash, b.hash))
	m.paid = a.paid + b.paid
	if a.closes != nil {
		m.setCloses(slices.Concat(a.closes, b.closes))
	} else {
		m.setCloses(nil)
	}
	l.leave(a)
	return m
}

// setCloses notes when rows are settled. Half of a sample says when it is worth the while to look for rows that are.
func (p *logPart) setCloses(closes []int64) {
	p.closes, p.last, p.half = closes, never, never
	if closes == nil {
		return
	}
	p.last = slices.Max(closes)
	sample := make([]int64, 0, 64)
	for i := 0; i < len(closes); i += max(1, len(closes)/64) {
		sample = append(sample, closes[i])
	}
	slices.Sort(sample)
	p.half = sample[(len(sample)-1)/2]
}

// expire drops what the watermark has settled: parts of which all rows are, and of those half of which are, these rows.
func (l *rowLog) expire(w flow.Watermark) error {
	for _, p := range l.lent {
		l.leave(p)
	}
	l.lent = l.lent[:0]
	if l.closing == nil || w == flow.NoWatermark {
		return nil
	}
	if err := l.rows.DropSettled(int64(w)); err != nil {
		return err
	}
	if int64(w) < l.due {
		return nil
	}
	kept := make([]*logPart, 0, len(l.parts))
	l.due = never
	for _, p := range l.parts {
		switch {
		case p.last <= int64(w):
			l.rows.Drop(p.Segment)
			l.leave(p)
			continue
		case p.half <= int64(w):
			var err error
			if p, err = l.narrow(p, w); err != nil {
				return err
			}
		}
		l.due = min(l.due, p.half)
		kept = append(kept, p)
	}
	l.parts = kept
	l.index.rest(l)
	return nil
}

// narrow keeps the rows of a part that the watermark has not settled.
func (l *rowLog) narrow(p *logPart, w flow.Watermark) (*logPart, error) {
	rows := make([]int32, 0, p.Len()/2)
	for i, at := range p.closes {
		if at > int64(w) {
			rows = append(rows, int32(i))
		}
	}
	out := l.part(l.rows.Narrow(p.Segment, rows), pickRows(p.hash, rows))
	out.paid = p.paid
	out.setCloses(pickRows(p.closes, rows))
	l.leave(p)
	return out, l.name(out)
}

func (l *rowLog) forget() error {
	err := l.rows.Clear()
	l.parts, l.named, l.free, l.index, l.due = nil, nil, nil, logIndex{}, never
	return err
}

// restored rebuilds what is derived from the rows.
func (l *rowLog) restored(prepare func(cols []arrow.Array, n int) (Batch, error)) error {
	var hashes [][]uint64
	var closes [][]int64
	err := l.rows.Rearrange(partRows, func(cols []arrow.Array, n int) ([]arrow.Array, error) {
		in, err := prepare(cols, n)
		if err != nil {
			return nil, err
		}
		hashes, closes = append(hashes, in.Hash), append(closes, nil)
		if l.closing != nil {
			closes[len(closes)-1] = l.closing.at(in.Cols)
		}
		return in.Cols[len(cols):], nil
	})
	if err != nil {
		return err
	}
	for i, s := range slices.Clone(l.rows.Segments()) {
		if err := l.take(l.part(s, hashes[i]), closes[i]); err != nil {
			return err
		}
	}
	return nil
}

// at gives the columns of some rows.
func (l *rowLog) at(slots []uint32) func(col int) (arrow.Array, error) {
	gather := l.gatherer(slots)
	return func(col int) (arrow.Array, error) { return gather(col, nil), nil }
}

// gatherer makes columns of some rows, also when the log has dropped them: it holds their arrays.
func (l *rowLog) gatherer(slots []uint32) gatherer {
	var parts []*state.Segment
	var ids []uint32
	l.places = grown(l.places, len(l.named), 0)
	places := make([]uint32, len(slots))
	for i, s := range slots {
		id := s >> partBits
		if at := l.places[id]; int(at) >= len(ids) || ids[at] != id {
			l.places[id], ids, parts = uint32(len(ids)), append(ids, id), append(parts, l.named[id].Segment)
		}
		places[i] = l.places[id]<<partBits | s&partMask
	}
	return func(col int, rows []int32) arrow.Array {
		at := places
		if rows != nil {
			at = pickRows(places, rows)
		}
		if len(parts) == 1 {
			one := make([]int32, len(at))
			for i, s := range at {
				one[i] = int32(s)
			}
			return kernels.Take(parts[0].Cols[col], one)
		}
		chunks := make([]arrow.Array, len(parts))
		for i, p := range parts {
			chunks[i] = p.Cols[col]
		}
		return kernels.NewChunked(chunks, partBits).Take(at)
	}
}

// find gives the pairs of rows with keys k with the rows of the log to use, a chunk at a time; the chunk is used again.
func (l *rowLog) find(k *joinKeys, chunk []pair, use func([]pair) error) error {
	out := pairs{chunk[:0], use}
	var worn []*logPart
	l.probes.n = 0
	if err := l.index.find(l, k, &out); err != nil {
		return err
	}
	for _, p := range l.parts {
		if p.indexed || k.words != nil && apart(p.span(), k.span()) {
			continue
		}
		if l.probes.n == 0 {
			l.probes.fill(k.mix(&l.asked))
		}
		if err := l.probes.search(p, l.mix(p), k, l.enc, &out); err != nil {
			return err
		}
		if p.paid += k.n + p.Len(); p.paid > indexAfter*p.Len() {
			worn = append(worn, p)
		}
	}
	if err := l.findCold(k, &out); err != nil {
		return err
	}
	if err := out.flush(); err != nil {
		return err
	}
	for _, p := range worn {
		l.index.put(l, p)
	}
	return nil
}

// same reports whether row i, which has the hash of a row that looks for partners, has its key.
func (p *logPart) same(i int, k *joinKeys, row int, enc *keyEncoders) bool {
	if k.words != nil {
		for c, w := range p.words {
			if w[i] != k.words[c][row] {
				return false
			}
		}
		return true
	}
	if p.coded.Hash == nil {
		c := enc.bytes.encode(p.Keys, p.Len(), p.hash)
		p.coded = state.Keys{Offsets: slices.Clone(c.Offsets), Data: slices.Clone(c.Data), Hash: p.hash}
	}
	return bytes.Equal(p.coded.At(i), k.bytes().At(row))
}
