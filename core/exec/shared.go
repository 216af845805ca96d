package exec

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/spill"
)

// kept runs a node that has several parents once, keeps its rows and hands them to each. What the budget has no room for
// goes to a file.
//
// Nothing is pushed into it: what one parent does not need another may.
type kept struct {
	op      Operator
	env     *Env
	acct    *account
	ran     once
	parents atomic.Int64 // that are not closed

	mu     sync.Mutex
	size   int64
	pieces []piece // in scan order once it has run
	file   *spill.File
}

// piece is a morsel that is kept: in memory, or in the file.
type piece struct {
	seq   int64
	batch arrow.RecordBatch
	span  spill.Span
}

// withShared returns an environment that knows which nodes of a plan have several parents.
func withShared(env *Env, root plan.Node) *Env {
	nodes, seen := map[plan.Node]*kept{}, map[plan.Node]bool{}
	plan.Walk(root, func(n plan.Node) bool {
		if !seen[n] {
			seen[n] = true
			return true
		}
		if len(n.Children()) > 0 {
			nodes[n] = &kept{}
		}
		return false
	})
	if len(nodes) == 0 {
		return env
	}
	e := *env
	e.shared = nodes
	return &e
}

// sharedBy makes a parent's reader of a shared node, and at the first the operators below.
func (s *kept) sharedBy(n plan.Node, env *Env) (Operator, error) {
	if s.op == nil {
		op, err := buildObserved(n, env, env.Workers)
		if err != nil {
			return nil, err
		}
		s.op, s.env, s.acct = op, env, env.Memory.account("a shared subquery", 0)
	}
	s.parents.Add(1)
	return &sharedReader{of: s}, nil
}

func (s *kept) run(ctx context.Context) error {
	err := drain(ctx, s.op, s.env.Workers, func(_ int, m *flow.Morsel) error { return s.add(m) })
	slices.SortStableFunc(s.pieces, func(a, b piece) int { return cmp.Compare(a.seq, b.seq) })
	return err
}

func (s *kept) add(m *flow.Morsel) error {
	s.mu.Lock()
	size := s.size + batchBytes(m.Batch)
	if s.file == nil {
		if s.acct.set(size) || s.env.Spill == nil {
			defer s.mu.Unlock()
			s.size = size
			s.pieces = append(s.pieces, piece{seq: m.Seq, batch: m.Batch})
			return s.acct.must(size)
		}
		var err error
		if s.file, err = s.env.Spill.Create(); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	s.mu.Unlock()
	span, err := s.file.Write(m.Batch)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = append(s.pieces, piece{seq: m.Seq, span: span})
	return nil
}

// close is called by each parent; the last one ends it.
func (s *kept) close() error {
	if s.parents.Add(-1) > 0 {
		return nil
	}
	s.acct.close()
	s.pieces = nil
	err := s.op.Close()
	if s.file != nil {
		if e := s.file.Close(); err == nil {
			err = e
		}
	}
	return err
}

// sharedReader is a shared node as one of its parents sees it.
type sharedReader struct {
	of     *kept
	next   atomic.Int64
	closed bool
}

func (r *sharedReader) Schema() *arrow.Schema { return r.of.op.Schema() }

func (r *sharedReader) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	if err := r.of.ran.do(func() error { return r.of.run(ctx) }); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errs.New(errs.Cancelled, "run", "the query was cancelled")
	}
	i := r.next.Add(1) - 1
	if i >= int64(len(r.of.pieces)) {
		return nil, nil
	}
	p := r.of.pieces[i]
	if p.batch == nil {
		var err error
		if p.batch, err = r.of.file.Read(p.span); err != nil {
			return nil, err
		}
	}
	return &flow.Morsel{Seq: i, Batch: p.batch}, nil
}

func (r *sharedReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	return r.of.close()
}
