package exec

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// limit takes rows in scan order and then pulls no more. Its input is pulled by one worker: with several the rows
// taken would depend on timing.
type limit struct {
	input        Operator
	mu           sync.Mutex
	skip, remain int64 // remain < 0: all
}

func newLimit(n *plan.Limit, env *Env) (Operator, error) {
	input, err := Build(n.Input, env, 1)
	if err != nil {
		return nil, err
	}
	return &limit{input: input, skip: n.Offset, remain: n.Limit}, nil
}

func (l *limit) Schema() *arrow.Schema { return l.input.Schema() }
func (l *limit) Close() error          { return l.input.Close() }

func (l *limit) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remain == 0 {
		return nil, nil
	}
	m, err := l.input.Next(ctx, 0)
	if err != nil || m == nil {
		l.remain = 0
		return nil, err
	}
	n := m.Batch.NumRows()
	from := min(l.skip, n)
	l.skip -= from
	to := n
	if l.remain > 0 {
		to = from + min(n-from, l.remain)
		l.remain -= to - from
	}
	if from == 0 && to == n {
		return m, nil
	}
	return morsel(l.Schema(), m.Seq, slice(m.Batch.Columns(), int(from), int(to)), int(to-from)), nil
}
