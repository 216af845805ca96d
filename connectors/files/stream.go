package files

import (
	"context"
	"io"
	"strconv"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// Stream follows a set of files that grows. A split is one file; a file is taken as it is when it is first listed, so
// new files must appear whole (written under another name and renamed). A position is the number of records read,
// bad ones included.
type Stream struct {
	set      *set
	patterns []string
	bounded  bool
	frozen   []Ref // bounded: the files
}

// NewStream agrees on the columns from the files that are there. Without any, the columns must be declared.
func NewStream(ctx context.Context, format Format, req connectors.OpenRequest) (*Stream, error) {
	s, _, err := newSet(ctx, format, req)
	if err != nil {
		return nil, err
	}
	return &Stream{set: s, patterns: req.Settings.List("path")}, nil
}

func (s *Stream) Fields() []types.Field { return s.set.fields }
func (s *Stream) Bounded() bool         { return s.bounded }
func (s *Stream) Updating() bool        { return false }
func (s *Stream) Replayable() bool      { return true }

// Splits lists the files that are there now, by name.
func (s *Stream) Splits(ctx context.Context) ([]flow.Split, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]flow.Split, len(refs))
	for i, r := range refs {
		out[i] = flow.Split{ID: r.Name()}
	}
	return out, nil
}

func (s *Stream) refs(ctx context.Context) ([]Ref, error) {
	if s.bounded {
		return s.frozen, nil
	}
	store, infos, err := expand(ctx, s.set.format, s.patterns)
	if err != nil {
		return nil, err
	}
	refs := make([]Ref, len(infos))
	for i, info := range infos {
		refs[i] = Ref{store, info}
	}
	return refs, nil
}

// UntilLatest is the files that are there now.
func (s *Stream) UntilLatest(ctx context.Context) (flow.Stream, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	return &Stream{set: s.set, patterns: s.patterns, bounded: true, frozen: refs}, nil
}

// Open reads one file from a record on.
func (s *Stream) Open(ctx context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	skip := int64(0)
	if from != "" {
		n, err := strconv.ParseInt(string(from), 10, 64)
		if err != nil || n < 0 {
			return nil, errs.New(errs.State, "open", "%q is no position in the file %q", string(from), split.ID)
		}
		skip = n
	}
	ref, err := s.ref(ctx, split.ID)
	if err != nil {
		return nil, err
	}
	parts, err := s.partsOf(ref)
	if err != nil {
		return nil, err
	}
	m, err := s.set.open(ctx, ref, parts)
	if err != nil {
		return nil, err
	}
	columns := make([]int, len(s.set.fields))
	for i := range columns {
		columns[i] = i
	}
	return &reader{project: m.project(columns, types.ArrowSchema(s.set.fields)), at: skip, skip: skip}, nil
}

func (s *Stream) ref(ctx context.Context, name string) (Ref, error) {
	for _, r := range s.frozen {
		if r.Name() == name {
			return r, nil
		}
	}
	store, _, err := objstore.For(s.patterns[0])
	if err != nil {
		return Ref{}, err
	}
	info, err := store.Stat(ctx, name)
	if err != nil {
		return Ref{}, errs.New(errs.Source, "open", "the file %q cannot be opened: %w", name, err).
			WithHint("keep the files of a stream as long as a pipeline may read them again")
	}
	return Ref{store, info}, nil
}

