package riverbed

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// Rows that an INSERT gives and whose key is there already are left out, or change the row that is there. Of several rows of
// one key in one statement the first counts, as in DuckDB.

// onConflict is the clause of a statement, also of INSERT OR.
func onConflict(t *memTable, st *sql.Insert, to []int) *sql.Conflict {
	switch st.Or {
	case "IGNORE":
		return &sql.Conflict{At: st.At}
	case "REPLACE":
		c := &sql.Conflict{At: st.At}
		for _, i := range to {
			name := sql.Ident{At: st.At, Name: t.columns[i].Name}
			c.Set = append(c.Set, sql.Assignment{Column: name, Value: &sql.ColumnRef{At: st.At, Parts: sql.Name{{At: st.At, Name: excluded}, name}}})
		}
		return c
	}
	return st.Conflict
}

const excluded = "excluded"

// conflictKeys are the keys that a clause means.
func (t *memTable) conflictKeys(c *sql.Conflict) ([]*tableKey, error) {
	if len(c.Columns) == 0 {
		switch {
		case len(t.keys) == 0:
			return nil, errs.E(errs.Schema, "bind", c.Pos, "table %q has no PRIMARY KEY or UNIQUE that rows could conflict with", t.name)
		case len(t.keys) > 1 && c.Set != nil:
			return nil, errs.E(errs.Schema, "bind", c.Pos, "table %q has several keys: say which, ON CONFLICT (columns)", t.name)
		}
		return t.keys, nil
	}
	var want []int
	for _, col := range c.Columns {
		i, err := t.column(col.Name, col.Pos)
		if err != nil {
			return nil, err
		}
		want = append(want, i)
	}
	slices.Sort(want)
	for _, k := range t.keys {
		if slices.Equal(slices.Sorted(slices.Values(k.columns)), want) {
			return []*tableKey{k}, nil
		}
	}
	return nil, errs.E(errs.Schema, "bind", c.Columns[0].Pos, "the columns of ON CONFLICT are no PRIMARY KEY and no UNIQUE of table %q", t.name)
}

// keyGroups gives each row its key's number, and -1 where a NULL makes the key equal to no other.
func keyGroups(g *hashtable.Groups, k *tableKey, cols []arrow.Array, n int) []int {
	out := make([]int, n)
	var sel []int32
	for r := range n {
		out[r] = -1
		if !slices.ContainsFunc(k.columns, func(c int) bool { return cols[c].IsNull(r) }) {
			sel = append(sel, int32(r))
		}
	}
	keys := make([]arrow.Array, len(k.columns))
	for i, c := range k.columns {
		keys[i] = kernels.Take(cols[c], sel)
	}
	ids := make([]uint32, len(sel))
	g.FindOrAdd(keys, len(sel), ids)
	for i, r := range sel {
		out[r] = int(ids[i])
	}
	return out
}

// conflicts parts rows into those whose keys are new and those whose key a row of the table has; at gives its number.
func (t *memTable) conflicts(keys []*tableKey, cols []arrow.Array, n int) (fresh, known []int32, at []int64) {
	groups := make([][]int, len(keys))
	owners := make([][]int64, len(keys))
	for i, k := range keys {
		g := hashtable.NewGroups(t.keyTypes(k))
		for _, b := range presentOf(t.snapshot()) {
			ids := rowIDs(b)
			for r, id := range keyGroups(g, k, b.Columns(), int(b.NumRows())) {
				if id >= 0 {
					owners[i] = append(owners[i], ids[r])
				}
			}
		}
		groups[i] = keyGroups(g, k, cols, n)
	}
	taken := make([]map[int]bool, len(keys))
	for i := range taken {
		taken[i] = map[int]bool{}
	}
	met := map[int64]bool{}
rows:
	for r := range n {
		for i := range keys {
			id := groups[i][r]
			switch {
			case id < 0:
			case id < len(owners[i]):
				if row := owners[i][id]; !met[row] {
					met[row] = true
					known, at = append(known, int32(r)), append(at, row)
				}
				continue rows
			case taken[i][id]:
				continue rows
			}
		}
		for i := range keys {
			if id := groups[i][r]; id >= 0 {
				taken[i][id] = true
			}
		}
		fresh = append(fresh, int32(r))
	}
	return fresh, known, at
}

