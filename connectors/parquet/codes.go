package parquet

import (
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/riverbed/riverbed/core/flow"
)

// coder is a column whose rows may stand as codes into the dictionary of its chunk, so that a condition is asked once about
// each value of the dictionary instead of once about each row.
type coder interface {
	// known makes the dictionary known and returns its size; ok is false when the next row stands outside of it.
	known() (size int, ok bool, err error)
	// load reads the next rows as codes. When a page outside the dictionary comes it gives their array instead.
	load(rows int) (arrow.Array, error)
	// codes are those of the rows that were loaded; NULL is the code behind the last.
	codes() []uint32
	// entries are the values of all codes, in order, NULL as the last. It is a view.
	entries() arrow.Array
	// at returns the loaded rows of sel, nil for all.
	at(sel []int32) (arrow.Array, error)
}

var errNoSuchCode = errors.New("an index outside the dictionary")

// coded is what columns with a dictionary share.
type coded struct {
	chunk
	idx    hybrid
	inDict bool
	size   int // values of the dictionary

	row   []uint32 // codes of the loaded rows
	valid validity
}

func (c *coded) codes() []uint32 { return c.row }

// loadCodes reads up to rows rows as codes, less when a page outside the dictionary comes.
func (c *coded) loadCodes(v values, rows int) (at int, err error) {
	c.row = slices.Grow(c.row[:0], rows)[:rows]
	c.valid = validity{rows: rows}
	for at < rows {
		if err := c.page(v); err != nil {
			return at, err
		}
		if !c.inDict {
			return at, nil
		}
		n := min(c.left, rows-at)
		some := n
		if c.optional {
			if some, err = c.valid.levels(&c.defs, at, n); err != nil {
				return at, err
			}
		}
		to := c.row[at : at+n]
		if err := c.idx.read(to[:some]); err != nil {
			return at, err
		}
		for _, x := range to[:some] {
			if int(x) >= c.size {
				return at, errNoSuchCode
			}
		}
		if some < n {
			spreadOr(to, some, c.valid.bits, at, uint32(c.size))
		}
		c.left -= n
		at += n
	}
	return at, nil
}

// pickCodes are the loaded codes of sel, and their validity; nil is all.
func (c *coded) pickCodes(sel []int32) ([]uint32, validity) {
	v := c.valid
	if sel == nil {
		return c.row, v
	}
	v.narrow(sel)
	v.rows = len(sel)
	out := grabOf[uint32](len(sel))
	for i, r := range sel {
		out[i] = c.row[r]
	}
	return out, v
}

// answer is what a stage says of each code of a column: 1 keeps the row.
type answer []uint8

// ask puts a stage's question about the dictionary.
func (g *group) ask(st flow.Stage, c coder, size int) (answer, error) {
	keep, all, err := st.Select(g.worker, []arrow.Array{c.entries()}, size+1)
	if err != nil {
		return nil, err
	}
	a := make(answer, size+1)
	if all {
		for i := range a {
			a[i] = 1
		}
	}
	for _, x := range keep {
		a[x] = 1
	}
	return a, nil
}

// byCode selects the rows of a pure stage of one column by their codes; ok is false where that is not possible or not worth it.
func (b *batch) byCode(stage int, st flow.Stage) (keep []int32, all, ok bool, err error) {
	g, i := b.group, st.Columns[0]
	c, is := g.columns[i].(coder)
	if !is || b.cols[i] != nil && !b.coded[i] {
		return nil, false, false, nil
	}
	if !b.coded[i] {
		size, known, err := c.known()
		// A question about a value costs as much as one about a row; rows that other stages dropped are not asked about.
		if err != nil {
			return nil, false, false, b.corrupt(i, err)
		}
		if !known || g.answers[stage] == nil && 2*int64(size) > g.rows*int64(b.rows)/int64(b.read) {
			return nil, false, false, nil
		}
		whole, err := c.load(b.read)
		if err != nil {
			return nil, false, false, b.corrupt(i, err)
		}
		if whole != nil {
			if b.cols[i] = whole; b.sel != nil {
				b.cols[i] = g.narrow.Take(whole, b.sel)
			}
			return nil, false, false, nil
		}
		b.coded[i] = true
	}
	a := g.answers[stage]
	if a == nil {
		size, _, _ := c.known()
		if a, err = g.ask(st, c, size); err != nil {
			return nil, false, false, err
		}
		g.answers[stage] = a
	}
	rows, k := slices.Grow(g.kept[stage][:0], b.rows)[:b.rows], 0
	g.kept[stage] = rows
	codes := c.codes()
	if b.sel == nil {
		for row, x := range codes[:len(rows)] {
			rows[k] = int32(row)
			k += int(a[x])
		}
	} else {
		for j, row := range b.sel {
			rows[k] = int32(j)
			k += int(a[codes[row]])
		}
	}
	return rows[:k], k == b.rows, true, nil
}

// validUntilLast is the validity of a dictionary's entries.
func validUntilLast(n int) validity {
	v := validity{rows: n, nulls: 1, bits: make([]byte, (n+7)/8)}
	bitutil.SetBitsTo(v.bits, 0, int64(n-1), true)
	return v
}
