package service

import (
	"context"
	"encoding/json"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// Where a pipeline's marker stands: in the summary of each snapshot that the pipeline makes, for readers, and in a property of the table, for snapshots expire.
// Both are written by the same commit.
const (
	markerProperty  = "riverbed.marker." // and the pipeline
	summaryPipeline = "riverbed.pipeline"
	summaryEpoch    = "riverbed.epoch"
	summaryMarker   = "riverbed.marker"
)

// placed is a pipeline's marker as the property holds it.
type placed struct {
	Epoch  int64  `json:"epoch"`
	Marker string `json:"marker"`
	Branch string `json:"branch,omitempty"`
}

func (p placed) properties(pipeline string) (iceberg.Properties, error) {
	text, err := json.Marshal(p)
	return iceberg.Properties{markerProperty + pipeline: string(text)}, err
}

// placedIn reads a pipeline's marker; none is not ok.
func placedIn(t *table.Table, pipeline string) (p placed, ok bool, err error) {
	if pipeline == "" { // a commit that is of none
		return p, false, nil
	}
	if text, found := t.Properties()[markerProperty+pipeline]; found {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return p, false, faultf(kindMarker, "the property %s of %s is not as it was written: %w", markerProperty+pipeline, name(t), err).
				hint("restore the table's property from an older metadata file")
		}
		return p, true, nil
	}
	return p, false, nil
}

// committed is the snapshot that a marker was committed by; 0 when it has expired.
func committed(t *table.Table, pipeline, marker string) int64 {
	for _, s := range t.Metadata().Snapshots() {
		if s.Summary != nil && s.Summary.Properties[summaryPipeline] == pipeline && s.Summary.Properties[summaryMarker] == marker {
			return s.SnapshotID
		}
	}
	return 0
}

// marker says what the table holds for a pipeline.
func marker(ctx context.Context, c *call) (meta.Answer, error) {
	if c.Commit == nil || c.Commit.Pipeline == "" {
		return meta.Answer{}, faultf(kindUsage, "a marker is of a pipeline, and none is named")
	}
	t, err := c.tableOf(ctx)
	if err != nil {
		return meta.Answer{}, err
	}
	p, _, err := placedIn(t, c.Commit.Pipeline)
	return meta.Answer{Marker: p.Marker, Snapshot: committed(t, c.Commit.Pipeline, p.Marker)}, err
}

// begin writes a pipeline's first marker, unless it has one. The answer is what the table holds.
func begin(ctx context.Context, c *call) (meta.Answer, error) {
	if c.Commit == nil || c.Commit.Pipeline == "" || c.Commit.Marker == "" {
		return meta.Answer{}, faultf(kindUsage, "a marker is of a pipeline, and none is named")
	}
	var out meta.Answer
	err := c.retry(ctx, func(t *table.Table) error {
		p, ok, err := placedIn(t, c.Commit.Pipeline)
		if err != nil {
			return err
		}
		out.Marker = p.Marker
		if ok {
			return nil
		}
		properties, err := placed{Epoch: c.Commit.Epoch, Marker: c.Commit.Marker, Branch: c.Commit.Branch}.properties(c.Commit.Pipeline)
		if err != nil {
			return err
		}
		tx := t.NewTransaction()
		// AIDEV-NOTE: without this a lost request that is served late would put the first marker in the place of a later one: commits move the branch.
		if err := tx.AssertRefSnapshotID(target(c.Commit)); err != nil {
			return err
		}
		if err := tx.SetProperties(properties); err != nil {
			return err
		}
		if _, err := tx.Commit(ctx); err != nil {
			return err
		}
		out.Marker = c.Commit.Marker
		return nil
	})
	return out, err
}
