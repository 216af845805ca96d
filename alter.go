package riverbed

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// ALTER makes another table of the rows and puts it in the place of the old one. A materialized view that reads the table
// would have to become another view, so it stands in the way; a plain view is bound anew when it is read.

func (s *Session) alter(ctx context.Context, cat *scopeCatalog, st *sql.Alter, text string) error {
	name, err := cat.cat.read(st.Name)
	if err != nil {
		return err
	}
	e := cat.cat.get(name)
	switch {
	case e == nil && st.IfExists:
		return nil
	case e == nil:
		return errs.E(errs.Schema, "alter", st.Name.Position(), "no table %q", name).WithHint("%s", errs.DidYouMean(name, cat.cat.names()))
	case st.Kind == sql.AlterRename:
		return s.rename(e, st)
	case e.table == nil:
		return errs.E(errs.Schema, "alter", st.Name.Position(), "%q is a %s; only in-memory tables can be altered", e.name, strings.ToLower(e.kind()))
	}
	next, err := s.altered(ctx, e.table, st, text)
	if err != nil || next == nil {
		return err
	}
	return s.exchange(e, next, st)
}

// exchange puts an altered table in the place of the one that it was made of.
func (s *Session) exchange(e *entry, next *memTable, st *sql.Alter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if s.txn != nil {
		return errs.E(errs.Usage, "alter", st.Pos, "ALTER cannot stand in a transaction: ROLLBACK could not undo it").WithHint("COMMIT or ROLLBACK first")
	}
	if s.cat.Load().get(e.name) != e {
		return errs.E(errs.Schema, "alter", st.Pos, "another statement changed the table %q meanwhile", e.name)
	}
	if err := s.unread(e, st.Name.Position()); err != nil {
		return err
	}
	if s.feeds.follows(e.table) {
		return errs.E(errs.Usage, "alter", st.Name.Position(), "a running query follows the table %q", e.name).WithHint("stop it first")
	}
	other := *e
	other.table = next
	s.cat.Store(s.cat.Load().with(&other))
	return nil
}

// rename gives a relation another name.
func (s *Session) rename(e *entry, st *sql.Alter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cat := s.cat.Load()
	to := st.To.Name
	if schema, _, ok := strings.Cut(e.name, "."); ok && cat.object(schemaObject, schema) != nil {
		to = schema + "." + to
	}
	if e.table == nil && e.view == nil {
		return errs.E(errs.Unsupported, "alter", st.Name.Position(), "a %s cannot be renamed", strings.ToLower(e.kind()))
	}
	if st.View != (e.view != nil) {
		return errs.E(errs.Schema, "alter", st.Name.Position(), "%q is a %s", e.name, strings.ToLower(e.kind()))
	}
	if other := cat.get(to); other != nil && other != e {
		return errs.E(errs.Schema, "alter", st.To.Pos, "%s %q exists already", strings.ToLower(other.kind()), other.name)
	}
	if s.txn != nil {
		return errs.E(errs.Usage, "alter", st.Pos, "ALTER cannot stand in a transaction: ROLLBACK could not undo it").WithHint("COMMIT or ROLLBACK first")
	}
	if err := s.unread(e, st.Name.Position()); err != nil {
		return err
	}
	renamed := *e
	renamed.name = to
	if e.table != nil {
		if s.feeds.follows(e.table) {
			return errs.E(errs.Usage, "alter", st.Name.Position(), "a running query follows the table %q", e.name).WithHint("stop it first")
		}
		renamed.table = e.table.copyAs(to, e.table.columns)
	} else {
		view := *e.view
		view.Name = to
		renamed.view = &view
	}
	s.cat.Store(cat.without(e.name).with(&renamed))
	return nil
}

// copyAs is a table of the same rows with other names.
func (t *memTable) copyAs(name string, columns []types.Field) *memTable {
	n := newMemTable(name, columns)
	n.defaults, n.generated, n.notNull = slices.Clone(t.defaults), slices.Clone(t.generated), slices.Clone(t.notNull)
	n.inTurn, n.checks, n.next = slices.Clone(t.inTurn), slices.Clone(t.checks), t.next
	for _, k := range t.keys {
		n.keys = append(n.keys, &tableKey{columns: slices.Clone(k.columns), index: k.index, primary: k.primary})
	}
	var batches []arrow.RecordBatch
	schema := types.ArrowSchema(n.fields)
	for _, b := range presentOf(t.snapshot()) {
		batches = append(batches, array.NewRecordBatch(schema, b.Columns(), b.NumRows()))
	}
	n.replace(chunksOf(batches))
	return n
}

