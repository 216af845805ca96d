// Package datafile reads the data files of table formats: Parquet files whose columns were renamed, moved, widened, added and dropped since
// they were written, without the rows that the table's metadata says are deleted.
//
// Invariant: what a file gives has the columns of the table, in its order and types, whatever the table was when the file was written; a
// column that cannot be brought into its type is an error, never a guess.
package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Column is a column of a table, or a part of a nested one.
type Column struct {
	types.Field
	// ID is its number in data files; 0: none. In a file that numbers its columns, a column is found by it alone.
	ID int
	// Names are what it may be called in files that number none.
	Names []string
	Parts []Column // STRUCT: the fields; LIST: the element; MAP: key and value
	// Default is the value in files that do not have the column.
	Default types.Value
	// UTC: a TIMESTAMP in a file is one in UTC, as those of INT96 and of old writers are.
	UTC bool
}

// Fields are the fields of columns.
func Fields(columns []Column) []types.Field {
	out := make([]types.Field, len(columns))
	for i, c := range columns {
		out[i] = c.Field
	}
	return out
}

// File is a data file that was opened for a table's columns. It is used by many goroutines.
type File struct {
	Name    string
	Columns []Column
	Rows    int64

	file   files.File
	from   []int         // by column: column of the file; -1: it has none
	fits   []fit         // by column
	consts []arrow.Array // by column that the file does not have: its one value; nil: NULL
	before []int64       // by unit: rows of the file before it
}

// Open reads the footer of a data file and finds the columns in it. constants are the values of columns that the metadata gives, where the
// file has none of its own.
func Open(ctx context.Context, ref files.Ref, columns []Column, constants map[int]types.Value) (*File, error) {
	f := &File{Name: ref.Info.Name, Columns: columns, from: make([]int, len(columns)), fits: make([]fit, len(columns)), consts: make([]arrow.Array, len(columns))}
	var err error
	if f.file, err = (parquet.Format{}).Open(ctx, ref, nil); err != nil {
		return nil, err
	}
	have, ids := f.file.Fields(), parquet.FieldIDs(f.file)
	for i := range columns {
		c := &columns[i]
		at := c.find(have, ids)
		if f.from[i] = at; at >= 0 {
			if f.fits[i], err = c.fit(have[at].Type, ids[at]); err != nil {
				return nil, err
			}
			continue
		}
		v, ok := constants[i]
		if !ok {
			v = c.Default
		}
		if v != nil {
			f.consts[i] = types.ArrayOf([]types.Value{v}, c.Type)
		}
	}
	for _, u := range f.file.Units() {
		f.before = append(f.before, f.Rows)
		f.Rows += u.Rows
	}
	return f, nil
}

// Numbered reports whether the file numbers any of its columns.
func (f *File) Numbered() bool { return numbered(parquet.FieldIDs(f.file)) }

// Names reports whether the file calls one of its columns so.
func (f *File) Names(name string) bool {
	return slices.ContainsFunc(f.file.Fields(), func(have types.Field) bool { return have.Name == name })
}

// Has reports whether the file holds a column.
func (f *File) Has(column int) bool { return f.from[column] >= 0 }

// Units is the number of row groups.
func (f *File) Units() int { return len(f.before) }

// Unit is the number of rows of a row group, and about how many bytes it has.
func (f *File) Unit(n int) (rows, bytes int64) {
	u := f.file.Units()[n]
	return u.Rows, u.Bytes
}

// First is the number of the first row of a unit.
func (f *File) First(unit int) int64 { return f.before[unit] }

// UnitOf is the unit that a row is in.
func (f *File) UnitOf(row int64) int {
	n := 0
	for n+1 < len(f.before) && f.before[n+1] <= row {
		n++
	}
	return n
}

// stats are the statistics of a column in one unit.
func (f *File) stats(unit, column int) (flow.ColumnStats, bool) {
	u := f.file.Units()[unit]
	switch c := f.consts[column]; {
	case c != nil:
		v := types.ValueAt(c, 0, f.Columns[column].Type)
		return flow.ColumnStats{Min: v, Max: v}, true
	case f.from[column] < 0:
		return flow.ColumnStats{Nulls: u.Rows}, true
	case f.fits[column] != nil || u.Stats == nil:
		return flow.ColumnStats{}, false // of another type
	}
	return u.Stats(f.from[column])
}

