package riverbed

import (
	"context"
	"maps"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// transaction gathers the changes between BEGIN and COMMIT: the views see them as one step. A statement that fails
// within it leaves no trace of its own and the transaction open.
type transaction struct {
	entries map[string]*entry // the catalog as it was
	before  map[*memTable][]arrow.RecordBatch
	deltas  []tableDelta
}

// applied hands what a statement changed to the views, now or at COMMIT.
func (s *Session) applied(ctx context.Context, t *memTable, before []arrow.RecordBatch, deltas []tableDelta) error {
	if s.txn == nil {
		return s.stepViews(ctx, deltas)
	}
	if _, ok := s.txn.before[t]; !ok {
		s.txn.before[t] = before
	}
	s.txn.deltas = append(s.txn.deltas, deltas...)
	return nil
}

// committed is a table without the changes of the open transaction, which reach those who follow it at COMMIT.
func (s *Session) committed(t *memTable) []arrow.RecordBatch {
	if s.txn != nil {
		if before, ok := s.txn.before[t]; ok {
			return before
		}
	}
	return t.snapshot()
}

func (s *Session) transactionStatement(ctx context.Context, st *sql.Transaction) error {
	if (s.txn == nil) != (st.Kind == sql.Begin) {
		if st.Kind == sql.Begin {
			return errs.E(errs.Usage, "transaction", st.Position(), "a transaction is open already").WithHint("COMMIT or ROLLBACK it first")
		}
		return errs.E(errs.Usage, "transaction", st.Position(), "no transaction is open")
	}
	switch st.Kind {
	case sql.Begin:
		s.txn = &transaction{entries: maps.Clone(s.cat.entries), before: map[*memTable][]arrow.RecordBatch{}}
	case sql.Commit:
		txn := s.txn
		s.txn = nil
		return s.stepViews(ctx, txn.deltas)
	case sql.Rollback:
		for t, chunks := range s.txn.before {
			t.restore(chunks)
		}
		s.cat.entries = s.txn.entries // materialized views cannot have come or gone meanwhile
		s.txn = nil
	}
	return nil
}
