package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/zstd"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// Read visits what counts: of each state table its rows as they are now, each key once and without deletions, in pieces of one batch; of other tables
// their sections, oldest first, each whole, but for those of logs, which come in pieces of one batch. State comes fresh (see Section) but for rows behind those of another schema.
//
// All objects are verified, size and checksum, before anything is visited: they are streamed through once, so memory is bounded, and
// read again, when each section is held against its own checksum. A file that is not what the manifest says is an error that
// names it and the newest earlier checkpoint that is whole.
func (s *Store) Read(ctx context.Context, m *Manifest, visit func(Section) error) error {
	if err := s.Verify(ctx, m); err != nil {
		return err
	}
	return s.ReadVerified(ctx, m, visit)
}

// Verify holds all objects of a manifest against their checksums. An error names the newest earlier checkpoint that is whole.
func (s *Store) Verify(ctx context.Context, m *Manifest) error {
	return s.withWhole(ctx, s.verify(ctx, m), m.Epoch)
}

// ReadVerified is Read behind Verify.
func (s *Store) ReadVerified(ctx context.Context, m *Manifest, visit func(Section) error) error {
	tables, order, done, err := s.inputsOf(ctx, m.Objects)
	defer done()
	for i, k := range order {
		if err != nil {
			break
		}
		if k.kind == State {
			err = s.readTable(ctx, tables[k], !k.hasOther(order[:i]), visit)
			continue
		}
		for _, in := range tables[k] {
			if err = s.readSection(ctx, in, visit); err != nil {
				break
			}
		}
	}
	return s.withWhole(ctx, err, m.Epoch)
}

// hasOther reports whether a table is there in another version.
func (k sectionKey) hasOther(in []sectionKey) bool {
	return slices.ContainsFunc(in, func(o sectionKey) bool { return o.kind == k.kind && o.owner == k.owner && o.table == k.table })
}

// readTable visits the rows of a state table. Nothing of it was visited before when it is the first.
func (s *Store) readTable(ctx context.Context, in []input, oldest bool, visit func(Section) error) error {
	at := in[0].at
	ahead := int64(0)
	for _, i := range in {
		ahead = max(ahead, i.at.Rows)
	}
	return s.runs(ctx, in, func(run []*sectionReader, first bool) error {
		rows := mergedRows(run, oldest && first)
		for {
			if ctx.Err() != nil {
				return cancelled(ctx.Err())
			}
			b, err := rows()
			if b == nil || err != nil {
				return err
			}
			err = visit(Section{Kind: State, Owner: at.Owner, Table: at.Table, Version: at.Version, Fresh: oldest && first, Ahead: ahead, Rows: []arrow.RecordBatch{b}})
			if err != nil {
				return err
			}
		}
	})
}

// readSection visits a section whole, when its checksum is right. One of a log, which grows for as long as a pipeline lives, comes batch by batch, as state does.
func (s *Store) readSection(ctx context.Context, in input, visit func(Section) error) error {
	r, err := s.openSection(ctx, in.file, in.object, in.at)
	if err != nil {
		return err
	}
	defer r.close()
	sec := Section{Kind: in.at.Kind, Owner: in.at.Owner, Table: in.at.Table, Version: in.at.Version}
	for {
		if ctx.Err() != nil {
			return cancelled(ctx.Err())
		}
		b, err := r.next()
		if err != nil {
			return err
		}
		if b == nil && sec.Kind == Log {
			return nil
		}
		if b == nil {
			return visit(sec)
		}
		if sec.Rows = append(sec.Rows, b); sec.Kind == Log {
			if err := visit(sec); err != nil {
				return err
			}
			sec.Rows = nil
		}
	}
}

// ReadRows visits what counts of one owner's table, of any kind. Its sections are held against their checksums, not the objects that they lie in.
func (s *Store) ReadRows(ctx context.Context, m *Manifest, owner, table string, visit func(Section) error) error {
	of := keepSections(m.Objects, func(_ Object, at SectionIndex) bool { return at.Owner == owner && at.Table == table })
	return s.ReadVerified(ctx, &Manifest{Epoch: m.Epoch, Objects: of}, visit)
}

// ReadOnce reads the rows that an epoch held for a sink.
func (s *Store) ReadOnce(ctx context.Context, m *Manifest, epoch flow.Epoch, owner, table string) ([]arrow.RecordBatch, error) {
	of := keepSections(m.Objects, func(o Object, at SectionIndex) bool {
		return o.Epochs == [2]flow.Epoch{epoch, epoch} && at.Kind == Once && at.Owner == owner && at.Table == table
	})
	if len(of) == 0 {
		return nil, errs.New(errs.State, "restore", "%s names no rows of epoch %d for %q", s.url(manifestName(m.Epoch)), epoch, owner)
	}
	var rows []arrow.RecordBatch
	err := s.Read(ctx, &Manifest{Epoch: m.Epoch, Objects: of}, func(sec Section) error {
		rows = append(rows, sec.Rows...)
		return nil
	})
	return rows, err
}

// open opens an object whose size is right.
func (s *Store) open(ctx context.Context, o Object) (objstore.File, error) {
	name := s.url(o.Name)
	var f objstore.File
	err := s.patiently(ctx, func() (err error) {
		if f, err = s.objects.Open(ctx, s.at(o.Name)); err != nil {
			return storeFailed(ctx, errs.Source, "read", name, err)
		}
		return nil
	})
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, corrupt(name, "it is not there")
	}
	if err != nil {
		return nil, err
	}
	if size := f.Info().Size; size != o.Size {
		_ = f.Close()
		return nil, corrupt(name, "it has %d bytes and not %d", size, o.Size)
	}
	if s.o.Again != nil {
		f = patientFile{f, s, ctx, o.Name}
	}
	return f, nil
}

