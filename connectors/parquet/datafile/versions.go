package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Position is where a stream over the versions of a table reads next: in the files of a version (Whole), or in the changes of one. What number names the
// changes is the table format's to say.
type Position struct {
	Version int64
	Whole   bool
	Item    int   // of the files or changes, in their order
	Row     int64 // of the file, those counted that are not in the table
}

func (p Position) String() flow.Position {
	kind := 'c'
	if p.Whole {
		kind = 's'
	}
	return flow.Position(fmt.Sprintf("%c%d.%d.%d", kind, p.Version, p.Item, p.Row))
}

// ParsePosition reads what String writes. Table says what kind of table it is of.
func ParsePosition(text flow.Position, table string) (p Position, err error) {
	var kind rune
	_, err = fmt.Sscanf(string(text), "%c%d.%d.%d", &kind, &p.Version, &p.Item, &p.Row)
	p.Whole = kind == 's'
	if err != nil || kind != 's' && kind != 'c' || p.Item < 0 || p.Row < 0 || p.String() != text {
		return p, errs.New(errs.State, "open", "%q is no position in %s", string(text), table)
	}
	return p, nil
}

// Item is rows of one file that come or go with a version.
type Item interface {
	// Open opens the file and finds which of its rows are meant.
	Open(ctx context.Context) (*File, Picks, error)
	// Weigh makes rows of the file rows of the stream.
	Weigh(b arrow.RecordBatch) (arrow.RecordBatch, error)
}

// Versions are a table's, one after another.
type Versions interface {
	// Ended reports whether there is nothing to read from a position on, ever.
	Ended(at Position) bool
	// Begin finds out what is to be read at a position, and where the next version begins; ok is false when there is nothing yet.
	Begin(ctx context.Context, at Position) (items []Item, next Position, ok bool, err error)
}

// Stream reads versions one after another. Each is one transaction, except a whole one, which may be larger than memory.
type Stream struct {
	Versions Versions
	At       Position // what is read next
	Poll     time.Duration
	Clock    clock.Clock

	items []Item
	next  Position
	begun bool
	file  *File // of the item
	picks Picks
	unit  *Unit
	limit int
	held  *flow.Rows // rows that are handed out when it is known whether they are the last of their version
}

func (r *Stream) Read(ctx context.Context, limit int) (flow.Rows, error) {
	for {
		if err := ctx.Err(); err != nil {
			return flow.Rows{}, err
		}
		if !r.begun {
			if r.Versions.Ended(r.At) {
				return flow.Rows{}, io.EOF
			}
			var err error
			if r.items, r.next, r.begun, err = r.Versions.Begin(ctx, r.At); err != nil {
				r.begun = false
				return flow.Rows{}, err
			}
			if !r.begun {
				return flow.Rows{Next: r.At.String()}, r.Clock.Sleep(ctx, r.Poll)
			}
		}
		rows, err := r.more(ctx, max(limit, 1))
		if err != nil {
			return flow.Rows{}, err
		}
		out := r.held
		if r.held = rows; rows == nil { // the end of the version
			r.At, r.begun = r.next, false
		}
		if out == nil {
			continue
		}
		if out.TxnOpen = out.TxnOpen && rows != nil; rows == nil {
			out.Next = r.At.String()
		}
		return *out, nil
	}
}

// more gives the next rows of the version, or nil at its end.
func (r *Stream) more(ctx context.Context, limit int) (*flow.Rows, error) {
	if r.limit != limit {
		r.closeUnit() // it goes on at the same row
		r.limit = limit
	}
	for {
		if r.unit == nil {
			if ok, err := r.open(ctx); err != nil || !ok {
				return nil, err
			}
		}
		b, records, err := r.unit.Next(ctx)
		if errors.Is(err, io.EOF) {
			r.At.Row = r.unit.End
			r.closeUnit()
			continue
		}
		if err != nil {
			r.closeUnit()
			return nil, err
		}
		r.At.Row = r.unit.Row
		if b.NumRows() == 0 {
			continue
		}
		if b, err = r.items[r.At.Item].Weigh(b); err != nil {
			return nil, err
		}
		rows := &flow.Rows{Batch: b, Places: r.unit.Places(records), Next: r.At.String(), TxnOpen: !r.At.Whole}
		if n, bytes := r.file.Unit(r.file.UnitOf(r.At.Row - 1)); n > 0 {
			rows.Bytes = bytes * records / n
		}
		return rows, nil
	}
}

// open begins the unit that holds the next row; ok is false at the version's end.
func (r *Stream) open(ctx context.Context) (ok bool, err error) {
	for ; r.At.Item < len(r.items); r.At.Item, r.At.Row, r.file = r.At.Item+1, 0, nil {
		if r.file == nil {
			if r.file, r.picks, err = r.items[r.At.Item].Open(ctx); err != nil {
				r.file = nil
				return false, err
			}
		}
		f, picks := r.file, r.picks
		if r.At.Row >= f.Rows || picks.Within && picks.Set.All() == 0 {
			continue
		}
		n := f.UnitOf(r.At.Row)
		if r.At.Row > f.First(n) {
			picks.From = r.At.Row
		}
		columns := make([]int, len(f.Columns))
		for i := range columns {
			columns[i] = i
		}
		r.unit, err = f.Project(columns, types.ArrowSchema(Fields(f.Columns))).Open(ctx, Request{Unit: n, Picks: picks, BatchRows: r.limit})
		if err != nil {
			r.unit = nil
		}
		return err == nil, err
	}
	return false, nil
}

func (r *Stream) closeUnit() {
	if r.unit != nil {
		r.unit.Close()
		r.unit = nil
	}
}

// Close lets go of the file.
func (r *Stream) Close() error {
	r.closeUnit()
	return nil
}
