// Command docgen writes the pages of docs/ that come from the registries: what SQL there is, what the operators promise,
// what the connectors take. `make generate` runs it.
//
// Invariant: what it writes depends on the source tree alone.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/riverbed/riverbed/tools/docgen/pages"
)

//go:generate go run . -root ../..

func main() {
	root := flag.String("root", ".", "the root of the project")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	all, err := pages.All(root)
	if err != nil {
		return err
	}
	for _, p := range all {
		path := filepath.Join(root, p.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(p.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
