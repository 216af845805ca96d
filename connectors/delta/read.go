package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// source is a data file that was opened for a table's columns. It is used by many goroutines.
type source struct {
	name    string
	columns []column
	file    files.File
	from    []int         // by column: column of the file; -1: it has none
	have    []types.Type  // by column: its type in the file
	fits    []fit         // by column
	consts  []arrow.Array // by column: the one value of a partition column
	before  []int64       // by unit: rows of the file before it
	rows    int64
}

// open reads the footer of a data file and finds the columns in it.
func (t *table) open(ctx context.Context, f *dataFile, columns []column) (*source, error) {
	src, err := t.openFile(ctx, f, columns)
	if err == nil {
		return src, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.Source, "open", "the file %q of the Delta table %q is no longer there: it was vacuumed, or deleted by hand", f.Path, t.path).
			WithHint("read a newer version, or keep files longer: VACUUM removes what delta.deletedFileRetentionDuration no longer protects")
	}
	return nil, because(err, "open", "restore the file, or read a version without it", "the file %q of the Delta table %q", f.Path, t.path)
}

func (t *table) openFile(ctx context.Context, f *dataFile, columns []column) (*source, error) {
	path, err := f.name()
	if err != nil {
		return nil, err
	}
	store, name, err := t.locate(path)
	if err != nil {
		return nil, err
	}
	info, err := store.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	if f.Size != nil && *f.Size != info.Size {
		return nil, fmt.Errorf("it has %d bytes, and the log says %d", info.Size, *f.Size)
	}
	src := &source{name: name, columns: columns, from: make([]int, len(columns)), have: make([]types.Type, len(columns)), fits: make([]fit, len(columns)), consts: make([]arrow.Array, len(columns))}
	if src.file, err = (parquet.Format{}).Open(ctx, files.Ref{Store: store, Info: info}, nil); err != nil {
		return nil, err
	}
	have, ids := src.file.Fields(), parquet.FieldIDs(src.file)
	for i := range columns {
		c := &columns[i]
		src.from[i] = -1
		if c.partition {
			v, err := c.partitionValue(f)
			if err != nil {
				return nil, err
			}
			src.consts[i] = types.ArrayOf([]types.Value{v}, c.Type)
			continue
		}
		at := c.find(have, ids)
		if src.from[i] = at; at < 0 {
			continue
		}
		src.have[i] = have[at].Type
		if src.fits[i], err = c.fit(have[at].Type, ids[at]); err != nil {
			return nil, err
		}
	}
	if err := src.mapped(have); err != nil {
		return nil, err
	}
	for _, u := range src.file.Units() {
		src.before = append(src.before, src.rows)
		src.rows += u.Rows
	}
	return src, nil
}

// mapped refuses a file that holds none of the table's columns, though it has some under the names that users see: its writer did
// not map them, and its rows would all be NULL. One column alone may have such a name from before the table mapped its columns.
func (s *source) mapped(have []types.Field) error {
	unmapped := ""
	for i, c := range s.columns {
		switch {
		case s.from[i] >= 0:
			return nil
		case c.partition || c.physical == c.Name:
		case slices.ContainsFunc(have, func(f types.Field) bool { return f.Name == c.Name }):
			unmapped = c.Name
		}
	}
	if unmapped == "" {
		return nil
	}
	return errs.New(errs.Source, "open", "it holds the column %q by that name, and the table has another name for it in its files: whoever wrote it does not map columns", unmapped).
		WithHint("write the file's rows anew with an engine that knows column mapping")
}

// stats are the statistics of a column in one unit.
func (s *source) stats(unit, column int) (flow.ColumnStats, bool) {
	u := s.file.Units()[unit]
	switch {
	case s.consts[column] != nil:
		return flow.ColumnStats{}, false // the file was chosen by them
	case s.from[column] < 0:
		return flow.ColumnStats{Nulls: u.Rows}, true
	case s.fits[column] != nil || u.Stats == nil:
		return flow.ColumnStats{}, false // of another type
	}
	return u.Stats(s.from[column])
}

func (s *source) canMatch(unit int, filters []flow.Predicate) bool {
	for _, p := range filters {
		if st, ok := s.stats(unit, p.Column); ok && !p.CanMatch(s.columns[p.Column].Type, st, s.file.Units()[unit].Rows) {
			return false
		}
	}
	return true
}

// picks says which rows of a file are read: from a row on, those of a set, or those that are not in it.
type picks struct {
	set    bitmap
	within bool
	from   int64
}

// all reports whether every row is read.
func (p picks) all() bool { return p.set == nil && !p.within && p.from == 0 }

// of picks among n rows from row on, counted from the row.
func (p picks) of(row int64, n int) (rows []int32, all bool) {
	rows = make([]int32, 0, n)
	for i := range n {
		if at := row + int64(i); at >= p.from && p.set.has(at) == p.within {
			rows = append(rows, int32(i))
		}
	}
	return rows, len(rows) == n
}

// projection maps the requested columns of a table to columns of one file.
type projection struct {
	src     *source
	columns []int // of the table
	read    []int // of the file
	at      []int // by requested column: place in read, or -1
	schema  *arrow.Schema
}

