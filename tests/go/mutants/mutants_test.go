package mutants

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

// TestMutantsApply keeps the list in step with the code: every text stands in its file exactly once.
func TestMutantsApply(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range slices.Concat(checkpoints, pipelines, copies, leaving, ofTheSimulation, all) {
		if seen[m.name] {
			t.Errorf("%s is listed twice", m.name)
		}
		seen[m.name] = true
		if _, err := m.mutated(t); err != nil {
			t.Error(err)
		}
	}
	if len(all) < 10 || len(simulated) < 10 {
		t.Errorf("%d mutants, and %d of the simulation; at least ten are wanted", len(all), len(simulated))
	}
}

type applyError struct{ text string }

func (e applyError) Error() string { return e.text }

func (m mutant) mutated(t *testing.T) (string, error) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		return "", applyError{m.name + ": its text stands in " + m.file + " " + map[bool]string{true: "nowhere", false: "more than once"}[n == 0] + "; write the fault anew for the code as it is"}
	}
	return strings.Replace(string(b), m.old, m.new, 1), nil
}

var found = regexp.MustCompile(`found by (\S+) after (\d+) cases`)

// TestMutantsAreFound builds the property tests with each fault and runs them until they fail. It takes minutes, so it runs
// with `make test-prop`; the ordinary run tries one fault, that the way of doing it works.
func TestMutantsAreFound(t *testing.T) {
	list := all[:1]
	if os.Getenv("RIVERBED_MUTANTS") != "" {
		list = all
	}
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) {
			binary := m.build(t, "./tests/go/prop")
			run := exec.Command(binary, "-test.run", "^TestOperators$")
			run.Dir = filepath.Join(root, "tests/go/prop")
			run.Env = append(os.Environ(), "RIVERBED_PROP_CASES=2000", "RIVERBED_PROP_FIRST=1", "RIVERBED_PROP_ONLY=^("+m.ops+")$", "RIVERBED_SEED=1")
			out, err := run.CombinedOutput()
			hit := found.FindSubmatch(out)
			if err == nil || hit == nil {
				t.Fatalf("%s (%s): not found in 2000 cases of %s\n%s", m.name, m.what, m.ops, tail(out))
			}
			t.Logf("%s: %s: found by %s after %s cases", m.name, m.what, hit[1], hit[2])
		})
	}
}

// TestMutantsOfEpochsAreFound is the same for the store of checkpoints, for pipelines, for rows copied behind a barrier, and for state that leaves memory, whose own tests find them.
func TestMutantsOfEpochsAreFound(t *testing.T) {
	for _, of := range []struct {
		folder string
		list   []mutant
	}{{"checkpoint", checkpoints}, {".", pipelines}, {"incremental", copies}, {"incremental", leaving}} {
		list := of.list[:1]
		if os.Getenv("RIVERBED_MUTANTS") != "" {
			list = of.list
		}
		for _, m := range list {
			t.Run(m.name, func(t *testing.T) {
				run := exec.Command(m.build(t, "./"+of.folder), "-test.short", "-test.failfast", "-test.run", m.ops, "-test.timeout", "5m")
				run.Dir = filepath.Join(root, of.folder)
				out, err := run.CombinedOutput()
				hit := failed.FindSubmatch(out)
				if err == nil || hit == nil {
					t.Fatalf("%s (%s): not found by %s\n%s", m.name, m.what, m.ops, tail(out))
				}
				t.Logf("%s: %s: found by %s", m.name, m.what, hit[1])
			})
		}
	}
}

// TestMutantsOfTheWorldAreFound is the same for the simulation, which may play simulatedSeeds histories of each fault.
func TestMutantsOfTheWorldAreFound(t *testing.T) {
	list := simulated[:1]
	if os.Getenv("RIVERBED_MUTANTS") != "" {
		list = simulated
	}
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) {
			run := exec.Command(m.build(t, "./tests/go/sim"), "-test.v", "-test.run", m.ops)
			run.Dir = filepath.Join(root, "tests/go/sim")
			run.Env = append(os.Environ(), "RIVERBED_SIM_SEEDS="+strconv.Itoa(simulatedSeeds), "RIVERBED_SIM_ONCE=1", "RIVERBED_SEED=1")
			out, err := run.CombinedOutput()
			hit := histories.FindSubmatch(out)
			if err == nil || hit == nil {
				t.Fatalf("%s (%s): not found in %d histories\n%s", m.name, m.what, simulatedSeeds, tail(out))
			}
			t.Logf("%s: %s: found after %s histories", m.name, m.what, hit[1])
		})
	}
}

const simulatedSeeds = 1000

var histories = regexp.MustCompile(`found after (\d+) histories`)

var failed = regexp.MustCompile(`--- FAIL: (\w+)`)

// build makes the test binary of a package with the fault.
func (m mutant) build(t *testing.T, pkg string) string {
	t.Helper()
	folder := t.TempDir()
	text, err := m.mutated(t)
	if err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(folder, "mutated.go")
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{absolute: changed}})
	for path, content := range map[string][]byte{changed: []byte(text), filepath.Join(folder, "overlay.json"): overlay} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(folder, "mutated.test")
	build := exec.Command("go", "test", "-c", "-overlay", filepath.Join(folder, "overlay.json"), "-o", binary, pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func tail(out []byte) string {
	if len(out) > 2000 {
		out = out[len(out)-2000:]
	}
	return string(out)
}
