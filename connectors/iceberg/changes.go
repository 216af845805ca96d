package iceberg

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// changes are what becomes of keys in an epoch: each has its last row, or is gone.
type changes struct {
	key    []int
	fields []types.Field

	batches [][]arrow.Array // of deltas, in order
	at      map[string]change
}

// change is the last word on a key.
type change struct {
	batch int
	row   int32
	gone  bool
}

func newChanges(key []int, fields []types.Field) *changes {
	return &changes{key: key, fields: fields, at: map[string]change{}}
}

// add takes what becomes of keys. Within a delta the row that comes says more than the one that goes.
func (c *changes) add(d flow.Delta) error {
	cols := d.Columns()
	keyed := make([]arrow.Array, len(c.key))
	for i, at := range c.key {
		if keyed[i] = cols[at]; keyed[i].NullN() > 0 {
			return errs.New(errs.Data, "write", "a row is NULL in the column %q of the key", c.fields[at].Name).WithHint("leave such rows out (WHERE … IS NOT NULL), or choose another key")
		}
	}
	batch := len(c.batches)
	c.batches = append(c.batches, cols)
	weights := d.Weights()
	keys := keysOf(keyed)
	var key []byte
	for row := range d.Rows() {
		weight := int64(1)
		if weights != nil {
			weight = weights[row]
		}
		key = keys.of(key[:0], row)
		have, known := c.at[string(key)]
		ours := known && have.batch == batch
		switch {
		case weight == 0, weight < 0 && ours:
			continue
		case weight > 1, weight > 0 && ours && !have.gone:
			return errs.New(errs.Data, "write", "the query has two rows of one key").WithHint("the option key must name columns that tell all rows of the query apart")
		}
		c.at[string(key)] = change{batch, int32(row), weight < 0}
	}
	return nil
}

// rows hands out the rows that stand, and of keys that are gone their columns, batch by batch.
func (c *changes) rows(stands, gone func(cols []arrow.Array, rows int) error) error {
	stay, go_ := make([][]int32, len(c.batches)), make([][]int32, len(c.batches))
	for _, ch := range c.at { // into lists that are sorted then
		if ch.gone {
			go_[ch.batch] = append(go_[ch.batch], ch.row)
		} else {
			stay[ch.batch] = append(stay[ch.batch], ch.row)
		}
	}
	for i, cols := range c.batches {
		slices.Sort(stay[i])
		if len(stay[i]) > 0 {
			if err := stands(kernels.TakeBatch(cols, stay[i]), len(stay[i])); err != nil {
				return err
			}
		}
		slices.Sort(go_[i])
		if len(go_[i]) > 0 {
			keyed := make([]arrow.Array, len(c.key))
			for k, at := range c.key {
				keyed[k] = kernels.Take(cols[at], go_[i])
			}
			if err := gone(keyed, len(go_[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *changes) clear() { c.batches, c.at = nil, map[string]change{} }