func (s *source) project(columns []int, schema *arrow.Schema) *projection {
	p := &projection{src: s, columns: columns, at: make([]int, len(columns)), schema: schema}
	for i, c := range columns {
		p.at[i] = -1
		if s.from[c] >= 0 {
			p.at[i] = len(p.read)
			p.read = append(p.read, s.from[c])
		}
	}
	return p
}

// narrowing puts stages in terms of the file's columns; nil when one reads a column that the file does not hold as it is.
func (p *projection) narrowing(n *flow.Narrowing) *flow.Narrowing {
	if n == nil {
		return nil
	}
	out := &flow.Narrowing{Take: n.Take, Kept: n.Kept, Stages: make([]flow.Stage, len(n.Stages))}
	for i, st := range n.Stages {
		cols := make([]int, len(st.Columns))
		for k, c := range st.Columns {
			if cols[k] = p.at[c]; cols[k] < 0 || p.src.fits[p.columns[c]] != nil {
				return nil
			}
		}
		out.Stages[i] = flow.Stage{Columns: cols, Pure: st.Pure, Select: st.Select}
	}
	return out
}

// columnsOf brings a batch of the file into the requested columns.
func (p *projection) columnsOf(b arrow.RecordBatch, rows int) []arrow.Array {
	cols := make([]arrow.Array, len(p.columns))
	for i, c := range p.columns {
		switch {
		case p.at[i] >= 0:
			cols[i] = apply(p.src.fits[c], b.Column(p.at[i]))
		case p.src.consts[c] != nil:
			cols[i] = kernels.Take(p.src.consts[c], make([]int32, rows))
		default:
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, p.src.columns[c].Type.Arrow(), rows)
		}
	}
	return cols
}

// unitRequest says how to read a unit.
type unitRequest struct {
	unit      int
	picks     picks
	batchRows int
	narrow    *flow.Narrowing
	worker    int
	room      func(int) []byte
}

// unit reads the rows of a unit that are in the table. It is used by one goroutine.
type unit struct {
	p        *projection
	picks    picks
	batches  files.Batches // nil: no column of the file is asked for, the rows are counted
	row, end int64         // of the file: what comes next, and where the unit ends
	batch    int64
	narrowed bool    // by the conditions of the request
	picked   []int32 // of the last batch; nil: all
}

func (p *projection) open(ctx context.Context, req unitRequest) (*unit, error) {
	u := &unit{p: p, picks: req.picks, row: p.src.before[req.unit], batch: int64(req.batchRows)}
	u.end = u.row + p.src.file.Units()[req.unit].Rows
	if len(p.read) == 0 {
		return u, nil
	}
	narrow := p.narrowing(req.narrow)
	u.narrowed = narrow != nil
	if !u.picks.all() {
		// The first stage is the vector: rows that are not in the table are not decoded where that can be told.
		first := flow.Stage{Select: func(_ int, _ []arrow.Array, n int) ([]int32, bool, error) {
			rows, all := u.picks.of(u.row, n)
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
	u.batches, err = p.src.file.Read(ctx, files.ReadRequest{Unit: req.unit, Columns: p.read, BatchRows: req.batchRows, Narrow: narrow, Worker: req.worker, Room: req.room})
	return u, err
}

// next gives the next batch, which may be empty, with how many rows of the file it covers, or io.EOF.
func (u *unit) next(ctx context.Context) (b arrow.RecordBatch, records int64, err error) {
	defer func() {
		// AIDEV-NOTE: a decoder may panic on corrupt bytes that its checks let through; that is the file's fault, not ours.
		if r := recover(); r != nil {
			b, records, err = nil, 0, files.Corrupt(parquet.Format{}, u.p.src.name, fmt.Errorf("%v", r))
		}
	}()
	if u.batches == nil {
		if records = min(u.batch, u.end-u.row); records == 0 {
			return nil, 0, io.EOF
		}
		u.picked = nil
		n := records
		if !u.picks.all() {
			picked, all := u.picks.of(u.row, int(records))
			if n = int64(len(picked)); !all {
				u.picked = picked
			}
		}
		u.row += records
		return array.NewRecordBatch(u.p.schema, u.p.columnsOf(nil, int(n)), n), records, nil
	}
	in, err := u.batches.Next(ctx)
	if err != nil {
		return nil, 0, err
	}
	u.row += in.Records
	n := int(in.Rows.NumRows())
	return array.NewRecordBatch(u.p.schema, u.p.columnsOf(in.Rows, n), int64(n)), in.Records, nil
}

// places numbers the rows of the last batch, which covered so many rows of the file and was not narrowed, from 1.
func (u *unit) places(records int64) *flow.Places {
	p := &flow.Places{Split: u.p.src.name, Kind: flow.File, Unit: flow.RowNumber}
	first := u.row - records + 1
	if u.picked == nil {
		p.Add(0, first)
		return p
	}
	for i, row := range u.picked {
		p.Add(i, first+int64(row))
	}
	return p
}

func (u *unit) close() {
	if u.batches != nil {
		_ = u.batches.Close()
		u.batches = nil
		u.row = u.end
	}
}
