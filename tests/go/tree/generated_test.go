package tree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/riverbed/riverbed/tools/docgen/pages"
)

// The generated pages are those that the registries give now.
func TestGeneratedPagesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	all, err := pages.All(root)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, p := range all {
		kept[filepath.Join(root, p.Path)] = true
		have, err := os.ReadFile(filepath.Join(root, p.Path))
		if err != nil || string(have) != p.Text {
			t.Errorf("%s is not what the registries say; run `make generate`", p.Path)
		}
	}
	have, _ := filepath.Glob(filepath.Join(root, "docs", "connectors", "*"))
	for _, path := range have {
		if !kept[path] {
			t.Errorf("%s belongs to no connector; remove it", path)
		}
	}
}
