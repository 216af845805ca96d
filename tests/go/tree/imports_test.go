// Package tree holds the tests that look at the source tree as a whole: who imports whom, what every package says of
// itself, and which doors to the outside stay shut.
//
// Invariant: a failing test says which file to change and how.
package tree

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/riverbed/riverbed"

// layers is the order of the tree: a package imports only from its left, and packages of one layer do not import each
// other. Each entry stands for the folder and those below it.
var layers = [][]string{
	{"core/errs", "core/clock", "core/types", "core/sql"},
	{"core/objstore", "core/spill", "core/flow", "core/rowkey", "core/kernels"},
	{"core/fn", "core/expr", "core/window", "core/hashtable"},
	{"core/plan"},
	{"core/bind", "core/rules", "core/exec"},
}

// everywhere may be imported by all packages, also of their own layer.
var everywhere = []string{"core/errs", "core/clock", "core/types"}

// sideways are the imports within one layer that the layer's order allows: left may be imported by right.
var sideways = map[string][]string{
	"core/sql":       {},
	"core/kernels":   {"core/rowkey"},
	"core/rowkey":    {"core/kernels", "core/flow"},
	"core/hashtable": {"core/fn", "core/expr"},
	"core/expr":      {"core/fn"},
	"core/window":    {},
	"core/exec":      {},
}

// outside says what the packages above core may import of ours.
var outside = map[string][]string{
	"state":       {"core/errs", "core/clock", "core/types", "core/flow", "core/rowkey", "core/kernels", "core/objstore", "state"},
	"incremental": {"core", "state", "incremental"},
	"checkpoint":  {"core/errs", "core/clock", "core/types", "core/flow", "core/kernels", "core/objstore", "state", "checkpoint"},
	"connectors":  {"core/errs", "core/clock", "core/types", "core/flow", "core/kernels", "core/objstore", "connectors"},
	// core/flow is in signatures of the root package, which capi hands through.
	"capi": {"", "core/errs", "core/clock", "core/types", "core/flow", "capi/iceload"},
	// The library of Iceberg metadata, and who loads it: what they say to each other is all that they share.
	"capi/iceberg": {"core/errs", "core/clock", "core/objstore", "connectors/iceberg/meta", "capi/iceberg"},
	"capi/iceload": {"core/errs", "connectors/iceberg", "connectors/iceberg/meta"},
}

// modules are folders with a go.mod of their own.
var modules = []string{"capi/iceberg"}

// over are the connectors that are made of another: table formats read the files that their metadata name.
var over = map[string]string{"connectors/delta": "connectors/parquet", "connectors/iceberg": "connectors/parquet"}

// file is one parsed Go file. Its folder and imports are relative to the module; imports of others are whole.
type file struct {
	path, folder string
	ast          *ast.File
	ours, others []string
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// under reports whether the folder is one of the names or below it.
func under(folder string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return folder == n || (n != "" && strings.HasPrefix(folder, n+"/")) })
}

func files(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	var out []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"build", "dist", "testdata", "node_modules"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		f := file{path: filepath.ToSlash(rel), ast: parsed}
		if f.folder = filepath.ToSlash(filepath.Dir(rel)); f.folder == "." {
			f.folder = ""
		}
		for _, spec := range parsed.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if p == module || strings.HasPrefix(p, module+"/") {
				f.ours = append(f.ours, strings.TrimPrefix(strings.TrimPrefix(p, module), "/"))
			} else {
				f.others = append(f.others, p)
			}
		}
		out = append(out, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found %d Go files; the test does not look at the tree", len(out))
	}
	return out
}

func layerOf(folder string) (layer int, name string) {
	for i, names := range layers {
		for _, n := range names {
			if under(folder, n) {
				return i, n
			}
		}
	}
	return -1, ""
}

func TestImportsGoLeft(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || !under(f.folder, "core") {
			continue
		}
		layer, name := layerOf(f.folder)
		if layer < 0 {
			t.Errorf("%s: the folder %s has no place in the order of the tree; give it one in tests/go/tree/imports_test.go", f.path, f.folder)
			continue
		}
		for _, imported := range f.ours {
			at, of := layerOf(imported)
			switch {
			case !under(imported, "core"):
				t.Errorf("%s imports %s: nothing in core imports outside core", f.path, imported)
			case of == name || at < layer && at >= 0:
			case slices.Contains(everywhere, of) && !slices.Contains(everywhere, name):
			case at == layer && (slices.Contains(everywhere, of) || slices.Contains(sideways[name], of)):
			default:
				t.Errorf("%s imports %s, which does not stand to its left; move the shared part down, or hand it in as an interface", f.path, imported)
			}
		}
	}
}

