package csv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	dcsv "github.com/riverbed/riverbed/connectors/decode/csv"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// sampleBytes bounds the sample, whatever the number of records asked for.
const sampleBytes = 4 << 20

// Format reads CSV files.
type Format struct {
	dialect  dcsv.Dialect
	sniff    bool // find the delimiter
	header   *bool
	skip     int
	allText  bool
	nullText string
	records  int
	ignore   bool
}

func (Format) Name() string         { return "CSV" }
func (Format) Extension() string    { return ".csv" }
func (Format) SelfDescribing() bool { return false }

var byteOrderMark = []byte("\ufeff")

// sample reads the head of a file; whole says that it is all of it.
func (f Format) sample(ctx context.Context, ref files.Ref) (head []byte, whole bool, err error) {
	r, err := ref.Open(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = r.Close() }()
	head = make([]byte, min(ref.Info.Size, sampleBytes))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, false, errs.New(errs.Source, "read", "cannot read %q: %w", ref.Name(), err)
	}
	head = bytes.TrimPrefix(head, byteOrderMark)
	for range f.skip {
		_, head, _ = bytes.Cut(head, []byte("\n"))
	}
	return head, ref.Info.Size <= sampleBytes, nil
}

func (f Format) sniffed(ctx context.Context, ref files.Ref, names []string) (dcsv.Sniffed, error) {
	head, whole, err := f.sample(ctx, ref)
	if err != nil {
		return dcsv.Sniffed{}, err
	}
	d := f.dialect
	if f.sniff {
		d.Delim = dcsv.SniffDelim(head, d, whole)
	}
	s, err := dcsv.Sniff(head, d, dcsv.Options{Header: f.header, AllVarchar: f.allText, NullText: f.nullText, Names: names, Records: f.records}, whole)
	if err != nil {
		return s, errs.New(errs.Source, "read schema", "the CSV file %q, %w", ref.Name(), err)
	}
	return s, nil
}

// Infer takes the columns of the first file that has some.
func (f Format) Infer(ctx context.Context, sample []files.Ref) ([]types.Field, error) {
	for _, ref := range sample {
		s, err := f.sniffed(ctx, ref, nil)
		if err != nil {
			return nil, err
		}
		if len(s.Fields) > 0 {
			return s.Fields, nil
		}
	}
	return nil, errs.New(errs.Source, "read schema", "the CSV file %q is empty, so its columns are unknown", sample[0].Name()).
		WithHint("leave the file out of the path, or declare the columns in CREATE STREAM")
}

// csvFile is one file of known columns.
type csvFile struct {
	format  Format
	ref     files.Ref
	dialect dcsv.Dialect
	header  bool
	fields  []types.Field
	width   int
	columns []int // of the record, by field
	units   []files.Unit
}

// Open finds the dialect and, with a header, where each column stands.
func (f Format) Open(ctx context.Context, ref files.Ref, fields []types.Field) (files.File, error) {
	c := &csvFile{format: f, ref: ref, fields: fields}
	if ref.Info.Size == 0 {
		return c, nil
	}
	s, err := f.sniffed(ctx, ref, nil)
	if err != nil {
		return nil, err
	}
	c.dialect, c.header, c.width = s.Dialect, s.Header, len(s.Fields)
	c.units = []files.Unit{{Rows: -1, Bytes: ref.Info.Size}}
	if c.width == 0 { // empty lines alone: the user's columns
		c.width, c.header = len(fields), false
		for i := range fields {
			c.columns = append(c.columns, i)
		}
		return c, nil
	}
	// Columns are found by the names of the header; without one, or when the user names them anew, by position.
	at := map[string]int{}
	for i, h := range s.Fields {
		at[h.Name] = i
	}
	named := s.Header
	for _, f := range fields {
		if _, ok := at[f.Name]; !ok {
			named = false
		}
	}
	if !named && len(fields) != c.width {
		return nil, errs.New(errs.Source, "open", "the CSV file %q has %d columns where %d are expected", ref.Name(), c.width, len(fields)).
			WithHint("check the delim option; all files of one path need the same columns")
	}
	for i, f := range fields {
		if named {
			i = at[f.Name]
		}
		c.columns = append(c.columns, i)
	}
	return c, nil
}

func (c *csvFile) Fields() []types.Field { return c.fields }
func (c *csvFile) Units() []files.Unit   { return c.units }

