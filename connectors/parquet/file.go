package parquet

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pqfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// Format reads Parquet files.
type Format struct{}

func (Format) Name() string         { return "Parquet" }
func (Format) Extension() string    { return ".parquet" }
func (Format) SelfDescribing() bool { return true }

// Infer reads the schema of the first file.
func (f Format) Infer(ctx context.Context, sample []files.Ref) ([]types.Field, error) {
	file, err := f.Open(ctx, sample[0], nil)
	if err != nil {
		return nil, err
	}
	return file.Fields(), nil
}

// parquetFile is the footer of one file.
type parquetFile struct {
	ref    files.Ref
	meta   *metadata.FileMetaData
	leaves []leaf
	fields []types.Field
	units  []files.Unit

	manifest *pqarrow.SchemaManifest
}

// Open reads the footer.
func (f Format) Open(ctx context.Context, ref files.Ref, _ []types.Field) (_ files.File, err error) {
	defer f.recovered(ref, &err)
	if ref.Info.Size == 0 {
		return nil, errs.New(errs.Source, "open", "the Parquet file %q is empty", ref.Name()).WithHint("an empty Parquet file still has a footer; write it again, or leave it out of the path")
	}
	r, err := ref.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if err := magic(f, ref, r); err != nil {
		return nil, err
	}
	rdr, err := pqfile.NewParquetReader(io.NewSectionReader(r, 0, ref.Info.Size))
	if err != nil {
		return nil, files.Corrupt(f, ref.Name(), err)
	}
	arrowReader, err := pqarrow.NewFileReader(rdr, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, files.Corrupt(f, ref.Name(), err)
	}
	p := &parquetFile{ref: ref, meta: rdr.MetaData(), manifest: arrowReader.Manifest}
	if p.leaves, err = leaves(arrowReader.Manifest, p.meta.Schema); err != nil {
		return nil, fmt.Errorf("file %q: %w", ref.Name(), err)
	}
	for _, l := range p.leaves {
		p.fields = append(p.fields, l.field)
	}
	for i := range rdr.NumRowGroups() {
		g := p.meta.RowGroup(i)
		p.units = append(p.units, files.Unit{Rows: g.NumRows(), Bytes: g.TotalByteSize(), Stats: func(c int) (flow.ColumnStats, bool) { return p.stats(i, c) }})
	}
	return p, nil
}

// magic tells files of another kind from broken ones.
func magic(f Format, ref files.Ref, r objstore.File) error {
	head := make([]byte, 4)
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return files.Corrupt(f, ref.Name(), err)
	}
	if s := string(head); s != "PAR1" && s != "PARE" {
		return errs.New(errs.Source, "open", "%q is not a Parquet file: it begins with %q", ref.Name(), head).
			WithHint("read it with the function of its own format: read_csv, read_json or read_arrow")
	}
	return nil
}

// recovered turns a panic of the Parquet library, which happens on some corrupt files, into an error about the file.
// AIDEV-NOTE: a bug of ours below would be reported as a corrupt file too; the message keeps the panic's text.
func (f Format) recovered(ref files.Ref, err *error) {
	if r := recover(); r != nil {
		*err = files.Corrupt(f, ref.Name(), fmt.Errorf("%v", r))
	}
}

func (p *parquetFile) Fields() []types.Field { return p.fields }
func (p *parquetFile) Units() []files.Unit   { return p.units }

// stats reads the statistics of one column chunk.
func (p *parquetFile) stats(group, c int) (flow.ColumnStats, bool) {
	l := p.leaves[c]
	if l.col < 0 || l.stat == nil {
		return flow.ColumnStats{}, false
	}
	chunk, err := p.meta.RowGroup(group).ColumnChunk(l.col)
	if err != nil {
		return flow.ColumnStats{}, false
	}
	if set, err := chunk.StatsSet(); err != nil || !set {
		return flow.ColumnStats{}, false
	}
	s, err := chunk.Statistics()
	if err != nil || s == nil {
		return flow.ColumnStats{}, false
	}
	out := flow.ColumnStats{Nulls: -1}
	if s.HasNullCount() {
		out.Nulls = s.NullCount()
	}
	if s.HasMinMax() {
		out.Min, out.Max = l.stat(s.EncodeMin()), l.stat(s.EncodeMax())
		out.Tight = chunk.Type() == pq.Types.Int32 || chunk.Type() == pq.Types.Int64
	}
	if s.HasDistinctCount() {
		out.Distinct = s.DistinctCount()
	} else if s.HasMinMax() && chunk.Type() == pq.Types.ByteArray {
		out.Distinct = dictionaryValues(chunk, s.EncodeMin(), s.EncodeMax())
	}
	return out, true
}

