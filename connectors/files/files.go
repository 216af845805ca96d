// Package files reads sets of files: it lists them, reads Hive partitions from their paths, brings their schemas
// together, and offers them as a bounded relation (parallel morsels) or as a stream that follows a growing set.
// It knows no format; parquet, csv, json and arrowipc hand theirs in.
//
// Invariant: scan order is files by name, units in file order, rows in unit order, whatever the number of workers.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// Format opens files of one kind.
type Format interface {
	// Name is the word for the format in messages: "Parquet".
	Name() string
	// Extension ends the files of a directory that belong to the format: ".parquet".
	Extension() string
	// SelfDescribing: every file carries its schema, so that the files of a set are compared with one another.
	SelfDescribing() bool
	// Infer finds the columns of a set without declared schema from its first files.
	Infer(ctx context.Context, sample []Ref) ([]types.Field, error)
	// Open reads what is needed to plan the reading of one file. fields are the columns of the set without the partition
	// columns; a self-describing format ignores them.
	Open(ctx context.Context, ref Ref, fields []types.Field) (File, error)
}

// Ref is a file that can be opened. A relation holds refs and metadata, never open files.
type Ref struct {
	Store objstore.Store
	Info  objstore.Info
}

// Name is the path or URL of the file.
func (r Ref) Name() string { return objstore.URL(r.Store, r.Info.Name) }

// same reports whether the file is the one that was described before.
func same(a, b objstore.Info) bool { return a.Size == b.Size && a.Modified.Equal(b.Modified) }

// Open opens the file, and refuses one that changed since it was listed.
func (r Ref) Open(ctx context.Context) (objstore.File, error) {
	f, err := openFile(ctx, r.Store, r.Info.Name)
	if err != nil {
		return nil, err
	}
	if !same(f.Info(), r.Info) {
		_ = f.Close()
		return nil, errs.New(errs.Source, "open", "the file %q changed while it was being read", r.Name()).
			WithHint("write new files under a temporary name and rename them; then run the query again")
	}
	return f, nil
}

// File is what is known of one file. It is used by many goroutines.
type File interface {
	Fields() []types.Field
	// Units are the parts that are read independently, in order: row groups, blocks, or the whole file.
	Units() []Unit
	// Read starts reading a unit.
	Read(ctx context.Context, req ReadRequest) (Batches, error)
}

// ReadRequest tells a file what to read.
type ReadRequest struct {
	Unit      int
	Columns   []int // positions in Fields
	BatchRows int
	Lenient   bool // records that do not decode go to Batch.Bad instead of ending the read
	// Narrow drops rows; its stages' columns are positions in Columns. A format may ignore it. Worker is the reader's number.
	Narrow *flow.Narrowing
	Worker int
	Room   func(bytes int) []byte // as in flow.ScanRequest
}

// Unit describes a part of a file.
type Unit struct {
	Rows  int64                                              // -1: unknown
	Bytes int64                                              // roughly
	Stats func(column int) (stats flow.ColumnStats, ok bool) // nil: none
}

// Batches hands out the rows of one unit. It is used by one goroutine.
type Batches interface {
	// Next returns the next batch, or io.EOF.
	Next(ctx context.Context) (Batch, error)
	Close() error
}

// Skipper is Batches that pass over records without decoding them. Formats whose records may be bad need it, so that
// a position counts the same records each time.
type Skipper interface {
	// Skip passes over at most n records and says over how many; fewer only at the end of the unit.
	Skip(ctx context.Context, n int64) (int64, error)
}

// Batch is some rows of a unit.
type Batch struct {
	Rows    arrow.RecordBatch // may be nil when all records were bad
	Bad     []flow.BadRow     // what did not decode and was left out
	BadAt   []int             // for each of Bad, the number of rows before it
	Records int64             // rows and bad ones
	// Narrowed: the rows went through ReadRequest.Narrow; Rows may then be empty.
	Narrowed bool
}

// Options are the options that all file sources share.
var Options = connectors.Options{
	{Name: "path", Type: connectors.List, Required: true, Doc: "Files to read: paths, globs (*, ?, [..], {a,b}, **) or directories, on this machine or as s3://bucket/key, comma separated.", Example: "data/*.parquet"},
	{Name: "hive_partitioning", Type: connectors.Enum, Values: []string{"auto", "true", "false"}, Default: "auto", Doc: "Read key=value folders as columns. Auto does so when every file has the same keys. A column is BIGINT or DATE when every value is one (01 is not), else VARCHAR."},
	{Name: "union_by_name", Type: connectors.Bool, Default: "false", Doc: "Take the columns of all files by name; a file without a column gives NULL. Otherwise every file must have the columns of the first.", Example: "true"},
}

