// Package arrowipc reads Arrow IPC files and streams.
//
// Invariant: columns come out in the engine's Arrow form, whatever layouts the file holds.
package arrowipc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// Source declares Arrow IPC files as a table or a growing stream.
var Source = connectors.Source{
	Name: "arrow", Class: "ArrowIpc", Summary: "Read Arrow IPC files and streams.",
	Extensions: []string{".arrow", ".arrows", ".ipc", ".feather"}, Functions: []string{"read_arrow"}, Replayable: true,
	Options: files.Options.WithExample("path", "data/*.arrow"),
	Relation: func(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
		return files.NewRelation(ctx, Format{}, req)
	},
	Stream: func(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
		return files.NewStream(ctx, Format{}, req)
	},
}

// unitBatches is how many record batches of a file make one unit.
const unitBatches = 8

// Format reads Arrow IPC.
type Format struct{}

func (Format) Name() string         { return "Arrow IPC" }
func (Format) Extension() string    { return ".arrow" }
func (Format) SelfDescribing() bool { return true }

// Infer reads the schema of the first file.
func (f Format) Infer(ctx context.Context, sample []files.Ref) ([]types.Field, error) {
	file, err := f.Open(ctx, sample[0], nil)
	if err != nil {
		return nil, err
	}
	return file.Fields(), nil
}

type ipcFile struct {
	ref    files.Ref
	stream bool // the streaming format: no footer, one unit
	count  int  // record batches, file format
	fields []types.Field
	units  []files.Unit
}

// recovered turns a panic of the Arrow library on corrupt bytes into an error about the file.
// AIDEV-NOTE: see the same function in connectors/parquet.
func recovered(ref files.Ref, err *error) {
	if r := recover(); r != nil {
		*err = files.Corrupt(Format{}, ref.Name(), fmt.Errorf("%v", r))
	}
}

// Open reads the schema.
func (f Format) Open(ctx context.Context, ref files.Ref, _ []types.Field) (_ files.File, err error) {
	defer recovered(ref, &err)
	src, err := ref.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	p := &ipcFile{ref: ref}
	if ref.Info.Size == 0 {
		return nil, errs.New(errs.Source, "open", "the Arrow IPC file %q is empty", ref.Name()).WithHint("write it again, or leave it out of the path")
	}
	head := make([]byte, 6)
	if _, err := src.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, files.Corrupt(f, ref.Name(), err)
	}
	p.stream = string(head) != "ARROW1"
	var schema *arrow.Schema
	if p.stream {
		r, err := ipc.NewReader(section(src), ipc.WithAllocator(memory.DefaultAllocator))
		if err != nil {
			return nil, files.Corrupt(f, ref.Name(), err)
		}
		schema = r.Schema()
		p.units = []files.Unit{{Rows: -1, Bytes: ref.Info.Size}}
	} else {
		r, err := ipc.NewFileReader(section(src))
		if err != nil {
			return nil, files.Corrupt(f, ref.Name(), err)
		}
		schema, p.count = r.Schema(), r.NumRecords()
		for range (p.count + unitBatches - 1) / unitBatches {
			p.units = append(p.units, files.Unit{Rows: -1, Bytes: ref.Info.Size * unitBatches / int64(p.count)})
		}
	}
	if p.fields, err = types.Schema(schema); err != nil {
		return nil, err
	}
	return p, nil
}

func section(f objstore.File) *io.SectionReader { return io.NewSectionReader(f, 0, f.Info().Size) }

func (p *ipcFile) Fields() []types.Field { return p.fields }
func (p *ipcFile) Units() []files.Unit   { return p.units }

// Read opens a unit.
func (p *ipcFile) Read(ctx context.Context, req files.ReadRequest) (_ files.Batches, err error) {
	defer recovered(p.ref, &err)
	src, err := p.ref.Open(ctx)
	if err != nil {
		return nil, err
	}
	b := &batches{file: p, src: src, columns: req.Columns, rows: int64(max(req.BatchRows, 1))}
	fields := make([]types.Field, len(req.Columns))
	for i, c := range req.Columns {
		fields[i] = p.fields[c]
	}
	b.schema = types.ArrowSchema(fields)
	if p.stream {
		r, err := ipc.NewReader(section(src))
		if err != nil {
			_ = src.Close()
			return nil, files.Corrupt(Format{}, p.ref.Name(), err)
		}
		b.next = r.Read
		return b, nil
	}
	r, err := ipc.NewFileReader(section(src))
	if err != nil {
		_ = src.Close()
		return nil, files.Corrupt(Format{}, p.ref.Name(), err)
	}
	at, end := req.Unit*unitBatches, min((req.Unit+1)*unitBatches, p.count)
	b.next = func() (arrow.RecordBatch, error) {
		if at >= end {
			return nil, io.EOF
		}
		at++
		return r.RecordBatchAt(at - 1)
	}
	return b, nil
}

type batches struct {
	file    *ipcFile
	src     objstore.File
	schema  *arrow.Schema
	columns []int
	rows    int64
	next    func() (arrow.RecordBatch, error)

	cur arrow.RecordBatch // what is left of a batch that is larger than was asked for
	at  int64
}

func (b *batches) Next(context.Context) (_ files.Batch, err error) {
	defer recovered(b.file.ref, &err)
	for b.cur == nil || b.at == b.cur.NumRows() {
		rec, err := b.next()
		if errors.Is(err, io.EOF) {
			return files.Batch{}, io.EOF
		}
		if err != nil {
			return files.Batch{}, files.Corrupt(Format{}, b.file.ref.Name(), err)
		}
		cols := make([]arrow.Array, len(b.columns))
		for i, c := range b.columns {
			if cols[i], err = decode.Canonical(rec.Column(c), b.file.fields[c].Type); err != nil {
				return files.Batch{}, files.Corrupt(Format{}, b.file.ref.Name(), fmt.Errorf("column %q: %w", b.file.fields[c].Name, err))
			}
		}
		b.cur, b.at = array.NewRecordBatch(b.schema, cols, rec.NumRows()), 0
	}
	n := min(b.rows, b.cur.NumRows()-b.at)
	out := b.cur
	if n < b.cur.NumRows() {
		out = b.cur.NewSlice(b.at, b.at+n)
	}
	b.at += n
	return files.Batch{Rows: out, Records: n}, nil
}

func (b *batches) Close() error { return b.src.Close() }
