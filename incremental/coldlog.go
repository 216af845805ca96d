package incremental

import (
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/state"
)

// coldLog is a rowLog whose parts may leave memory, the oldest first.
type coldLog struct {
	*state.Log
	rows *rowLog
	join *join
	side int
}

func (c coldLog) Limit(in *state.Cold, path string, bytes int64) {
	c.Log.Limit(in, path, c.join.keyKind.types)
	c.rows.room = bytes
}

func (c coldLog) over() bool                { return c.Bytes() > c.rows.room }
func (c coldLog) arrange(env *fn.Env) error { return c.join.restored(env, c.side) }
func (c coldLog) undo() error               { return c.Undo() }

func (c coldLog) Evict(limit int64) error { return c.rows.evict(limit) }

func (c coldLog) Stuck() bool { return c.rows.stuck }

// evict lets parts leave until about so many bytes are held.
func (l *rowLog) evict(limit int64) error {
	l.stuck = false
	kept := l.parts[:0]
	var err error
	for _, p := range l.parts {
		over := l.rows.Bytes() > limit
		if err != nil || !over || !l.rows.Saved(p.Segment) {
			kept = append(kept, p)
			l.stuck = l.stuck || over
			continue
		}
		if err = l.rows.Leave(p.Segment, p.settled()); err == nil {
			l.leave(p)
		}
	}
	clear(l.parts[len(kept):])
	l.parts = kept
	l.index.rest(l)
	return err
}

// settled is when the rows of a part are dropped that is in the store, nil for never.
func (p *logPart) settled() []int64 {
	if p.closes == nil {
		return nil
	}
	out := make([]int64, len(p.closes))
	for i, at := range p.closes {
		out[i] = coarse(at)
	}
	return out
}

// findCold gives the pairs with rows in the store. Those rows have parts of their own until the end of the step.
func (l *rowLog) findCold(k *joinKeys, out *pairs) error {
	if l.rows.Out() == 0 {
		return nil
	}
	hash := k.hash
	if hash == nil {
		hash = make([]uint64, k.n)
		kernels.HashColumns(k.cols, k.n, hash)
	}
	found, of, err := l.rows.Ask(hash, k.cols)
	if err != nil || found == nil {
		return err
	}
	for _, s := range found.Pieces(partRows) {
		p := &logPart{Segment: s}
		if err := l.name(p); err != nil {
			return err
		}
		l.lent = append(l.lent, p)
		for i := range s.Len() {
			for _, row := range of[i] {
				if err := out.add(row, p.id<<partBits|uint32(i)); err != nil {
					return err
				}
			}
		}
		of = of[s.Len():]
	}
	return nil
}
