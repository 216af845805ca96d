// Package eo kills pipelines: a child process runs one between real services and is ended with SIGKILL in every phase of its epochs and at
// any moment, and the services are ended under it; what an independent client then reads of the sink is what one undisturbed run would have
// written.
package eo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/clock"
)

// phases in which a child is killed.
var phases = []string{
	checkpoint.Committing, checkpoint.Published, checkpoint.Committed, checkpoint.Copying, checkpoint.Copied, checkpoint.Staging, checkpoint.Staged,
	checkpoint.Uploading, checkpoint.Uploaded, checkpoint.Publishing, checkpoint.Marked, checkpoint.Acknowledging, checkpoint.Acknowledged,
}

// anyMoment is no phase: a child is killed some time after it began.
const anyMoment = "any moment"

// path is a pipeline between two services.
type path struct {
	name string
	// open makes what the pipeline reads and writes and gives its statements.
	open func(t *testing.T) *plumbing
	// long: in the short form others stand for it, with the same source and with the same sink.
	long bool
}

// plumbing is one opened path.
type plumbing struct {
	statements []string
	settings   map[string]string
	// feed adds so many rows to the source; it is called while the pipeline runs.
	feed func(n int) error
	// read gives the rows of the sink as an independent client sees them, how often each.
	read func() (map[string]int, error)
	// want gives the rows that one undisturbed run would have written.
	want func() (map[string]int, error)
	// services are what is killed and started again under the pipeline.
	services []service
	until    string
}

// service is a process that the pipeline needs.
type service struct {
	name string
	kill func() error // SIGKILL
	up   func() error // with what it had
}

// report counts what a run of a path did.
type report struct {
	Path              string
	Kills             map[string]int // of the child, by phase
	Services          map[string]int // kills under a running child
	Ended             int            // children that ended by themselves while a service was away
	Epochs, Fed       int
	Rows, Lost, Twice int
	Seconds           float64
}

func (r report) String() string {
	var kills, services []string
	total := 0
	for _, phase := range slices.Sorted(maps.Keys(r.Kills)) {
		kills = append(kills, fmt.Sprintf("%s %d", phase, r.Kills[phase]))
		total += r.Kills[phase]
	}
	for _, name := range slices.Sorted(maps.Keys(r.Services)) {
		services = append(services, fmt.Sprintf("%s %d", name, r.Services[name]))
	}
	return fmt.Sprintf("%s: %d kills (%s), services killed under it: %s (%d children ended by it), %d epochs, %d rows fed, %d rows in the sink, %d lost, %d doubled; %.0f s",
		r.Path, total, strings.Join(kills, ", "), cmpOr(strings.Join(services, ", "), "none"), r.Ended, r.Epochs, r.Fed, r.Rows, r.Lost, r.Twice, r.Seconds)
}

func cmpOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// add is the report of several rounds.
func (r *report) add(o report) {
	for phase, n := range o.Kills {
		r.Kills[phase] += n
	}
	for name, n := range o.Services {
		r.Services[name] += n
	}
	r.Ended, r.Epochs, r.Fed, r.Rows, r.Lost, r.Twice, r.Seconds = r.Ended+o.Ended, r.Epochs+o.Epochs, r.Fed+o.Fed, r.Rows+o.Rows, r.Lost+o.Lost, r.Twice+o.Twice, r.Seconds+o.Seconds
}

const (
	// chunk is how many rows are fed each time a child ends an epoch.
	chunk = 200
	// fewestEpochs are between a start and a kill in a phase.
	fewestEpochs = 3
	// mostAway is how long a service is away at most before it is started again.
	mostAway = 2 * time.Second
	// heldUp is how long a child is held up in a commit, while rows come: longer than splits may be silent.
	heldUp = 12 * time.Second
)

// round is a run of a path over services of its own.
type round struct {
	*report
	t    *testing.T
	pl   *plumbing
	rand clock.Rand
	job  job

	mu   sync.Mutex  // of the services: nobody feeds while one is away
	down atomic.Bool // one is. Not the same as mu being held: who feeds holds it a little longer than what was fed takes to arrive
	away sync.WaitGroup
	hurt bool // a service was killed since the child began
}

// targets are the phases of so many kills: four of five kills are in a phase, each phase as often as the others.
func targets(kills int, rand clock.Rand) []string {
	out := make([]string, kills)
	for i := range out {
		out[i] = anyMoment
		if n := i - i/5; i%5 != 4 {
			out[i] = phases[n%len(phases)]
		}
	}
	for i := len(out) - 1; i > 0; i-- {
		k := rand.IntN(i + 1)
		out[i], out[k] = out[k], out[i]
	}
	return out
}

// kill runs a path, killing children where the targets say, and compares what the sink holds. Every third child has a service killed under it, and
// some of the others are held up.
func (p path) kill(t *testing.T, aims []string, seed uint64, markers bool) report {
	t.Helper()
	began := time.Now()
	pl := p.open(t)
	r := &round{report: &report{Path: p.name, Kills: map[string]int{}, Services: map[string]int{}}, t: t, pl: pl, rand: clock.NewRand(seed),
		job: job{Settings: pl.settings, Statements: pl.statements, Markers: markers}}
	r.feed()
	for n, aim := range aims {
		var under *service
		if len(pl.services) > 0 && n%3 == 1 && markers {
			under = &pl.services[n/3%len(pl.services)]
		}
		r.life(n, aim, under, n%12 == 6)
	}
	r.away.Wait()
	r.last()
	r.compare()
	r.Seconds = time.Since(began).Seconds()
	return *r.report
}

