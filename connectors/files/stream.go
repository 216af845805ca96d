package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// Stream follows a set of files that grows. A split is one file, so that a file which comes late is read whatever its name; those that are
// found together are begun in the order of their names. A file is taken as it is when it is first opened, so new files must appear
// whole (written under another name and renamed), and one that changes afterwards ends the stream: what was read of it cannot be taken back.
type Stream struct {
	set      *set
	patterns []string
	bounded  bool
	frozen   []Ref // bounded: the files

	mu    sync.Mutex
	read  map[string]position // by split: what the files were when they were opened
	found map[string]listing  // by pattern: the last one
}

// listing is how many files there were, and the last of their names.
type listing struct {
	files int
	last  string
}

func listingOf(refs []Ref) (l listing) {
	if l.files = len(refs); l.files > 0 {
		l.last = refs[l.files-1].Name()
	}
	return l
}

// position is the number of records read of a file, bad ones included, and which file that was.
type position struct {
	records, size, modified int64 // modified in nanoseconds since 1970
}

func (p position) text() flow.Position {
	return flow.Position(fmt.Sprintf("%d of %d@%d", p.records, p.size, p.modified))
}

func parsePosition(s flow.Position) (p position, ok bool) {
	n, err := fmt.Sscanf(string(s), "%d of %d@%d", &p.records, &p.size, &p.modified)
	return p, err == nil && n == 3 && p.records >= 0
}

func positionOf(info objstore.Info) position {
	return position{size: info.Size, modified: info.Modified.UnixNano()}
}

func (p position) file() position { return position{size: p.size, modified: p.modified} }

// NewStream agrees on the columns from the files that are there. Without any, the columns must be declared.
func NewStream(ctx context.Context, format Format, req connectors.OpenRequest) (*Stream, error) {
	s, _, err := newSet(ctx, format, req)
	if err != nil {
		return nil, err
	}
	return &Stream{set: s, patterns: req.Settings.List("path"), read: map[string]position{}, found: map[string]listing{}}, nil
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
	refs := s.frozen
	if !s.bounded {
		for _, pattern := range s.patterns {
			found, err := s.list(ctx, pattern)
			if err != nil {
				return nil, err
			}
			refs = append(refs, found...)
		}
	}
	for _, r := range refs {
		if err := s.unchanged(r); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// list gives the files of a pattern, by name: with each all those that were there before it and have a lesser name.
//
// AIDEV-NOTE: no listing is of one moment. It shows of what comes meanwhile some and not the rest: a folder has its entries in no order, and so shows b and not a,
// which was there before b. The watermark would then go on to b, and the rows of a be late. A second listing, which begins behind the first, has all that was there
// before whatever the first one shows. What comes behind that waits for the next time.
func (s *Stream) list(ctx context.Context, pattern string) ([]Ref, error) {
	refs, err := expandPattern(ctx, s.set.format, pattern)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	before := s.found[pattern]
	s.mu.Unlock()
	first := listingOf(refs)
	if first == before {
		return refs, nil
	}
	if refs, err = expandPattern(ctx, s.set.format, pattern); err != nil {
		return nil, err
	}
	for len(refs) > 0 && refs[len(refs)-1].Name() > first.last {
		refs = refs[:len(refs)-1]
	}
	s.mu.Lock()
	s.found[pattern] = listingOf(refs)
	s.mu.Unlock()
	return refs, nil
}

// unchanged fails when a file that was read, wholly or in part, is not the same any more.
func (s *Stream) unchanged(r Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, read := s.read[r.Name()]
	now := positionOf(r.Info)
	if !read || was == now {
		return nil
	}
	return errs.New(errs.Source, "read", "the file %q changed after it was read: it had %d bytes and now has %d, or was written again", r.Name(), was.size, now.size).
		WithHint("add new files instead of changing those that a stream has read, and write them under another name first; to read it all again, start a pipeline with another id")
}

// Remember tells, after a restart, what the files were that were read before it, so that one that changed meanwhile is noticed.
func (s *Stream) Remember(upTo map[string]flow.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, at := range upTo {
		if p, ok := parsePosition(at); ok {
			s.read[id] = p.file()
		}
	}
}

// UntilLatest is the files that are there now.
func (s *Stream) UntilLatest(ctx context.Context) (flow.Stream, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	return &Stream{set: s.set, patterns: s.patterns, bounded: true, frozen: refs, read: map[string]position{}}, nil
}

// Open reads one file from a record on.
func (s *Stream) Open(ctx context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	ref, err := s.ref(ctx, split.ID)
	if err != nil {
		return nil, err
	}
	at := positionOf(ref.Info)
	if from != "" {
		was, ok := parsePosition(from)
		if !ok {
			return nil, errs.New(errs.State, "open", "%q is no position in the file %q", string(from), split.ID)
		}
		at.records = was.records
		s.mu.Lock()
		s.read[split.ID] = was.file()
		s.mu.Unlock()
	}
	if err := s.unchanged(ref); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.read[split.ID] = at.file()
	s.mu.Unlock()
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
	return &reader{project: m.project(columns, types.ArrowSchema(s.set.fields)), at: at, skip: at.records}, nil
}

func (s *Stream) ref(ctx context.Context, id string) (Ref, error) {
	for _, r := range s.frozen {
		if r.Name() == id {
			return r, nil
		}
	}
	store, name, err := objstore.For(id)
	if err != nil {
		return Ref{}, err
	}
	info, err := store.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return Ref{}, errs.New(errs.Source, "open", "the file %q is no longer there", id).
			WithHint("keep the files of a stream as long as a pipeline may read them again")
	}
	if err != nil {
		return Ref{}, saidBy(err, "open", "the file %q cannot be opened: %w", id, err)
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
	at      position // behind what was handed out
	skip    int64    // records to leave out first

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
		r.at.records += b.Records
		out := flow.Rows{Bad: b.Bad, Next: r.at.text()}
		if b.Rows != nil {
			out.Batch, out.Places = r.project.apply(b.Rows), placesOf(r.project.m.ref.Name(), r.at.records-b.Records+1, b)
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
