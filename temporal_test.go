package riverbed

import (
	"context"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
)

// TestRowsLeaveAsTimePasses: nothing comes, and yet steps are made for the rows that the clock passes.
func TestRowsLeaveAsTimePasses(t *testing.T) {
	c := clock.NewFake(time.Unix(100, 0))
	d := openDB(t).withClock(c)
	d.run("CREATE STREAM s (v BIGINT, ts TIMESTAMP) WITH (connector = 'memory')")
	sub := d.follow("SELECT v FROM s WHERE ts > now() - INTERVAL '10 seconds'", SubscribeOptions{})
	d.push("s", "", row{1, int64(95e6)}, row{2, int64(105e6)})
	done := make(chan int)
	go func() {
		defer close(done)
		sum := NewAccumulated(sub.Fields())
		for {
			delta, err := sub.Next(context.Background())
			if err != nil {
				return
			}
			sum.Add(delta)
			done <- len(rowLines(sub.Fields(), sum.Batches()))
		}
	}()
	for n := 0; n < 2; { // a step may come before the rows
		if n = <-done; n != 0 && n != 2 {
			t.Fatalf("%d rows at first", n)
		}
	}
	for want := 1; want >= 0; {
		c.Advance(time.Second)
		select {
		case n := <-done:
			switch n {
			case want:
				want--
			case want + 1: // a step that the clock made, and that changed nothing
			default:
				t.Fatalf("%d rows, not %d", n, want)
			}
		case <-time.After(time.Millisecond):
		}
	}
}