// qualify lets names without a table in the expressions of ON CONFLICT mean the row that is there.
func (t *memTable) qualify(x sql.Expr, table sql.Ident) {
	sql.Inspect(x, func(n sql.Node) bool {
		if c, ok := n.(*sql.ColumnRef); ok && len(c.Parts) == 1 {
			if _, err := t.column(c.Parts[0].Name, c.Pos); err == nil {
				c.Parts = sql.Name{table, c.Parts[0]}
			}
		}
		return true
	})
}

// insertOrChange is INSERT with what a conflict does.
func (s *Session) insertOrChange(ctx context.Context, cat *scopeCatalog, t *memTable, st *sql.Insert, to []int, added [][]arrow.Array, text string) (*Query, error) {
	clause := onConflict(t, st, to)
	keys, err := t.conflictKeys(clause)
	if err != nil {
		return nil, err
	}
	target := insertTarget(st)
	name := target.Alias.Name
	if name.IsZero() {
		name = st.Table.Last()
	}
	edit := t.edit()
	count := int64(0)
	if len(added) > 0 {
		cols := make([]arrow.Array, len(t.columns))
		for i := range cols {
			pieces := make([]arrow.Array, len(added))
			for k := range added {
				pieces[k] = added[k][i]
			}
			cols[i] = kernels.Concat(pieces)
		}
		fresh, known, at := t.conflicts(keys, cols, cols[0].Len())
		if clause.Set != nil && len(known) > 0 {
			for _, a := range clause.Set {
				t.qualify(a.Value, name)
			}
			if clause.Where != nil {
				t.qualify(clause.Where, name)
			}
			rows := append(kernels.TakeBatch(cols, known), kernels.NewFixed(arrow.PrimitiveTypes.Int64, at, nil))
			inner := *cat
			inner.instead = map[string]*bind.Relation{excluded: t.rowsOf([]arrow.RecordBatch{array.NewRecordBatch(types.ArrowSchema(t.fields), rows, int64(len(known)))})}
			with := &sql.Table{At: st.At, Name: sql.Name{{At: st.At, Name: excluded}}}
			var where sql.Expr = &sql.Binary{At: st.At, Op: sql.OpEq, Left: ref(target, rowIDColumn), Right: ref(with, rowIDColumn)}
			if clause.Where != nil {
				where = &sql.Binary{At: st.At, Op: sql.OpAnd, Left: where, Right: clause.Where}
			}
			if count, err = s.changeRows(ctx, &inner, edit, &sql.Update{At: st.At, Table: target, Set: clause.Set, From: []sql.TableRef{with}, Where: where}, text); err != nil {
				return nil, err
			}
		}
		if len(fresh) > 0 {
			edit.append(kernels.TakeBatch(cols, fresh), len(fresh))
			count += int64(len(fresh))
		}
	}
	written := edit.written()
	if err := edit.checkKeys(written); err != nil {
		t.forgetKeys()
		return nil, placed(err, st.Position())
	}
	return s.finish(ctx, cat, edit, target, st.Returning, written, count, text)
}

// insertTarget is the table of an INSERT as RETURNING and ON CONFLICT name it.
func insertTarget(st *sql.Insert) *sql.Table {
	return &sql.Table{At: st.At, Name: st.Table, Alias: sql.Alias{Name: st.Alias}}
}

// written are the rows that an edit added, removed the ones that it took away.
func (e *tableEdit) written() []arrow.RecordBatch { return e.changed(1) }
func (e *tableEdit) removed() []arrow.RecordBatch { return e.changed(-1) }

func (e *tableEdit) changed(sign int64) []arrow.RecordBatch {
	var out []arrow.RecordBatch
	for _, d := range e.deltas {
		if d.sign == sign {
			out = append(out, d.rows)
		}
	}
	return out
}

// entryKey is under what the catalog keeps a name.
func (c *catalog) entryKey(n sql.Name) string {
	key, _ := c.key(partsOf(n))
	return strings.ToLower(key)
}
