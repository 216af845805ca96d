package delta

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/parquet/datafile"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// open reads the footer of a data file and finds the columns in it.
func (t *table) open(ctx context.Context, f *dataFile, columns []column) (*datafile.File, error) {
	src, err := t.openFile(ctx, f, columns)
	if err == nil {
		return src, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.Source, "open", "the file %q of the Delta table %q is no longer there: it was vacuumed, or deleted by hand", f.Path, t.path).
			WithHint("read a newer version, or keep files longer: VACUUM removes what delta.deletedFileRetentionDuration no longer protects")
	}
	return nil, errs.Because(err, errs.Source, "open", "restore the file, or read a version without it", "the file %q of the Delta table %q", f.Path, t.path)
}

func (t *table) openFile(ctx context.Context, f *dataFile, columns []column) (*datafile.File, error) {
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
	held, given := make([]datafile.Column, len(columns)), map[int]types.Value{}
	for i := range columns {
		c := &columns[i]
		if held[i] = c.held(); !c.partition {
			continue
		}
		held[i].ID, held[i].Names = 0, nil // its values are those of the log
		if given[i], err = c.partitionValue(f); err != nil {
			return nil, err
		}
	}
	src, err := datafile.Open(ctx, files.Ref{Store: store, Info: info}, held, given)
	if err != nil {
		return nil, err
	}
	return src, mapped(src, columns)
}

// held is the column as data files hold it.
func (c *column) held() datafile.Column {
	// INT96 and the timestamps of old writers do not say in the file that they are in UTC.
	out := datafile.Column{Field: c.Field, ID: c.id, Names: []string{c.physical}, UTC: true}
	for i := range c.parts {
		out.Parts = append(out.Parts, c.parts[i].held())
	}
	return out
}

// mapped refuses a file that holds none of the table's columns, though it has some under the names that users see: its writer did
// not map them, and its rows would all be NULL. One column alone may have such a name from before the table mapped its columns.
func mapped(src *datafile.File, columns []column) error {
	unmapped := ""
	for i, c := range columns {
		switch {
		case src.Has(i):
			return nil
		case c.partition || c.physical == c.Name:
		case src.Names(c.Name):
			unmapped = c.Name
		}
	}
	if unmapped == "" {
		return nil
	}
	return errs.New(errs.Source, "open", "it holds the column %q by that name, and the table has another name for it in its files: whoever wrote it does not map columns", unmapped).
		WithHint("write the file's rows anew with an engine that knows column mapping")
}
