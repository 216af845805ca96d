package sqltest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Domain says from how many values a case draws.
type Domain uint8

// The domains.
const (
	Tiny  Domain = iota // three values and NULL; NaN, -0.0, the empty string among them: rows collide
	Small               // a dozen, well behaved
	Wide                // the whole range of the type
	Domains
)

// Value draws a value.
func (d Domain) Value(r *rand.Rand, t types.Type) types.Value {
	if r.IntN([]int{4, 8, 8}[d]) == 0 {
		return nil
	}
	switch {
	case t.Kind == types.Boolean:
		return r.IntN(2) == 0
	case t.IsInteger() && t.Kind != types.HugeInt && t.Kind != types.UHugeInt && t.IsSigned():
		return d.integer(r, t)
	case t.Kind == types.Double:
		return d.double(r)
	case t.Kind == types.Varchar:
		return d.text(r)
	case t.Kind == types.Date:
		return d.integerIn(r, -40000, 40000) % 40000
	case t.Kind == types.Timestamp:
		base := int64(1704067200) * 1e6
		switch d {
		case Tiny:
			return base + int64(r.IntN(5))*5e6
		case Small:
			return base + int64(r.IntN(120))*5e5
		}
		return int64(r.IntN(4e9)-2e9)*1e6 + int64(r.IntN(1e6))
	case t.Kind == types.Decimal:
		return decimal128.FromI64(d.integerIn(r, -99999, 99999))
	}
	panic("no random values of type " + t.String())
}

func (d Domain) integer(r *rand.Rand, t types.Type) int64 {
	lo, hi := types.IntRange(t.Kind)
	return d.integerIn(r, lo, hi)
}

func (d Domain) integerIn(r *rand.Rand, lo, hi int64) int64 {
	switch d {
	case Tiny:
		return int64(r.IntN(3)) - 1
	case Small:
		return int64(r.IntN(12)) - 3
	}
	switch r.IntN(4) {
	case 0: // the sums of these need more than the type
		return []int64{lo, hi, lo + 1, hi - 1}[r.IntN(4)]
	case 1:
		return int64(r.IntN(1000)) - 500
	}
	return lo + int64(r.Uint64N(uint64(hi)-uint64(lo)))
}

func (d Domain) double(r *rand.Rand) float64 {
	switch d {
	case Tiny:
		return []float64{math.NaN(), math.Copysign(0, -1), 0, 1.5, -1, math.Inf(1)}[r.IntN(6)]
	case Small:
		return float64(r.IntN(24)-8) / 4
	}
	switch r.IntN(5) {
	case 0:
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e290, math.SmallestNonzeroFloat64}[r.IntN(6)]
	case 1:
		return float64(r.IntN(100)) / 10
	}
	return math.Ldexp(r.Float64()-0.5, r.IntN(120)-60)
}

