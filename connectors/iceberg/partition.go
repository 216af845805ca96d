package iceberg

import (
	"net/url"
	"path"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// partitioner splits rows by the partition that they belong into.
type partitioner struct{ parts []part }

type part struct {
	transform
	field  meta.PartitionField
	column int // of the form
}

func newPartitioner(t *table, m *meta.Table, f *form) (*partitioner, error) {
	out := &partitioner{}
	for _, p := range m.Partition {
		if p.Transform == "void" {
			continue
		}
		at := f.at(p.Source)
		if at < 0 {
			return nil, errs.New(errs.Unsupported, "open sink", "the Iceberg table %q is partitioned by %q, whose column is not written", t.name, p.Name)
		}
		tr, err := transformOf(p.Transform, f.columns[at].typ)
		if err != nil {
			return nil, errs.Because(err, errs.Source, "open sink", "", "the Iceberg table %q is partitioned by %q", t.name, p.Name)
		}
		out.parts = append(out.parts, part{tr, p, at})
	}
	return out, nil
}

// partition is the values of its parts.
type partition struct {
	values map[string]string // by name, in Iceberg's JSON form; a missing name is NULL
	folder string
}

// group is rows of one partition.
type group struct {
	key  string
	rows []int32
}

// split groups rows in the order in which their partitions first come. values are the parts' values of all rows.
func (p *partitioner) split(cols []arrow.Array, rows int) (groups []group, values []arrow.Array) {
	values = make([]arrow.Array, len(p.parts))
	for i, part := range p.parts {
		values[i] = part.of(cols[part.column])
	}
	at := map[string]int{}
	keys := keysOf(values)
	var key []byte
	for row := range rows {
		key = keys.of(key[:0], row)
		g, ok := at[string(key)]
		if !ok {
			g = len(groups)
			at[string(key)] = g
			groups = append(groups, group{key: string(key)})
		}
		groups[g].rows = append(groups[g].rows, int32(row))
	}
	return groups, values
}

// of is the partition of a row.
func (p *partitioner) of(values []arrow.Array, row int32) partition {
	out := partition{values: map[string]string{}}
	for i, part := range p.parts {
		v, shown := types.ValueAt(values[i], int(row), part.typ), "null"
		if v != nil {
			out.values[part.field.Name] = formatValue(v, part.typ)
			shown = url.PathEscape(part.shown(v))
		}
		out.folder = path.Join(out.folder, url.PathEscape(part.field.Name)+"="+shown)
	}
	return out
}

// take gathers rows; all of them where they are as many.
func take(cols []arrow.Array, rows []int32, all int) []arrow.Array {
	if len(rows) == all {
		return cols
	}
	return kernels.TakeBatch(cols, rows)
}