const (
	smallDictionary  = 4 << 10 // bytes
	dictionaryHeader = 14      // of the page that holds it
)

// dictionaryValues estimates how many texts a small dictionary holds, from its size in the file: a writer that tells no number
// of different values still says where the dictionary begins and ends. A large one is left open, since it may not
// hold all values. Texts that begin alike are mostly compressed.
func dictionaryValues(chunk *metadata.ColumnChunkMetaData, least, greatest []byte) int64 {
	size := chunk.DataPageOffset() - chunk.DictionaryPageOffset() - dictionaryHeader
	if !chunk.HasDictionaryPage() || size <= 0 || size > smallDictionary {
		return 0
	}
	value := 4 + (len(least)+len(greatest))/2
	if chunk.Compression() != compress.Codecs.Uncompressed {
		same := 0
		for same < min(len(least), len(greatest)) && least[same] == greatest[same] {
			same++
		}
		value -= same
	}
	n := size / int64(max(value, 2))
	if n >= chunk.NumValues()/8 {
		return 0
	}
	return max(n, 1)
}

// Read opens the columns of one row group.
func (p *parquetFile) Read(ctx context.Context, req files.ReadRequest) (_ files.Batches, err error) {
	defer Format{}.recovered(p.ref, &err)
	f, err := p.ref.Open(ctx)
	if err != nil {
		return nil, err
	}
	g := &group{file: p, src: f, left: p.units[req.Unit].Rows, batch: int64(req.BatchRows), narrow: req.Narrow, worker: req.Worker}
	g.rows = g.left
	if g.narrow != nil {
		g.answers, g.kept = make([]answer, len(g.narrow.Stages)), make([][]int32, len(g.narrow.Stages))
	}
	if g.batch <= 0 {
		g.batch = files.DefaultBatchRows
	}
	if err := g.open(ctx, req); err != nil {
		_ = g.Close()
		return nil, files.Corrupt(Format{}, p.ref.Name(), err)
	}
	return g, nil
}

// group reads one row group.
type group struct {
	file    *parquetFile
	src     objstore.File
	schema  *arrow.Schema
	columns []column
	names   []string
	left    int64
	batch   int64
	narrow  *flow.Narrowing
	worker  int
	answers []answer  // of stages; nil: not asked
	kept    [][]int32 // by stages, used again
	turns   []int     // see order
	small   []bool    // columns of few values
	rows    int64
}

func (g *group) open(ctx context.Context, req files.ReadRequest) error {
	p := g.file
	lent := map[int]bool{}
	if req.Narrow != nil {
		for _, st := range req.Narrow.Stages {
			for _, c := range st.Columns {
				lent[c] = true
			}
		}
	}
	var slow *pqarrow.FileReader
	fields := make([]types.Field, 0, len(req.Columns))
	for i, c := range req.Columns {
		l := p.leaves[c]
		fields = append(fields, l.field)
		g.names = append(g.names, l.field.Name)
		if meta, err := p.fast(l, req.Unit); err != nil {
			return err
		} else if meta != nil {
			pages, err := newPageReader(g.src, p.ref.Info.Size, meta, p.meta.WriterVersion())
			if err != nil {
				return fmt.Errorf("column %q: %w", l.field.Name, err)
			}
			col := l.open(chunk{pages: pages, optional: p.meta.Schema.Column(l.col).MaxDefinitionLevel() == 1, room: req.Room})
			if x, ok := col.(lender); ok && lent[i] {
				x.lend()
			}
			g.columns = append(g.columns, col)
			g.small = append(g.small, fewValues(meta))
			continue
		}
		g.small = append(g.small, false)
		if slow == nil {
			// A reader of its own: what it returns may share memory with its pages, which ours take back.
			own, err := pqfile.NewParquetReader(io.NewSectionReader(g.src, 0, p.ref.Info.Size), pqfile.WithMetadata(p.meta))
			if err != nil {
				return err
			}
			if slow, err = pqarrow.NewFileReader(own, pqarrow.ArrowReadProperties{BatchSize: g.batch}, memory.DefaultAllocator); err != nil {
				return err
			}
		}
		col, err := openFallback(ctx, slow, l, req.Unit)
		if err != nil {
			return fmt.Errorf("column %q: %w", l.field.Name, err)
		}
		g.columns = append(g.columns, col)
	}
	g.schema = types.ArrowSchema(fields)
	return nil
}

