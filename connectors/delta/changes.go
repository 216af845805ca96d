package delta

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// item is rows of one file that come or go with a version.
type item struct {
	s      *stream
	file   *dataFile
	weight int64 // 1 or -1; 0: the file says so itself, row by row
	// than: the rows are those that the file's vector hides and this one, of the same file, does not. Otherwise those that the file's vector leaves.
	than   *vectorRef
	differ bool
}

// changes are what a commit does to the rows of a table. Files that are only written anew (OPTIMIZE) do nothing to them.
func (s *snapshot) changes(a *actions) []item {
	out := []item{}
	if len(a.changes) > 0 { // the writer says itself what changed, and its data files need not be compared
		for _, f := range a.changes {
			out = append(out, item{file: f})
		}
		return out
	}
	added, gone := map[string]*dataFile{}, map[fileKey]bool{}
	for _, f := range a.adds {
		if f.DataChange {
			added[f.Path] = f
		}
	}
	paired := map[*dataFile]bool{}
	for _, f := range a.removes {
		old := s.files[f.key()]
		if old == nil || gone[f.key()] {
			continue
		}
		gone[f.key()] = true
		if !f.DataChange {
			continue
		}
		again := added[f.Path]
		if again == nil {
			out = append(out, item{file: old, weight: -1})
			continue
		}
		// The same file with another vector: rows went, or came back.
		paired[again] = true
		if again.Vector.id() == old.Vector.id() {
			continue
		}
		if again.Vector != nil {
			out = append(out, item{file: again, weight: -1, than: old.Vector, differ: true})
		}
		if old.Vector != nil {
			out = append(out, item{file: old, weight: 1, than: again.Vector, differ: true})
		}
	}
	for _, f := range a.adds {
		if there := s.files[f.key()] != nil && !gone[f.key()]; f.DataChange && !paired[f] && !there {
			out = append(out, item{file: f, weight: 1})
		}
	}
	return out
}

// changeType is the column of a change data file that says what happened to a row.
const changeType = "_change_type"

// Open opens the item's file and finds which of its rows are meant.
func (it *item) Open(ctx context.Context) (src *datafile.File, p datafile.Picks, err error) {
	s := it.s
	columns := s.columns
	if it.weight == 0 {
		columns = append(columns[:len(columns):len(columns)], column{Field: types.Field{Name: changeType, Type: types.String}, physical: changeType})
	}
	if src, err = s.table.open(ctx, it.file, columns); err != nil {
		return nil, p, err
	}
	if it.weight == 0 && !src.Has(len(columns)-1) {
		return nil, p, errs.New(errs.Source, "open", "the change data file %q of the Delta table %q has no column %s", it.file.Path, s.table.path, changeType).
			WithHint("the table was written wrongly; read its newest version by a new pipeline")
	}
	if p.Set, err = it.file.Vector.load(ctx, s.table, src.Rows); err != nil {
		return nil, p, s.table.badVector(it.file, err)
	}
	if it.differ {
		other, err := it.than.load(ctx, s.table, src.Rows)
		if err != nil {
			return nil, p, s.table.badVector(it.file, err)
		}
		p.Set, p.Within = p.Set.Minus(other), true
	}
	return src, p, nil
}

// Weigh gives rows their weights, where the stream has any.
func (it *item) Weigh(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	out, err := it.weigh(b)
	if err != nil {
		return nil, errs.Because(err, errs.Source, "read", "", "the file %q of the Delta table %q", it.file.Path, it.s.table.path)
	}
	return out, nil
}

func (it *item) weigh(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	s := it.s
	n := int(b.NumRows())
	cols := b.Columns()
	weights := make([]int64, n)
	for i := range weights {
		weights[i] = it.weight
	}
	if it.weight == 0 {
		kinds := cols[len(cols)-1].(*array.String)
		cols = cols[:len(cols)-1]
		for i := range n {
			switch kind := kinds.Value(i); kind {
			case "insert", "update_postimage":
				weights[i] = 1
			case "delete", "update_preimage":
				if weights[i] = -1; !s.updating {
					return nil, errs.New(errs.Source, "read", "it takes rows away, and the stream is append-only").
						WithHint("leave append_only out when rows of the table are changed or deleted")
				}
			default:
				return nil, fmt.Errorf("it holds the change %q, which is not known", kind)
			}
		}
	}
	schema := types.ArrowSchema(s.fields)
	if s.updating {
		schema = flow.WithWeights(schema)
		cols = append(cols[:len(cols):len(cols)], kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil))
	}
	return array.NewRecordBatch(schema, cols, int64(n)), nil
}
