package iceberg

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// The field ids of position delete files, which the format reserves.
const (
	pathField = 2147483546
	rowField  = 2147483545
)

var positionColumns = []datafile.Column{
	{Field: types.Field{Name: "file_path", Type: types.String}, ID: pathField, Names: []string{"file_path"}},
	{Field: types.Field{Name: "pos", Type: types.Int64}, ID: rowField, Names: []string{"pos"}},
}

// deletes finds the rows of data files that files of deletes name. What is read of those is kept, as one of them may be about many data
// files. It is used by many goroutines.
type deletes struct {
	v *view

	mu        sync.Mutex
	positions map[string]map[string][]int64 // by delete file: by data file: its rows
	keys      map[string]*keySet            // by delete file and columns
}

// keySet is an equality delete: keys by their columns.
type keySet struct {
	columns []datafile.Column
	keys    map[string]bool
}

func newDeletes(v *view) *deletes {
	return &deletes{v: v, positions: map[string]map[string][]int64{}, keys: map[string]*keySet{}}
}

// of is the rows of a data file that are deleted; nil: none.
func (d *deletes) of(ctx context.Context, f *meta.File) (datafile.Rows, error) {
	if len(f.Deletes) == 0 {
		return nil, nil
	}
	out := datafile.NewRows(f.Rows)
	for i := range f.Deletes {
		del := &f.Deletes[i]
		rows, err := d.rows(ctx, f, del)
		if err != nil {
			return nil, errs.Because(err, errs.Source, "read", "restore it, or read a snapshot without it", "the file %q, which deletes rows of the file %q of the Iceberg table %q", del.Path, f.Path, d.v.name)
		}
		out = out.Or(rows)
	}
	return out, nil
}

func (d *deletes) rows(ctx context.Context, f *meta.File, del *meta.Delete) (datafile.Rows, error) {
	switch del.Kind {
	case "position":
		return d.byPosition(ctx, f, del)
	case "vector":
		return vector(ctx, f, del)
	case "equality":
		return d.byKey(ctx, f, del)
	}
	return nil, errs.New(errs.Unsupported, "read", "it is a delete of the kind %q, which is not known", del.Kind)
}

