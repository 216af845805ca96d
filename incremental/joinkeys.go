package incremental

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// keyKind says how the join keys of both sides are compared.
type keyKind struct {
	types []types.Type
	words bool // each is one word and none is NULL
}

func newKeyKind(ts []types.Type, nullSafe []bool) keyKind {
	k := keyKind{ts, len(ts) > 0}
	for i, t := range ts {
		if w := rowkey.Width(t); w == 0 || w > 8 || nullSafe[i] {
			k.words = false
		}
	}
	return k
}

// wordsOf gives the key columns as words, which are equal when the keys are; their order is of no meaning beyond that.
func (k keyKind) wordsOf(cols []arrow.Array) [][]uint64 {
	if !k.words {
		return nil
	}
	out := make([][]uint64, len(cols))
	for i, c := range cols {
		switch k.types[i].Kind {
		case types.BigInt, types.UBigInt, types.Timestamp, types.TimestampS, types.TimestampMS, types.TimestampNS, types.TimestampTZ, types.Time:
			out[i] = kernels.Values[uint64](c)[:c.Len()]
		default:
			out[i] = rowkey.Words(c, k.types[i], false, nil)
		}
	}
	return out
}

// span is the range of words of one key column.
type span struct{ lo, hi int64 }

func spansOf(words [][]uint64) []span {
	out := make([]span, len(words))
	for i, w := range words {
		s := span{math.MaxInt64, math.MinInt64}
		for _, x := range w {
			s.lo, s.hi = min(s.lo, int64(x)), max(s.hi, int64(x))
		}
		out[i] = s
	}
	return out
}

// apart reports whether no key of the one can be one of the other.
func apart(a, b []span) bool {
	for i := range a {
		if a[i].hi < b[i].lo || b[i].hi < a[i].lo {
			return true
		}
	}
	return false
}

// joinKeys are the join keys of a batch, in the forms that a side asks for.
type joinKeys struct {
	cols  []arrow.Array
	n     int
	hash  []uint64   // as key groups have it; nil where nobody needs it (join.hashed)
	words [][]uint64 // nil: a log compares keys as bytes
	enc   *keyEncoders

	spans  []span
	mixed  []uint64
	stored state.Keys
	coded  state.Keys
}

// keyEncoders are those of one side's keys.
type keyEncoders struct {
	table *keyEncoder // for tables, which may hold keys as words
	bytes *keyEncoder
}

// span is the range of the keys; only of words.
func (k *joinKeys) span() []span {
	if k.spans == nil {
		k.spans = spansOf(k.words)
	}
	return k.spans
}

// mix is a hash of the keys for logs; valid until the log that gives the room is searched again.
func (k *joinKeys) mix(room *[]uint64) []uint64 {
	if k.mixed == nil {
		if k.mixed = k.hash; k.words != nil {
			k.mixed = mixWords(k.words, k.n, room)
		}
	}
	return k.mixed
}

// hashMix spreads the bits of a number into the upper ones of a product: 2^64 / golden ratio.
const hashMix = 0x9e3779b97f4a7c15

// mixWords hashes words. Of one word the hash is as good as the word.
func mixWords(words [][]uint64, n int, room *[]uint64) []uint64 {
	*room = kernels.Sized(*room, n)
	out := *room
	for i, w := range words[0][:n] {
		out[i] = mixWord(0, w)
	}
	for _, more := range words[1:] {
		for i, w := range more[:n] {
			out[i] = mixWord(out[i], w)
		}
	}
	return out
}

func mixWord(h, w uint64) uint64 {
	h = (h ^ w) * hashMix
	return h ^ h>>32
}

// forTable are the keys as tables of keys hold them; valid until the next batch.
func (k *joinKeys) forTable() state.Keys {
	if k.stored.Hash == nil {
		k.stored = k.enc.table.encode(k.cols, k.n, k.hash)
	}
	return k.stored
}

// bytes are the keys as bytes; valid until the next batch.
func (k *joinKeys) bytes() state.Keys {
	if k.coded.Hash == nil {
		k.coded = k.enc.bytes.encode(k.cols, k.n, k.hash)
	}
	return k.coded
}
