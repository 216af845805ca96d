// Package parity runs every file of tests/sql in every configuration of tests/sql/configs.
//
// Invariant: a file passes in a configuration, or says in one line why it is skipped there; a file that passes although it
// is skipped fails.
package parity

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/tests/go/sqltest"
)

var (
	rewrite = flag.Bool("rewrite", false, "write what batch answers, and the changelogs, into the files; read the difference")
	only    = flag.String("files", "", "only files whose path contains this")
)

const folder = "../../sql"

func seed() uint64 {
	n, err := strconv.ParseUint(os.Getenv("RIVERBED_SEED"), 10, 64)
	if err != nil {
		return 1
	}
	return n
}

func full() bool { return os.Getenv("RIVERBED_PARITY") == "full" }

func testFiles(t *testing.T) []*sqltest.File {
	t.Helper()
	var out []*sqltest.File
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".test") || !strings.Contains(path, *only) {
			return err
		}
		f, err := sqltest.Load(path)
		if err != nil {
			t.Errorf("%v", err)
			return nil
		}
		out = append(out, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFiles(t *testing.T) {
	files := testFiles(t)
	configs, err := sqltest.Configs(filepath.Join(folder, "configs"))
	if err != nil {
		t.Fatal(err)
	}
	var duck *sqltest.Duck
	var noDuck error
	defer func() {
		if duck != nil {
			duck.Close()
		}
	}()
	t.Logf("%d files, %d configurations, seed %d", len(files), len(configs), seed())
	for _, f := range files {
		for _, c := range configs {
			name := strings.TrimPrefix(strings.TrimPrefix(f.Path, folder), "/") + "/" + c.Name
			t.Run(name, func(t *testing.T) {
				if c.Run == "duckdb" && duck == nil {
					if noDuck == nil {
						duck, noDuck = sqltest.OpenDuck()
					}
					if noDuck != nil {
						t.Skip(noDuck)
					}
				}
				reason, skipped := f.Skips[c.Name]
				if !skipped {
					reason, skipped = f.Skips[c.Run]
				}
				if c.Run == "batch" && *rewrite {
					rewriteFile(t, f)
					return
				}
				problems, ran := runFile(f, c, duck)
				switch {
				case !skipped:
					for _, p := range problems {
						t.Error(p)
					}
				case !ran:
					t.Errorf("skip %s: there is nothing to skip", c.Name)
				case len(problems) == 0:
					t.Errorf("skip %s (%s): it passes; remove the line", c.Name, reason)
				}
			})
		}
	}
	checkSkips(t, files, configs)
	if *only == "" && !t.Failed() && opened.Load() < 100 {
		t.Errorf("only %d stores were opened: does state still leave memory?", opened.Load())
	}
}

// checkSkips finds skips of configurations that do not exist.
func checkSkips(t *testing.T, files []*sqltest.File, configs []sqltest.Config) {
	known := map[string]bool{}
	for _, c := range configs {
		known[c.Name], known[c.Run] = true, true
	}
	for _, f := range files {
		for name := range f.Skips {
			if !known[name] {
				t.Errorf("%s: skip %s: no such configuration", f.Path, name)
			}
		}
	}
}

// runFile returns what went wrong, and whether there was anything to run.
func runFile(f *sqltest.File, c sqltest.Config, duck *sqltest.Duck) (problems []string, ran bool) {
	defer func() {
		if r := recover(); r != nil {
			problems = append(problems, fmt.Sprintf("panic: %v", r))
			ran = true
		}
	}()
	switch c.Run {
	case "batch":
		return runBatch(f, c)
	case "views":
		return runViews(f)
	case "duckdb":
		return runDuck(f, duck)
	}
	return runIncremental(f, c)
}

func at(f *sqltest.File, line int, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.Path, line, fmt.Sprintf(format, args...))
}

func rewriteFile(t *testing.T, f *sqltest.File) {
	got := map[*sqltest.Query][]string{}
	for i, it := range f.Items {
		if it.Query == nil {
			continue
		}
		rows, err := goldenOf(f, i, "")
		if err != nil {
			t.Error(at(f, it.Line, "%v", err))
			continue
		}
		got[it.Query] = rows
	}
	if err := os.WriteFile(f.Path, []byte(f.Rewrite(got)), 0o644); err != nil {
		t.Fatal(err)
	}
}
