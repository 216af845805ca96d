package sqltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/types"
)

// Shrink makes a failing cutting smaller as long as it fails: it leaves out runs of events, joins steps, and makes weights 1.
func Shrink(steps [][]Event, fails func([][]Event) bool) [][]Event {
	for changed := true; changed; {
		changed = false
		try := func(smaller [][]Event) bool {
			if fails(smaller) {
				steps, changed = smaller, true
				return true
			}
			return false
		}
		for i := 0; i < len(steps); i++ {
			if try(slices.Concat(steps[:i], steps[i+1:])) {
				i--
			}
		}
		for i := 0; i+1 < len(steps); i++ {
			if try(slices.Concat(steps[:i], [][]Event{slices.Concat(steps[i], steps[i+1])}, steps[i+2:])) {
				i--
			}
		}
		for n := 8; n > 0; n /= 2 {
			for i := range steps {
				for at := 0; at+n <= len(steps[i]); at++ {
					smaller := slices.Clone(steps)
					smaller[i] = slices.Concat(steps[i][:at], steps[i][at+n:])
					if try(smaller) {
						at--
					}
				}
			}
		}
		if shrinkPairs(steps, try) {
			continue
		}
		for i := range steps {
			for at, e := range steps[i] {
				if e.Kind == Row && e.Weight > 1 {
					smaller := slices.Clone(steps)
					smaller[i] = slices.Clone(steps[i])
					smaller[i][at].Weight = 1
					try(smaller)
				}
			}
		}
	}
	return steps
}

// shrinkPairs leaves out a row together with its retraction.
func shrinkPairs(steps [][]Event, try func([][]Event) bool) bool {
	type place struct{ step, at int }
	open := map[string]place{}
	for i, s := range steps {
		for at, e := range s {
			if e.Kind != Row {
				continue
			}
			key := fmt.Sprint(e.Rel, e.Values)
			if e.Weight > 0 {
				open[key] = place{i, at}
				continue
			}
			p, ok := open[key]
			if !ok {
				continue
			}
			smaller := slices.Clone(steps)
			smaller[i] = slices.Concat(s[:at], s[at+1:])
			other := smaller[p.step]
			smaller[p.step] = slices.Concat(other[:p.at], other[p.at+1:])
			if try(smaller) {
				return true
			}
		}
	}
	return false
}

// Print writes a case as a .test file.
func Print(rels []*Relation, steps [][]Event, query, comment string) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(comment), "\n") {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	for _, r := range rels {
		b.WriteString(r.Decl + "\n")
	}
	rel, split := len(rels)-1, ""
	for i, s := range steps {
		if i > 0 {
			b.WriteString("step\n")
		}
		for _, e := range s {
			if e.Rel != rel && e.Kind != Clock {
				fmt.Fprintf(&b, "into %s\n", rels[e.Rel].Name)
				rel, split = e.Rel, ""
			}
			switch e.Kind {
			case Row:
				if e.Split != split {
					fmt.Fprintf(&b, "split %s\n", e.Split)
					split = e.Split
				}
				sign := fmt.Sprintf("%+d", e.Weight)
				if e.Weight == 1 || e.Weight == -1 {
					sign = sign[:1]
				}
				values, fields := e.Values, rels[rel].Fields
				if key := rels[rel].Key; key != nil && e.Weight < 0 {
					values, fields = at(values, key), at(fields, key)
				}
				fmt.Fprintf(&b, "%s %s\n", sign, RowText(values, fields))
			case Watermark:
				fmt.Fprintf(&b, "watermark %s '%s'\n", rels[rel].Name, types.Format(int64(e.At), types.TsUS))
			case Open:
				fmt.Fprintf(&b, "split %s\n", e.Split)
				split = e.Split
			case Idle:
				fmt.Fprintf(&b, "idle %s %s\n", rels[rel].Name, e.Split)
			case End:
				fmt.Fprintf(&b, "end %s\n", rels[rel].Name)
			case Clock:
				fmt.Fprintf(&b, "clock '%d microseconds'\n", e.At)
			}
		}
	}
	fmt.Fprintf(&b, "\nquery\n%s\n----\n", query)
	return b.String()
}