// altered is the table as ALTER wants it; nil when nothing is to be done.
func (s *Session) altered(ctx context.Context, t *memTable, st *sql.Alter, text string) (*memTable, error) {
	if st.Kind == sql.AlterAddColumn {
		return s.addColumn(ctx, t, st, text)
	}
	if st.Kind == sql.AlterAddKey {
		return s.addKey(t, st, text)
	}
	i, err := t.column(st.Column.Name, st.Column.Pos)
	if err != nil {
		if st.ColumnIf {
			return nil, nil
		}
		return nil, err
	}
	switch st.Kind {
	case sql.AlterRenameColumn:
		return s.renameColumn(t, st, i)
	case sql.AlterDropColumn:
		return s.dropColumn(t, st, i)
	case sql.AlterType:
		return s.changeType(ctx, t, st, i, text)
	}
	n := t.copyAs(t.name, t.columns)
	switch st.Kind {
	case sql.AlterSetDefault:
		if err := t.notGenerated(i, st.Column.Pos); err != nil {
			return nil, err
		}
		if _, err := bind.New(s.scope(), bind.Options{SQL: text}).Expr(st.Value, nil, t.columns[i].Type); err != nil {
			return nil, err
		}
		n.defaults[i] = st.Value
	case sql.AlterDropDefault:
		n.defaults[i] = nil
	case sql.AlterDropNotNull:
		if slices.ContainsFunc(t.keys, func(k *tableKey) bool { return k.primary && slices.Contains(k.columns, i) }) {
			return nil, errs.E(errs.Schema, "alter", st.Column.Pos, "column %q is of the PRIMARY KEY", t.columns[i].Name)
		}
		n.notNull[i] = false
	case sql.AlterSetNotNull:
		for _, b := range presentOf(t.snapshot()) {
			if b.Column(i).NullN() > 0 {
				return nil, errs.E(errs.Data, "alter", st.Column.Pos, "column %q of table %q has NULLs", t.columns[i].Name, t.name)
			}
		}
		n.notNull[i] = true
	}
	return n, nil
}

func (s *Session) renameColumn(t *memTable, st *sql.Alter, i int) (*memTable, error) {
	if j, err := t.column(st.To.Name, st.To.Pos); err == nil && j != i {
		return nil, errs.E(errs.Schema, "alter", st.To.Pos, "table %q has a column %q already", t.name, st.To.Name)
	}
	columns := slices.Clone(t.columns)
	columns[i].Name = st.To.Name
	if err := distinctNames(columns); err != nil {
		return nil, placed(err, st.To.Pos)
	}
	n := t.copyAs(t.name, columns)
	for _, list := range [][]sql.Expr{n.generated, n.checks} {
		for k, x := range list {
			if x == nil || !slices.Contains(t.readBy(x), i) {
				continue
			}
			again, err := sql.ParseExpr(sql.Print(x)) // a copy, that the old table keeps its own
			if err != nil {
				return nil, err
			}
			sql.Inspect(again, func(node sql.Node) bool {
				if c, ok := node.(*sql.ColumnRef); ok {
					for p := range c.Parts {
						if strings.EqualFold(c.Parts[p].Name, t.columns[i].Name) {
							c.Parts[p].Name = st.To.Name
						}
					}
				}
				return true
			})
			list[k] = again
		}
	}
	return n, nil
}