func (d *deletes) byPosition(ctx context.Context, f *meta.File, del *meta.Delete) (datafile.Rows, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	by, ok := d.positions[del.Path]
	if !ok {
		by = map[string][]int64{}
		src, err := openDelete(ctx, del, positionColumns)
		if err != nil {
			return nil, err
		}
		err = src.Each(ctx, []int{0, 1}, datafile.Picks{}, func(b arrow.RecordBatch, _ int64, _ []int32) error {
			paths, rows := b.Column(0).(*array.String), b.Column(1).(*array.Int64)
			for i := range int(b.NumRows()) {
				by[paths.Value(i)] = append(by[strings.Clone(paths.Value(i))], rows.Value(i))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		d.positions[del.Path] = by
	}
	out := datafile.NewRows(f.Rows)
	for _, row := range by[f.Path] {
		if row < 0 || !out.Add(uint64(row), uint64(row)) {
			return nil, fmt.Errorf("it deletes row %d, and the file has %d", row, f.Rows)
		}
	}
	return out, nil
}

func openDelete(ctx context.Context, del *meta.Delete, columns []datafile.Column) (*datafile.File, error) {
	ref, err := refTo(ctx, del.Path, 0)
	if err != nil {
		return nil, err
	}
	return datafile.Open(ctx, ref, columns, nil)
}

// mostVector bounds the bytes of one vector: no file has that many rows.
const mostVector = 1 << 30

// vector reads a deletion vector: its length, the rows and their checksum, at a place in a Puffin file.
func vector(ctx context.Context, f *meta.File, del *meta.Delete) (datafile.Rows, error) {
	ref, err := refTo(ctx, del.Path, 0)
	if err != nil {
		return nil, err
	}
	file, err := ref.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if del.Length < 12 || del.Length > mostVector || del.Offset < 0 || del.Offset+del.Length > ref.Info.Size {
		return nil, fmt.Errorf("it has %d bytes, and the vector's %d begin at byte %d", ref.Info.Size, del.Length, del.Offset)
	}
	buf := make([]byte, del.Length)
	if _, err := file.ReadAt(buf, del.Offset); err != nil && err != io.EOF {
		return nil, err
	}
	data, sum := buf[4:len(buf)-4], binary.BigEndian.Uint32(buf[len(buf)-4:])
	if int(binary.BigEndian.Uint32(buf)) != len(data) || crc32.ChecksumIEEE(data) != sum {
		return nil, fmt.Errorf("it does not hold at byte %d what was written there: its size or checksum is wrong", del.Offset)
	}
	rows, err := datafile.ParseVector(data, f.Rows)
	if err == nil && del.Rows > 0 && rows.All() != del.Rows {
		err = fmt.Errorf("it holds %d rows, and the metadata say %d", rows.All(), del.Rows)
	}
	return rows, err
}

// byKey finds the rows whose values in the delete's columns are among its keys.
func (d *deletes) byKey(ctx context.Context, f *meta.File, del *meta.Delete) (datafile.Rows, error) {
	set, err := d.keysOf(ctx, del)
	if err != nil {
		return nil, err
	}
	src, err := d.v.open(ctx, f, set.columns)
	if err != nil {
		return nil, err
	}
	return matching(ctx, src, set.keys)
}

// matching is the rows of a file whose values in all of its columns are among the keys.
func matching(ctx context.Context, src *datafile.File, keys map[string]bool) (datafile.Rows, error) {
	out := datafile.NewRows(src.Rows)
	var key []byte
	err := src.Each(ctx, allOf(src.Columns), datafile.Picks{}, func(b arrow.RecordBatch, row int64, _ []int32) error {
		of := keysOf(b.Columns())
		for i := range int(b.NumRows()) {
			if key = of.of(key[:0], i); keys[string(key)] {
				out.Add(uint64(row)+uint64(i), uint64(row)+uint64(i))
			}
		}
		return nil
	})
	return out, err
}

func allOf(columns []datafile.Column) []int {
	out := make([]int, len(columns))
	for i := range out {
		out[i] = i
	}
	return out
}

func (d *deletes) keysOf(ctx context.Context, del *meta.Delete) (*keySet, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := del.Path
	for _, id := range del.Equal {
		name += "\x00" + strconv.Itoa(id)
	}
	if set := d.keys[name]; set != nil {
		return set, nil
	}
	set := &keySet{keys: map[string]bool{}}
	var err error
	if set.columns, err = d.equalityColumns(ctx, del); err != nil {
		return nil, err
	}
	src, err := openDelete(ctx, del, set.columns)
	if err != nil {
		return nil, err
	}
	err = src.Each(ctx, allOf(set.columns), datafile.Picks{}, func(b arrow.RecordBatch, _ int64, _ []int32) error {
		of := keysOf(b.Columns())
		var key []byte
		for i := range int(b.NumRows()) {
			key = of.of(key[:0], i)
			set.keys[string(key)] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.keys[name] = set
	return set, nil
}

// equalityColumns are the columns that an equality delete compares. One that the table has dropped since is as the delete file has it.
func (d *deletes) equalityColumns(ctx context.Context, del *meta.Delete) ([]datafile.Column, error) {
	var out []datafile.Column
	for _, id := range del.Equal {
		if at := slices.IndexFunc(d.v.all, func(c datafile.Column) bool { return c.ID == id }); at >= 0 {
			out = append(out, d.v.all[at])
			continue
		}
		ref, err := refTo(ctx, del.Path, 0)
		if err != nil {
			return nil, err
		}
		file, err := (parquet.Format{}).Open(ctx, files.Ref{Store: ref.Store, Info: ref.Info}, nil)
		if err != nil {
			return nil, err
		}
		ids := parquet.FieldIDs(file)
		at := slices.IndexFunc(ids, func(f parquet.FieldID) bool { return f.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("it compares the field %d, which is neither in it nor in the table", id)
		}
		out = append(out, datafile.Column{Field: file.Fields()[at], ID: id})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it compares no columns")
	}
	if at := slices.IndexFunc(out, func(c datafile.Column) bool { return c.Type.IsNested() }); at >= 0 {
		return nil, errs.New(errs.Unsupported, "read", "it compares the column %q, which is %s", out[at].Name, out[at].Type)
	}
	return out, nil
}