// partsOf reads the partition values of a file that may have come later.
func (s *Stream) partsOf(ref Ref) ([]types.Value, error) {
	out := make([]types.Value, len(s.set.parts.fields))
	pairs := hivePairs(ref.Name())
	for i, f := range s.set.parts.fields {
		found := false
		for _, p := range pairs {
			if p.key != f.Name {
				continue
			}
			found = true
			if p.value == hiveNull {
				continue
			}
			ok := true
			switch f.Type.Kind {
			case types.BigInt:
				out[i], ok = parseBigInt(p.value)
			case types.Date:
				out[i], ok = parseDate(p.value)
			default:
				out[i] = p.value
			}
			if !ok {
				return nil, errs.New(errs.Source, "read partitions", "the file %q has %s = %q, and the column is %s in the stream", ref.Name(), f.Name, p.value, f.Type).
					WithHint("declare the columns of the stream, with %s VARCHAR", f.Name)
			}
		}
		if !found {
			return nil, errs.New(errs.Source, "read partitions", "the file %q lies in no %s=… folder as the others of the stream do", ref.Name(), f.Name)
		}
	}
	return out, nil
}

// reader reads one file of a stream.
type reader struct {
	project *projection
	unit    int
	batches Batches
	at      int64 // records handed out
	skip    int64 // records to leave out first

	unknown, missing int64
}

func (r *reader) Read(ctx context.Context, limit int) (rows flow.Rows, err error) {
	file := r.project.m.file
	for {
		if err := ctx.Err(); err != nil {
			return flow.Rows{}, err
		}
		if r.batches == nil {
			units := file.Units()
			for r.unit < len(units) && units[r.unit].Rows >= 0 && units[r.unit].Rows <= r.skip {
				r.skip -= units[r.unit].Rows
				r.unit++
			}
			if r.unit == len(units) {
				return flow.Rows{}, io.EOF
			}
			if r.batches, err = file.Read(ctx, ReadRequest{Unit: r.unit, Columns: r.project.read, BatchRows: max(limit, 1), Lenient: true}); err != nil {
				return flow.Rows{}, err
			}
			if s, ok := r.batches.(Skipper); ok && r.skip > 0 {
				n, err := s.Skip(ctx, r.skip)
				if err != nil {
					return flow.Rows{}, err
				}
				r.skip -= n
			}
		}
		b, err := r.batches.Next(ctx)
		if err == io.EOF {
			r.close()
			r.unit++
			continue
		}
		if err != nil {
			return flow.Rows{}, err
		}
		if b = r.pass(b); b.Records == 0 {
			continue
		}
		r.at += b.Records
		out := flow.Rows{Bad: b.Bad, Next: flow.Position(strconv.FormatInt(r.at, 10))}
		if b.Rows != nil {
			out.Batch, out.Places = r.project.apply(b.Rows), placesOf(r.project.m.ref.Name(), r.at-b.Records+1, b)
			out.Bytes = estimate(file.Units()[r.unit], b.Records)
		}
		return out, nil
	}
}

// pass leaves out what lies before the position, for formats whose records are rows and never bad.
func (r *reader) pass(b Batch) Batch {
	n := min(r.skip, b.Records)
	r.skip -= n
	switch n {
	case 0:
		return b
	case b.Records:
		return Batch{}
	}
	return Batch{Rows: b.Rows.NewSlice(n, b.Rows.NumRows()), Records: b.Records - n}
}

func estimate(u Unit, records int64) int64 {
	if u.Rows > 0 {
		return u.Bytes * records / u.Rows
	}
	return 0
}

func (r *reader) close() {
	if r.batches == nil {
		return
	}
	if c, ok := r.batches.(connectors.FieldCounter); ok {
		r.unknown += c.UnknownFields()
		r.missing += c.MissingFields()
	}
	_ = r.batches.Close()
	r.batches = nil
}

// UnknownFields and MissingFields are counted by decoders of formats that have names in every record.
func (r *reader) UnknownFields() int64 { u, _ := r.counts(); return u }
func (r *reader) MissingFields() int64 { _, m := r.counts(); return m }

func (r *reader) counts() (unknown, missing int64) {
	if c, ok := r.batches.(connectors.FieldCounter); ok {
		return r.unknown + c.UnknownFields(), r.missing + c.MissingFields()
	}
	return r.unknown, r.missing
}

func (r *reader) Close() error {
	r.close()
	return nil
}
