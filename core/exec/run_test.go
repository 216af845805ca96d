package exec_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
)

// A LIMIT without order takes the first rows of the scan, whatever the number of workers, and stops reading.
func TestLimitStopsTheScan(t *testing.T) {
	c := catalog{"s": series(t, 100000)}
	c["s"].size = 100
	check(t, c, "SELECT x FROM s LIMIT 3 OFFSET 150", "150; 151; 152")
	c["s"].handed.Store(0)
	if _, err := run(t.Context(), planned(t, c, "SELECT x + 1 FROM s WHERE x % 2 = 0 LIMIT 4").Root, env(3)); err != nil {
		t.Fatal(err)
	}
	if n := c["s"].handed.Load(); n > 16 {
		t.Errorf("read %d morsels for 4 rows", n)
	}
}

var heavy = []string{
	"SELECT x FROM s",
	"SELECT sum(x) FROM s",
	"SELECT x FROM s ORDER BY -x",
	"SELECT s.x FROM s JOIN s AS o ON s.x = o.x",
	"SELECT x FROM s WHERE x NOT IN (SELECT x + 1 FROM s)",
	"SELECT x FROM s UNION SELECT x + 1 FROM s",
	"SELECT x FROM s EXCEPT SELECT x + 1 FROM s",
	"SELECT x FROM s QUALIFY row_number() OVER (PARTITION BY x % 10 ORDER BY x) = 1",
}

// An error, a panic or a cancellation while one worker reads ends every query with that error, and leaves no goroutine.
func TestFailures(t *testing.T) {
	failed := errors.New("the disk is gone")
	ctx, cancel := context.WithCancel(t.Context())
	for _, f := range []struct {
		name     string
		onMorsel func(ctx context.Context, i int) error
		want     func(err error) bool
	}{
		{"error", func(_ context.Context, i int) error {
			if i == 7 {
				return failed
			}
			return nil
		}, func(err error) bool { return errors.Is(err, failed) }},
		{"panic", func(_ context.Context, i int) error {
			if i == 7 {
				panic("lost")
			}
			return nil
		}, func(err error) bool { return kindOf(err) == errs.Internal && strings.Contains(err.Error(), "lost") }},
		{"cancel", func(ctx context.Context, i int) error {
			if i == 7 {
				cancel()
				<-ctx.Done() // the worker's own context follows
				return ctx.Err()
			}
			return nil
		}, func(err error) bool { return kindOf(err) == errs.Cancelled || errors.Is(err, context.Canceled) }},
	} {
		before := runtime.NumGoroutine()
		for _, text := range heavy {
			for _, workers := range []int{1, 3} {
				c := catalog{"s": series(t, 4000)}
				c["s"].size, c["s"].onMorsel = 100, f.onMorsel
				if f.name == "cancel" {
					ctx, cancel = context.WithCancel(t.Context())
				}
				if _, err := run(ctx, planned(t, c, text).Root, env(workers)); err == nil || !f.want(err) {
					t.Errorf("%s: %s on %d workers gave %v", f.name, text, workers, err)
				}
			}
		}
		cancel()
		settled(t, before)
		ctx, cancel = context.WithCancel(t.Context())
	}
	cancel()
}

func TestPanickingKernel(t *testing.T) {
	c := catalog{"s": series(t, 100)}
	for _, text := range []string{"SELECT boom(x) FROM s", "SELECT sum(boom(x)) FROM s", "SELECT x FROM s WHERE boom(x) = 1", "SELECT x FROM s ORDER BY boom(x)"} {
		check(t, c, text, "error: thirteen")
	}
}

func TestMemoryLimit(t *testing.T) {
	c := catalog{"s": series(t, 200000)}
	c["s"].size = 5000
	for _, text := range []string{"SELECT x, count(*) FROM s GROUP BY x", "SELECT x FROM s ORDER BY -x", "SELECT s.x FROM s JOIN s AS o ON s.x = o.x",
		"SELECT x FROM s QUALIFY row_number() OVER (PARTITION BY x % 10 ORDER BY x) = 1"} {
		e := env(2)
		e.Memory = exec.NewBudget(1 << 20)
		_, err := run(t.Context(), planned(t, c, text).Root, e)
		if err == nil || kindOf(err) != errs.Usage || !strings.Contains(err.Error(), "memory_limit") {
			t.Errorf("%s gave %v", text, err)
		}
		if n := e.Memory.Used(); n != 0 {
			t.Errorf("%s did not give %d bytes back", text, n)
		}
	}
}

// A result that is dropped half-read ends its workers.
func TestReleaseEarly(t *testing.T) {
	before := runtime.NumGoroutine()
	ended := 0
	for _, text := range heavy {
		c := catalog{"s": series(t, 20000)}
		c["s"].size = 100
		r, err := exec.Run(t.Context(), planned(t, c, text).Root, env(3), func() { ended++ })
		if err != nil {
			t.Fatal(err)
		}
		r.Next()
		r.Release()
	}
	settled(t, before)
	if ended != len(heavy) {
		t.Errorf("%d of %d results reported their end", ended, len(heavy))
	}
}

// settled waits until the goroutines that have been told to end have ended.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 1000000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

// Ready neither waits beyond its time nor loses rows, whatever the workers bring.
func TestReady(t *testing.T) {
	let := make(chan struct{})
	c := catalog{"s": series(t, 1000)}
	c["s"].size = 10
	c["s"].onMorsel = func(_ context.Context, i int) error {
		if i == 20 {
			<-let
		}
		return nil
	}
	r, err := exec.Run(t.Context(), planned(t, c, "SELECT x FROM s WHERE x < 50 OR x >= 500").Root, env(3), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	rows := int64(0)
	for r.Ready(time.Millisecond) {
		if !r.Next() {
			t.Fatal("it ended before its workers", r.Err())
		}
		rows += r.RecordBatch().NumRows()
	}
	close(let)
	for {
		for !r.Ready(time.Millisecond) {
		}
		if !r.Next() {
			break
		}
		rows += r.RecordBatch().NumRows()
	}
	if err := r.Err(); err != nil || rows != 550 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if !r.Ready(0) {
		t.Error("an ended result is ready")
	}
}