func (s *Session) dropColumn(t *memTable, st *sql.Alter, i int) (*memTable, error) {
	name := t.columns[i].Name
	if len(t.columns) == 1 {
		return nil, errs.E(errs.Schema, "alter", st.Column.Pos, "%q is the only column of table %q", name, t.name)
	}
	for k, x := range t.generated {
		if x != nil && k != i && slices.Contains(t.readBy(x), i) {
			return nil, errs.E(errs.Schema, "alter", st.Column.Pos, "the generated column %q is computed of %q", t.columns[k].Name, name)
		}
	}
	for _, x := range t.checks {
		if slices.Contains(t.readBy(x), i) {
			return nil, errs.E(errs.Schema, "alter", st.Column.Pos, "CHECK (%s) reads the column %q", sql.Print(x), name)
		}
	}
	for _, k := range t.keys {
		if slices.Contains(k.columns, i) {
			return nil, errs.E(errs.Schema, "alter", st.Column.Pos, "a key or an index of table %q has the column %q", t.name, name)
		}
	}
	n := newMemTable(t.name, slices.Delete(slices.Clone(t.columns), i, i+1))
	n.defaults, n.generated, n.notNull = slices.Delete(slices.Clone(t.defaults), i, i+1), slices.Delete(slices.Clone(t.generated), i, i+1), slices.Delete(slices.Clone(t.notNull), i, i+1)
	n.checks, n.next = t.checks, t.next
	for _, k := range t.keys {
		moved := &tableKey{index: k.index, primary: k.primary}
		for _, c := range k.columns {
			if c > i {
				c--
			}
			moved.columns = append(moved.columns, c)
		}
		n.keys = append(n.keys, moved)
	}
	var err error
	if n.inTurn, err = n.generationOrder(); err != nil {
		return nil, err
	}
	schema := types.ArrowSchema(n.fields)
	var batches []arrow.RecordBatch
	for _, b := range presentOf(t.snapshot()) {
		batches = append(batches, array.NewRecordBatch(schema, slices.Delete(slices.Clone(b.Columns()), i, i+1), b.NumRows()))
	}
	n.replace(chunksOf(batches))
	return n, nil
}

func (s *Session) addColumn(ctx context.Context, t *memTable, st *sql.Alter, text string) (*memTable, error) {
	if _, err := t.column(st.Add.Name.Name, st.Add.Pos); err == nil {
		if st.ColumnIf {
			return nil, nil
		}
		return nil, errs.E(errs.Schema, "alter", st.Add.Pos, "table %q has a column %q already", t.name, st.Add.Name.Name)
	}
	if st.Add.Generated != nil || st.Add.PrimaryKey || st.Add.Unique || len(st.Add.Checks) > 0 {
		return nil, errs.E(errs.Unsupported, "alter", st.Add.Pos, "ADD COLUMN takes a type, a default and NOT NULL").WithHint("create the table anew: CREATE TABLE … AS")
	}
	fields, err := s.columnFields([]sql.ColumnDef{*st.Add})
	if err != nil {
		return nil, err
	}
	columns := append(slices.Clone(t.columns), fields[0])
	if err := distinctNames(columns); err != nil {
		return nil, placed(err, st.Add.Pos)
	}
	n := newMemTable(t.name, columns)
	old := t.copyAs(t.name, t.columns)
	n.defaults, n.generated, n.notNull = append(old.defaults, st.Add.Default), append(old.generated, nil), append(old.notNull, st.Add.NotNull)
	n.inTurn, n.checks, n.keys, n.next = old.inTurn, old.checks, old.keys, old.next
	if st.Add.Default != nil {
		if _, err := bind.New(s.scope(), bind.Options{SQL: text}).Expr(st.Add.Default, nil, fields[0].Type); err != nil {
			return nil, err
		}
	}
	schema := types.ArrowSchema(n.fields)
	var batches []arrow.RecordBatch
	for _, b := range presentOf(t.snapshot()) {
		value, err := s.columnOf(ctx, st.Add.Default, fields[0], int(b.NumRows()))
		if err != nil {
			return nil, err
		}
		if st.Add.NotNull && value.NullN() > 0 {
			return nil, errs.E(errs.Data, "alter", st.Add.Pos, "column %q is NOT NULL and has no default, and table %q has rows", fields[0].Name, t.name)
		}
		last := int(b.NumCols()) - 1
		batches = append(batches, array.NewRecordBatch(schema, append(slices.Clone(b.Columns()[:last]), value, b.Column(last)), b.NumRows()))
	}
	n.replace(chunksOf(batches))
	return n, nil
}

