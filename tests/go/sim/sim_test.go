package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// Goroutines that run in one moment of the bubble do so in the order in which they were woken: one processor, and no collections meanwhile.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// simulate plays a history in a bubble of its own.
func simulate(t *testing.T, seed uint64, pl plot) (out outcome) {
	t.Helper()
	// What the engine keeps in pools must not go from one bubble into the next: two collections empty them.
	runtime.GC()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer func() {
		if v := recover(); v != nil && out.err == nil {
			out.err = fmt.Errorf("the bubble: %v", v)
		}
	}()
	synctest.Test(t, func(*testing.T) { out = play(seed, pl) })
	return out
}

func report(t *testing.T, seed uint64, out outcome) {
	t.Helper()
	t.Fatalf("seed %d: %v\n%s", seed, out.err, out.tail())
}

// tail is the end of a history.
func (out outcome) tail() string {
	if out.world == nil {
		return ""
	}
	return out.world.tail(number("RIVERBED_SIM_TRACE", 40))
}

// TestHistories plays random histories, each twice: the same seed is the same history. With RIVERBED_SIM_ONCE they are played once, with RIVERBED_SIM_ALL also
// those behind one that fails.
func TestHistories(t *testing.T) { histories(t, 150, drawPlot) }

// TestHistoriesOnDisk is the same for pipelines whose checkpoints and files are on the disk of a machine that loses power.
func TestHistoriesOnDisk(t *testing.T) { histories(t, 100, drawPlotOnDisk) }

func histories(t *testing.T, n int, drawPlot func(seed uint64) plot) {
	t.Helper()
	first, n := uint64(number("RIVERBED_SEED", 1)), number("RIVERBED_SIM_SEEDS", n)
	ops, commits, odd := 0, 0, 0
	for i := range n {
		seed := first + uint64(i)
		out := simulate(t, seed, drawPlot(seed))
		if out.err != nil && os.Getenv("RIVERBED_SIM_ALL") != "" {
			t.Errorf("seed %d: %v\n%s", seed, out.err, out.tail())
			continue
		}
		if out.err != nil {
			t.Logf("found after %d histories", i+1)
			report(t, seed, out)
		}
		if os.Getenv("RIVERBED_SIM_ONCE") == "" {
			odd += playAgain(t, seed, drawPlot, out)
		}
		if n == 1 && os.Getenv("RIVERBED_SIM_TRACE") != "" {
			t.Log(out.tail())
		}
		for _, o := range out.ops {
			ops += o
		}
		commits += out.commits
	}
	if odd > 1+n/100 {
		t.Errorf("%d of %d histories are not functions of their seeds", odd, n)
	}
	t.Logf("%d histories, %d operations, %d commits", n, ops, commits)
}

// playAgain plays a history until it is one that it was. That is the second time, but where a busy machine kept a goroutine for 10 ms: then the runtime lets another one of the
// same moment go first. So a few histories of many may be odd once (1 is returned), and no more.
func playAgain(t *testing.T, seed uint64, drawPlot func(seed uint64) plot, out outcome) (odd int) {
	t.Helper()
	seen := []outcome{out}
	for range 4 {
		again := simulate(t, seed, drawPlot(seed))
		if again.err != nil {
			t.Errorf("seed %d fails when it is played again", seed)
			report(t, seed, again)
		}
		if slices.ContainsFunc(seen, func(o outcome) bool { return o.sum == again.sum }) {
			return odd
		}
		t.Logf("seed %d is another history when it is played again: %s", seed, diverge(out.world, again.world))
		odd, seen = 1, append(seen, again)
	}
	t.Errorf("seed %d is another history each time", seed)
	return odd
}

// diverge shows where two traces part.
func diverge(a, b *World) string {
	for i := range min(len(a.trace), len(b.trace)) {
		if a.trace[i] != b.trace[i] {
			from := max(0, i-6)
			return fmt.Sprintf("line %d\n%s\n-- once\n%s\n-- and again\n%s", i, strings.Join(a.trace[from:i], "\n"),
				strings.Join(a.trace[i:min(i+8, len(a.trace))], "\n"), strings.Join(b.trace[i:min(i+8, len(b.trace))], "\n"))
		}
	}
	return fmt.Sprintf("%d and %d lines", len(a.trace), len(b.trace))
}

// TestCrashAtEveryOperation ends the process at each of its operations in turn, before it is done and after.
func TestCrashAtEveryOperation(t *testing.T) {
	for sink, name := range map[string]string{"sim_transactions": "groups", "sim_staging": "windows", "json": "left join"} {
		t.Run(name+" into "+sink, func(t *testing.T) { crashEverywhere(t, plot{sink: sink, query: queryOf(name)}, trouble{}) })
	}
}

// TestPowerLossAtEveryOperation does so with a machine whose disk has the checkpoints and the files of the sink, and forgets what was not synced.
func TestPowerLossAtEveryOperation(t *testing.T) {
	crashEverywhere(t, plot{sink: "json", query: queryOf("groups"), files: files{checkpoints: true, sink: true}}, trouble{power: true})
}

func queryOf(name string) query {
	return queries[slices.IndexFunc(queries, func(q query) bool { return q.name == name })]
}

func crashEverywhere(t *testing.T, pl plot, tr trouble) {
	t.Helper()
	pl.config = func(*rand.Rand) map[string]string {
		return map[string]string{"checkpoint_interval_ms": "1", "parallelism": "2"}
	}
	tr.slow = 20 * time.Millisecond
	for n := 1; ; n++ {
		tr.crashAt, tr.crashAfter = (n+1)/2, n%2 == 0
		pl.troubles = []trouble{tr}
		out := simulate(t, 1, pl)
		if out.err != nil {
			t.Logf("found after %d histories: the process ends at operation %d, after it: %t", n, tr.crashAt, tr.crashAfter)
			report(t, 1, out)
		}
		if out.ops[0] < tr.crashAt { // it came to its own end
			if out.commits < 2 {
				t.Errorf("only %d commits", out.commits)
			}
			t.Logf("%d operations, %d commits", out.ops[0], out.commits)
			return
		}
	}
}
