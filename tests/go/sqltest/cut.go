package sqltest

import "math/rand/v2"

// A cutting is the events of a run, step by step. The end of a relation ends its step: nothing may come behind it.

func closes(k EventKind) bool { return k == End }

// FileCut cuts where the file says.
func FileCut(events []Event) [][]Event {
	return cut(events, func(e Event) bool { return e.Kind == Step })
}

// OneStep cuts only where it must.
func OneStep(events []Event) [][]Event { return cut(events, func(Event) bool { return false }) }

// RowCut makes a step of each row and watermark.
func RowCut(events []Event) [][]Event {
	return cut(events, func(e Event) bool { return e.Kind == Row || e.Kind == Watermark })
}

// RandomCut cuts behind every nth event on average; n is random too.
func RandomCut(r *rand.Rand, events []Event) [][]Event {
	n := 1 + r.IntN(6)
	return cut(events, func(Event) bool { return r.IntN(n) == 0 })
}

func cut(events []Event, here func(Event) bool) [][]Event {
	var out [][]Event
	var step []Event
	flush := func(empty bool) {
		if len(step) > 0 || empty {
			out, step = append(out, step), nil
		}
	}
	for _, e := range events {
		if e.Kind == Clock {
			flush(false)
		}
		if len(step) > 0 && closes(step[len(step)-1].Kind) && !closes(e.Kind) {
			flush(false)
		}
		if e.Kind != Step {
			step = append(step, e)
		}
		if here(e) && !(len(step) > 0 && closes(step[len(step)-1].Kind)) {
			flush(e.Kind == Step)
		}
	}
	flush(false)
	return out
}

// Coarse cuts into a few steps of thousands of rows.
func Coarse(r *rand.Rand, events []Event) [][]Event {
	n := 1 + len(events)/(1+r.IntN(4))
	left := n
	return cut(events, func(Event) bool {
		left--
		if left > 0 {
			return false
		}
		left = n
		return true
	})
}