// CanMatch reports whether a row of a unit may satisfy all filters.
func (f *File) CanMatch(unit int, filters []flow.Predicate) bool {
	for _, p := range filters {
		if st, ok := f.stats(unit, p.Column); ok && !p.CanMatch(f.Columns[p.Column].Type, st, f.file.Units()[unit].Rows) {
			return false
		}
	}
	return true
}

// Picks says which rows of a file are read: from a row on, those of a set, or those that are not in it.
type Picks struct {
	Set    Rows
	Within bool
	From   int64
}

// all reports whether every row is read.
func (p Picks) all() bool { return p.Set == nil && !p.Within && p.From == 0 }

// of picks among n rows from row on, counted from the row.
func (p Picks) of(row int64, n int) (rows []int32, all bool) {
	rows = make([]int32, 0, n)
	for i := range n {
		if at := row + int64(i); at >= p.From && p.Set.Has(at) == p.Within {
			rows = append(rows, int32(i))
		}
	}
	return rows, len(rows) == n
}

// Projection maps the requested columns of a table to columns of one file.
type Projection struct {
	f       *File
	columns []int // of the table
	read    []int // of the file
	at      []int // by requested column: place in read, or -1
	schema  *arrow.Schema
}

// Project prepares the reading of some columns; schema is theirs.
func (f *File) Project(columns []int, schema *arrow.Schema) *Projection {
	p := &Projection{f: f, columns: columns, at: make([]int, len(columns)), schema: schema}
	for i, c := range columns {
		p.at[i] = -1
		if f.from[c] >= 0 {
			p.at[i] = len(p.read)
			p.read = append(p.read, f.from[c])
		}
	}
	return p
}

// narrowing puts stages in terms of the file's columns; nil when one reads a column that the file does not hold as it is.
func (p *Projection) narrowing(n *flow.Narrowing) *flow.Narrowing {
	if n == nil {
		return nil
	}
	out := &flow.Narrowing{Take: n.Take, Kept: n.Kept, Stages: make([]flow.Stage, len(n.Stages))}
	for i, st := range n.Stages {
		cols := make([]int, len(st.Columns))
		for k, c := range st.Columns {
			if cols[k] = p.at[c]; cols[k] < 0 || p.f.fits[p.columns[c]] != nil {
				return nil
			}
		}
		out.Stages[i] = flow.Stage{Columns: cols, Pure: st.Pure, Select: st.Select}
	}
	return out
}

// columnsOf brings a batch of the file into the requested columns.
func (p *Projection) columnsOf(b arrow.RecordBatch, rows int) []arrow.Array {
	cols := make([]arrow.Array, len(p.columns))
	for i, c := range p.columns {
		switch {
		case p.at[i] >= 0:
			cols[i] = apply(p.f.fits[c], b.Column(p.at[i]))
		case p.f.consts[c] != nil:
			cols[i] = kernels.Take(p.f.consts[c], make([]int32, rows))
		default:
			cols[i] = kernels.Nulls(p.f.Columns[c].Type.Arrow(), rows)
		}
	}
	return cols
}

// Request says how to read a unit.
type Request struct {
	Unit      int
	Picks     Picks
	BatchRows int
	Narrow    *flow.Narrowing
	Worker    int
	Room      func(int) []byte
}

// Unit reads the rows of a unit that are in the table. It is used by one goroutine.
type Unit struct {
	Row, End int64 // of the file: what comes next, and where the unit ends
	Narrowed bool  // by the conditions of the request

	p       *Projection
	picks   Picks
	batches files.Batches // nil: no column of the file is asked for, the rows are counted
	batch   int64
	picked  []int32 // of the last batch; nil: all
}

