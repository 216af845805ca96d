package spill

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// everyType is a batch with a column of each type, NULLs among them.
func everyType(t *testing.T) arrow.RecordBatch {
	t.Helper()
	list := types.ListOf(types.String)
	fields := []types.Field{{Name: "b", Type: types.Bool}, {Name: "i", Type: types.Int8}, {Name: "h", Type: types.Int128},
		{Name: "d", Type: types.Dec(12, 2)}, {Name: "f", Type: types.Float64}, {Name: "s", Type: types.String},
		{Name: "t", Type: types.TsUS}, {Name: "l", Type: list}, {Name: "n", Type: types.Type{Kind: types.Null}}, {Name: "v", Type: types.Span}}
	schema := types.ArrowSchema(fields)
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		cols[i] = types.ArrayOf([]types.Value{nil, nil, nil}, f.Type)
	}
	cols[1] = types.ArrayOf([]types.Value{int64(-5), nil, int64(7)}, types.Int8)
	cols[5] = types.ArrayOf([]types.Value{"", nil, "a text"}, types.String)
	return array.NewRecordBatch(schema, cols, 3)
}

func TestWriteRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	d := NewDir(dir)
	f, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	b := everyType(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 50 {
				for _, part := range []arrow.RecordBatch{b, b.NewSlice(1, 3), b.NewSlice(2, 2)} {
					s, err := f.Write(part)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := f.Read(s)
					if err != nil || !array.RecordEqual(part, got) {
						t.Errorf("read %v, %v; wrote %v", got, err, part)
						return
					}
				}
			}
		}()
	}
	wg.Wait()
	if d.Open() != 1 || d.Bytes() == 0 {
		t.Errorf("%d files, %d bytes", d.Open(), d.Bytes())
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("an open file has the name %s", names[0].Name())
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil || d.Open() != 0 {
		t.Errorf("closing gave %v; %d files are open", err, d.Open())
	}
	if _, err := f.Read(Span{0, 8}); err == nil {
		t.Error("a closed file can be read")
	}
}

func TestLeftoversGo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"riverbed-spill-17.arrow", "spill-18.arrow", "kept.arrow"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewDir(dir).Create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if left, _ := os.ReadDir(dir); len(left) != 2 || left[0].Name() != "kept.arrow" || left[1].Name() != "spill-18.arrow" {
		t.Errorf("left are %v", left)
	}
}

// full is a disk that takes some writes.
type full struct {
	disk
	left int
}

func (f *full) WriteAt(p []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, syscall.ENOSPC
	}
	return f.disk.WriteAt(p, at)
}

func TestFaults(t *testing.T) {
	d := NewDir(t.TempDir())
	d.create = func(dir string) (disk, error) {
		f, err := temporary(dir)
		return &full{f, 1}, err
	}
	f, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(everyType(t)); err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(everyType(t))
	if e := errs.As(err); e == nil || e.Kind != errs.Source || !strings.Contains(e.Hint, "disk is full") {
		t.Errorf("a full disk gives %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = NewDir(file).Create(); err == nil || !strings.Contains(errs.As(err).Hint, "state_dir") {
		t.Errorf("a folder that is a file gives %v", err)
	}
}