// expand lists the files of the patterns, in the order of the patterns and by name within each.
func expand(ctx context.Context, format Format, patterns []string) ([]Ref, error) {
	var out []Ref
	for _, pattern := range patterns {
		found, err := expandPattern(ctx, format, pattern)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func expandPattern(ctx context.Context, format Format, pattern string) ([]Ref, error) {
	store, name, err := objstore.For(pattern)
	if err != nil {
		return nil, err
	}
	found, err := expandOne(ctx, store, format, name)
	if err != nil {
		return nil, err
	}
	out := make([]Ref, len(found))
	for i, info := range found {
		out[i] = Ref{store, info}
	}
	return out, nil
}

func expandOne(ctx context.Context, s objstore.Store, format Format, name string) ([]objstore.Info, error) {
	info, err := s.Stat(ctx, name) // a file whose name holds [ or { is itself
	if err == nil {
		return []objstore.Info{info}, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, errs.New(errs.Source, "list", "cannot read %q: permission denied", objstore.URL(s, name)).WithHint("check who may read the file")
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return nil, known
	}
	pattern := name
	if !objstore.HasGlob(name) {
		pattern = filepath.Join(name, "**", "*"+format.Extension())
	}
	found, err := s.Glob(ctx, pattern)
	if err != nil {
		return nil, saidBy(err, "list", "cannot list %q: %w", objstore.URL(s, name), err)
	}
	kept := found[:0]
	for _, f := range found {
		if !hidden(f.Name, name) {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// hidden are files that are temporary or metadata: their names begin with a dot or an underscore, or the name of a folder does
// that the pattern does not spell out.
func hidden(name, pattern string) bool {
	parts := strings.Split(filepath.ToSlash(name), "/")
	spelled := map[string]bool{}
	for _, p := range strings.Split(filepath.ToSlash(pattern), "/") {
		spelled[p] = true
	}
	for i, p := range parts {
		dot := strings.HasPrefix(p, ".") || strings.HasPrefix(p, "_")
		if dot && (i == len(parts)-1 || !spelled[p] && !strings.Contains(p, "=")) {
			return true
		}
	}
	return false
}

// saidBy is the error itself when the store knew what to say; it may be worth a retry.
func saidBy(err error, op, format string, args ...any) *errs.Error {
	var known *errs.Error
	if errors.As(err, &known) {
		return known
	}
	return errs.New(errs.Source, op, format, args...)
}

// noFiles says that nothing matches, with the nearest name if there is one.
func noFiles(ctx context.Context, format Format, patterns []string) error {
	e := errs.New(errs.Source, "list", "no files match %s", quoteAll(patterns))
	for _, p := range patterns {
		s, name, err := objstore.For(p)
		if err != nil || objstore.HasGlob(name) {
			continue
		}
		near, _ := s.Glob(ctx, filepath.Join(filepath.Dir(name), "*"))
		names := make([]string, len(near))
		for i, f := range near {
			names[i] = filepath.Base(f.Name)
		}
		if n := errs.Near(filepath.Base(name), names); n != "" {
			return e.WithHint("did you mean %q?", objstore.URL(s, filepath.Join(filepath.Dir(name), n)))
		}
	}
	return e.WithHint("check the path; a relative one starts at the working directory, and a directory is searched for *%s", format.Extension())
}

func quoteAll(patterns []string) string {
	quoted := make([]string, len(patterns))
	for i, p := range patterns {
		quoted[i] = fmt.Sprintf("%q", p)
	}
	return strings.Join(quoted, ", ")
}

// openFile opens one file and says so when it cannot.
func openFile(ctx context.Context, s objstore.Store, name string) (objstore.File, error) {
	f, err := s.Open(ctx, name)
	url := objstore.URL(s, name)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, errs.New(errs.Source, "open", "the file %q is no longer there", url).WithHint("it was listed a moment ago; do not delete files that a query reads")
	case errors.Is(err, fs.ErrPermission):
		return nil, errs.New(errs.Source, "open", "cannot read %q: permission denied", url).WithHint("check who may read the file")
	}
	return nil, saidBy(err, "open", "cannot open %q: %w", url, err)
}
