package riverbed

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// An index speeds nothing up here: scans skip chunks by the ranges of their columns. A unique one is kept as a key that
// rows are held against; plans do not build on it, so it may go again.

// index is an entry of the catalog.
type index struct {
	table *memTable
	key   *tableKey // nil when it is not unique
}

func (s *Session) createIndex(st *sql.CreateIndex) error {
	t, err := s.cat.Load().targetTable(st.Table)
	if err != nil {
		return err
	}
	ix := &index{table: t}
	var columns []int
	for _, k := range st.Keys {
		c, ok := k.(*sql.ColumnRef)
		if ok && len(c.Parts) == 1 {
			i, err := t.column(c.Parts[0].Name, c.Pos)
			if err != nil {
				return err
			}
			columns = append(columns, i)
			continue
		}
		if st.Unique {
			return errs.E(errs.Unsupported, "create index", k.Position(), "a unique index of an expression is not supported").
				WithHint("make it a generated column, and the index over that")
		}
		if _, err := s.overRow(nil, t, k, anyType, nil, 0); err != nil && errs.As(err).Kind == errs.Schema {
			return err
		}
	}
	name := st.Name
	if name.IsZero() {
		name = sql.Ident{At: st.At, Name: t.name + "_" + strings.ToLower(sql.Print(st.Keys[0])) + "_idx"}
	}
	full := append(slices.Clone(st.Table[:len(st.Table)-1]), name)
	if st.Unique && s.transaction() != nil {
		return errs.E(errs.Usage, "create index", st.Pos, "a unique index cannot be made in a transaction: ROLLBACK could not undo it").WithHint("COMMIT or ROLLBACK first")
	}
	if key, _ := s.cat.Load().name(full); s.cat.Load().object(indexObject, key) == nil && st.Unique {
		ix.key = &tableKey{columns: columns, index: true}
		t.keys = append(slices.Clip(t.keys), ix.key)
		if err := checkAll(t, st.Pos); err != nil {
			t.dropKey(ix.key)
			return err
		}
	}
	err = s.createObject(newObject{kind: indexObject, name: full, ifNotExists: st.IfNotExists, value: ix})
	if err != nil && ix.key != nil {
		t.dropKey(ix.key)
	}
	return err
}

func (t *memTable) dropKey(key *tableKey) {
	t.keys = slices.DeleteFunc(slices.Clone(t.keys), func(k *tableKey) bool { return k == key })
}

func (s *Session) dropIndex(st *sql.Drop) error {
	v, err := s.dropObject(indexObject, st, func(_ *catalog, _ string, v any) error {
		if v.(*index).key != nil && s.txn != nil { // the session is locked
			return errs.E(errs.Usage, "drop", st.Pos, "a unique index cannot be dropped in a transaction: ROLLBACK could not undo it").WithHint("COMMIT or ROLLBACK first")
		}
		return nil
	})
	if ix, ok := v.(*index); ok && ix.key != nil {
		ix.table.dropKey(ix.key)
	}
	return err
}
