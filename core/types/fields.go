package types

import (
	"fmt"
	"strings"
)

// Distinct remembers the names that it gave, so that all are different: it calls the second x x_1, as DuckDB does. The
// case of letters makes no difference between names.
type Distinct map[string]int // in lower case → 0: free; else where to look for the next free number

// Name returns the name, or the next free one of its kind.
func (d Distinct) Name(name string) string {
	base := strings.ToLower(name)
	for n := d[base]; n > 0; n++ {
		if next := fmt.Sprintf("%s_%d", name, n); d[strings.ToLower(next)] == 0 {
			d[base] = n
			name = next
			break
		}
	}
	d[strings.ToLower(name)]++
	return name
}

// DistinctNames are the fields with different names. It returns its argument when they are different already.
func DistinctNames(fields []Field) []Field {
	seen, out := Distinct{}, fields
	for i, f := range fields {
		if name := seen.Name(f.Name); name != f.Name {
			if &out[0] == &fields[0] {
				out = append([]Field(nil), fields...)
			}
			out[i].Name = name
		}
	}
	return out
}
