package files

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// SinkOptions are the options that all file sinks share.
var SinkOptions = connectors.Options{
	{Name: "path", Type: connectors.String, Required: true, Doc: "Where to write, on this machine or as s3://bucket/key. A name with the format's ending is one file, which appears when the query ends; any other name is a directory, which gets a file for each epoch that has rows.", Example: "out/result.parquet"},
	{Name: "file_rows", Type: connectors.Int, Default: "0", Doc: "Rows of a file in a directory, at most; an epoch with more gets several. 0 is no limit."},
	{Name: "file_bytes", Type: connectors.Int, Default: "0", Doc: "A file in a directory that has so many bytes gets no more rows; it ends up larger by what the format holds back, a row group. 0 is no limit."},
	{Name: "partition_by", Type: connectors.List, Doc: "Columns whose values become key=value folders in a directory instead of being written into the files: whole numbers, BOOLEAN, DATE and VARCHAR.", Example: "day"},
	connectors.ChangelogOption,
}

// SinkFormat makes encoders.
type SinkFormat struct {
	Name       string   // for messages: "the Parquet sink"
	Extensions []string // the first is that of files in a directory
	New        func(w io.Writer, fields []types.Field) (Encoder, error)
}

// Encoder writes the rows of one file.
type Encoder interface {
	Write(columns []arrow.Array, rows int) error
	// Close ends the file; the underlying writer stays open.
	Close() error
}

// NewWriter opens a file sink. Files become visible whole: at Stage, a single file at Close, and under exactly once at Commit.
func NewWriter(ctx context.Context, req connectors.SinkRequest, f SinkFormat) (connectors.Writer, error) {
	store, path, err := objstore.For(req.Settings.String("path"))
	if err != nil {
		return nil, err
	}
	return newWriter(ctx, store, path, req, f)
}

func newWriter(ctx context.Context, store objstore.Store, path string, req connectors.SinkRequest, f SinkFormat) (connectors.Writer, error) {
	switch filepath.Base(path) {
	case ".", "..", string(filepath.Separator):
		return nil, errs.New(errs.Usage, "open sink", "%s needs the name of a file or of a folder of its own, and %q is neither", f.Name, req.Settings.String("path")).
			WithHint("write %q for one file, or name a folder that gets a file for each epoch", filepath.Join(path, "result"+f.Extensions[0]))
	}
	w := &writer{format: f, store: store, path: path, pipeline: req.Pipeline, fileRows: req.Settings.Int("file_rows"), fileBytes: req.Settings.Int("file_bytes"), open: map[string]*part{}}
	var err error
	if w.fields, w.changelog, err = connectors.AppendFields(f.Name, req); err != nil {
		return nil, err
	}
	for _, ext := range f.Extensions {
		w.single = w.single || strings.HasSuffix(strings.ToLower(path), ext)
	}
	by := req.Settings.List("partition_by")
	if w.by, w.written, err = partitionBy(f.Name, w.fields, by); err != nil {
		return nil, err
	}
	if w.pipeline == "" {
		w.pipeline = "part"
	}
	switch {
	case w.single && (w.fileRows > 0 || w.fileBytes > 0 || len(by) > 0):
		return nil, errs.New(errs.Usage, "open sink", "%s writes one file to %q, and file_rows, file_bytes and partition_by are for directories", f.Name, objstore.URL(store, path)).
			WithHint("name a directory, without the ending %s", filepath.Ext(path))
	case w.single && req.ExactlyOnce:
		return nil, errs.New(errs.ExactlyOnce, "open sink", "%s cannot write the one file %q exactly once: it appears when the query ends, and a pipeline that is restarted goes on", f.Name, objstore.URL(store, path)).
			WithHint("name a directory, which gets a file for each epoch: %q", strings.TrimSuffix(objstore.URL(store, path), filepath.Ext(path)))
	case w.single:
		return w, nil
	case req.ExactlyOnce:
		return newCommitter(w), nil
	}
	// Numbers go on where an earlier run ended, so that no file of it is replaced.
	have, err := store.Glob(ctx, filepath.Join(path, "**", w.pipeline+"-*"+f.Extensions[0]))
	if err != nil {
		return nil, saidBy(err, "open sink", "cannot list %q: %w", objstore.URL(store, path), err)
	}
	for _, info := range have {
		base := strings.TrimSuffix(filepath.Base(info.Name), f.Extensions[0])
		if n, err := strconv.Atoi(strings.TrimPrefix(base, w.pipeline+"-")); err == nil {
			w.number = max(w.number, n)
		}
	}
	return w, nil
}

// writer writes the files of a sink.
type writer struct {
	format    SinkFormat
	store     objstore.Store
	path      string
	pipeline  string
	fields    []types.Field // of the rows
	written   []types.Field // of the files
	by        []int         // partition columns
	changelog bool
	single    bool
	fileRows  int64
	fileBytes int64
	number    int // of the last file in the directory

	open   map[string]*part // by folder below path
	staged bool             // single: the last thing that happened was Stage
	commit *committer       // under exactly once
}

func (w *writer) fail(err error) error {
	if e := errs.As(err); e.Kind != errs.Internal || e.Err == nil {
		return e
	}
	return errs.New(errs.Source, "write", "%s cannot write %q: %w", w.format.Name, objstore.URL(w.store, w.path), err)
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
		if cols, rows = connectors.Repeated(cols, rows, times); rows == 0 {
			return nil
		}
	}
	w.staged = false
	for _, g := range w.byFolder(cols, rows) {
		if err := w.put(ctx, g); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

// Stage publishes the files of the epoch. A single file goes on until Close.
func (w *writer) Stage(ctx context.Context, _ flow.Epoch) (connectors.Committable, error) {
	w.staged = true
	if w.single {
		if len(w.open) == 0 { // a query without rows leaves a file without rows
			if _, err := w.begin(ctx, ""); err != nil {
				return nil, w.fail(err)
			}
		}
		return nil, nil
	}
	if err := w.finishAll(); err != nil {
		return nil, w.fail(err)
	}
	return nil, nil
}

// Close publishes a single file if all that was written was staged; a query that failed leaves none.
func (w *writer) Close() error {
	if w.single && w.staged {
		if err := w.finishAll(); err != nil {
			return w.fail(err)
		}
	}
	w.drop()
	return nil
}