// fast returns the column chunk when our own decoder reads it: flat, of a known type, in PLAIN or dictionary encoding.
func (p *parquetFile) fast(l leaf, group int) (*metadata.ColumnChunkMetaData, error) {
	if l.open == nil {
		return nil, nil
	}
	chunk, err := p.meta.RowGroup(group).ColumnChunk(l.col)
	if err != nil || chunk.CryptoMetadata() != nil {
		return nil, err
	}
	for _, e := range chunk.Encodings() {
		switch e {
		case pq.Encodings.Plain, pq.Encodings.PlainDict, pq.Encodings.RLEDict, pq.Encodings.RLE:
		case pq.Encodings.BitPacked: // old writers list it for levels that are not there
			if p.meta.Schema.Column(l.col).MaxDefinitionLevel() > 0 {
				return nil, nil
			}
		default:
			return nil, nil
		}
	}
	return chunk, nil
}

func (g *group) Next(context.Context) (_ files.Batch, err error) {
	defer Format{}.recovered(g.file.ref, &err)
	if g.left == 0 {
		return files.Batch{}, io.EOF
	}
	n := min(g.left, g.batch)
	g.left -= n
	b := batch{group: g, read: int(n), rows: int(n), cols: make([]arrow.Array, len(g.columns)), coded: make([]bool, len(g.columns))}
	if g.narrow != nil {
		if err := b.narrow(g.narrow); err != nil {
			return files.Batch{}, err
		}
	}
	for i := range b.cols {
		if err := b.decode(i); err != nil {
			return files.Batch{}, err
		}
	}
	return files.Batch{Rows: array.NewRecordBatch(g.schema, b.cols, int64(b.rows)), Records: n, Narrowed: g.narrow != nil}, nil
}

func (g *group) Close() error {
	for _, c := range g.columns {
		c.close()
	}
	return g.src.Close()
}

// fallback reads a column through pqarrow: nested columns, and encodings that we do not decode ourselves.
type fallback struct {
	r *pqarrow.ColumnReader
	t types.Type
}

func openFallback(ctx context.Context, r *pqarrow.FileReader, l leaf, group int) (column, error) {
	wanted := map[int]bool{}
	var add func(f *pqarrow.SchemaField)
	add = func(f *pqarrow.SchemaField) {
		if f.IsLeaf() {
			wanted[f.ColIndex] = true
		}
		for i := range f.Children {
			add(&f.Children[i])
		}
	}
	add(&r.Manifest.Fields[l.index])
	if err := readable(r.ParquetReader().MetaData(), l, wanted, group); err != nil {
		return nil, err
	}
	cr, err := r.GetFieldReader(ctx, l.index, wanted, []int{group})
	if err != nil {
		return nil, err
	}
	return &fallback{cr, l.field.Type}, nil
}

// readable refuses what the library ends in a panic on, which would be told as a corrupt file.
func readable(meta *metadata.FileMetaData, l leaf, columns map[int]bool, group int) error {
	for col := range columns {
		if meta.Schema.Column(col).PhysicalType() != pq.Types.FixedLenByteArray {
			continue
		}
		chunk, err := meta.RowGroup(group).ColumnChunk(col)
		if err != nil {
			return err
		}
		for _, e := range chunk.Encodings() {
			if e == pq.Encodings.DeltaByteArray || e == pq.Encodings.DeltaLengthByteArray {
				return errs.New(errs.Unsupported, "read", "column %q is stored as FIXED_LEN_BYTE_ARRAY in the encoding %s, which is not supported", l.field.Name, e).
					WithHint("write the column with dictionary or PLAIN encoding, or leave it out of the query")
			}
		}
	}
	return nil
}

func (f *fallback) next(rows int) (arrow.Array, error) {
	chunked, err := f.r.NextBatch(int64(rows))
	if err != nil {
		return nil, err
	}
	if chunked.Len() != rows {
		return nil, fmt.Errorf("a column has fewer values than the row group has rows")
	}
	a := chunked.Chunk(0)
	if len(chunked.Chunks()) > 1 {
		if a, err = array.Concatenate(chunked.Chunks(), memory.DefaultAllocator); err != nil {
			return nil, err
		}
	}
	return decode.Canonical(a, f.t)
}

func (f *fallback) pick(rows int, sel []int32, take takeFunc) (arrow.Array, error) {
	a, err := f.next(rows)
	if err != nil {
		return nil, err
	}
	return take(a, sel), nil
}

func (f *fallback) close() { f.r.Release() }
