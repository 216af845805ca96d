package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// World is what outlives processes: the services, and what is known of the history. Its time is that of the bubble (testing/synctest) in which the
// history runs: it moves when everybody waits.
type World struct {
	seed  uint64
	clock clock.Clock

	mu     sync.Mutex
	began  time.Time
	ops    int // done by all processes
	trace  []string
	sum    uint64 // of the trace
	wrong  error  // the first thing that must not be
	outage map[string][2]time.Time

	store  *storage
	broker *broker
	vault  *vault

	disk      *disk
	files     files
	processes []*Process
}

// files says what is on the disk of the machine. All processes then run on it; otherwise each has one of its own, and nothing of the pipeline on it.
type files struct{ checkpoints, sink bool }

func (f files) any() bool { return f.checkpoints || f.sink }

func newWorld(seed uint64) *World {
	w := &World{seed: seed, clock: clock.Wall{}, outage: map[string][2]time.Time{}}
	w.began = w.clock.Now()
	w.store = newStorage(w)
	w.disk = newDisk(w)
	return w
}

// draw is chance that depends on the seed and on what it is for, and not on who asks first.
func (w *World) draw(what ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, what...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// violate notes what must not be. The first one counts.
func (w *World) violate(format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf(format, args...)
		w.note("VIOLATION %v", w.wrong)
	}
}

// note adds a line to the trace.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf("%12s ", w.clock.Now().Sub(w.began)) + fmt.Sprintf(format, args...)
	w.trace = append(w.trace, line)
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, w.sum, line)
	w.sum = h.Sum64()
}

// told is note by who does not hold the world.
func (w *World) told(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(format, args...)
}

// tail is the end of the trace.
func (w *World) tail(n int) string {
	return strings.Join(w.trace[max(0, len(w.trace)-n):], "\n")
}

// fault is what becomes of one operation.
type fault uint8

const (
	none      fault = iota
	fail            // nothing is done, and the answer is an error
	ambiguous       // it is done, and the answer is an error
	late            // the answer is an error, and it is done later
	twice           // it is done twice, and the answer is the second one's
)

var faultNames = map[fault]string{none: "", fail: " fails", ambiguous: " is done, answer lost", late: " is on its way, answer lost", twice: " is done twice"}

// errDead is what a process gets that has ended: nobody reads it.
var errDead = errs.New(errs.Cancelled, "sim", "the process has ended")

// do runs one operation of a process on a service: it takes its time, meets its fault, and is the moment at which the process may end or freeze.
//
// AIDEV-NOTE: all that is drawn depends on the process, the operation, its name and how often that was asked, never on the order in which goroutines
// come here in one moment. Times have nanoseconds, so no two operations are done in one moment.
func (w *World) do(ctx context.Context, p *Process, service, op, name string, run func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	key := service + " " + op + " " + plain(name)
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return errDead
	}
	p.counts[key]++
	r := w.draw(p.id, key, p.counts[key])
	w.mu.Unlock()
	f, before, after := p.trouble.draw(r)
	local := service == "disk"
	if local && f != fail {
		f = none // a file system answers once, and what it says is so
	}
	linger := time.Duration(r.Int64N(int64(10 * time.Second)))
	sent := r.IntN(2) == 0 // when the process ends meanwhile
	_ = w.clock.Sleep(context.WithoutCancel(ctx), before)
	w.thaw(p, r)

	w.mu.Lock()
	if w.out(service) && f != late {
		f = fail
	}
	if p.dead && (!sent || local && p.off) {
		w.mu.Unlock()
		return errDead
	}
	p.ops++
	w.ops++
	end, done := p.trouble.crashAt == p.ops, p.trouble.crashAfter
	if local && op == "link" {
		if p.links++; p.links == p.trouble.crashLink {
			end, done = true, true
		}
	}
	end = end && !p.dead
	if p.trouble.freezeAt == p.ops && !p.dead {
		p.frozen = w.clock.Now().Add(p.trouble.freezeFor)
		w.note("process %d freezes for %s", p.id, p.trouble.freezeFor)
		p.froze()
	}
	if end && !done {
		w.note("process %d ends before %s", p.id, key)
		p.crash()
		w.mu.Unlock()
		return errDead
	}
	var err error
	var lost error = errs.New(errs.Source, op, "no answer to %s %s", op, name).AsTransient()
	if local {
		lost = failedDisk(op, name)
	}
	switch f {
	case fail:
		err = lost
	case late:
		err = lost
		go func() {
			_ = w.clock.Sleep(context.Background(), linger)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.note("%d: %s arrives: %s", p.id, key, answer(run()))
		}()
	case twice:
		_ = run()
		err = run()
	default:
		err = run()
		if f == ambiguous && err == nil {
			err = lost
		}
	}
	w.note("%d: %s%s: %s", p.id, key, faultNames[f], answer(err))
	if end {
		w.note("process %d ends after %s", p.id, key)
		p.crash()
	}
	w.mu.Unlock()

	_ = w.clock.Sleep(context.WithoutCancel(ctx), after)
	w.thaw(p, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead {
		return errDead
	}
	if e := ctx.Err(); e != nil {
		return e
	}
	return err
}

// thaw waits until the process is not frozen.
func (w *World) thaw(p *Process, r *rand.Rand) {
	w.mu.Lock()
	wait := p.frozen.Sub(w.clock.Now())
	w.mu.Unlock()
	if wait > 0 {
		_ = w.clock.Sleep(context.Background(), wait+time.Duration(r.Int64N(int64(50*time.Millisecond))))
	}
}

// out reports whether a service is away.
func (w *World) out(service string) bool {
	o, now := w.outage[service], w.clock.Now()
	return now.After(o[0]) && now.Before(o[1])
}

// answer is an error in words that are the same in each run: messages name processes and files whose names are drawn elsewhere.
func answer(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, objstore.ErrExists):
		return "exists"
	case errors.Is(err, objstore.ErrNotExist):
		return "not there"
	case errs.As(err).Transient, errors.Is(err, syscall.EIO):
		return "failed"
	}
	return "refused: " + errs.As(err).Kind.String()
}

// token is the part of a file's name by which a process tells its files from those of others. It is drawn by clock.Unique.
var token = regexp.MustCompile(`-[0-9a-z]{8}\.`)

func plain(name string) string { return token.ReplaceAllString(name, "-token.") }
