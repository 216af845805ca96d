package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// state is a table at a reference.
type state struct {
	*table.Table
	snapshot *table.Snapshot // nil: the table has none
	schema   *iceberg.Schema
}

// at resolves a reference. Branches are read by the table's newest schema, everything that stands still by the schema of its snapshot.
func at(t *table.Table, r meta.Ref) (state, error) {
	m := t.Metadata()
	s := state{Table: t, schema: m.CurrentSchema()}
	switch {
	case r.Snapshot != 0:
		if s.snapshot = m.SnapshotByID(r.Snapshot); s.snapshot == nil {
			return s, faultf(kindExpired, "the table %s has no snapshot %d (any more)", name(t), r.Snapshot).hint("the oldest one is " + oldest(t))
		}
	case r.Tag != "":
		ref, err := refOf(t, r.Tag, table.TagRef)
		if err != nil {
			return s, err
		}
		s.snapshot = m.SnapshotByID(ref.SnapshotID)
	default:
		head, err := headOf(t, r.Branch)
		if err != nil {
			return s, err
		}
		s.snapshot = head
		if r.AsOf == 0 {
			return s, nil
		}
		if s.snapshot = asOf(t, r, head); s.snapshot == nil {
			return s, faultf(kindExpired, "the table %s has no snapshot of that time (any more)", name(t)).hint("the oldest one is " + oldest(t))
		}
	}
	if s.snapshot == nil {
		return s, faultf(kindExpired, "the table %s has lost the snapshot that a reference names", name(t))
	}
	s.schema = schemaAt(t, s.snapshot)
	return s, nil
}

// headOf is the newest snapshot of a branch; nil for the main branch of a table without any.
func headOf(t *table.Table, branch string) (*table.Snapshot, error) {
	if branch == "" || branch == table.MainBranch {
		return t.Metadata().CurrentSnapshot(), nil
	}
	ref, err := refOf(t, branch, table.BranchRef)
	if err != nil {
		return nil, err
	}
	return t.Metadata().SnapshotByID(ref.SnapshotID), nil
}

// asOf is the newest snapshot at a time: of the main branch by the log, which knows of rollbacks, of others by their ancestors.
func asOf(t *table.Table, r meta.Ref, head *table.Snapshot) *table.Snapshot {
	if r.Branch == "" || r.Branch == table.MainBranch {
		if s := t.SnapshotAsOf(r.AsOf, true); s != nil {
			return s
		}
	}
	for s := head; s != nil; s = parent(t, s) {
		if s.TimestampMs <= r.AsOf {
			return s
		}
	}
	return nil
}

func refOf(t *table.Table, wanted string, kind table.RefType) (table.SnapshotRef, error) {
	names := map[string]bool{}
	for n, ref := range t.Metadata().Refs() {
		if ref.SnapshotRefType != kind {
			continue
		}
		if n == wanted {
			return ref, nil
		}
		names[n] = true
	}
	f := faultf(kindAbsent, "the table %s has no %s %q", name(t), kind, wanted)
	if len(names) > 0 {
		f.remedy = fmt.Sprintf("it has %s", strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return table.SnapshotRef{}, f
}

func parent(t *table.Table, s *table.Snapshot) *table.Snapshot {
	if s.ParentSnapshotID == nil {
		return nil
	}
	return t.Metadata().SnapshotByID(*s.ParentSnapshotID)
}

// history are a snapshot and those before it, oldest first, as far as they are kept.
func history(t *table.Table, s *table.Snapshot) []*table.Snapshot {
	var out []*table.Snapshot
	for ; s != nil; s = parent(t, s) {
		out = append(out, s)
	}
	slices.Reverse(out)
	return out
}

func schemaAt(t *table.Table, s *table.Snapshot) *iceberg.Schema {
	if s.SchemaID != nil {
		for _, schema := range t.Metadata().Schemas() {
			if schema.ID == *s.SchemaID {
				return schema
			}
		}
	}
	return t.Metadata().CurrentSchema()
}

func snapshotOf(s *table.Snapshot) meta.Snapshot {
	out := meta.Snapshot{ID: s.SnapshotID, Sequence: s.SequenceNumber, At: s.TimestampMs}
	if s.ParentSnapshotID != nil {
		out.Parent = *s.ParentSnapshotID
	}
	if s.Summary != nil {
		out.Operation, out.Summary = string(s.Summary.Operation), s.Summary.Properties
	}
	return out
}

func name(t *table.Table) string { return strings.Join(t.Identifier(), ".") }

func oldest(t *table.Table) string {
	if h := history(t, t.Metadata().CurrentSnapshot()); len(h) > 0 {
		return fmt.Sprint(h[0].SnapshotID)
	}
	return "none"
}
