package delta

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
)

// snapshot is a table at a version.
type snapshot struct {
	table    *table
	version  int64
	protocol *protocol
	metadata *metadata
	columns  []column
	files    map[fileKey]*dataFile
}

// load reads the table at a version: the newest whole checkpoint before it, and the commits since.
func (t *table) load(ctx context.Context, l *listing, version int64) (*snapshot, error) {
	if version > l.last {
		return nil, errs.New(errs.Source, "open", "the Delta table %q has no version %d; its newest is %d", t.path, version, l.last).
			WithHint("give a version up to %d", l.last)
	}
	s := &snapshot{table: t, version: version, files: map[fileKey]*dataFile{}}
	from := int64(-1)
	for v := range l.checkpoints {
		if v <= version {
			from = max(from, v)
		}
	}
	if from >= 0 {
		a, err := t.checkpoint(ctx, l.checkpoints[from][0])
		if err != nil {
			return nil, err
		}
		s.apply(a)
	}
	for v := from + 1; v <= version; v++ { // each by its name: a listing that shows one that came meanwhile need not show the one before it
		a, ok, err := t.commit(ctx, v)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, t.missing(l, v)
		}
		s.apply(a)
	}
	if s.protocol == nil || s.metadata == nil {
		return nil, errs.New(errs.Source, "read log", "the log of the Delta table %q says nothing of its %s up to version %d", t.path, map[bool]string{true: "protocol", false: "schema"}[s.protocol == nil], version).
			WithHint("the log is not whole; restore it from a copy")
	}
	return s, s.settle()
}

// missing says that a commit is not there which must be.
func (t *table) missing(l *listing, version int64) error {
	e := errs.New(errs.Source, "read log", "version %d of the Delta table %q is no longer in its log, or was lost: the log has no file %020d.json", version, t.path, version)
	checkpoints := slices.Sorted(maps.Keys(l.checkpoints))
	if len(checkpoints) > 0 {
		oldest := checkpoints[0]
		return e.WithHint("the oldest version that can still be read is %d; a longer delta.logRetentionDuration keeps more", oldest)
	}
	return e.WithHint("the log is not whole; restore it from a copy")
}

// apply takes what a commit or a checkpoint says.
func (s *snapshot) apply(a *actions) {
	if a.protocol != nil {
		s.protocol = a.protocol
	}
	if a.metadata != nil {
		s.metadata = a.metadata
	}
	// A commit names no file twice, so the order of its actions does not matter.
	for _, f := range a.removes {
		delete(s.files, f.key())
	}
	for _, f := range a.adds {
		s.files[f.key()] = f
	}
}

// settle checks that the table can be read and reads its columns.
func (s *snapshot) settle() (err error) {
	if err := s.protocol.check(s.table.path); err != nil {
		return err
	}
	if s.columns, err = s.metadata.columns(s.protocol); err != nil {
		return errs.Because(err, errs.Source, "read schema", "", "the Delta table %q", s.table.path)
	}
	return nil
}

// sorted are the files in scan order: the older ones first, so that rows come about as they were written, whose event times watermarks
// follow. It does not depend on how the log was read.
func (s *snapshot) sorted() []*dataFile {
	return slices.SortedFunc(maps.Values(s.files), func(a, b *dataFile) int {
		return cmp.Or(cmp.Compare(a.Modified, b.Modified), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Vector.id(), b.Vector.id()))
	})
}
