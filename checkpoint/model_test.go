package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// hasty is a clock on which sleeping takes no time.
type hasty struct{ *clock.Fake }

func (h hasty) Sleep(ctx context.Context, d time.Duration) error {
	h.Advance(d)
	return ctx.Err()
}

func newHasty() hasty { return hasty{clock.NewFake(time.Unix(1000, 0))} }

// script is a run that can be had again from its seed: epoch n has the same changes whoever writes it.
type script struct {
	seed   uint64
	models map[flow.Epoch]content
	links  map[flow.Epoch][]Link
}

func newScript(seed uint64) *script {
	return &script{seed, map[flow.Epoch]content{0: {map[string]string{}, map[string][]string{}}}, map[flow.Epoch][]Link{}}
}

// next makes the epoch behind prev, and what a reader is to find there. Fences repeat an epoch under a new number, so what happens is drawn from the
// content's own number, the step.
func (sc *script) next(prev *Manifest) (*Manifest, []Section) {
	m := *prev
	m.Epoch, m.Step = prev.Epoch+1, prev.Step+1
	r := rand.New(rand.NewPCG(sc.seed, uint64(m.Step)))
	before := sc.models[flow.Epoch(prev.Step)]
	c := content{maps.Clone(before.state), maps.Clone(before.lists)}
	var sections []Section
	for _, owner := range []string{"join", "agg"} {
		if r.IntN(4) == 0 {
			continue
		}
		seen := map[string]bool{}
		var changes []change
		for range r.IntN(8) {
			key := fmt.Sprintf("%0*d", 1+r.IntN(3)*5, r.IntN(12))
			if seen[key] {
				continue
			}
			seen[key] = true
			at := owner + "/t/" + key
			if _, there := c.state[at]; r.IntN(3) == 0 {
				if there || r.IntN(4) == 0 { // a row may be made and go within an epoch
					changes = append(changes, change{key, nil})
				}
				delete(c.state, at)
				continue
			}
			c.state[at] = fmt.Sprintf("%d-%s", m.Step, key)
			changes = append(changes, change{key, c.state[at]})
		}
		if half := len(changes) / 2; r.IntN(2) == 0 {
			sections = append(sections, stateOf(owner, "t", changes[:half]...), stateOf(owner, "t", changes[half:]...))
		} else {
			sections = append(sections, stateOf(owner, "t", changes...))
		}
	}
	if r.IntN(3) == 0 {
		late := []string{fmt.Sprintf("late %d", m.Step), "again"}
		sections = append(sections, Section{Kind: Log, Owner: "__late", Rows: []arrow.RecordBatch{texts(late...)}})
		c.lists["log/__late/"] = slices.Concat(c.lists["log/__late/"], late)
	}
	if r.IntN(3) == 0 {
		delete(c.lists, "whole/table/")
		s := Section{Kind: Whole, Owner: "table"}
		if r.IntN(3) > 0 {
			all := []string{fmt.Sprintf("whole %d", m.Step)}
			s.Rows, c.lists["whole/table/"] = []arrow.RecordBatch{texts(all...)}, all
		}
		sections = append(sections, s)
	}
	pending := prev.Sinks[0].Pending
	pending = slices.Clone(pending[r.IntN(len(pending)+1):]) // some were committed
	if r.IntN(2) == 0 && len(pending) < 3 {
		sections = append(sections, Section{Kind: Once, Owner: "sink", Rows: []arrow.RecordBatch{texts(fmt.Sprintf("held %d", m.Epoch))}})
		pending = append(pending, Link{Epoch: m.Epoch, Held: true})
	}
	m.Sinks = []Sink{{Name: "sink", Pending: pending}}
	delete(c.lists, "once/sink/")
	for _, l := range pending {
		c.lists["once/sink/"] = append(c.lists["once/sink/"], fmt.Sprintf("held %d", l.Epoch))
	}
	sc.models[flow.Epoch(m.Step)] = c
	return &m, sections
}

// begin opens a store, finds where it stands, and fences.
func (sc *script) begin(ctx context.Context, o Options) (*Store, *Manifest, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.Newest(ctx)
	if err == nil && m != nil {
		m, err = s.Fence(ctx)
	} else if err == nil {
		m = &Manifest{Pipeline: "p", Run: "r", Sinks: []Sink{{Name: "sink"}}}
		if err = s.Write(ctx, nil, m, nil); err == nil {
			err = s.Publish(ctx, m)
		}
	}
	return s, m, err
}

// check holds a manifest against the model.
func (sc *script) check(t *testing.T, s *Store, m *Manifest) {
	t.Helper()
	got := contentOf(t, s, m)
	if want := sc.models[flow.Epoch(m.Step)]; !got.equal(want) {
		t.Fatalf("seed %d, epoch %d, step %d:\n got %v\nwant %v\nobjects %+v", sc.seed, m.Epoch, m.Step, got, want, m.Objects)
	}
	for _, l := range m.Sinks[0].Pending {
		if _, err := s.ReadOnce(context.Background(), m, l.Epoch, "sink", ""); err != nil {
			t.Fatalf("seed %d, epoch %d: %v", sc.seed, m.Epoch, err)
		}
	}
}

// persistent calls again what failed for a moment, as a pipeline does.
func persistent(run func() error) error {
	var err error
	for range 5 {
		if err = run(); err == nil || !errs.As(err).Transient {
			return err
		}
	}
	return err
}