// columnOf is a new column of n rows: its default, or NULLs.
func (s *Session) columnOf(ctx context.Context, x sql.Expr, f types.Field, n int) (arrow.Array, error) {
	if x == nil {
		x = &sql.Literal{Kind: sql.LitNull, Text: "null"}
	}
	return s.defaultColumn(s.fnEnv(ctx), x, f, n)
}

func (s *Session) changeType(ctx context.Context, t *memTable, st *sql.Alter, i int, text string) (*memTable, error) {
	for _, x := range t.checks {
		if slices.Contains(t.readBy(x), i) {
			return nil, errs.E(errs.Schema, "alter", st.Column.Pos, "CHECK (%s) reads the column %q", sql.Print(x), t.columns[i].Name)
		}
	}
	for k, x := range t.generated {
		if x != nil && (k == i || slices.Contains(t.readBy(x), i)) {
			return nil, errs.E(errs.Schema, "alter", st.Column.Pos, "the generated column %q depends on the type", t.columns[k].Name)
		}
	}
	typ, err := bind.Type(st.Type)
	if err != nil {
		return nil, err
	}
	columns := slices.Clone(t.columns)
	columns[i].Type = typ
	n := t.copyAs(t.name, t.columns)
	n.columns, n.fields = columns, append(slices.Clone(columns), n.fields[len(n.fields)-1])
	value := st.Value
	if value == nil {
		value = &sql.ColumnRef{At: st.At, Parts: sql.Name{st.Column}}
	}
	env := s.fnEnv(ctx)
	schema := types.ArrowSchema(n.fields)
	var batches []arrow.RecordBatch
	for _, b := range presentOf(t.snapshot()) {
		col, err := s.overRow(env, t, value, typ, b.Columns()[:len(t.columns)], int(b.NumRows()))
		if err != nil {
			return nil, placed(err, st.Column.Pos)
		}
		if t.notNull[i] && col.NullN() > 0 {
			return nil, errs.E(errs.Data, "alter", st.Column.Pos, "column %q is NOT NULL, and the new value of a row is NULL", columns[i].Name)
		}
		cols := slices.Clone(b.Columns())
		cols[i] = col
		batches = append(batches, array.NewRecordBatch(schema, cols, b.NumRows()))
	}
	if n.defaults[i] != nil {
		if _, err := bind.New(s.scope(), bind.Options{SQL: text}).Expr(n.defaults[i], nil, typ); err != nil {
			return nil, err
		}
	}
	n.replace(chunksOf(batches))
	return n, checkAll(n, st.Column.Pos)
}

// checkAll looks whether the rows of a table fulfil its keys.
func checkAll(n *memTable, pos errs.Pos) error {
	n.forgetKeys()
	e := n.edit()
	if err := e.checkKeys(nil); err != nil {
		return placed(err, pos)
	}
	return nil
}

func (s *Session) addKey(t *memTable, st *sql.Alter, text string) (*memTable, error) {
	n := t.copyAs(t.name, t.columns)
	if st.Constraint.Kind == sql.Check {
		if err := s.addCheck(n, st.Constraint.Check, text); err != nil {
			return nil, err
		}
		for _, b := range presentOf(t.snapshot()) {
			if err := s.check(s.fnEnv(context.Background()), n, b.Columns()[:len(t.columns)], int(b.NumRows())); err != nil {
				return nil, placed(err, st.Constraint.Pos)
			}
		}
		return n, nil
	}
	key := &tableKey{primary: st.Constraint.Kind == sql.PrimaryKey}
	for _, c := range st.Constraint.Columns {
		i, err := t.column(c.Name, c.Pos)
		if err != nil {
			return nil, err
		}
		key.columns = append(key.columns, i)
		if key.primary {
			for _, b := range presentOf(t.snapshot()) {
				if b.Column(i).NullN() > 0 {
					return nil, errs.E(errs.Data, "alter", c.Pos, "column %q of table %q has NULLs", c.Name, t.name)
				}
			}
			n.notNull[i] = true
		}
	}
	if key.primary && slices.ContainsFunc(t.keys, func(k *tableKey) bool { return k.primary }) {
		return nil, errs.E(errs.Schema, "alter", st.Constraint.Pos, "table %q has a PRIMARY KEY already", t.name)
	}
	n.keys = append(n.keys, key)
	return n, checkAll(n, st.Constraint.Pos)
}