func (c *csvFile) Read(ctx context.Context, req files.ReadRequest) (files.Batches, error) {
	fields, columns := make([]types.Field, len(req.Columns)), make([]int, len(req.Columns))
	for i, at := range req.Columns {
		fields[i], columns[i] = c.fields[at], c.columns[at]
	}
	d, err := dcsv.NewDecoder(fields, columns, c.width, c.format.nullText)
	if err != nil {
		return nil, errs.New(errs.Schema, "read", "the CSV file %q: %w", c.ref.Name(), err)
	}
	f, err := c.ref.Open(ctx)
	if err != nil {
		return nil, err
	}
	var src io.Reader = io.NewSectionReader(f, 0, c.ref.Info.Size)
	mark := make([]byte, len(byteOrderMark))
	if n, _ := f.ReadAt(mark, 0); n == len(mark) && bytes.Equal(mark, byteOrderMark) {
		src = io.NewSectionReader(f, int64(len(mark)), c.ref.Info.Size)
	}
	b := &batches{file: c, src: f, d: d, req: req, skipped: c.format.skip}
	if err := b.skipLines(&src, c.format.skip); err != nil {
		_ = f.Close()
		return nil, err
	}
	b.r = dcsv.NewReader(src, c.dialect)
	if c.header {
		if _, err := b.r.Next(); err != nil && err != io.EOF {
			_ = f.Close()
			return nil, b.failed(err)
		}
	}
	b.r.KeepEmpty = c.width == 1
	return b, nil
}

// batches decodes one file.
type batches struct {
	file    *csvFile
	src     io.Closer
	r       *dcsv.Reader
	d       *dcsv.Decoder
	req     files.ReadRequest
	skipped int
	done    bool
}

// skipLines drops the first lines of the text.
func (b *batches) skipLines(src *io.Reader, n int) error {
	if n == 0 {
		return nil
	}
	buf := make([]byte, 64<<10)
	for n > 0 {
		got, err := (*src).Read(buf)
		chunk := buf[:got]
		for n > 0 {
			at := bytes.IndexByte(chunk, '\n')
			if at < 0 {
				chunk = nil
				break
			}
			chunk = chunk[at+1:]
			n--
		}
		if n == 0 {
			*src = io.MultiReader(bytes.NewReader(bytes.Clone(chunk)), *src)
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return b.failed(err)
		}
	}
	return nil
}

func (b *batches) line() int { return b.r.Line() + b.skipped }

func (b *batches) failed(err error) error {
	var e *errs.Error
	if errors.As(err, &e) {
		return errs.New(errs.Source, "read", "the CSV file %q, %w", b.file.ref.Name(), errors.New(e.Msg)).WithHint("%s", e.Hint)
	}
	out := errs.New(errs.Source, "read", "the CSV file %q, line %d: %w", b.file.ref.Name(), b.line(), err)
	var width *dcsv.WidthError
	if errors.As(err, &width) {
		return out.WithHint("check the delim and quote options, or set ignore_errors = true to leave such records out")
	}
	return out.WithHint("read_csv(…, all_varchar = true) reads texts, which a query may cast; sample_size = … looks at more records before it decides on types; ignore_errors = true leaves such records out")
}

func (b *batches) Next(ctx context.Context) (files.Batch, error) {
	var out files.Batch
	limit := int64(max(b.req.BatchRows, 1))
	for out.Records < limit && !b.done {
		rec, err := b.r.Next()
		if err == io.EOF {
			b.done = true
			break
		}
		lost := err != nil // the rest cannot be cut into records
		if err == nil {
			err = b.d.Append(rec)
		}
		if err != nil {
			if !b.req.Lenient && !b.file.format.ignore {
				return files.Batch{}, b.failed(err)
			}
			out.BadAt = append(out.BadAt, b.d.Rows())
			out.Bad = append(out.Bad, flow.BadRow{Split: b.file.ref.Name(), Position: fmt.Sprintf("line %d", b.line()), Raw: bytes.Clone(b.r.Raw()), Error: err.Error()})
			b.done = lost
		}
		out.Records++
	}
	if out.Records == 0 {
		return files.Batch{}, io.EOF
	}
	if b.d.Rows() > 0 {
		out.Rows = b.d.Batch()
	}
	return out, nil
}

// Skip passes over records.
func (b *batches) Skip(_ context.Context, n int64) (skipped int64, err error) {
	for ; skipped < n && !b.done; skipped++ {
		_, err := b.r.Next()
		if err == io.EOF {
			b.done = true
			break
		}
		b.done = err != nil
	}
	return skipped, nil
}

func (b *batches) Close() error { return b.src.Close() }
