package json

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// layout says how the records of a file follow one another.
type layout uint8

const (
	auto   layout = iota
	lines         // one record a line
	array         // one array of records
	stream        // records one after another, over any number of lines
)

// blockBytes is how much of a file of lines one unit holds.
const blockBytes = 8 << 20

// Format reads JSON files.
type Format struct {
	layout layout
	sample int  // records
	live   bool // timestamps in UTC become TIMESTAMP
	ignore bool // records that do not decode are left out
}

func (Format) Name() string         { return "JSON" }
func (Format) Extension() string    { return ".json*" }
func (Format) SelfDescribing() bool { return false }

// Infer looks at the first records of the sample.
func (f Format) Infer(ctx context.Context, sample []files.Ref) ([]types.Field, error) {
	in := djson.Inferrer{UTCAsTimestamp: f.live}
	seen := 0
	for _, ref := range sample {
		file, err := f.open(ctx, ref, nil)
		if err != nil {
			return nil, err
		}
		for u := 0; u < len(file.units) && seen < f.sample; u++ {
			recs, err := file.records(ctx, u, nil)
			if err != nil {
				return nil, err
			}
			for seen < f.sample {
				rec, err := recs.next()
				if err == io.EOF {
					break
				}
				if err == nil {
					err = in.See(rec)
				}
				if err != nil {
					return nil, file.failed(recs, err)
				}
				seen++
			}
		}
	}
	if seen == 0 {
		return nil, errs.New(errs.Source, "read schema", "the JSON file %q holds no records, so its columns are unknown", sample[0].Name()).
			WithHint("declare the columns, or leave the file out of the path")
	}
	return in.Fields(), nil
}

// jsonFile is one file of known columns.
type jsonFile struct {
	format Format
	ref    files.Ref
	fields []types.Field
	layout layout
	units  []files.Unit
	spare  sync.Pool // of *workspace
}

// workspace is what a unit is read with and the next one can use: its memory has the right size by then.
type workspace struct {
	columns []int
	d       *djson.Decoder
	data    []byte
}

func (f Format) Open(ctx context.Context, ref files.Ref, fields []types.Field) (files.File, error) {
	return f.open(ctx, ref, fields)
}

func (f Format) open(ctx context.Context, ref files.Ref, fields []types.Field) (*jsonFile, error) {
	j := &jsonFile{format: f, ref: ref, fields: fields, layout: f.layout}
	if ref.Info.Size == 0 {
		return j, nil
	}
	if j.layout == auto {
		var err error
		if j.layout, err = detect(ctx, ref); err != nil {
			return nil, err
		}
	}
	blocks := int64(1)
	if j.layout == lines {
		blocks = (ref.Info.Size + blockBytes - 1) / blockBytes
	}
	for range blocks {
		j.units = append(j.units, files.Unit{Rows: -1, Bytes: min(ref.Info.Size, blockBytes)})
	}
	return j, nil
}

// detect looks at the beginning: '[' begins an array; a first line that is a whole record says lines.
func detect(ctx context.Context, ref files.Ref) (layout, error) {
	f, err := ref.Open(ctx)
	if err != nil {
		return auto, err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, min(ref.Info.Size, 1<<20))
	if _, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return auto, errs.New(errs.Source, "read", "cannot read %q: %w", ref.Name(), err)
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if len(head) > 0 && head[0] == '[' {
		return array, nil
	}
	line, _, whole := bytes.Cut(head, []byte("\n"))
	if whole && new(djson.Inferrer).See(bytes.TrimSpace(line)) == nil {
		return lines, nil
	}
	return stream, nil
}

func (j *jsonFile) Fields() []types.Field { return j.fields }
func (j *jsonFile) Units() []files.Unit   { return j.units }

