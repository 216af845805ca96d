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
	lines := number("RIVERBED_SIM_TRACE", 40)
	tail := ""
	if out.world != nil {
		tail = out.world.tail(lines)
	}
	t.Fatalf("seed %d: %v\n%s", seed, out.err, tail)
}

// TestHistories plays random histories, each twice: the same seed is the same history. With RIVERBED_SIM_ONCE they are played once, with RIVERBED_SIM_ALL also
// those behind one that fails.
func TestHistories(t *testing.T) {
	first, n := uint64(number("RIVERBED_SEED", 1)), number("RIVERBED_SIM_SEEDS", 150)
	ops, commits := 0, 0
	for i := range n {
		seed := first + uint64(i)
		out := simulate(t, seed, drawPlot(seed))
		if out.err != nil && os.Getenv("RIVERBED_SIM_ALL") != "" {
			t.Errorf("seed %d: %v", seed, out.err)
			continue
		}
		if out.err != nil {
			t.Logf("found after %d histories", i+1)
			report(t, seed, out)
		}
		if os.Getenv("RIVERBED_SIM_ONCE") == "" {
			if again := simulate(t, seed, drawPlot(seed)); again.err != nil || again.sum != out.sum {
				t.Errorf("seed %d is another history when it is played again: %v\n%s", seed, again.err, diverge(out.world, again.world))
			}
		}
		for _, o := range out.ops {
			ops += o
		}
		commits += out.commits
	}
	t.Logf("%d histories, %d operations, %d commits", n, ops, commits)
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
		t.Run(name+" into "+sink, func(t *testing.T) {
			pl := plot{sink: sink, config: func(*rand.Rand) map[string]string {
				return map[string]string{"checkpoint_interval_ms": "1", "parallelism": "2"}
			}}
			pl.query = queries[slices.IndexFunc(queries, func(q query) bool { return q.name == name })]
			for n := 1; ; n++ {
				pl.troubles = []trouble{{slow: 20 * time.Millisecond, crashAt: (n + 1) / 2, crashAfter: n%2 == 0}}
				out := simulate(t, 1, pl)
				if out.err != nil {
					t.Logf("the process ends at operation %d, after it: %t", (n+1)/2, n%2 == 0)
					report(t, 1, out)
				}
				if len(out.ops) == 1 { // it came to its own end
					if out.commits < 2 {
						t.Errorf("only %d commits", out.commits)
					}
					t.Logf("%d operations, %d commits", out.ops[0], out.commits)
					return
				}
			}
		})
	}
}