func TestImportsOutsideCore(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || strings.HasSuffix(f.folder, "test") { // statetest, connectortest, optest
			continue
		}
		for top, allowed := range outside {
			if !under(f.folder, top) || narrower(f.folder, top) {
				continue
			}
			for _, imported := range f.ours {
				if !under(imported, allowed...) {
					t.Errorf("%s imports %s; %s may import %s", f.path, imported, top, strings.Join(allowed, ", "))
				}
			}
		}
		if connector := connectorOf(f.folder); connector != "" {
			for _, imported := range f.ours {
				other := connectorOf(imported)
				if other != "" && other != connector && over[connector] != other {
					t.Errorf("%s imports %s: no connector imports another", f.path, imported)
				}
			}
		}
	}
}

// narrower reports whether a rule for a folder below top is the one that counts.
func narrower(folder, top string) bool {
	for other := range outside {
		if other != top && under(other, top) && under(folder, other) {
			return true
		}
	}
	return false
}

// TestHeavyModulesStayOut: iceberg-go and what it brings are in the library that is loaded late, and in no other.
func TestHeavyModulesStayOut(t *testing.T) {
	for _, f := range files(t) {
		for _, imported := range f.others {
			if strings.HasPrefix(imported, "github.com/apache/iceberg-go") && !under(f.folder, modules...) {
				t.Errorf("%s imports %s; only capi/iceberg may, the engine asks it by connectors/iceberg/meta", f.path, imported)
			}
		}
		for _, imported := range f.ours {
			if under(imported, modules...) && !under(f.folder, modules...) {
				t.Errorf("%s imports %s, which is a module of its own", f.path, imported)
			}
		}
	}
}

// connectorOf returns the connector's folder, or "" for what connectors share.
func connectorOf(folder string) string {
	parts := strings.Split(folder, "/")
	if len(parts) < 2 || parts[0] != "connectors" || slices.Contains([]string{"decode", "all", "connectortest", "files", "host"}, parts[1]) {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

func TestUnsafeStaysInTwoPlaces(t *testing.T) {
	for _, f := range files(t) {
		for _, imported := range f.others {
			if (imported == "unsafe" || imported == "C") && !under(f.folder, "capi", "core/kernels") {
				t.Errorf("%s imports %q; only capi and core/kernels may", f.path, imported)
			}
		}
	}
}

// doors are the calls that reach for time or chance; only core/clock makes them.
var doors = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
}

func TestTimeAndChanceGoThroughTheClock(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || strings.HasSuffix(f.folder, "test") || under(f.folder, "core/clock") || !under(f.folder, "core", "incremental") {
			continue
		}
		for _, imported := range f.others {
			if imported == "math/rand" || imported == "math/rand/v2" || imported == "crypto/rand" {
				t.Errorf("%s imports %s; take a clock.Rand instead, so that a run can be replayed", f.path, imported)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(doors[pkg.Name], sel.Sel.Name) {
				t.Errorf("%s uses %s.%s; take a clock.Clock instead, so that a run can be replayed", f.path, pkg.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestOperatorsStartNoGoroutines(t *testing.T) {
	// The exchange is the one place that may; an operator is a pure step of the graph.
	for _, f := range files(t) {
		if f.test() || !under(f.folder, "incremental") || f.path == "incremental/exchange.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine; operators are single-threaded, the exchange runs them in parallel", f.path)
			}
			return true
		})
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	docs := map[string]string{}
	for _, f := range files(t) {
		if f.test() && f.folder != "tests/go" && !strings.HasPrefix(f.folder, "tests/") {
			continue
		}
		if _, seen := docs[f.folder]; !seen {
			docs[f.folder] = ""
		}
		if f.ast.Doc != nil {
			docs[f.folder] += f.ast.Doc.Text()
		}
	}
	for folder, doc := range docs {
		if doc == "" {
			t.Errorf("package %q has no comment; say what it is and its one invariant", folder)
		} else if under(folder, "core", "incremental", "state", "capi") && !strings.Contains(doc, "nvariant") {
			t.Errorf("the comment of package %q names no invariant", folder)
		}
	}
}

func TestNotesForReaders(t *testing.T) {
	for _, f := range files(t) {
		for _, group := range f.ast.Comments {
			for _, word := range []string{"TODO", "FIXME", "XXX", "HACK"} {
				if strings.Contains(group.Text(), word+":") || strings.Contains(group.Text(), word+"(") {
					t.Errorf("%s has a %s; do it, or write an issue", f.path, word)
				}
			}
		}
	}
}