// feed adds rows, once the services are there.
func (r *round) feed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.pl.feed(chunk); err != nil {
		r.t.Error(err)
	}
	r.Fed += chunk
}

// disturb kills a service now, and starts it again after a while, beside the child. Half of the time the child is killed while it is away.
func (r *round) disturb(s *service) {
	r.Services[s.name]++
	r.hurt = true
	pause := time.Duration(r.rand.Float64() * float64(mostAway))
	r.down.Store(true)
	r.mu.Lock()
	if err := s.kill(); err != nil {
		r.mu.Unlock()
		r.t.Fatal(err)
	}
	r.away.Go(func() {
		time.Sleep(pause)
		err := s.up()
		r.down.Store(false)
		r.mu.Unlock()
		if err != nil {
			r.t.Error(err)
			return
		}
		r.feed() // who was not fed meanwhile may have nothing left to do, and so end no epoch at which it would be
	})
}

// life is that of a child up to its end by our hand. under is a service to kill meanwhile; nil: none. held: a commit takes long.
func (r *round) life(n int, aim string, under *service, held bool) {
	r.hurt = r.down.Load()
	var epochs, steps int
	var moment time.Duration // of a kill at any moment, once there were epochs enough
	least := fewestEpochs + r.rand.IntN(3)
	strike := r.rand.IntN(least * len(phases)) // the phase, from the start, behind which the service is killed
	if r.rand.IntN(3) == 0 {
		strike = -1 // at the next commit
	}
	ride := r.rand.IntN(2) == 0 // the child is to outlive the service's absence
	c := start(r.t, r.job)
	began, since := time.Now(), time.Time{}
	for {
		if aim == anyMoment && epochs >= least && moment == 0 {
			moment, since = time.Millisecond+time.Duration(r.rand.IntN(500))*time.Millisecond, time.Now()
		}
		line, timeout := c.line(moment, since)
		if timeout {
			break
		}
		word, rest, _ := strings.Cut(line, " ")
		if word != "phase" {
			if !r.hurt {
				r.t.Fatalf("%s: kill %d, %s after %d epochs: the pipeline says %s", r.Path, n, aim, epochs, line)
			}
			r.t.Logf("kill %d: a service was away, and the pipeline ended: %s", n, rest)
			c.wait()
			r.Ended++
			time.Sleep(200 * time.Millisecond) // who supervises it starts it again
			c = start(r.t, r.job)
			continue
		}
		phase, _, _ := strings.Cut(rest, " ")
		steps++
		if phase == checkpoint.Copied {
			epochs++
			r.Epochs++
		}
		if under != nil && (strike >= 0 && steps > strike || strike < 0 && epochs > 1 && phase == checkpoint.Committing) {
			r.disturb(under)
			under = nil
			if ride {
				least += epochs + fewestEpochs
			}
		}
		if held && epochs > 1 && phase == checkpoint.Committing {
			held = false
			for range 3 {
				r.feedBeside()
			}
			time.Sleep(heldUp)
		}
		if epochs > 40 { // the phase does not come: without markers nothing is committed
			aim = anyMoment
			break
		}
		if phase == aim && epochs >= least {
			break
		}
		if phase == checkpoint.Copied {
			r.feedBeside()
		}
		c.goOn()
	}
	c.kill()
	r.Kills[aim]++
	r.t.Logf("kill %d: %s, %d epochs after the start, %.1f s", n, aim, epochs, time.Since(began).Seconds())
}

// feedBeside feeds unless a service is away: the child goes on with what there is, and is fed when the service is back.
func (r *round) feedBeside() {
	if !r.down.Load() {
		r.feed()
	}
}

// last lets a child run to the end of what there is.
func (r *round) last() {
	r.job.Until = r.pl.until
	c := start(r.t, r.job)
	for {
		line, _ := c.line(0, time.Time{})
		if line == "ended" {
			break
		}
		if !strings.HasPrefix(line, "phase ") {
			r.t.Fatalf("%s: the last run says %s", r.Path, line)
		}
		c.goOn()
	}
	c.wait()
}

// compare holds what the sink has against what it should have.
func (r *round) compare() {
	got, err := r.pl.read()
	if err != nil {
		r.t.Fatal(err)
	}
	want, err := r.pl.want()
	if err != nil {
		r.t.Fatal(err)
	}
	for row, n := range want {
		if got[row] < n {
			if r.Lost++; r.Lost < 5 {
				r.t.Logf("lost: %s, there %d times instead of %d", row, got[row], n)
			}
		}
	}
	for row, n := range got {
		r.Rows += n
		if n > want[row] || n < 0 { // more went than came

			if r.Twice++; r.Twice < 5 {
				r.t.Logf("doubled: %s, there %d times instead of %d", row, n, want[row])
			}
		}
	}
	if len(want) == 0 {
		r.t.Fatalf("the test is not one: %s", r)
	}
}
