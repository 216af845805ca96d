package iceberg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// stagedFile is a data file that is whole and durable, and neither visible nor in the table.
type stagedFile struct {
	objstore.Staged
	Address   string            `json:"address"` // as metadata name it
	Rows      int64             `json:"rows"`
	Partition map[string]string `json:"partition,omitempty"`
	Spec      int               `json:"spec,omitempty"`
}

// dataWriter writes data files of a table, one or more for each partition.
type dataWriter struct {
	t      *table
	form   *form
	parts  *partitioner
	spec   int
	place  // of the files
	layout // of their insides
	name   func() string

	open map[string]*openFile // by partition
	done []stagedFile
}

// place is where files are put.
type place struct {
	store  objstore.Store
	folder string // of the store
	prefix string // of addresses: what stands before the names of the store
}

// layout says how files are made.
type layout struct {
	compression string
	fileBytes   int64 // a file that has so many bytes gets no more rows; 0: no limit
}

// rowGroup is the rows of a row group, at most.
const rowGroup = 122880

// openFiles is how many files are written at once; each has buffers of its own.
const openFiles = 64

// placeOf is where a table's data files go.
func placeOf(m *meta.Table) (place, error) {
	address := m.Properties["write.data.path"]
	if address == "" {
		address = strings.TrimSuffix(m.Location, "/") + "/data"
	}
	address = strings.TrimSuffix(address, "/")
	store, folder, err := locate(address)
	if err != nil {
		return place{}, err
	}
	prefix, ok := strings.CutSuffix(address, folder)
	if !ok {
		return place{}, errs.New(errs.Unsupported, "open sink", "the table's files are at %q, which is no address that files can be written to", address).WithHint("use file:// or s3://")
	}
	return place{store, folder, prefix}, nil
}

func (w *dataWriter) address(name string) string { return w.prefix + name }

// openFile is a file that is being written.
type openFile struct {
	key    string
	of     partition
	upload objstore.Upload
	name   string
	buf    *bufio.Writer
	bytes  counter
	enc    *parquet.TableWriter
	rows   int64
}

// counter counts what reaches the upload.
type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// write takes rows in the columns that the form is made for.
func (w *dataWriter) write(ctx context.Context, cols []arrow.Array, rows int) error {
	if rows == 0 {
		return nil
	}
	cols, err := w.form.bring(cols, rows)
	if err != nil {
		return err
	}
	groups, values := w.parts.split(cols, rows)
	for _, g := range groups {
		f := w.open[g.key]
		if f == nil {
			if f, err = w.begin(ctx, g.key, w.parts.of(values, g.rows[0])); err != nil {
				return w.fail(err)
			}
		}
		if err := f.enc.Write(w.form.finish(take(cols, g.rows, rows)), len(g.rows)); err != nil {
			return w.fail(err)
		}
		if f.rows += int64(len(g.rows)); w.fileBytes > 0 && f.bytes.n >= w.fileBytes {
			if err := w.finish(f); err != nil {
				return w.fail(err)
			}
		}
	}
	return nil
}

func (w *dataWriter) begin(ctx context.Context, key string, of partition) (*openFile, error) {
	for len(w.open) >= openFiles {
		if err := w.finish(slices.MaxFunc(slices.Collect(maps.Values(w.open)), func(a, b *openFile) int {
			if a.rows != b.rows {
				return int(a.rows - b.rows)
			}
			return strings.Compare(a.key, b.key)
		})); err != nil {
			return nil, err
		}
	}
	f := &openFile{key: key, of: of, name: path.Join(w.folder, of.folder, w.name())}
	var err error
	if f.upload, err = w.store.Create(ctx, f.name); err != nil {
		return nil, err
	}
	f.bytes.to = f.upload
	f.buf = bufio.NewWriterSize(&f.bytes, 256<<10)
	if f.enc, err = parquet.NewTableWriter(f.buf, w.form.schema, w.compression, rowGroup); err != nil {
		return nil, errors.Join(err, f.upload.Abort())
	}
	if w.open == nil {
		w.open = map[string]*openFile{}
	}
	w.open[key] = f
	return f, nil
}

// finish ends a file and stages it.
func (w *dataWriter) finish(f *openFile) (err error) {
	delete(w.open, f.key)
	defer func() {
		if err != nil {
			_ = f.upload.Abort() // the first error is the cause
		}
	}()
	if err := f.enc.Close(); err != nil {
		return err
	}
	if err := f.buf.Flush(); err != nil {
		return err
	}
	staged, err := f.upload.Stage()
	if err != nil {
		return err
	}
	w.done = append(w.done, stagedFile{Staged: staged, Address: w.address(staged.Name), Rows: f.rows, Partition: f.of.values, Spec: w.spec})
	return nil
}

// finishAll ends all files, in the order of their folders, and hands out what was staged.
func (w *dataWriter) finishAll() ([]stagedFile, error) {
	for _, f := range slices.SortedFunc(maps.Values(w.open), func(a, b *openFile) int { return strings.Compare(a.name, b.name) }) {
		if err := w.finish(f); err != nil {
			return nil, w.fail(err)
		}
	}
	out := w.done
	w.done = nil
	return out, nil
}

// empty stages a file without rows.
func (w *dataWriter) empty(ctx context.Context) ([]stagedFile, error) {
	if _, err := w.begin(ctx, "", partition{}); err != nil {
		return nil, w.fail(err)
	}
	return w.finishAll()
}

// drop drops what was written and not handed out.
func (w *dataWriter) drop() {
	for _, f := range w.open {
		_ = f.upload.Abort()
	}
	clear(w.open)
	for _, f := range w.done {
		_ = w.store.Discard(context.Background(), f.Staged) // what stays is dropped by the next process
	}
	w.done = nil
}

func (w *dataWriter) fail(err error) error {
	if e := errs.As(err); e.Kind != errs.Internal || e.Err == nil {
		return err
	}
	return errs.New(errs.Source, "write", "a data file of the Iceberg table %q cannot be written below %q: %w", w.t.name, w.address(w.folder), err)
}

// fileName names a data file: pipeline, number, part and the writer's token, so that nobody else ever takes the name and those of one
// pipeline sort as they came.
func fileName(pipeline string, number int64, kind string, part int, token string) string {
	return fmt.Sprintf("%s-%08d-%s%04d-%s.parquet", pipeline, number, kind, part, token)
}
