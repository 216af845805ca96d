package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// files lists what a snapshot holds.
func files(ctx context.Context, c *call) (meta.Answer, error) {
	t, err := c.tableOf(ctx)
	if err != nil {
		return meta.Answer{}, err
	}
	s, err := at(t, c.Ref)
	if err != nil {
		return meta.Answer{}, err
	}
	out := meta.Answer{Table: describe(s)}
	if s.snapshot == nil {
		return out, nil
	}
	h, err := holdings(ctx, t, s.snapshot)
	if err != nil {
		return out, err
	}
	for _, e := range h.data {
		out.Files = append(out.Files, h.file(e, s.schema))
	}
	return out, nil
}

// held is what a snapshot holds: its live data files in the order of the manifests, and the deletes that may apply to them.
type held struct {
	table *table.Table
	data  []iceberg.ManifestEntry
	// Deletes by what they say of where they apply.
	byPath      map[string][]iceberg.ManifestEntry // of one file
	byPartition map[string][]iceberg.ManifestEntry // of a partition of a spec
	everywhere  []iceberg.ManifestEntry            // equality deletes without a partition
}

func holdings(ctx context.Context, t *table.Table, s *table.Snapshot) (*held, error) {
	h := &held{table: t, byPath: map[string][]iceberg.ManifestEntry{}, byPartition: map[string][]iceberg.ManifestEntry{}}
	fs, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	manifests, err := s.Manifests(fs)
	if err != nil {
		return nil, lost(t, s, err)
	}
	for _, m := range manifests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for e, err := range m.Entries(fs, true) {
			switch {
			case err != nil:
				return nil, lost(t, s, err)
			case m.ManifestContent() == iceberg.ManifestContentData:
				h.data = append(h.data, e)
			default:
				h.addDelete(e)
			}
		}
	}
	return h, nil
}

// lost says which snapshot's metadata cannot be read.
func lost(t *table.Table, s *table.Snapshot, err error) error {
	return fmt.Errorf("the metadata of snapshot %d of %s cannot be read: %w", s.SnapshotID, name(t), err)
}

func (h *held) addDelete(e iceberg.ManifestEntry) {
	d := e.DataFile()
	if d.ContentType() == iceberg.EntryContentEqDeletes {
		if spec := h.table.Metadata().PartitionSpecByID(int(d.SpecID())); spec != nil && spec.IsUnpartitioned() {
			h.everywhere = append(h.everywhere, e)
			return
		}
	} else if path := referenced(d); path != "" {
		h.byPath[path] = append(h.byPath[path], e)
		return
	}
	key := partitionKey(d)
	h.byPartition[key] = append(h.byPartition[key], e)
}

// filePath is the reserved field of the path in files of position deletes.
const filePath = 2147483546

// referenced is the one data file that a file of position deletes is about, "" when it may be about several.
func referenced(d iceberg.DataFile) string {
	if path := d.ReferencedDataFile(); path != nil {
		return *path
	}
	// Bounds may be cut short, and then they differ: no upper bound is a prefix.
	lower, upper := d.LowerBoundValues()[filePath], d.UpperBoundValues()[filePath]
	if len(lower) > 0 && string(lower) == string(upper) {
		return string(lower)
	}
	return ""
}

// partitionKey is equal for files of the same partition of the same spec.
func partitionKey(d iceberg.DataFile) string {
	values := d.Partition()
	ids := make([]int, 0, len(values))
	for id := range values {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	fmt.Fprintf(&b, "%d", d.SpecID())
	for _, id := range ids {
		fmt.Fprintf(&b, "|%d=%T:%v", id, values[id], values[id])
	}
	return b.String()
}

// deletesOf are the deletes that apply to a data file. Position deletes and vectors apply to files that are as old or older, equality deletes to older ones
// alone, each by data sequence number; a vector stands for all position deletes of its file.
func (h *held) deletesOf(e iceberg.ManifestEntry) []iceberg.ManifestEntry {
	path, sequence := e.DataFile().FilePath(), e.SequenceNum()
	var out []iceberg.ManifestEntry
	vector := false
	for _, d := range h.byPath[path] {
		if d.SequenceNum() >= sequence && table.IsDeletionVector(d.DataFile()) {
			out, vector = append(out, d), true
		}
	}
	candidates := slices.Concat(h.byPath[path], h.byPartition[partitionKey(e.DataFile())], h.everywhere)
	for _, d := range candidates {
		switch {
		case d.DataFile().ContentType() == iceberg.EntryContentEqDeletes:
			if d.SequenceNum() > sequence {
				out = append(out, d)
			}
		case !vector && d.SequenceNum() >= sequence:
			out = append(out, d)
		}
	}
	return out
}

// file describes a data file with the deletes that apply to it.
func (h *held) file(e iceberg.ManifestEntry, schema *iceberg.Schema) meta.File {
	d := e.DataFile()
	out := meta.File{
		Path: d.FilePath(), Rows: d.Count(), Bytes: d.FileSizeBytes(), Sequence: e.SequenceNum(), Format: strings.ToLower(string(d.FileFormat())),
		Spec: int(d.SpecID()), Nulls: d.NullValueCounts(), Values: d.ValueCounts(),
		Lower: bounds(d.LowerBoundValues(), schema), Upper: bounds(d.UpperBoundValues(), schema),
	}
	if spec := h.table.Metadata().PartitionSpecByID(int(d.SpecID())); spec != nil {
		out.Partition = partitionText(d.Partition(), spec, schema)
	}
	for _, x := range h.deletesOf(e) {
		out.Deletes = append(out.Deletes, deleteOf(x.DataFile()))
	}
	return out
}

func deleteOf(d iceberg.DataFile) meta.Delete {
	out := meta.Delete{Path: d.FilePath(), Kind: "position", Rows: d.Count(), Bytes: d.FileSizeBytes()}
	switch {
	case d.ContentType() == iceberg.EntryContentEqDeletes:
		out.Kind, out.Equal = "equality", d.EqualityFieldIDs()
	case table.IsDeletionVector(d):
		out.Kind = "vector"
		if at := d.ContentOffset(); at != nil {
			out.Offset = *at
		}
		if n := d.ContentSizeInBytes(); n != nil {
			out.Length = *n
		}
	}
	return out
}

// entryOf finds a live data file by its path.
func (h *held) entryOf(path string) iceberg.ManifestEntry {
	for _, e := range h.data {
		if e.DataFile().FilePath() == path {
			return e
		}
	}
	return nil
}
