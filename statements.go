package riverbed

import (
	"context"
	"fmt"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// statement runs one statement, or plans it when it is a query.
func (s *Session) statement(ctx context.Context, st sql.Statement, text string, in given) (*Query, error) {
	s.cfg.Load().order().State(st)
	if x, ok := st.(*sql.Execute); ok { // before the turn: what it runs takes it, if it must
		return s.execute(ctx, x, in)
	}
	seen := s.cat.Load()
	if seen.changesRows(st) {
		inside, release, err := s.takeTurn(ctx)
		if err != nil {
			return nil, placed(err, st.Position())
		}
		defer release()
		ctx, seen = inside, s.cat.Load()
	}
	if err := s.refuseAborted(st); err != nil {
		return nil, err
	}
	cat := &scopeCatalog{s: s, cat: seen, ctx: ctx, locals: in.locals, params: in.params, reading: true}
	switch st := st.(type) {
	case *sql.Query:
		return s.planQuery(ctx, cat, st, text)
	case *sql.Explain:
		return s.explain(ctx, cat, st, text)
	case *sql.CreateTable:
		return nil, s.createTable(ctx, cat, st, text)
	case *sql.CreateStream:
		return nil, s.createStream(ctx, st)
	case *sql.CreateView:
		return nil, s.createView(ctx, cat, st, text)
	case *sql.CreateSink:
		return nil, s.createSink(st)
	case *sql.Drop:
		return nil, s.dropStatement(st)
	case *sql.Insert:
		return s.insert(ctx, cat, st, text)
	case *sql.Update:
		return s.update(ctx, cat, st, text)
	case *sql.Delete:
		return s.delete(ctx, cat, st, text)
	case *sql.Truncate:
		return s.truncate(ctx, cat, st)
	case *sql.Copy:
		return s.copy(ctx, cat, st, text)
	case *sql.Set:
		return nil, s.set(st)
	case *sql.Reset:
		return nil, s.reset(st)
	case *sql.Show:
		return s.show(ctx, st)
	case *sql.Describe:
		return s.describe(ctx, cat, st, text)
	case *sql.Transaction:
		return nil, s.transactionStatement(ctx, st)
	case *sql.Prepare:
		return nil, s.prepare(st, text)
	case *sql.Deallocate:
		return nil, s.deallocate(st)
	case *sql.CreateMacro:
		return nil, s.createMacro(st, text)
	case *sql.CreateIndex:
		return nil, s.createIndex(st)
	case *sql.CreateSequence:
		return nil, s.createSequence(st)
	case *sql.Alter:
		return nil, s.alter(ctx, cat, st, text)
	case *sql.Merge:
		return s.merge(ctx, cat, st, text)
	case *sql.CreateSchema:
		return nil, s.createSchema(st)
	case *sql.Use:
		return nil, s.setSchema(st.Name.String(), st.Position())
	case *sql.Comment:
		return nil, s.commentOn(st)
	case *sql.SetVariable:
		return nil, s.setVariable(ctx, cat, st, text)
	case *sql.Pragma:
		return s.pragma(ctx, cat, st, text)
	case *sql.Maintain:
		return nil, s.maintain(st)
	}
	return nil, errs.E(errs.Unsupported, "plan", st.Position(), "%s is not supported yet", strings.ToUpper(strings.TrimPrefix(fmt.Sprintf("%T", st), "*sql.")))
}

// changesRows reports whether a statement takes turns with others of its kind. An INSERT that finds no target takes one too:
// another statement may make it meanwhile.
func (c *catalog) changesRows(st sql.Statement) bool {
	switch st := st.(type) {
	case *sql.Update, *sql.Delete, *sql.Truncate, *sql.Transaction, *sql.Merge, *sql.Alter, *sql.CreateIndex:
		return true
	case *sql.Drop:
		return st.Kind == sql.DropIndex // a key of its table goes
	case *sql.Insert:
		e, err := c.target(st.Table)
		return err != nil || e.sink == nil
	case *sql.Copy:
		return st.Query == nil // COPY … FROM
	}
	return false
}
