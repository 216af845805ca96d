package iceload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/riverbed/riverbed/connectors/iceberg"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// use points at the library that `make iceberg` builds.
func use(t *testing.T) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "python", "riverbed", file))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(Variable) == "" {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v; `make iceberg` builds it", err)
		}
		t.Setenv(Variable, path)
	}
}

func sqlite(t *testing.T) meta.Catalog {
	dir := t.TempDir()
	return meta.Catalog{Type: "sql", Properties: map[string]string{"uri": "sqlite:///" + filepath.Join(dir, "catalog.db"), "warehouse": "file://" + dir}}
}

func TestCall(t *testing.T) {
	use(t)
	catalog := sqlite(t)
	a, err := iceberg.Call(t.Context(), meta.Request{
		Op: "create", Catalog: catalog, Table: "shop.orders", Schema: []meta.Field{{Name: "id", Type: "long"}, {Name: "name", Type: "string"}},
	})
	if err != nil || a.Error != "" || len(a.Table.Schema) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	a, err = Call(t.Context(), meta.Request{Op: "load", Catalog: catalog, Table: "shop.order"})
	if err != nil || a.Kind != "absent" {
		t.Errorf("%+v, %v", a, err)
	}
}

// Two Go runtimes live in this process; the collector of each must still be able to stop its own.
func TestTwoRuntimes(t *testing.T) {
	use(t)
	catalog := sqlite(t)
	stop := make(chan struct{})
	for range runtime.GOMAXPROCS(0) {
		go func() { // never calls anything, so that it can be stopped by a signal alone
			for x := 1; ; x++ {
				if x%(1<<26) == 0 {
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		}()
	}
	defer close(stop)
	for range 20 {
		if _, err := Call(t.Context(), meta.Request{Op: "load", Catalog: catalog, Table: "a.b"}); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
	}
	func() { // a fault of ours stays ours
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		var nothing *meta.Table
		_ = nothing.Location
	}()
}

func TestCancel(t *testing.T) {
	use(t)
	ctx, cancel := context.WithCancel(t.Context())
	// An address that swallows what is sent to it.
	catalog := meta.Catalog{Type: "rest", Properties: map[string]string{"uri": silent(t)}}
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	_, err := Call(ctx, meta.Request{Op: "load", Catalog: catalog, Table: "a.b"})
	if !errors.Is(err, context.Canceled) || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
