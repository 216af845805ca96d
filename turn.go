package riverbed

import (
	"context"

	"github.com/riverbed/riverbed/core/errs"
)

// Statements that change rows take turns: what an UPDATE found must still be so when it writes, and views take the
// changes one after the other. The turn is held for the whole statement, and so it is no lock: a wait for it can be
// cancelled, nothing else of the session needs it, and a function that such a statement calls is told that it would
// wait for itself.

// turn is a place for one.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// within marks the contexts of what runs inside a statement that holds the turn, or that somebody who holds it waits
// for. Functions of the host get that context and call the session with it.
type within struct{ s *Session }

// mark says in a context what a function called from there would wait for.
func (s *Session) mark(ctx context.Context, what string) context.Context {
	return context.WithValue(ctx, within{s}, what)
}

// takeTurn waits for the turn. What the statement does then runs in the context that it gives; release ends the turn.
func (s *Session) takeTurn(ctx context.Context) (inside context.Context, release func(), err error) {
	if what, ok := ctx.Value(within{s}).(string); ok {
		return nil, nil, errs.New(errs.Usage, "run", "a function within %s called this statement, which would wait for its own caller", what).
			WithHint("such a function may read its session and create things in it; change rows outside of it, or in another session")
	}
	select {
	case s.turn <- struct{}{}:
		return s.mark(ctx, "a statement that changes rows"), func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, nil, errs.New(errs.Cancelled, "run", "cancelled while another statement was changing rows")
	}
}