// TestRestoreReadsWhatTheModelSays: after random epochs with deletions, keys that come again, restarts with and without an orderly end, and
// merges, each kept manifest reads as the model says, and nothing else is left behind.
func TestRestoreReadsWhatTheModelSays(t *testing.T) {
	cases, first := number("RIVERBED_PROP_CASES", 500), uint64(number("RIVERBED_SEED", 0))<<32
	if testing.Short() {
		cases = 100
	}
	merges, restarts := 0, 0
	for seed := first; seed < first+uint64(cases); seed++ {
		sc, ctx, d := newScript(seed), context.Background(), objstore.NewDouble()
		r := rand.New(rand.NewPCG(seed, 1))
		o := testOptions(d, newHasty())
		o.Retain = 1 + r.IntN(4)
		s, m, err := sc.begin(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 + r.IntN(30) {
			if r.IntN(10) == 0 {
				restarts++
				if r.IntN(2) == 0 {
					s.Close()
				}
				if s, m, err = sc.begin(ctx, o); err != nil {
					t.Fatal(err)
				}
				sc.check(t, s, m)
			}
			next, sections := sc.next(m)
			if err := s.Write(ctx, m, next, sections); err != nil {
				t.Fatal(err)
			}
			if err := s.Publish(ctx, next); err != nil {
				t.Fatal(err)
			}
			m = next
		}
		checkKept(t, sc, s)
		for _, ob := range m.Objects {
			if ob.Epochs[0] != ob.Epochs[1] {
				merges++
			}
		}
	}
	if merges < cases/2 || restarts < cases/2 {
		t.Errorf("%d merged objects and %d restarts in %d cases: too few", merges, restarts, cases)
	}
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// checkKept holds all that is kept against the model, and the folder against what is named.
func checkKept(t *testing.T, sc *script, s *Store) {
	t.Helper()
	ctx := context.Background()
	epochs, err := s.Epochs(ctx)
	if err != nil || len(epochs) > s.o.Retain {
		t.Fatalf("seed %d: %d manifests are kept, not %d: %v", sc.seed, len(epochs), s.o.Retain, err)
	}
	named := map[string]bool{}
	for _, e := range epochs {
		m, err := s.Manifest(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		sc.check(t, s, m)
		for _, o := range m.Objects {
			named[o.Name] = true
		}
	}
	for n := range s.making {
		named[n] = true
	}
	left, err := s.list(ctx, dataPattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if !named[name] {
			t.Fatalf("seed %d: %s is left", sc.seed, name)
		}
	}
}

// TestCrashAtEveryOperation ends the process at each operation in turn, before it or after it, and lets each fail once, before it was done or after.
// A new store finds the newest manifest that was published, whole, and goes on.
func TestCrashAtEveryOperation(t *testing.T) {
	const epochs = 12
	for _, mode := range []struct {
		name string
		at   objstore.Fault
		then objstore.Fault
	}{
		{"fails once", objstore.Fail, objstore.NoFault},
		{"answer lost once", objstore.Ambiguous, objstore.NoFault},
		{"dies before", objstore.Fail, objstore.Fail},
		{"dies after", objstore.Ambiguous, objstore.Fail},
	} {
		t.Run(mode.name, func(t *testing.T) {
			ops := 0
			for n := 1; ; n++ {
				d, ctx, sc := objstore.NewDouble(), context.Background(), newScript(uint64(n))
				hit := false
				d.Plan = func(i int, _, _ string) objstore.Fault {
					switch {
					case i == n:
						hit = true
						return mode.at
					case i > n:
						return mode.then
					}
					return objstore.NoFault
				}
				o := testOptions(d, newHasty())
				acknowledged, attempted := flow.Epoch(-1), flow.Epoch(0)
				s, m, err := sc.begin(ctx, o)
				if err == nil {
					acknowledged = m.Epoch
				}
				for err == nil && m.Step < epochs {
					next, sections := sc.next(m)
					if err = persistent(func() error { return s.Write(ctx, m, next, sections) }); err != nil {
						break
					}
					attempted = next.Epoch
					if err = persistent(func() error { return s.Publish(ctx, next) }); err == nil {
						m, acknowledged = next, next.Epoch
					}
				}
				if err != nil && mode.then == objstore.NoFault && m != nil && acknowledged >= 0 {
					t.Fatalf("operation %d failed once and the run did not go on: %v", n, err)
				}
				d.Plan = nil
				s, m, err = sc.begin(ctx, o)
				if err != nil {
					t.Fatalf("after operation %d: %v", n, err)
				}
				if m.Epoch <= acknowledged || m.Epoch > attempted+1 && m.Epoch > 0 {
					t.Fatalf("after operation %d: the fence is epoch %d; %d was published, %d tried", n, m.Epoch, acknowledged, attempted)
				}
				sc.check(t, s, m)
				for range 2 {
					next, sections := sc.next(m)
					if err := s.Write(ctx, m, next, sections); err != nil {
						t.Fatal(err)
					}
					if err := s.Publish(ctx, next); err != nil {
						t.Fatalf("after operation %d: %v", n, err)
					}
					m = next
				}
				checkKept(t, sc, s)
				if !hit {
					break
				}
				ops = n
			}
			if ops < 100 {
				t.Errorf("only %d operations", ops)
			}
			t.Logf("%d operations", ops)
		})
	}
}
