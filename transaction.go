package riverbed

import (
	"context"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// transaction gathers the changes between BEGIN and COMMIT: the views see them as one step. As in DuckDB, after an error
// within it nothing but its end is accepted, and COMMIT is then ROLLBACK. The session's lock guards it; only who has the
// session's turn begins, fills and ends it.
type transaction struct {
	cat     *catalog // as it was
	before  map[*memTable][]*chunk
	deltas  []tableDelta
	aborted bool
}

// apply makes a statement's change of a table visible, and hands it to the views, now or at COMMIT.
func (s *Session) apply(ctx context.Context, e *tableEdit) error {
	publish := func() error {
		if at := s.cat.Load().get(e.t.name); at == nil || at.table != e.t {
			return errs.New(errs.Schema, "run", "another statement dropped or replaced the table %q meanwhile; nothing was changed", e.t.name)
		}
		e.t.replace(e.chunks)
		return nil
	}
	var err error
	if s.transaction() == nil {
		err = s.commit(ctx, e.deltas, publish)
	} else {
		err = s.applyInTransaction(e, publish)
	}
	if err != nil {
		e.t.forgetKeys() // those that it added, if it was given up
	}
	return err
}

func (s *Session) applyInTransaction(e *tableEdit, publish func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	before := e.t.snapshot()
	if err := publish(); err != nil {
		return err
	}
	if _, ok := s.txn.before[e.t]; !ok {
		s.txn.before[e.t] = before
	}
	s.txn.deltas = append(s.txn.deltas, e.deltas...)
	return nil
}

// committed is a table without the changes of the open transaction, which reach those who follow it at COMMIT. The session
// is locked.
func (s *Session) committed(t *memTable) []*chunk {
	if s.txn != nil {
		if before, ok := s.txn.before[t]; ok {
			return before
		}
	}
	return t.snapshot()
}

// transaction is the open one, or nil.
func (s *Session) transaction() *transaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.txn
}

// transactionOf is the open transaction that a statement belongs to. What a function runs within a statement is no statement
// of its transaction: it fails for the function alone.
func (s *Session) transactionOf(ctx context.Context) *transaction {
	if ctx.Value(within{s}) != nil {
		return nil
	}
	return s.transaction()
}

// abort lets a transaction do nothing but end.
func (s *Session) abort(txn *transaction) {
	if txn != nil {
		s.mu.Lock()
		txn.aborted = true
		s.mu.Unlock()
	}
}

// refuseAborted refuses statements of a transaction in which one has failed.
func (s *Session) refuseAborted(st sql.Statement) error {
	if t, ok := st.(*sql.Transaction); ok && t.Kind != sql.Begin {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.txn != nil && s.txn.aborted {
		return errs.E(errs.Usage, "transaction", st.Position(), "the current transaction is aborted: a statement in it has failed").
			WithHint("ROLLBACK ends it, and undoes what it did")
	}
	return nil
}

func (s *Session) transactionStatement(ctx context.Context, st *sql.Transaction) error {
	txn := s.transaction()
	switch {
	case st.Kind == sql.Begin && txn != nil:
		return errs.E(errs.Usage, "transaction", st.Position(), "a transaction is open already").WithHint("COMMIT or ROLLBACK it first")
	case st.Kind == sql.Begin:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.txn = &transaction{cat: s.cat.Load(), before: map[*memTable][]*chunk{}}
		return s.usable()
	case txn == nil:
		return errs.E(errs.Usage, "transaction", st.Position(), "no transaction is open")
	case st.Kind == sql.Rollback || txn.aborted:
		s.rollback(txn)
		return nil
	}
	err := s.commit(ctx, txn.deltas, func() error {
		s.txn = nil
		return nil
	})
	if s.transaction() == txn { // given up
		s.rollback(txn)
	}
	return err
}

func (s *Session) rollback(txn *transaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, chunks := range txn.before {
		t.replace(chunks)
		t.forgetKeys()
	}
	s.cat.Store(&catalog{txn.cat.entries, s.cat.Load().udfs, txn.cat.objects, txn.cat.schema}) // materialized views cannot have come or gone meanwhile
	s.txn = nil
}
