package parquet

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/flow"
)

// takeFunc gathers rows of an array.
type takeFunc = func(a arrow.Array, rows []int32) arrow.Array

// batch is one batch while its columns are decoded, those that filters read first.
type batch struct {
	group *group
	cols  []arrow.Array
	coded []bool  // columns whose codes are loaded: see coder
	read  int     // rows of the row group that it covers
	rows  int     // rows that are left
	sel   []int32 // which; nil: all
}

// decode reads column i for the rows that are left, once.
func (b *batch) decode(i int) (err error) {
	if b.cols[i] != nil {
		return nil
	}
	c := b.group.columns[i]
	if b.coded[i] {
		b.cols[i], err = c.(coder).at(b.sel)
	} else if b.sel == nil {
		b.cols[i], err = c.next(b.read)
	} else {
		b.cols[i], err = c.pick(b.read, b.sel, b.group.narrow.Take)
	}
	return b.corrupt(i, err)
}

// corrupt names the file and the column of an error, if there is one.
func (b *batch) corrupt(i int, err error) error {
	if err == nil {
		return nil
	}
	return files.Corrupt(Format{}, b.group.file.ref.Name(), fmt.Errorf("column %q: %w", b.group.names[i], err))
}

// narrow applies the stages. A stage's columns are gathered to the rows that it leaves, and their old buffers reused: nobody
// else has seen them.
func (b *batch) narrow(n *flow.Narrowing) error {
	for _, k := range b.group.order() {
		keep, all, err := b.choose(k, n.Stages[k])
		if err != nil {
			return err
		}
		if all {
			b.group.count(k, b.rows, b.rows)
			continue
		}
		b.group.count(k, b.rows, len(keep))
		for i, c := range b.cols {
			if c != nil {
				b.cols[i] = n.Take(c, keep)
				if _, ok := b.group.columns[i].(lender); ok {
					recycle(c)
				}
			}
		}
		b.rows = len(keep)
		b.sel = compose(b.sel, keep)
	}
	return nil
}

// choose asks a stage which rows are left.
func (b *batch) choose(stage int, st flow.Stage) (keep []int32, all bool, err error) {
	if st.Pure && len(st.Columns) == 1 {
		keep, all, ok, err := b.byCode(stage, st)
		if ok || err != nil {
			return keep, all, err
		}
	}
	in := make([]arrow.Array, len(st.Columns))
	for k, c := range st.Columns {
		if err := b.decode(c); err != nil {
			return nil, false, err
		}
		in[k] = b.cols[c]
	}
	return st.Select(b.group.worker, in, b.rows)
}

// compose is the rows of outer at inner; a nil outer is all rows.
func compose(outer, inner []int32) []int32 {
	if outer == nil {
		return inner
	}
	out := make([]int32, len(inner))
	for i, x := range inner {
		out[i] = outer[x]
	}
	return out
}
