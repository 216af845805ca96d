package files

import "github.com/riverbed/riverbed/core/flow"

// placesOf numbers the rows of a batch whose first record is the file's record number first, counted from 1. Records that did
// not decode have their numbers too.
func placesOf(name string, first int64, b Batch) *flow.Places {
	p := &flow.Places{Split: name, Kind: flow.File, Unit: flow.RowNumber}
	p.Add(0, first)
	for i, row := range b.BadAt {
		if n := len(p.Runs); p.Runs[n-1].Row == row { // several in a row, or the first record
			p.Runs = p.Runs[:n-1]
		}
		p.Runs = append(p.Runs, flow.Run{Row: row, At: first + int64(row+i+1)})
	}
	return p
}
