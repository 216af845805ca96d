package incremental

import (
	"container/heap"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// never is the closing time of what only the end of input closes.
const never = int64(flow.EndWatermark)

// listed marks the closing time of a slot that pop has given and that is being dropped: a slot that was used twice may stand
// in the timers twice.
const listed = int64(math.MinInt64)

// timers hold slots by the watermark that closes them: state behind the watermark is dropped by range, not by search.
// They are derived from the tables and rebuilt after a restore.
type timers struct {
	times due
	slots map[int64]*closers
	last  [8]*closers // of the last adds, by a hash of the time: rows of a few times come together
	n     int         // slots
	left  int         // how many of them are of rows that have left memory
	// marks is told of slots before their closing times are marked, where these are state.
	marks func(slots []uint32)
}

// closers are the slots of one closing time.
type closers struct {
	at    int64
	slots []uint32
}

func newTimers() *timers { return &timers{slots: map[int64]*closers{}} }

func (t *timers) add(at int64, slot uint32) {
	last := &t.last[uint64(at)*hashMix>>61]
	c := *last
	if c == nil || c.at != at {
		if c = t.slots[at]; c == nil {
			c = &closers{at: at}
			t.slots[at] = c
			heap.Push(&t.times, at)
		}
		*last = c
	}
	if len(c.slots) == cap(c.slots) {
		c.slots = slices.Grow(c.slots, max(8, len(c.slots))) // doubles: append would copy large ones more often
	}
	c.slots = append(c.slots, slot)
	t.n++
}

// forget is for rows that have left memory, n of them: their slots go, once they are many. has tells whether a slot has a row of a closing time.
func (t *timers) forget(n int, has func(slot uint32, at int64) bool) {
	if t.left += n; t.left < 1024 || t.left < t.n/2 {
		return
	}
	t.n, t.left = 0, 0
	for at, c := range t.slots {
		slices.Sort(c.slots) // a slot that was used twice stands there twice
		c.slots = slices.DeleteFunc(slices.Compact(c.slots), func(s uint32) bool { return !has(s, at) })
		t.n += len(c.slots)
	}
}

// take returns the slots closed by w, each once and the earliest first, and marks them. closes are the closing times by slot.
func (t *timers) take(w flow.Watermark, closes []int64, live func(slot uint32) bool) []uint32 {
	if w == flow.NoWatermark {
		return nil
	}
	var out []uint32
	if len(t.times) > 0 && t.times[0] <= int64(w) {
		clear(t.last[:])
	}
	for len(t.times) > 0 && t.times[0] <= int64(w) {
		at := heap.Pop(&t.times).(int64)
		due := t.slots[at]
		delete(t.slots, at)
		t.n -= len(due.slots)
		out = slices.Grow(out, len(due.slots))
		if t.marks != nil {
			t.marks(due.slots)
		}
		for _, s := range due.slots {
			if live(s) && closes[s] != listed && closes[s] <= int64(w) {
				closes[s] = listed
				out = append(out, s)
			}
		}
	}
	return out
}

type due []int64

func (d due) Len() int           { return len(d) }
func (d due) Less(i, j int) bool { return d[i] < d[j] }
func (d due) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *due) Push(x any)        { *d = append(*d, x.(int64)) }
func (d *due) Pop() any {
	old := *d
	x := old[len(old)-1]
	*d = old[:len(old)-1]
	return x
}

// closing turns values of a time column into the watermark from which on no row with that value comes or goes.
//
// AIDEV-NOTE: an operator's W promises that rows with event time < W are complete. So a row at t is settled at W = t+1,
// a window at W = its end, and a window known by its start when the longest window from there has ended.
type closing struct {
	pos   int // of the column
	after int64
}

func closingOf(t plan.TimeColumn, pos int) closing {
	switch t.Kind {
	case plan.EventTime:
		return closing{pos, 1}
	case plan.WindowStart:
		return closing{pos, t.SizeUS}
	}
	return closing{pos, 0}
}

// at returns the closing watermark of each row.
func (c closing) at(cols []arrow.Array) []int64 {
	us := micros(cols[c.pos])
	out := make([]int64, len(us))
	a := cols[c.pos]
	anyNull := a.NullN() > 0
	for i, t := range us {
		if anyNull && a.IsNull(i) {
			out[i] = never
		} else {
			out[i] = addTime(t, c.after)
		}
	}
	return out
}

// addTime adds without passing the ends of time.
func addTime(t, d int64) int64 {
	switch s := t + d; {
	case d > 0 && s < t:
		return math.MaxInt64
	case d < 0 && s > t:
		return math.MinInt64
	default:
		return s
	}
}

// micros reads a date or timestamp column as microseconds, rounded down. What stands below a NULL is arbitrary.
func micros(a arrow.Array) []int64 {
	switch d := a.DataType().(type) {
	case *arrow.TimestampType:
		v := kernels.Values[int64](a)[:a.Len()]
		if d.Unit == arrow.Microsecond {
			return v
		}
		out := make([]int64, len(v))
		for i, x := range v {
			switch d.Unit {
			case arrow.Second:
				out[i] = mulTime(x, 1_000_000)
			case arrow.Millisecond:
				out[i] = mulTime(x, 1000)
			default:
				out[i] = types.FloorDiv(x, 1000)
			}
		}
		return out
	case *arrow.Date32Type:
		v := kernels.Values[int32](a)[:a.Len()]
		out := make([]int64, len(v))
		for i, x := range v {
			out[i] = mulTime(int64(x), 86_400_000_000)
		}
		return out
	}
	return make([]int64, a.Len()) // a column of NULLs
}

func mulTime(x, by int64) int64 {
	if x > math.MaxInt64/by {
		return math.MaxInt64
	}
	if x < math.MinInt64/by {
		return math.MinInt64
	}
	return x * by
}

// isTime reports whether micros can read a type.
func isTime(t types.Type) bool {
	return t.IsTimestamp() || t.Kind == types.Date || t.Kind == types.Null
}
