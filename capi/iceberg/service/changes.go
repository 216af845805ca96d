package service

import (
	"context"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// changes tells what the snapshots behind the one read last did, oldest first.
func changes(ctx context.Context, c *call) (meta.Answer, error) {
	t, err := c.tableOf(ctx)
	if err != nil {
		return meta.Answer{}, err
	}
	s, err := at(t, c.Ref)
	if err != nil {
		return meta.Answer{}, err
	}
	out := meta.Answer{Table: describe(s)}
	todo, err := since(t, history(t, s.snapshot), c.After)
	if err != nil {
		return out, err
	}
	if c.Most > 0 && len(todo) > c.Most {
		todo = todo[:c.Most]
	}
	var before *held // of the snapshot that was told last, when it was read whole
	for _, snapshot := range todo {
		change := meta.Change{Snapshot: snapshotOf(snapshot), Schema: fieldsOf(schemaAt(t, snapshot).Fields())}
		if before, err = tell(ctx, t, snapshot, before, &change); err != nil {
			return out, err
		}
		out.Changes = append(out.Changes, change)
	}
	return out, nil
}

// since are the snapshots behind one.
func since(t *table.Table, all []*table.Snapshot, after int64) ([]*table.Snapshot, error) {
	if after == 0 {
		return all, nil
	}
	for i, s := range all {
		if s.SnapshotID == after {
			return all[i+1:], nil
		}
	}
	if t.Metadata().SnapshotByID(after) != nil {
		return nil, faultf(kindExpired, "snapshot %d of %s, which was read last, is not in the history of the branch any more: it was rolled back or replaced", after, name(t)).
			hint("read the table anew")
	}
	return nil, faultf(kindExpired, "snapshot %d of %s, which was read last, has expired", after, name(t)).hint("read the table anew, and keep snapshots for longer than a reader may be away")
}

// tell fills in what a snapshot did, and returns what it holds when that was read.
func tell(ctx context.Context, t *table.Table, s *table.Snapshot, before *held, out *meta.Change) (*held, error) {
	schema, last := schemaAt(t, s), parent(t, s)
	switch {
	case s.Summary != nil && s.Summary.Operation == table.OpReplace:
		return nil, nil // the same rows in other files
	case last == nil:
		// The first one, or those before it have expired: whatever it holds is new to a reader that has seen nothing.
		h, err := holdings(ctx, t, s)
		if err != nil {
			return nil, err
		}
		for _, e := range h.data {
			out.Added = append(out.Added, h.file(e, schema))
		}
		return h, nil
	}
	added, onlyAdds, err := appended(ctx, t, s)
	if err != nil {
		return nil, err
	}
	if onlyAdds {
		h := &held{table: t}
		for _, e := range added {
			out.Added = append(out.Added, h.file(e, schema))
		}
		return nil, nil
	}
	// AIDEV-NOTE: deletes that came, grew, were merged or taken back are all seen as a file whose deletes differ: manifests say which files of deletes came,
	// not which data files they hit.
	if before == nil {
		if before, err = holdings(ctx, t, last); err != nil {
			return nil, err
		}
	}
	after, err := holdings(ctx, t, s)
	if err != nil {
		return nil, err
	}
	old := map[string]iceberg.ManifestEntry{}
	for _, e := range before.data {
		old[e.DataFile().FilePath()] = e
	}
	for _, e := range after.data {
		path := e.DataFile().FilePath()
		was, ok := old[path]
		if !ok {
			out.Added = append(out.Added, after.file(e, schema))
			continue
		}
		delete(old, path)
		if !sameDeletes(before.deletesOf(was), after.deletesOf(e)) {
			out.Deleted = append(out.Deleted, meta.Pair{Before: before.file(was, schema), After: after.file(e, schema)})
		}
	}
	for _, e := range before.data {
		if _, gone := old[e.DataFile().FilePath()]; gone {
			out.Removed = append(out.Removed, before.file(e, schema))
		}
	}
	return after, nil
}

// appended are the data files that a snapshot added; not ok when it did anything else, so that snapshots must be compared.
func appended(ctx context.Context, t *table.Table, s *table.Snapshot) (added []iceberg.ManifestEntry, ok bool, err error) {
	if s.Summary == nil || s.Summary.Operation != table.OpAppend {
		return nil, false, nil
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return nil, false, err
	}
	manifests, err := s.Manifests(fs)
	if err != nil {
		return nil, false, lost(t, s, err)
	}
	for _, m := range manifests {
		if m.SnapshotID() != s.SnapshotID {
			continue
		}
		if m.ManifestContent() != iceberg.ManifestContentData {
			return nil, false, nil
		}
		for e, err := range m.Entries(fs, false) {
			switch {
			case err != nil:
				return nil, false, lost(t, s, err)
			case e.SnapshotID() != s.SnapshotID: // carried over by a merge of manifests
			case e.Status() == iceberg.EntryStatusADDED:
				added = append(added, e)
			case e.Status() == iceberg.EntryStatusDELETED:
				return nil, false, nil
			}
		}
	}
	return added, true, nil
}

// sameDeletes reports whether two lists name the same deletes.
func sameDeletes(a, b []iceberg.ManifestEntry) bool {
	names := func(entries []iceberg.ManifestEntry) []meta.Delete {
		out := make([]meta.Delete, len(entries))
		for i, e := range entries {
			d := deleteOf(e.DataFile())
			out[i] = meta.Delete{Path: d.Path, Offset: d.Offset, Length: d.Length}
		}
		slices.SortFunc(out, func(x, y meta.Delete) int {
			if x.Path != y.Path {
				if x.Path < y.Path {
					return -1
				}
				return 1
			}
			return int(x.Offset - y.Offset)
		})
		return out
	}
	return slices.EqualFunc(names(a), names(b), func(x, y meta.Delete) bool { return x.Path == y.Path && x.Offset == y.Offset && x.Length == y.Length })
}
