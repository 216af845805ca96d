package iceload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/errs"
)

// It runs first: afterwards the library is there.
func TestAMissingLibraryIsNamed(t *testing.T) {
	t.Setenv(Variable, filepath.Join(t.TempDir(), "nowhere.so"))
	_, err := Call(t.Context(), meta.Request{Op: "load", Table: "a.b"})
	if e := errs.As(err); e == nil || e.Kind != errs.Unsupported || !strings.Contains(err.Error(), "nowhere.so") || !strings.Contains(e.Hint, "make iceberg") {
		t.Errorf("got %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken.so")
	if err := os.WriteFile(broken, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, broken)
	if _, err := Call(t.Context(), meta.Request{Op: "load", Table: "a.b"}); err == nil || !strings.Contains(err.Error(), "broken.so") {
		t.Errorf("got %v", err)
	}
}
