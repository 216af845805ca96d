package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// Process is one process that runs the pipeline: a session of its own, which knows the world only through its operations.
type Process struct {
	w       *World
	id      int
	trouble trouble
	config  map[string]string
	local   objstore.Local // the disk

	// Under World.mu.
	ops    int
	links  int
	counts map[string]int // of each operation
	dead   bool
	off    bool      // and its machine has lost power
	frozen time.Time // nothing is done before
	cancel context.CancelFunc

	ended chan struct{} // closed when all of it has left
	out   chan struct{} // closed when it has ended, was killed, or froze for the first time: another one may start
	isOut bool
	err   error
	late  string // rows of __late, once it has ended well
}

// trouble is what a process meets.
type trouble struct {
	rate       float64 // of faults
	slow       time.Duration
	crashAt    int // the operation at which the process ends; 0: none
	crashAfter bool
	crashLink  int  // it ends behind the link of the disk that has this number, whose folder is then not synced; 0: none
	power      bool // it ends because the machine loses power
	freezeAt   int
	freezeFor  time.Duration
	stopAfter  time.Duration // when it is told to stop; 0: never
}

// draw says what becomes of an operation, and how long it takes before and after it is done.
func (t trouble) draw(r *rand.Rand) (f fault, before, after time.Duration) {
	before = time.Duration(r.Int64N(int64(t.slow))) + 1
	after = time.Duration(r.Int64N(int64(t.slow))) + 1
	x, which, stall := r.Float64(), r.IntN(8), time.Duration(r.Int64N(int64(30*time.Second)))
	if x >= t.rate {
		return none, before, after
	}
	switch which {
	case 0:
		return none, stall, after
	case 1:
		return none, before, stall
	case 2, 3:
		return ambiguous, before, after
	case 4:
		return twice, before, after
	case 5:
		return late, before, after
	}
	return fail, before, after
}

// kill ends the process: nothing that it does reaches the world any more, but what is on its way. The world is held.
func (p *Process) kill() {
	p.dead = true
	p.cancel()
	p.leave()
}

// crash is how its trouble ends the process. The world is held.
func (p *Process) crash() {
	p.kill()
	if p.trouble.power {
		p.w.losePower(losses)
	}
}

func (p *Process) froze() { p.leave() }

func (p *Process) leave() {
	if !p.isOut {
		p.isOut = true
		close(p.out)
	}
}

// start begins a process.
func (w *World) start(id int, q query, config map[string]string, tr trouble) *Process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Process{w: w, id: id, trouble: tr, config: config, counts: map[string]int{}, cancel: cancel, ended: make(chan struct{}), out: make(chan struct{})}
	p.local = objstore.On(machine{p, w.disk})
	processes.Store(strconv.Itoa(id), p)
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	w.told("process %d starts: %v %+v", id, config, tr)
	go func() {
		err := p.run(ctx, q)
		w.mu.Lock()
		defer w.mu.Unlock()
		p.err = err
		w.note("process %d has left: %s", id, answer(err))
		p.leave()
		close(p.ended)
	}()
	return p
}

// run is a process's life: what a script with one statement does.
func (p *Process) run(ctx context.Context, q query) (err error) {
	config := map[string]string{"checkpoint_url": p.url(p.w.files.checkpoints, "checkpoints"), "max_split_lead_ms": "1000000000", "idle_timeout_ms": "0"}
	for k, v := range p.config {
		config[k] = v
	}
	s, err := riverbed.Open(config)
	if err != nil {
		return err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	for _, topic := range p.w.broker.topics {
		if err := s.AddStream(topic.name, &stream{p, topic}, topic.watermark, ""); err != nil {
			return err
		}
	}
	sel, err := s.Query(ctx, q.sql, nil)
	if err != nil {
		return err
	}
	spec := riverbed.ConnectorSpec{Connector: p.w.vault.kind, Options: p.w.vault.options(p)}
	pipe, err := sel.Sink(riverbed.SinkSpec{ConnectorSpec: spec, ID: "p", ExactlyOnce: true})
	if err != nil {
		return err
	}
	h, err := pipe.Start(ctx, "")
	if err == nil {
		err = p.await(h)
	}
	if err == nil || hasEnded(err) {
		p.late = lateRows(s)
	}
	return err
}

// url is how a process names a folder, on the disk or in the object store.
func (p *Process) url(onDisk bool, folder string) string {
	if onDisk {
		return fmt.Sprintf("disk://%d/%s", p.id, folder)
	}
	return fmt.Sprintf("sim://%d/%s", p.id, folder)
}

// await waits for the end, or stops the pipeline when its time has come.
func (p *Process) await(h *riverbed.Handle) error {
	if p.trouble.stopAfter > 0 {
		limited, cancel := context.WithTimeout(context.Background(), p.trouble.stopAfter)
		defer cancel()
		err := h.Wait(limited)
		if limited.Err() == nil {
			return err
		}
		p.w.told("process %d is told to stop", p.id)
		if err := h.Stop(false); err != nil {
			return err
		}
		return errStopped
	}
	return h.Wait(context.Background()) // it ends with the context that it was started with
}

var errStopped = errs.New(errs.Cancelled, "sim", "the process was told to stop")
