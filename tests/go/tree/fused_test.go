package tree

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Instructions of arm64 that multiply and add with one rounding, and where they stand in the source.
var (
	fusedInstruction = regexp.MustCompile(`\tFN?M(?:ADD|SUB)[SD]\t`)
	fusedPlace       = regexp.MustCompile(`\((\S+\.go):(\d+)\)`)
)

// TestNoFusedArithmetic compiles the engine for arm64, where the compiler fuses x*y + z, and looks for such instructions: a
// result would be another there than on amd64. float64(x*y) + z is never fused; math.FMA may be meant.
func TestNoFusedArithmetic(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-gcflags=github.com/riverbed/riverbed/...=-S",
		"./core/...", "./incremental/...", "./state/...", "./connectors/decode/...")
	build.Dir = root
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	assembly, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, last(assembly, 2000))
	}
	found, meant := map[string]bool{}, 0
	lines := bufio.NewScanner(bytes.NewReader(assembly))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !fusedInstruction.Match(lines.Bytes()) {
			continue
		}
		place := fusedPlace.FindStringSubmatch(lines.Text())
		if place == nil {
			t.Fatalf("no place in %q", lines.Text())
		}
		if strings.Contains(source(t, place[1], place[2]), "math.FMA(") {
			meant++
		} else {
			found[place[0]] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for place := range found {
		t.Errorf("fused on arm64 %s: write float64(x*y) + z, or math.FMA where it is meant", place)
	}
	if meant == 0 { // core/kernels has some: without them the search has looked at nothing
		t.Error("no fused instruction at all: does this still read what the compiler prints?")
	}
}

// source is a line of a file.
func source(t *testing.T, file, line string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")[n-1]
}

func last(text []byte, n int) []byte { return text[max(0, len(text)-n):] }