// Open begins to read a unit.
func (p *Projection) Open(ctx context.Context, req Request) (*Unit, error) {
	u := &Unit{p: p, picks: req.Picks, Row: p.f.before[req.Unit], batch: int64(req.BatchRows)}
	if u.batch <= 0 {
		u.batch = files.DefaultBatchRows
	}
	u.End = u.Row + p.f.file.Units()[req.Unit].Rows
	if len(p.read) == 0 {
		return u, nil
	}
	narrow := p.narrowing(req.Narrow)
	u.Narrowed = narrow != nil
	if !u.picks.all() {
		// The first stage is the set: rows that are not in the table are not decoded where that can be told.
		first := flow.Stage{Select: func(_ int, _ []arrow.Array, n int) ([]int32, bool, error) {
			rows, all := u.picks.of(u.Row, n)
			if u.picked = rows; all {
				u.picked = nil
			}
			return rows, all, nil
		}}
		with := &flow.Narrowing{Take: kernels.Take, Stages: []flow.Stage{first}}
		if narrow != nil {
			with.Stages = append(with.Stages, narrow.Stages...)
		}
		narrow = with
	}
	var err error
	u.batches, err = p.f.file.Read(ctx, files.ReadRequest{Unit: req.Unit, Columns: p.read, BatchRows: int(u.batch), Narrow: narrow, Worker: req.Worker, Room: req.Room})
	return u, err
}

// Next gives the next batch, which may be empty, with how many rows of the file it covers, or io.EOF.
func (u *Unit) Next(ctx context.Context) (b arrow.RecordBatch, records int64, err error) {
	defer func() {
		// AIDEV-NOTE: a decoder may panic on corrupt bytes that its checks let through; that is the file's fault, not ours.
		if r := recover(); r != nil {
			b, records, err = nil, 0, files.Corrupt(parquet.Format{}, u.p.f.Name, fmt.Errorf("%v", r))
		}
	}()
	if u.batches == nil {
		if records = min(u.batch, u.End-u.Row); records == 0 {
			return nil, 0, io.EOF
		}
		u.picked = nil
		n := records
		if !u.picks.all() {
			picked, all := u.picks.of(u.Row, int(records))
			if n = int64(len(picked)); !all {
				u.picked = picked
			}
		}
		u.Row += records
		return array.NewRecordBatch(u.p.schema, u.p.columnsOf(nil, int(n)), n), records, nil
	}
	in, err := u.batches.Next(ctx)
	if err != nil {
		return nil, 0, err
	}
	u.Row += in.Records
	n := int(in.Rows.NumRows())
	return array.NewRecordBatch(u.p.schema, u.p.columnsOf(in.Rows, n), int64(n)), in.Records, nil
}

// Places numbers the rows of the last batch, which covered so many rows of the file and was not narrowed, from 1.
func (u *Unit) Places(records int64) *flow.Places {
	p := &flow.Places{Split: u.p.f.Name, Kind: flow.File, Unit: flow.RowNumber}
	first := u.Row - records + 1
	if u.picked == nil {
		p.Add(0, first)
		return p
	}
	for i, row := range u.picked {
		p.Add(i, first+int64(row))
	}
	return p
}

// Close releases the unit.
func (u *Unit) Close() {
	if u.batches != nil {
		_ = u.batches.Close()
		u.batches = nil
		u.Row = u.End
	}
}

// Each reads some columns of all rows of the file that are picked, batch by batch. row is the number of the batch's first row of the file, and at
// tells the rows of the batch by their distance from it; nil: they follow one another.
func (f *File) Each(ctx context.Context, columns []int, picks Picks, do func(b arrow.RecordBatch, row int64, at []int32) error) error {
	fields := make([]types.Field, len(columns))
	for i, c := range columns {
		fields[i] = f.Columns[c].Field
	}
	p := f.Project(columns, types.ArrowSchema(fields))
	for n := range f.Units() {
		if rows, _ := f.Unit(n); rows == 0 {
			continue
		}
		u, err := p.Open(ctx, Request{Unit: n, Picks: picks})
		if err != nil {
			return err
		}
		for err == nil {
			var b arrow.RecordBatch
			var records int64
			if b, records, err = u.Next(ctx); err == nil && b.NumRows() > 0 {
				err = do(b, u.Row-records, u.picked)
			}
		}
		u.Close()
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}
