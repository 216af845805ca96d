package flow

import (
	"fmt"
	"strconv"
)

// Places say where the rows of a batch stand in their source. They are runs, not a column: what a reader hands out is
// mostly one run, so that to know the place of a row costs nothing until somebody asks for it.
type Places struct {
	Split string    // "" where the source has none
	Kind  SplitKind // what a split of the source is
	Unit  Unit      // what is counted
	Runs  []Run     // by rising Row
}

// Run says that row Row of the batch has the number At, the next one At+1, up to the next run.
type Run struct {
	Row int
	At  int64
}

// SplitKind is the word for a split.
type SplitKind string

// The kinds of splits.
const (
	File      SplitKind = "file"
	Partition SplitKind = "partition"
	PushSplit SplitKind = "split"
)

// Unit is what the numbers count.
type Unit string

// The units. Rows are counted from 1, records of a file that do not decode included.
const (
	RowNumber Unit = "row"
	Offset    Unit = "offset"
	RowID     Unit = "rowid"
)

// Add says the number of a row, behind those said already.
func (p *Places) Add(row int, at int64) {
	if n := len(p.Runs); n > 0 {
		if last := p.Runs[n-1]; last.At+int64(row-last.Row) == at {
			return
		}
	}
	p.Runs = append(p.Runs, Run{row, at})
}

// Of is the number of a row.
func (p *Places) Of(row int) (at int64, ok bool) {
	if p == nil {
		return 0, false
	}
	for i := len(p.Runs) - 1; i >= 0; i-- {
		if r := p.Runs[i]; r.Row <= row {
			return r.At + int64(row-r.Row), true
		}
	}
	return 0, false
}

// Position is the place of a row within its split, as __bad holds it: an offset by itself, other numbers with their unit.
// It is empty where the place is not known.
func (p *Places) Position(row int) string {
	at, ok := p.Of(row)
	if !ok {
		return ""
	}
	if p.Unit == Offset {
		return strconv.FormatInt(at, 10)
	}
	return fmt.Sprintf("%s %d", p.Unit, at)
}

// Words name a row of a source: "row 17 of data/a.csv", "offset 5 of partition 0 of trades".
func (p *Places) Words(source string, row int) string {
	at, ok := p.Of(row)
	if !ok {
		return "a row of " + source
	}
	switch {
	case p.Split == "":
		return fmt.Sprintf("%s %d of %s", p.Unit, at, source)
	case p.Kind == File:
		return fmt.Sprintf("%s %d of %s", p.Unit, at, p.Split)
	}
	return fmt.Sprintf("%s %d of %s %s of %s", p.Unit, at, p.Kind, p.Split, source)
}

// Pick gives the places of some rows, in their order; a row may be picked more than once.
func (p *Places) Pick(rows []int32) *Places {
	if p == nil {
		return nil
	}
	out := *p
	out.Runs = nil
	for i, r := range rows {
		if at, ok := p.Of(int(r)); ok {
			out.Add(i, at)
		}
	}
	return &out
}
