package parquet

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// enoughRows is how many rows a stage must have been shown before its place is changed.
const enoughRows = 4 << 10

// order is the order in which to ask the stages of a batch: what drops the most rows for the columns that it needs decoded
// comes first, as seen in the batches before. Conditions mostly come before the keys of joins, which often keep far fewer.
func (g *group) order() []int {
	n := g.narrow
	g.turns = g.turns[:0]
	fixed := 0
	for i, st := range n.Stages {
		g.turns = append(g.turns, i)
		if !st.Pure {
			fixed = i + 1
		}
	}
	if n.Kept == nil {
		return g.turns
	}
	price := func(i int) float64 { // of a dropped row
		shown, kept := n.Kept[i].Shown.Load(), n.Kept[i].Kept.Load()
		return g.cost(i) * float64(shown) / (float64(shown-kept) + 0.5)
	}
	for _, i := range g.turns[fixed:] {
		if n.Kept[i].Shown.Load() < enoughRows {
			return g.turns
		}
	}
	slices.SortStableFunc(g.turns[fixed:], func(a, b int) int {
		switch x, y := price(a), price(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return g.turns
}

// cost is what a stage's columns take to decode: little where its condition is asked about the few values of a small
// dictionary, much for texts.
func (g *group) cost(stage int) float64 {
	cost := 0.0
	for _, c := range g.narrow.Stages[stage].Columns {
		_, fixed := g.schema.Field(c).Type.(arrow.FixedWidthDataType)
		switch {
		case g.small[c]:
			cost += 0.2
		case fixed:
			cost++
		default:
			cost += 4
		}
	}
	return cost
}

// fewValues reports whether a column chunk has a dictionary that stays in the first cache.
func fewValues(chunk *metadata.ColumnChunkMetaData) bool {
	return chunk.HasDictionaryPage() && chunk.DataPageOffset()-chunk.DictionaryPageOffset() < smallDictionary
}

// count tells how many rows a stage was shown and has kept.
func (g *group) count(stage, shown, kept int) {
	if k := g.narrow.Kept; k != nil {
		k[stage].Shown.Add(int64(shown))
		k[stage].Kept.Add(int64(kept))
	}
}
