package files

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// SinkOptions are the options that all file sinks share.
var SinkOptions = connectors.Options{
	{Name: "path", Type: connectors.String, Required: true, Doc: "Where to write. A name with the format's ending is one file, which appears when the query ends; any other name is a directory, which gets a file for each epoch that has rows.", Example: "out/result.parquet"},
	connectors.ChangelogOption,
}

// Encoder writes the rows of one file.
type Encoder interface {
	Write(columns []arrow.Array, rows int) error
	// Close ends the file; the underlying writer stays open.
	Close() error
}

// SinkFormat makes encoders.
type SinkFormat struct {
	Name       string   // for messages: "the Parquet sink"
	Extensions []string // the first is that of files in a directory
	New        func(w io.Writer, fields []types.Field) (Encoder, error)
}

// NewWriter opens a file sink. Files become visible whole: by rename, at Stage or, a single file, at Close.
func NewWriter(ctx context.Context, req connectors.SinkRequest, f SinkFormat) (connectors.Writer, error) {
	store, path, err := objstore.For(req.Settings.String("path"))
	if err != nil {
		return nil, err
	}
	switch filepath.Base(path) {
	case ".", "..", string(filepath.Separator):
		return nil, errs.New(errs.Usage, "open sink", "%s needs the name of a file or of a folder of its own, and %q is neither", f.Name, req.Settings.String("path")).
			WithHint("write %q for one file, or name a folder that gets a file for each epoch", filepath.Join(path, "result"+f.Extensions[0]))
	}
	w := &writer{format: f, store: store, path: path, pipeline: req.Pipeline}
	if w.fields, w.changelog, err = connectors.AppendFields(f.Name, req); err != nil {
		return nil, err
	}
	for _, ext := range f.Extensions {
		w.single = w.single || strings.HasSuffix(strings.ToLower(path), ext)
	}
	if w.pipeline == "" {
		w.pipeline = "part"
	}
	if w.single {
		return w, nil
	}
	// Numbers go on where an earlier run ended, so that no file of it is replaced.
	have, err := store.Glob(ctx, filepath.Join(path, w.pipeline+"-*"+f.Extensions[0]))
	if err != nil {
		return nil, errs.New(errs.Source, "open sink", "cannot list %q: %w", path, err)
	}
	for _, info := range have {
		base := strings.TrimSuffix(filepath.Base(info.Name), f.Extensions[0])
		if n, err := strconv.Atoi(strings.TrimPrefix(base, w.pipeline+"-")); err == nil {
			w.number = max(w.number, n)
		}
	}
	return w, nil
}

type writer struct {
	format    SinkFormat
	store     objstore.Store
	path      string
	pipeline  string
	fields    []types.Field
	changelog bool
	single    bool
	number    int // of the last file in the directory

	upload objstore.Upload
	buf    *bufio.Writer
	enc    Encoder
	staged bool // single: the last thing that happened was Stage
}

func (w *writer) fail(err error) error {
	if e := errs.As(err); e.Kind != errs.Internal {
		return e
	}
	return errs.New(errs.Source, "write", "%s cannot write %q: %w", w.format.Name, w.path, err)
}

// open starts a file.
func (w *writer) open(ctx context.Context) error {
	name := w.path
	if !w.single {
		name = filepath.Join(w.path, fmt.Sprintf("%s-%08d%s", w.pipeline, w.number+1, w.format.Extensions[0]))
	}
	up, err := w.store.Create(ctx, name)
	if err != nil {
		return err
	}
	w.upload, w.buf = up, bufio.NewWriterSize(up, 256<<10)
	w.enc, err = w.format.New(w.buf, w.fields)
	return err
}

func (w *writer) Write(ctx context.Context, d flow.Delta) error {
	if d.Rows() == 0 {
		return nil
	}
	cols, rows := d.Columns(), d.Rows()
	if w.changelog {
		cols = connectors.ChangeColumns(d)
	} else {
		times, err := connectors.Repeats(w.format.Name, d)
		if err != nil {
			return err
		}
		if cols, rows, err = repeat(cols, rows, times); err != nil || rows == 0 {
			return err
		}
	}
	if w.enc == nil {
		if err := w.open(ctx); err != nil {
			return w.fail(err)
		}
	}
	w.staged = false
	if err := w.enc.Write(cols, rows); err != nil {
		return w.fail(err)
	}
	return nil
}

// repeat writes each row as often as its weight says.
func repeat(cols []arrow.Array, rows int, times []int64) ([]arrow.Array, int, error) {
	once := true
	total := int64(0)
	for _, n := range times {
		once = once && n == 1
		total += n
	}
	if once || total == 0 {
		if !once {
			rows = 0
		}
		return cols, rows, nil
	}
	out := make([]arrow.Array, len(cols))
	for c, a := range cols {
		var parts []arrow.Array
		for i, n := range times {
			for range n {
				parts = append(parts, array.NewSlice(a, int64(i), int64(i+1)))
			}
		}
		var err error
		if out[c], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, 0, err
		}
	}
	return out, int(total), nil
}

// Stage publishes the file of the epoch. A single file goes on until Close.
func (w *writer) Stage(ctx context.Context, _ flow.Epoch) (connectors.Committable, error) {
	w.staged = true
	if w.single {
		if w.enc == nil { // a query without rows leaves a file without rows
			if err := w.open(ctx); err != nil {
				return nil, w.fail(err)
			}
		}
		return nil, nil
	}
	if w.enc == nil {
		return nil, nil
	}
	if err := w.publish(); err != nil {
		return nil, w.fail(err)
	}
	w.number++
	return nil, nil
}

func (w *writer) publish() error {
	defer w.drop()
	if err := w.enc.Close(); err != nil {
		return err
	}
	if err := w.buf.Flush(); err != nil {
		return err
	}
	return w.upload.Commit()
}

func (w *writer) drop() {
	if w.upload != nil {
		_ = w.upload.Abort()
	}
	w.upload, w.buf, w.enc = nil, nil, nil
}

// Close publishes a single file if all that was written was staged; a query that failed leaves none.
func (w *writer) Close() error {
	if w.single && w.staged && w.enc != nil {
		if err := w.publish(); err != nil {
			return w.fail(err)
		}
	}
	w.drop()
	return nil
}
