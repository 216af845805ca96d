package flow

import "github.com/apache/arrow-go/v18/arrow"

// Lent is memory of the host that a batch lies in. It is counted: who keeps the batch beyond the call that gave it retains it, and the
// last release gives the memory back. After that nobody may read a byte of it; what is to stay is copied before.
type Lent interface {
	Retain()
	Release()
	// Holds reports whether bytes lie in it.
	Holds(b []byte) bool
}

// LentBatch is a batch that lies in memory of the host. A stream that takes it keeps it as it is, and says so where it is read
// (Rows.Lent).
type LentBatch struct {
	arrow.RecordBatch
	Lent Lent
}

// LiesIn reports whether any column of a batch lies in lent memory.
func LiesIn(b arrow.RecordBatch, l Lent) bool {
	if b == nil {
		return false
	}
	for _, c := range b.Columns() {
		if DataLiesIn(c.Data(), l) {
			return true
		}
	}
	return false
}

// DataLiesIn reports whether any buffer of an array lies in lent memory.
func DataLiesIn(d arrow.ArrayData, l Lent) bool {
	for _, b := range d.Buffers() {
		if b != nil && b.Len() > 0 && l.Holds(b.Bytes()) {
			return true
		}
	}
	for _, c := range d.Children() {
		if DataLiesIn(c, l) {
			return true
		}
	}
	return d.DataType().ID() == arrow.DICTIONARY && DataLiesIn(d.Dictionary(), l)
}
