package riverbed

import "testing"

// An end that was not stepped is lost in a crash with the rows before it, so that it can be given again.
func TestCrashForgetsAnEndNotStepped(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
	m, err := d.query("SELECT TUMBLE_START(ts, INTERVAL '10 seconds') AS at, sum(v) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK").Manual(ManualOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fields, err := m.Fields("s")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Push("s", "", batchOf(fields, row{1, sec(1)}), nil); err != nil {
		t.Fatal(err)
	}
	step := func() int {
		t.Helper()
		delta, err := m.Step()
		if err != nil {
			t.Fatal(err)
		}
		return delta.Rows()
	}
	if n := step(); n != 0 {
		t.Fatalf("%d rows before the window closes", n)
	}
	m.EndAll()
	if err := m.Crash(); err != nil {
		t.Fatal(err)
	}
	if n := step(); n != 0 {
		t.Fatalf("the crash kept an end that was not stepped: %d rows", n)
	}
	m.EndAll()
	if n := step(); n != 1 {
		t.Fatalf("%d rows at the end, not the window", n)
	}
	if err := m.Crash(); err != nil {
		t.Fatal(err)
	}
	if m.EndAll(); len(m.next.Ticks) != 0 {
		t.Error("the crash forgot an end that was stepped")
	}
}