// verify holds all objects of a manifest against their checksums.
func (s *Store) verify(ctx context.Context, m *Manifest) error {
	buf := make([]byte, 1<<20)
	for _, o := range m.Objects {
		if err := s.verifyObject(ctx, o, buf); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) verifyObject(ctx context.Context, o Object, buf []byte) error {
	for _, at := range o.Sections {
		if at.Offset < 0 || at.Length < 0 || at.Offset > o.Size-at.Length {
			return corrupt(s.url(o.Name), "the manifest names bytes %d to %d of %d", at.Offset, at.Offset+at.Length, o.Size)
		}
	}
	f, err := s.open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum := crc32.New(castagnoli)
	for from := int64(0); from < o.Size; {
		if ctx.Err() != nil {
			return cancelled(ctx.Err())
		}
		p := buf[:min(int64(len(buf)), o.Size-from)]
		n, err := f.ReadAt(p, from)
		if n < len(p) {
			return s.readFailed(ctx, o.Name, err)
		}
		_, _ = sum.Write(p)
		from += int64(n)
	}
	if sum.Sum32() != o.CRC {
		return corrupt(s.url(o.Name), "its checksum is %08x and not %08x", sum.Sum32(), o.CRC)
	}
	return nil
}

func (s *Store) readFailed(ctx context.Context, name string, err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt(s.url(name), "it ends early")
	}
	return storeFailed(ctx, errs.Source, "read", s.url(name), err)
}

// sectionReader decodes a section batch by batch.
type sectionReader struct {
	s      *Store
	ctx    context.Context
	object string
	at     SectionIndex
	raw    *summed
	zip    *zstd.Decoder
	stream *ipc.Reader
}

// summed reads bytes of a section, sums them, and keeps what the store said when it failed.
type summed struct {
	r      io.Reader
	sum    hash.Hash32
	n      int64
	failed error
}

func (r *summed) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	_, _ = r.sum.Write(p[:n])
	r.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	return n, err
}

// rawSection reads a section as it lies in its object.
func rawSection(f objstore.File, at SectionIndex) *summed {
	return &summed{r: bufio.NewReaderSize(io.NewSectionReader(f, at.Offset, at.Length), int(min(at.Length, 256<<10))), sum: crc32.New(castagnoli)}
}

func (s *Store) openSection(ctx context.Context, f objstore.File, o Object, at SectionIndex) (*sectionReader, error) {
	r := &sectionReader{s: s, ctx: ctx, object: o.Name, at: at, raw: rawSection(f, at)}
	r.zip = decoders.Get().(*zstd.Decoder)
	err := r.zip.Reset(r.raw)
	if err == nil {
		r.stream, err = ipc.NewReader(r.zip)
	}
	if err != nil {
		r.close()
		return nil, r.broken(err)
	}
	return r, nil
}

// decoders are used again; they run on the goroutine that reads.
var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic(errs.Bug("checkpoint", "%v", err)) // AIDEV-NOTE: the options are constant
	}
	return d
}}

// next is the next batch, nil behind the last one, when the section's checksum is right.
func (r *sectionReader) next() (arrow.RecordBatch, error) {
	if r.stream.Next() {
		b := r.stream.RecordBatch()
		b.Retain()
		return b, nil
	}
	if err := r.stream.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, r.broken(err)
	}
	if _, err := io.Copy(io.Discard, r.zip); err != nil {
		return nil, r.broken(err)
	}
	if _, err := io.Copy(io.Discard, r.raw); err != nil {
		return nil, r.broken(err)
	}
	if r.raw.n != r.at.Length || r.raw.sum.Sum32() != r.at.CRC {
		return nil, r.broken(fmt.Errorf("the checksum is %08x and not %08x", r.raw.sum.Sum32(), r.at.CRC))
	}
	return nil, nil
}

// broken is an error of the store, or the section is not what was written.
func (r *sectionReader) broken(err error) error {
	if r.raw.failed != nil {
		return r.s.readFailed(r.ctx, r.object, r.raw.failed)
	}
	return corrupt(r.s.url(r.object), "its section of %s %s %s cannot be read: %v", r.at.Kind, r.at.Owner, r.at.Table, err)
}

func (r *sectionReader) schema() *arrow.Schema { return r.stream.Schema() }

func (r *sectionReader) close() {
	if r.stream != nil {
		r.stream.Release()
	}
	_ = r.zip.Reset(nil)
	decoders.Put(r.zip)
}

// withWhole adds to an error of damaged files which checkpoint before an epoch is whole.
func (s *Store) withWhole(ctx context.Context, err error, epoch flow.Epoch) error {
	if err == nil || !errors.Is(err, errDamaged) {
		return err
	}
	out := *errs.As(err)
	epochs, failed := s.Epochs(ctx)
	if failed != nil {
		return &out
	}
	for _, earlier := range retained(epochs, epoch) {
		m, err := s.Manifest(ctx, earlier)
		if err == nil {
			err = s.verify(ctx, m)
		}
		if err == nil {
			out.Msg += fmt.Sprintf("; the checkpoint of epoch %d is whole", earlier)
			return out.WithHint("restore the file from a copy; or, where sinks may see what came after epoch %d again, delete the manifests of later epochs in %s and start anew",
				earlier, s.url(""))
		}
	}
	out.Msg += "; no earlier checkpoint is whole"
	return out.WithHint("restore the file from a copy, or begin anew with another pipeline id")
}