// records reads the bytes of a unit into room, if that is large enough.
func (j *jsonFile) records(ctx context.Context, unit int, room []byte) (*records, error) {
	f, err := j.ref.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	from, to := int64(0), j.ref.Info.Size
	if j.layout == lines {
		from, to = int64(unit)*blockBytes, min(int64(unit+1)*blockBytes, to)
	}
	// A line belongs to the block in which it begins; the byte before tells whether the block begins with one.
	begin := max(from-1, 0)
	data := slices.Grow(room[:0], int(to-begin))[:to-begin]
	got, err := f.ReadAt(data, begin)
	if err != nil && err != io.EOF {
		return nil, errs.New(errs.Source, "read", "cannot read %q: %w", j.ref.Name(), err)
	}
	data = data[:got] // of a file that has become shorter: behind it lies what was read before
	for end := to; j.layout == lines && end < j.ref.Info.Size && got > 0 && data[len(data)-1] != '\n'; {
		more := make([]byte, min(64<<10, j.ref.Info.Size-end))
		if _, err := f.ReadAt(more, end); err != nil && err != io.EOF {
			return nil, errs.New(errs.Source, "read", "cannot read %q: %w", j.ref.Name(), err)
		}
		end += int64(len(more))
		if at := bytes.IndexByte(more, '\n'); at >= 0 {
			more = more[:at+1]
			end = j.ref.Info.Size
		}
		data = append(data, more...)
	}
	r := &records{layout: j.layout, offset: begin, room: data}
	if from > 0 {
		at := bytes.IndexByte(data, '\n')
		if at < 0 || begin+int64(at)+1 >= to { // no line begins in this block
			data = nil
		} else {
			data = data[at+1:]
			r.offset += int64(at) + 1
		}
	} else {
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	r.scan = djson.NewScanner(data, j.layout == array)
	r.data = data
	return r, nil
}

// records walks the records of a unit.
type records struct {
	layout layout
	data   []byte
	pos    int
	offset int64 // of data in the file
	last   int   // where the last record begins
	scan   *djson.Scanner
	room   []byte // that data lies in
}

// next returns the next record, io.EOF at the end.
func (r *records) next() ([]byte, error) {
	if r.layout != lines {
		rec, at, err := r.scan.Next()
		r.last = at
		return rec, err
	}
	for r.pos < len(r.data) {
		r.last = r.pos
		line := r.data[r.pos:]
		if at := bytes.IndexByte(line, '\n'); at >= 0 {
			line = line[:at]
		}
		r.pos += len(line) + 1
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
	return nil, io.EOF
}

// failed says where in the file a record is wrong.
func (j *jsonFile) failed(r *records, err error) error {
	line := j.lineOf(r)
	var field *djson.FieldError
	if errors.As(err, &field) {
		return errs.New(errs.Source, "read", "the JSON file %q, line %d: %w", j.ref.Name(), line, err).
			WithHint("declare the column with a type that fits, for example VARCHAR or JSON, or set ignore_errors = true")
	}
	return errs.New(errs.Source, "read", "the JSON file %q, line %d: %w", j.ref.Name(), line, err).
		WithHint("correct the line, or set ignore_errors = true to leave such records out")
}

// lineOf counts the lines before the record; only errors ask.
func (j *jsonFile) lineOf(r *records) int {
	n := 1 + bytes.Count(r.data[:min(r.last, len(r.data))], []byte("\n"))
	f, err := j.ref.Open(context.Background())
	if err != nil {
		return n
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, 1<<20)
	for at := int64(0); at < r.offset; {
		got, _ := f.ReadAt(buf[:min(int64(len(buf)), r.offset-at)], at)
		if got == 0 {
			break
		}
		n += bytes.Count(buf[:got], []byte("\n"))
		at += int64(got)
	}
	return n
}

func (j *jsonFile) Read(ctx context.Context, req files.ReadRequest) (files.Batches, error) {
	w, _ := j.spare.Get().(*workspace)
	if w == nil || !slices.Equal(w.columns, req.Columns) {
		fields := make([]types.Field, len(req.Columns))
		for i, c := range req.Columns {
			fields[i] = j.fields[c]
		}
		d, err := djson.New(fields, djson.Options{Lax: true})
		if err != nil {
			return nil, errs.New(errs.Schema, "read", "the JSON file %q: %w", j.ref.Name(), err)
		}
		w = &workspace{columns: slices.Clone(req.Columns), d: d}
	}
	recs, err := j.records(ctx, req.Unit, w.data)
	if err != nil {
		return nil, err
	}
	w.data = recs.room
	return &batches{file: j, recs: recs, d: w.d, req: req, work: w}, nil
}

// batches decodes the records of a unit.
type batches struct {
	file *jsonFile
	recs *records
	d    *djson.Decoder
	req  files.ReadRequest
	work *workspace // nil when it was given back
}

func (b *batches) Next(ctx context.Context) (files.Batch, error) {
	var out files.Batch
	limit := int64(max(b.req.BatchRows, 1))
	for out.Records < limit {
		rec, err := b.recs.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = b.d.Append(rec)
		}
		if err != nil {
			if !b.req.Lenient && !b.file.format.ignore {
				return files.Batch{}, b.file.failed(b.recs, err)
			}
			out.BadAt = append(out.BadAt, b.d.Rows())
			out.Bad = append(out.Bad, flow.BadRow{Split: b.file.ref.Name(), Position: fmt.Sprintf("byte %d", b.recs.offset+int64(b.recs.last)), Raw: bytes.Clone(rec), Error: err.Error()})
			if rec == nil { // the rest of the unit cannot be cut into records
				b.recs.scan.Stop()
			}
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
	for ; skipped < n; skipped++ {
		rec, err := b.recs.next()
		if err == io.EOF {
			break
		}
		if err != nil && rec == nil {
			b.recs.scan.Stop()
		}
	}
	return skipped, nil
}

func (b *batches) Close() error {
	if w := b.work; w != nil {
		b.work = nil
		w.d.Truncate(0)
		w.d.UnknownFields, w.d.MissingFields = 0, 0
		b.file.spare.Put(w)
	}
	return nil
}

// Counters of the decoder, for metrics.
func (b *batches) UnknownFields() int64 { return b.d.UnknownFields }
func (b *batches) MissingFields() int64 { return b.d.MissingFields }
