package pgtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestServer starts, kills, and ends a server, and looks that what it answered was kept and that nothing is left of it.
func TestServer(t *testing.T) {
	var dir string
	t.Run("one", func(t *testing.T) {
		s := Start(t)
		dir = s.dir
		for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			if got := s.SQL(t, "", "SHOW "+setting); !slices.Equal(got, []string{"on"}) {
				t.Fatalf("%s is %s", setting, got)
			}
		}
		db := s.Database(t, "one")
		s.SQL(t, db, "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (NULL)")
		s.Kill()
		if _, err := s.TrySQL(t.Context(), db, "SELECT 1"); err == nil {
			t.Fatal("a server that was killed answers")
		}
		if err := s.Up(); err != nil {
			t.Fatal(err)
		}
		if got := s.SQL(t, db, "SELECT a, a FROM t"); !slices.Equal(got, []string{"1|1", "∅|∅"}) {
			t.Fatalf("read %q", got)
		}
	})
	if dir == "" {
		t.Skip(errMissing)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Fatalf("the folder of the server is still there: %v", err)
	}
}
