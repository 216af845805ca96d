package riverbed

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

// TestStateLargerThanMemoryLimit: a run whose groups do not fit in memory_limit shows what one with room for them shows, and leaves no data on disk.
func TestStateLargerThanMemoryLimit(t *testing.T) {
	const keys, steps = 30_000, 6
	query := "SELECT k, count(*) AS n, sum(v) AS s FROM clicks GROUP BY k EMIT IMMEDIATE"
	shown := func(limit string) (rows []string, stored bool) {
		dir := t.TempDir()
		d := openDB(t, "memory_limit", limit, "state_dir", dir)
		d.run("CREATE STREAM clicks (k VARCHAR, v BIGINT) WITH (connector = 'memory')")
		sub := d.follow(query, SubscribeOptions{})
		stream, err := d.PushStream("clicks")
		if err != nil {
			t.Fatal(err)
		}
		fields := d.cat.Load().get("clicks").source.Fields
		go func() { // the queue is shorter than what comes
			defer stream.Close()
			for step := range steps {
				batch := make([][]types.Value, keys/2)
				for i := range batch {
					batch[i] = row{fmt.Sprintf("a key with some more bytes %d", (i*7+step*1000)%keys), int64(step)}
				}
				if err := stream.Push(t.Context(), "", batchOf(fields, batch...), nil); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		rows = accumulate(t, sub)
		slices.Sort(rows)
		_ = filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
			stored = stored || f != nil && f.Name() == "RIVERBED_STORE"
			if f != nil && !f.IsDir() {
				if at, err := f.Info(); err == nil && at.Size() > 0 {
					t.Errorf("%s is left, with %d bytes", path, at.Size())
				}
			}
			return err
		})
		return rows, stored
	}
	want, stored := shown("4GB")
	if stored {
		t.Error("a store was opened for state that fits")
	}
	got, stored := shown("1MB")
	if !stored {
		t.Error("no store was opened")
	}
	if !slices.Equal(got, want) || len(got) != keys {
		t.Fatalf("%d rows, not the %d that memory shows", len(got), len(want))
	}
}
