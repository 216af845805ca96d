package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// openParts is how many files are written at once; each has buffers of its own.
const openParts = 64

// part is a file that is being written.
type part struct {
	folder string
	upload objstore.Upload
	buf    *bufio.Writer
	enc    Encoder
	rows   int64
	bytes  counter
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

// begin starts a file.
func (w *writer) begin(ctx context.Context, folder string) (*part, error) {
	for len(w.open) >= openParts {
		if err := w.finish(slices.MaxFunc(slices.Collect(maps.Values(w.open)), func(a, b *part) int {
			if a.rows != b.rows {
				return int(a.rows - b.rows)
			}
			return compare(a.folder, b.folder)
		})); err != nil {
			return nil, err
		}
	}
	name := w.path
	switch {
	case w.commit != nil:
		name = filepath.Join(w.path, folder, w.commit.nextName())
	case !w.single:
		w.number++
		name = filepath.Join(w.path, folder, fmt.Sprintf("%s-%08d%s", w.pipeline, w.number, w.format.Extensions[0]))
	}
	up, err := w.store.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &part{folder: folder, upload: up, bytes: counter{to: up}}
	p.buf = bufio.NewWriterSize(&p.bytes, 256<<10)
	if p.enc, err = w.format.New(p.buf, w.written); err != nil {
		return nil, errors.Join(err, up.Abort())
	}
	w.open[folder] = p
	return p, nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// group is rows that belong into one folder.
type group struct {
	folder string
	cols   []arrow.Array
	rows   int
}

// put writes rows, into several files where one would have too many.
func (w *writer) put(ctx context.Context, g group) (err error) {
	for at := 0; at < g.rows; {
		p := w.open[g.folder]
		if p == nil {
			if p, err = w.begin(ctx, g.folder); err != nil {
				return err
			}
		}
		n, cols := g.rows-at, g.cols
		if w.fileRows > 0 {
			n = min(n, int(w.fileRows-p.rows))
		}
		if n < g.rows {
			cols = make([]arrow.Array, len(g.cols))
			for i, c := range g.cols {
				cols[i] = array.NewSlice(c, int64(at), int64(at+n))
			}
		}
		if err := p.enc.Write(cols, n); err != nil {
			return err
		}
		at, p.rows = at+n, p.rows+int64(n)
		if w.fileRows > 0 && p.rows >= w.fileRows || w.fileBytes > 0 && p.bytes.n >= w.fileBytes {
			if err := w.finish(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish ends a file: it is visible, or staged under exactly once.
func (w *writer) finish(p *part) (err error) {
	delete(w.open, p.folder)
	defer func() {
		if err != nil {
			_ = p.upload.Abort() // the first error is the cause
		}
	}()
	if err := p.enc.Close(); err != nil {
		return err
	}
	if err := p.buf.Flush(); err != nil {
		return err
	}
	if w.commit == nil {
		return p.upload.Commit()
	}
	st, err := p.upload.Stage()
	if err != nil {
		return err
	}
	w.commit.ready = append(w.commit.ready, stagedFile{Staged: st, Rows: p.rows})
	return nil
}

// finishAll ends all files, in the order of their folders.
func (w *writer) finishAll() error {
	for _, folder := range slices.Sorted(maps.Keys(w.open)) {
		if err := w.finish(w.open[folder]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) drop() {
	for _, p := range w.open {
		_ = p.upload.Abort()
	}
	clear(w.open)
}

// partitionBy finds the partition columns and what is left for the files.
func partitionBy(sink string, fields []types.Field, names []string) (by []int, written []types.Field, err error) {
	for _, name := range names {
		at := findFold(fields, name)
		if at < 0 || slices.Contains(by, at) {
			all := make([]string, len(fields))
			for i, f := range fields {
				all[i] = f.Name
			}
			return nil, nil, errs.New(errs.Schema, "open sink", "partition_by of %s names %q, which is no column of the query or is named twice", sink, name).WithHint("%s", errs.DidYouMean(name, all))
		}
		switch t := fields[at].Type; {
		case t.IsInteger() && t.Kind != types.HugeInt && t.Kind != types.UHugeInt, t.Kind == types.Boolean, t.Kind == types.Date, t.Kind == types.Varchar:
		default:
			return nil, nil, errs.New(errs.Schema, "open sink", "partition_by of %s names %q, which is %s: folders are named by whole numbers, BOOLEAN, DATE and VARCHAR", sink, name, t).
				WithHint("cast it in the query")
		}
		by = append(by, at)
	}
	for i, f := range fields {
		if !slices.Contains(by, i) {
			written = append(written, f)
		}
	}
	if len(written) == 0 {
		return nil, nil, errs.New(errs.Schema, "open sink", "partition_by of %s names all columns, and files need one at least", sink)
	}
	return by, written, nil
}

// byFolder splits rows by the folder that they belong into, in the order in which those first come.
func (w *writer) byFolder(cols []arrow.Array, rows int) []group {
	if len(w.by) == 0 {
		return []group{{cols: cols, rows: rows}}
	}
	left := make([]arrow.Array, 0, len(w.written))
	for i, c := range cols {
		if !slices.Contains(w.by, i) {
			left = append(left, c)
		}
	}
	type run struct{ from, to int64 }
	runs := map[string][]run{}
	var order []string
	for row := range rows {
		folder := ""
		for _, at := range w.by {
			folder = filepath.Join(folder, url.PathEscape(w.fields[at].Name)+"="+partitionValue(cols[at], row))
		}
		have, ok := runs[folder]
		if !ok {
			order = append(order, folder)
		}
		if n := len(have); n > 0 && have[n-1].to == int64(row) {
			have[n-1].to++
			continue
		}
		runs[folder] = append(have, run{int64(row), int64(row) + 1})
	}
	out := make([]group, len(order))
	for k, folder := range order {
		g := group{folder: folder, cols: make([]arrow.Array, len(left))}
		for i, c := range left {
			pieces := make([]arrow.Array, len(runs[folder]))
			for j, r := range runs[folder] {
				pieces[j] = array.NewSlice(c, r.from, r.to)
			}
			if len(pieces) == 1 {
				g.cols[i] = pieces[0]
				continue
			}
			// AIDEV-NOTE: Concatenate fails only for arrays of different types.
			joined, err := array.Concatenate(pieces, memory.DefaultAllocator)
			if err != nil {
				panic(errs.Bug("write", "%w", err))
			}
			g.cols[i] = joined
		}
		for _, r := range runs[folder] {
			g.rows += int(r.to - r.from)
		}
		out[k] = g
	}
	return out
}

// partitionValue is how a value stands in a folder's name.
func partitionValue(c arrow.Array, row int) string {
	if c.IsNull(row) {
		return hiveNull
	}
	return url.PathEscape(c.ValueStr(row))
}
