package checkpoint

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// on is a process of another machine.
func on(host string) *holder { return &holder{Host: host, Machine: host, PID: 7, Started: "1"} }

// advance lets a fake clock run until done is closed.
func advance(c *clock.Fake, by time.Duration, done <-chan struct{}) (passed time.Duration) {
	for {
		select {
		case <-done:
			return passed
		case <-time.After(time.Millisecond): // for the other goroutine to ask for the next wait
			c.Advance(by)
			passed += by
		}
	}
}

func TestAHolderThatRenewsIsWaitedForAndNamed(t *testing.T) {
	d, c, ctx := objstore.NewDouble(), clock.NewFake(time.Unix(0, 0)), context.Background()
	o := testOptions(d, c)
	o.Inline, o.self = false, on("a")
	first := open(t, o)
	o.self, o.Wait = on("b"), 20*time.Second
	waited := ""
	o.Waiting = func(h string) { waited = h }
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		_, err = Open(ctx, o)
	}()
	passed := advance(c, 250*time.Millisecond, done)
	if !errs.Is(err, errs.Checkpoint) || !strings.Contains(err.Error(), "process 7 on a") {
		t.Errorf("after %s: %v", passed, err)
	}
	if waited != "process 7 on a" || passed < 20*time.Second {
		t.Errorf("waited for %q, %s", waited, passed)
	}
	if first.loss() != nil {
		t.Error("the holder lost its lease")
	}
	closed := make(chan struct{})
	go func() { defer close(closed); first.Close() }()
	<-closed
	again := open(t, o) // given back: nothing is waited for
	if again.fence() != 2 {
		t.Errorf("fence %d", again.fence())
	}
}

func TestASilentHolderIsTakenOverAfterSixSeconds(t *testing.T) {
	d, c, ctx := objstore.NewDouble(), clock.NewFake(time.Unix(0, 0)), context.Background()
	o := testOptions(d, c)
	o.self = on("a")
	zombie := open(t, o) // Inline: it renews only when it publishes
	m := epoch(t, zombie, nil, nil)
	m = epoch(t, zombie, m, nil, stateOf("a", "t", change{"x", 1}))

	o.self = on("b")
	o.Clock = clock.NewFake(time.Unix(-1e6, 0)) // its clock shows something else
	done := make(chan struct{})
	var s *Store
	var err error
	go func() {
		defer close(done)
		s, err = Open(ctx, o)
	}()
	passed := advance(o.Clock.(*clock.Fake), 250*time.Millisecond, done)
	if err != nil || passed < staleAfter || passed > staleAfter+2*time.Second {
		t.Fatalf("taken over after %s: %v", passed, err)
	}

	// The zombie wakes up between what the new holder does, and publishes nothing that counts.
	next := *m
	next.Epoch++
	if err := zombie.Write(ctx, m, &next, []Section{stateOf("a", "t", change{"x", 2})}); err != nil {
		t.Fatal(err) // it does not know yet
	}
	fence, err := s.Fence(ctx)
	if err != nil || fence.Epoch != 2 {
		t.Fatal(fence, err)
	}
	if err := zombie.Publish(ctx, &next); !errs.Is(err, errs.Checkpoint) || errs.As(err).Transient {
		t.Fatalf("the zombie published: %v", err)
	}
	select {
	case <-zombie.Lost():
	default:
		t.Error("the zombie does not know")
	}
	if err := zombie.Write(ctx, m, &next, nil); !errs.Is(err, errs.Checkpoint) {
		t.Errorf("the zombie wrote: %v", err)
	}
	if got := contentOf(t, s, fence); got.state["a/t/x"] != "1" {
		t.Errorf("got %v", got)
	}
	last := epoch(t, s, fence, nil, stateOf("a", "t", change{"x", 3}))
	if got := contentOf(t, s, last); got.state["a/t/x"] != "3" {
		t.Errorf("got %v", got)
	}
	zombie.Close()
	if held, err := s.newestLease(ctx); held != s.fence() || err != nil {
		t.Errorf("the zombie gave back what is not its own: %d, %v", held, err)
	}
}