func (d Domain) text(r *rand.Rand) string {
	switch d {
	case Tiny:
		return []string{"", "a", "b"}[r.IntN(3)]
	case Small:
		return string(rune('a' + r.IntN(12)))
	}
	alphabet := []rune("ab 'Ä日\u0000%_😀Z09")
	var b strings.Builder
	for range r.IntN(20) {
		c := alphabet[r.IntN(len(alphabet))]
		if c == 0 { // kept out of what DuckDB reads as text
			c = 'x'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Plan of random events.
type Plan struct {
	Domain  Domain
	Rows    int
	Deletes bool // a fifth of the events retract, on streams that may
	Heavy   bool // weights up to a hundred
}

// Events draws what happens to relations: rows, retractions of rows that are there, and for streams with a watermark
// event times that mostly rise, several splits, watermarks by hand and idle splits.
func (p Plan) Events(r *rand.Rand, rels []*Relation) []Event {
	var out []Event
	live := make([][]Event, len(rels))
	clock := make([]int64, len(rels))
	splits := 1 + r.IntN(2)
	if splits > 1 {
		for i, rel := range rels {
			if rel.Watermark != "" {
				out = append(out, Event{Kind: Open, Rel: i, Split: "p0"}, Event{Kind: Open, Rel: i, Split: "p1"})
			}
		}
	}
	for range p.Rows {
		i := r.IntN(len(rels))
		rel := rels[i]
		if rel.Key != nil {
			out = append(out, p.said(r, i, rel, splits, &clock[i]))
			continue
		}
		if p.Deletes && (rel.Updating || rel.Table) && len(live[i]) > 0 && r.IntN(4) == 0 {
			n := r.IntN(len(live[i]))
			e := live[i][n]
			all := e.Weight
			if r.IntN(3) == 0 && all > 1 {
				e.Weight = 1 + r.Int64N(all)
			}
			if live[i][n].Weight -= e.Weight; live[i][n].Weight == 0 {
				live[i] = append(live[i][:n], live[i][n+1:]...)
			}
			e.Weight = -e.Weight
			out = append(out, e)
			continue
		}
		e := Event{Kind: Row, Rel: i, Weight: 1, Values: make([]types.Value, len(rel.Fields))}
		for c, f := range rel.Fields {
			e.Values[c] = p.Domain.Value(r, f.Type)
		}
		switch {
		case p.Heavy && r.IntN(4) == 0:
			e.Weight = 1 + r.Int64N(100)
		case r.IntN(6) == 0:
			e.Weight = 2
		}
		if rel.Watermark != "" {
			clock[i] += int64(r.IntN(4)) * 1e6
			if r.IntN(10) > 0 {
				e.Values[rel.EventTime] = int64(1704067200)*1e6 + clock[i] - int64(r.IntN(3))*15e5
			}
			if splits > 1 {
				e.Split = []string{"p0", "p1"}[r.IntN(2)]
			}
		}
		live[i] = append(live[i], e)
		out = append(out, e)
		if rel.Watermark == "" {
			continue
		}
		switch r.IntN(16) {
		case 0:
			out = append(out, Event{Kind: Watermark, Rel: i, At: flow.Watermark(int64(1704067200)*1e6 + clock[i] - 2e6)})
		case 1:
			if splits > 1 {
				out = append(out, Event{Kind: Idle, Rel: i, Split: []string{"p0", "p1"}[r.IntN(2)]})
			}
		}
	}
	return out
}

// said draws what becomes of a key of an upsert stream: a row, or in a fifth of the cases its deletion, from one of the splits.
func (p Plan) said(r *rand.Rand, i int, rel *Relation, splits int, clock *int64) Event {
	e := Event{Kind: Row, Rel: i, Weight: 1, Values: make([]types.Value, len(rel.Fields))}
	if p.Deletes && r.IntN(5) == 0 {
		e.Weight = -1
	}
	for c, f := range rel.Fields {
		switch {
		case slices.Contains(rel.Key, c):
			for e.Values[c] == nil {
				e.Values[c] = p.Domain.Value(r, f.Type)
			}
		case e.Weight > 0:
			e.Values[c] = p.Domain.Value(r, f.Type)
		}
	}
	if rel.Watermark != "" && e.Weight > 0 && r.IntN(10) > 0 {
		*clock += int64(r.IntN(4)) * 1e6
		e.Values[rel.EventTime] = int64(1704067200)*1e6 + *clock - int64(r.IntN(3))*15e5
	}
	if splits > 1 {
		e.Split = []string{"p0", "p1"}[r.IntN(2)]
	}
	return e
}

// Weight bounds the tolerance for sums of doubles: n and the sum of what they hold, from all rows.
func Weight(rels []*Relation, rows [][][]types.Value) Tolerance {
	n, sum := 0, 0.0
	for i, rel := range rels {
		for _, row := range rows[i] {
			for c, f := range rel.Fields {
				if x, ok := row[c].(float64); ok && f.Type.Kind == types.Double && !math.IsNaN(x) && !math.IsInf(x, 0) {
					n++
					sum += math.Abs(x)
				}
			}
		}
	}
	return Tolerance{Ulps: 64, Abs: float64(n) * math.Ldexp(sum, -52)}
}
