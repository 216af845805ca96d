package checkpoint

import (
	"context"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/zstd"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// objectWriter writes a data object, section by section. A section is one zstd frame around an Arrow IPC stream, so that any program
// that knows both reads it.
type objectWriter struct {
	up     objstore.Upload
	object Object
	sum    hash.Hash32 // of the object
	part   hash.Hash32 // of the section being written
	from   int64       // where that begins
	zip    *zstd.Encoder
	failed error // of the upload: what wraps it on its way may not say so
}

// newObject starts the upload of an object, which no manifest names before Publish.
func (s *Store) newObject(ctx context.Context, name string, first, last flow.Epoch) (*objectWriter, error) {
	up, err := s.objects.Create(ctx, s.at(name))
	if err != nil {
		return nil, storeFailed(ctx, errs.Checkpoint, "write", s.url(name), err)
	}
	w := &objectWriter{up: up, object: Object{Name: name, Epochs: [2]flow.Epoch{first, last}}, sum: crc32.New(castagnoli), part: crc32.New(castagnoli)}
	w.zip = encoders.Get().(*zstd.Encoder)
	return w, nil
}

// encoders are used again, as each has megabytes of tables. They run on the goroutine that calls them: an epoch is encoded behind running steps, which
// need the processors.
var encoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithNoEntropyCompression(true))
	if err != nil {
		panic(errs.Bug("checkpoint", "%v", err)) // AIDEV-NOTE: the options are constant
	}
	return e
}}

// Write takes bytes of the section.
func (w *objectWriter) Write(p []byte) (int, error) {
	n, err := w.up.Write(p)
	if err != nil {
		w.failed = err
		return n, err
	}
	_, _ = w.sum.Write(p)
	_, _ = w.part.Write(p)
	w.object.Size += int64(n)
	return n, nil
}

// section writes batches of one schema as a section; each gives the next one, nil behind the last.
func (w *objectWriter) section(at SectionIndex, schema *arrow.Schema, each func() (arrow.RecordBatch, error)) error {
	w.zip.Reset(w)
	stream := ipc.NewWriter(w.zip, ipc.WithSchema(schema))
	rows := int64(0)
	for {
		b, err := each()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		rows += b.NumRows()
		if err := stream.Write(b); err != nil {
			return w.cause(err)
		}
	}
	if err := stream.Close(); err != nil {
		return w.cause(err)
	}
	if err := w.zip.Close(); err != nil {
		return w.cause(err)
	}
	at.Rows = rows
	w.end(at)
	return nil
}

// copied writes a section that is encoded already.
func (w *objectWriter) copied(at SectionIndex, from io.Reader) error {
	if _, err := io.Copy(w, from); err != nil {
		return w.cause(err)
	}
	w.end(at)
	return nil
}

// end notes the section that was written, unless it says nothing: an empty table does.
func (w *objectWriter) end(at SectionIndex) {
	at.Offset, at.Length, at.CRC = w.from, w.object.Size-w.from, w.part.Sum32()
	w.part.Reset()
	w.from = w.object.Size
	if at.Rows > 0 || at.Kind == Whole {
		w.object.Sections = append(w.object.Sections, at)
	}
}

func (w *objectWriter) cause(err error) error {
	if w.failed != nil {
		return w.failed
	}
	return err
}

// commit makes the object durable.
func (w *objectWriter) commit() (Object, error) {
	if err := w.up.Commit(); err != nil {
		return Object{}, err
	}
	w.object.CRC = w.sum.Sum32()
	return w.object, nil
}

// abort drops what was not committed.
func (w *objectWriter) abort() {
	_ = w.up.Abort()
	w.zip.Reset(nil)
	encoders.Put(w.zip)
}

// sectionKey names what is put together: a section has the rows of all parts of one table.
type sectionKey struct {
	kind         Kind
	owner, table string
	version      int
}

func keyOf(k Kind, owner, table string, version int) sectionKey {
	return sectionKey{k, owner, table, version}
}

// encodable groups sections by table in the order of their coming, without those that say nothing. Of rows of another schema
// there is a section of its own.
func encodable(sections []Section) []Section {
	var out []Section
	at := map[sectionKey]int{}
	for _, s := range sections {
		rows := int64(0)
		for _, b := range s.Rows {
			rows += b.NumRows()
		}
		if rows == 0 && s.Kind != Whole { // an empty table is something to say
			continue
		}
		k := keyOf(s.Kind, s.Owner, s.Table, s.Version)
		i, ok := at[k]
		if ok && s.Kind == Whole {
			out[i] = s
			continue
		}
		if !ok || !out[i].Rows[0].Schema().Equal(s.Rows[0].Schema()) {
			at[k] = len(out)
			s.Rows = s.Rows[:len(s.Rows):len(s.Rows)]
			out = append(out, s)
			continue
		}
		out[i].Rows = append(out[i].Rows, s.Rows...)
	}
	return out
}

// encode writes sections of rows.
func (w *objectWriter) encode(ctx context.Context, sections []Section) error {
	for _, s := range sections {
		at := SectionIndex{Kind: s.Kind, Owner: s.Owner, Table: s.Table, Version: s.Version}
		schema := arrow.NewSchema(nil, nil)
		if len(s.Rows) > 0 {
			schema = s.Rows[0].Schema()
		}
		next := slicesOf(s.Rows)
		if s.Kind == State {
			chunks, err := chunksOf(s.Rows)
			if err != nil {
				return err
			}
			next = sorted(chunks)
		}
		err := w.section(at, schema, func() (arrow.RecordBatch, error) {
			if ctx.Err() != nil {
				return nil, cancelled(ctx.Err())
			}
			return next(), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// slicesOf hands out batches in pieces of bounded length.
func slicesOf(batches []arrow.RecordBatch) func() arrow.RecordBatch {
	const most = 64 << 10
	from := int64(0)
	return func() arrow.RecordBatch {
		for len(batches) > 0 && from >= batches[0].NumRows() {
			batches, from = batches[1:], 0
		}
		if len(batches) == 0 {
			return nil
		}
		b := batches[0]
		to := min(b.NumRows(), from+most)
		defer func() { from = to }()
		return b.NewSlice(from, to)
	}
}

// sorted hands out the rows of a state table in their order.
func sorted(chunks []*chunk) func() arrow.RecordBatch {
	rows := order(chunks)
	from, g, n := 0, newGatherer(chunks), batchRows(chunks)
	return func() arrow.RecordBatch {
		if from >= len(rows) {
			return nil
		}
		to := min(from+n, len(rows))
		defer func() { from = to }()
		return g.take(rows[from:to])
	}
}
