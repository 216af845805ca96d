package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
)

// plot says what happens in a history.
type plot struct {
	query query
	sink  string
	files files
	// troubles are those of the processes, one after the other; those behind them meet none.
	troubles []trouble
	outages  map[string][2]time.Duration
	config   func(r *rand.Rand) map[string]string
}

// outcome is what came of a history.
type outcome struct {
	err     error
	sum     uint64 // of its trace
	ops     []int  // of each process
	commits int
	world   *World
}

// healedTries is how many processes without trouble may fail: what came before may still be on its way, and a process that hangs holds its lease.
const healedTries = 12

// patience is how long a process without trouble may take. All times in a world are shorter.
const patience = 30 * time.Minute

// play runs a history to its end.
func play(seed uint64, pl plot) outcome {
	w := newWorld(seed)
	w.files = pl.files
	w.broker = newBroker(w, pl.query)
	w.vault = newVault(w, pl.query, pl.sink)
	for service, o := range pl.outages {
		w.outage[service] = [2]time.Time{w.began.Add(o[0]), w.began.Add(o[1])}
	}
	w.told("%s into %s", pl.query.name, pl.sink)
	var all []*Process
	err := w.live(pl, &all)
	if err == nil && pl.files.any() {
		err = w.lastLoss(pl, &all)
	}
	out := outcome{world: w}
	for _, p := range all { // also those that hang
		if e := p.leaves(); e != nil && err == nil {
			err = e
		}
	}
	_ = w.clock.Sleep(context.Background(), time.Minute) // what is on its way arrives
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong != nil {
		err = w.wrong
	}
	if err == nil {
		err = w.settled(pl.query, all)
	}
	for _, p := range all {
		out.ops = append(out.ops, p.ops)
	}
	out.err, out.sum, out.commits = err, w.sum, w.vault.commits
	return out
}

// live starts one process after the other until one without trouble ends well.
func (w *World) live(pl plot, all *[]*Process) error {
	for n := 0; ; n++ {
		r := w.draw("process", len(*all))
		tr, healed := trouble{slow: 10 * time.Millisecond}, n >= len(pl.troubles)
		if healed {
			_ = w.clock.Sleep(context.Background(), w.outagesEnd().Sub(w.clock.Now()))
		} else {
			tr = pl.troubles[n]
		}
		p := w.start(len(*all)+1, pl.query, pl.config(r), tr)
		*all = append(*all, p)
		if err := p.isGone(); err != nil {
			return err
		}
		w.mu.Lock()
		err, wrong := p.err, w.wrong
		w.mu.Unlock()
		if wrong != nil {
			return wrong
		}
		select {
		case <-p.ended:
			if err == nil || hasEnded(err) {
				return nil
			}
			if e := acceptable(err); e != nil {
				return fmt.Errorf("process %d: %w", p.id, e)
			}
			if n >= len(pl.troubles)+healedTries {
				return fmt.Errorf("process %d, which meets no trouble, fails, as did those before it: %w", p.id, err)
			}
		default:
		}
		_ = w.clock.Sleep(context.Background(), time.Duration(r.Int64N(int64(2*time.Second))))
	}
}

// lastLoss takes the power once more behind the end, with all that was not synced: what was said to be done is done, and stays.
func (w *World) lastLoss(pl plot, all *[]*Process) error {
	w.mu.Lock()
	w.losePower(nothing)
	err := w.wrong
	w.mu.Unlock()
	if err != nil {
		return err
	}
	pl.troubles = nil
	return w.live(pl, all)
}

// outagesEnd is when all services are there again.
func (w *World) outagesEnd() time.Time {
	end := w.began
	for _, o := range w.outage {
		if o[1].After(end) {
			end = o[1]
		}
	}
	return end
}

// isGone waits until another process may start.
func (p *Process) isGone() error {
	select {
	case <-p.out:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("process %d hangs", p.id)
	}
}

// leaves waits for the end of a process.
func (p *Process) leaves() error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("process %d does not leave", p.id)
	}
}

// acceptable is nil for an error that a failing world explains. State that cannot be read is not one, and neither is a fault of ours.
func acceptable(err error) error {
	if errs.Is(err, errs.Internal) || errs.Is(err, errs.State) {
		return err
	}
	return nil
}

// settled is what must be when all is over.
func (w *World) settled(q query, all []*Process) error {
	if w.vault.kind == "json" {
		w.vault.readFolder()
	}
	if want := q.whole(w.broker); !maps.Equal(w.vault.rows, want) {
		return fmt.Errorf("at the end the sink holds what it should not: %s", difference(w.vault.rows, want))
	}
	if q.watermark {
		last := all[len(all)-1]
		if want := strconv.Itoa(q.lateIn(w.broker)); last.late != want {
			return fmt.Errorf("at the end there are %s late rows instead of %s", last.late, want)
		}
	}
	return nil
}

// hasEnded reports that the pipeline was through before.
func hasEnded(err error) bool {
	return errs.Is(err, errs.Usage) && strings.Contains(err.Error(), "has ended for the pipeline")
}

// lateRows counts __late.
func lateRows(s *riverbed.Session) string {
	q, err := s.Query(context.Background(), "SELECT coalesce(sum(weight), 0) FROM __late", nil)
	if err != nil {
		return err.Error()
	}
	res, err := q.Run(context.Background())
	if err != nil {
		return err.Error()
	}
	defer res.Release()
	for res.Next() {
		return res.RecordBatch().Column(0).ValueStr(0)
	}
	return fmt.Sprint(res.Err())
}