// A number may be free again because the new holder has collected it.
func TestAZombieDoesNotPublishWhatWasCollected(t *testing.T) {
	d, ctx := objstore.NewDouble(), context.Background()
	o := testOptions(d, newHasty())
	o.self = on("a")
	zombie := open(t, o)
	m := epoch(t, zombie, nil, nil)
	next := *m
	next.Epoch++
	if err := zombie.Write(ctx, m, &next, []Section{stateOf("a", "t", change{"x", 1})}); err != nil {
		t.Fatal(err)
	}
	o.self = on("b")
	s := open(t, o)
	last, err := s.Fence(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		last = epoch(t, s, last, nil, stateOf("a", "t", change{"y", 1}))
	}
	if _, err := s.Manifest(ctx, next.Epoch); !errs.Is(err, errs.State) {
		t.Fatalf("epoch %d should be collected: %v", next.Epoch, err)
	}
	if err := zombie.Publish(ctx, &next); !errs.Is(err, errs.Checkpoint) {
		t.Errorf("the zombie may commit: %v", err)
	}
	if m, err := s.Newest(ctx); err != nil || m.Epoch != last.Epoch {
		t.Errorf("newest: %v, %v", m, err)
	}
}

func TestAZombieThatPublishedMeanwhileStopsTheFence(t *testing.T) {
	d, ctx := objstore.NewDouble(), context.Background()
	o := testOptions(d, newHasty())
	o.self = on("a")
	zombie := open(t, o)
	m := epoch(t, zombie, nil, nil)
	o.self = on("b")
	s := open(t, o)
	if got, err := s.Newest(ctx); err != nil || got.Epoch != 0 {
		t.Fatal(got, err)
	}
	next := *m
	next.Epoch++
	if err := zombie.Publish(ctx, &next); !errs.Is(err, errs.Checkpoint) {
		t.Fatalf("it may commit although there is a newer lease: %v", err)
	}
	if got, err := s.Fence(ctx); !Overtaken(err) {
		t.Fatalf("what was looked at is not the newest: %v, %v", got, err)
	}
	if got, err := s.Newest(ctx); err != nil || got.Epoch != 1 { // it has the lease still, and looks again
		t.Fatal(got, err)
	}
	if got, err := s.Fence(ctx); err != nil || got.Epoch != 2 {
		t.Fatal(got, err)
	}
}

func TestOfSixteenOneWins(t *testing.T) {
	for name, objects := range map[string]objstore.Store{"double": objstore.NewDouble(), "local": objstore.Local{}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for round := range 5 {
				var wg sync.WaitGroup
				won := make(chan *Store, 16)
				for i := range 16 {
					wg.Go(func() {
						o := testOptions(objects, clock.Wall{})
						o.Dir, o.Wait, o.Rand = dir, time.Millisecond, clock.NewRand(uint64(i))
						if s, err := Open(context.Background(), o); err == nil {
							won <- s
						} else if !errs.Is(err, errs.Checkpoint) {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				close(won)
				n := 0
				for s := range won {
					n++
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
				if n != 1 {
					t.Fatalf("round %d: %d won", round, n)
				}
			}
		})
	}
}

func TestADeadProcessIsTakenOverAtOnce(t *testing.T) {
	self := thisProcess()
	if self.Machine == "" || self.Started == "" {
		t.Skip("this system does not tell of processes")
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	other := self
	other.PID = child.Process.Pid
	started, err := startOf(other.PID)
	if err != nil {
		t.Fatal(err)
	}
	other.Started = started
	if other.dead(self) {
		t.Error("a process that runs is taken for dead")
	}
	reused := other
	reused.Started = "1"
	if !reused.dead(self) {
		t.Error("another process with the number of a dead one is taken for it")
	}
	for what, h := range map[string]holder{"host": {Host: "elsewhere", Machine: self.Machine, PID: other.PID, Started: "1"},
		"machine": {Host: self.Host, Machine: "another boot", PID: other.PID, Started: "1"}} {
		if h.dead(self) {
			t.Errorf("of another %s nothing is known", what)
		}
	}

	d, c := objstore.NewDouble(), clock.NewFake(time.Unix(0, 0))
	o := testOptions(d, c)
	o.self = &other
	open(t, o)
	if err := child.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	o.self = &self
	if s := open(t, o); s.fence() != 2 { // the clock stands still
		t.Errorf("fence %d", s.fence())
	}
}

func TestANumberOfACollectedLeaseIsNotTaken(t *testing.T) {
	d, ctx := objstore.NewDouble(), context.Background()
	o := testOptions(d, newHasty())
	open(t, o).Close()
	s := open(t, o)
	if err := objstore.Put(ctx, d, "/d/p/lease-000005.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.grab(ctx, 4); ok || err != nil {
		t.Errorf("lease 4 beside 5: %v, %v", ok, err)
	}
	if err := s.renew(ctx); !errs.Is(err, errs.Checkpoint) {
		t.Errorf("a newer lease is not seen: %v", err)
	}
}
