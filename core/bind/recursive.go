package bind

import (
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// readsItself reports whether the second part of a UNION reads the CTE.
func (c *cte) readsItself() (*sql.SetOp, bool) {
	op, ok := c.def.Query.Body.(*sql.SetOp)
	if !c.self || !ok || op.Kind != sql.Union {
		return nil, false
	}
	found := false
	sql.Inspect(op.Right, func(n sql.Node) bool {
		if t, ok := n.(*sql.Table); ok && len(t.Name) == 1 && sameName(t.Name[0].Name, c.def.Name.Name) {
			found = true
		}
		return !found
	})
	return op, found
}

// recursive binds base UNION [ALL] step, where step reads the CTE. Its columns are the base's.
func (b *Binder) recursive(c *cte, op *sql.SetOp) (plan.Node, []plan.Column) {
	q := c.def.Query
	if len(q.OrderBy) > 0 || q.Limit != nil || q.Offset != nil {
		failHint(q.Pos, "put them where "+c.def.Name.Name+" is read", "ORDER BY, LIMIT and OFFSET cannot stand in a recursive query")
	}
	if op.ByName {
		failUnsupported(op.Pos, "BY NAME in a recursive query")
	}
	b.busy[c] = true
	defer delete(b.busy, c)
	ctes := b.with(q.With, c.outer, c)
	base := b.branch(op.Left, c.outer, ctes)
	out := &plan.Recursive{Base: base, All: op.All, Pos: op.Pos}
	fields := []types.Field{}
	for _, col := range renamed(base.Columns(), c.def.Columns, c.def.Name.Name) {
		if col.Type.Kind == types.Null {
			col.Type = types.Int32
		}
		fields = append(fields, types.Field{Name: col.Name, Type: col.Type})
		out.Cols = append(out.Cols, b.column(col.Name, col.Type))
	}
	out.Base = b.castColumns(base, out.Cols, op.Pos)
	out.Work = &plan.WorkTable{Of: fields}
	c.work = &plan.Source{Name: c.def.Name.Name, Relation: out.Work, Fields: fields}
	defer func() { c.work = nil }()
	step := b.branch(op.Right, c.outer, ctes)
	cols := step.Columns()
	if len(cols) != len(out.Cols) {
		fail(op.Pos, "the two sides of a recursive UNION have %d and %d columns", len(out.Cols), len(cols))
	}
	for i, col := range cols {
		if !types.CanCast(col.Type, out.Cols[i].Type) {
			failHint(op.Pos, "cast it in the first part", "column %q of the recursive query is %s first, and then %s", out.Cols[i].Name, out.Cols[i].Type, col.Type)
		}
	}
	out.Step = b.castColumns(step, out.Cols, op.Pos)
	b.whole[out] = true
	return out, out.Cols
}
