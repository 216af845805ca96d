package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/clock"
)

const (
	attempts = 5   // when nothing moves
	races    = 200 // lost to other writers, each of which has done its own work
	pause    = 50 * time.Millisecond
	longest  = 2 * time.Second
)

// retry runs a change of a table against its newest metadata until it is done.
//
// AIDEV-NOTE: an error of a commit does not say that it was not done: its answer may be lost, or it may be done later still. So nothing is tried again before
// the table was read anew, and a change begins by looking whether it is there already. A late request that is served behind that look loses: it asserts
// the snapshot that the branch had, and so does ours, so one of the two is refused.
func (c *call) retry(ctx context.Context, change func(*table.Table) error) error {
	wait, failed := pause, 0
	for lost := 0; ; {
		t, err := c.tableOf(ctx)
		if err == nil {
			if err = change(t); err == nil {
				return nil
			}
		}
		var f *fault
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &f):
			return err
		}
		switch now, again := c.tableOf(ctx); {
		case again == nil && t != nil && now.MetadataLocation() != t.MetadataLocation():
			if lost++; lost > races { // somebody else, or we: the next look says
				return fmt.Errorf("the table %s was changed by others %d times in a row: %w", c.Table, lost, err)
			}
			failed = 0
		case !transient(err) && again == nil && !errors.Is(err, table.ErrCommitFailed):
			// The table is there, has not moved and this was no accident. Once more, for what was done late.
			if failed++; failed > 1 {
				return err
			}
		default:
			if failed++; failed >= attempts {
				return err
			}
		}
		if err := sleep(ctx, wait/2+rand.N(wait)); err != nil {
			return err
		}
		wait = min(2*wait, longest)
		if failed == 0 {
			wait = min(wait, 8*pause)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	return clock.Wall{}.Sleep(ctx, d)
}

// target is the branch that a commit is to.
func target(c *meta.Commit) string {
	if c.Branch == "" {
		return table.MainBranch
	}
	return c.Branch
}

// commit publishes files as one snapshot with the pipeline's marker.
func commit(ctx context.Context, c *call) (meta.Answer, error) {
	want := c.Commit
	switch {
	case want == nil || want.Marker == "":
		return meta.Answer{}, faultf(kindUsage, "a commit has a marker, and none is named")
	case len(want.Add) == 0 && len(want.Remove) == 0:
		// AIDEV-NOTE: a commit that makes no snapshot does not move the branch, and so a late one could not be refused.
		return meta.Answer{}, faultf(kindUsage, "a commit has files")
	}
	var out meta.Answer
	err := c.retry(ctx, func(t *table.Table) error {
		out = meta.Answer{}
		if want.Pipeline == "" { // a marker of this commit alone, which its snapshot has
			if id := committed(t, "", want.Marker); id != 0 {
				out.Marker, out.Snapshot = want.Marker, id
				return nil
			}
		}
		have, ok, err := placedIn(t, want.Pipeline)
		switch {
		case want.Pipeline == "":
		case err != nil:
			return err
		case ok && have.Marker == want.Marker:
			out.Marker, out.Snapshot = have.Marker, committed(t, want.Pipeline, want.Marker)
			return nil
		case have.Marker != want.Previous:
			out.Marker = have.Marker
			return faultf(kindMarker, "the table %s holds the marker %q of the pipeline %s where %q was expected", c.Table, have.Marker, want.Pipeline, want.Previous).
				hint("the table was restored, or another run of the pipeline wrote to it")
		}
		gone, dead, conflict, err := c.removals(ctx, t)
		if err != nil || conflict {
			out.Conflict = conflict
			return err
		}
		added, err := dataFiles(ctx, t, want)
		if err != nil {
			return err
		}
		snapshot, err := c.publish(ctx, t, added, gone, dead)
		if err != nil {
			return err
		}
		out.Marker, out.Snapshot = want.Marker, snapshot
		return nil
	})
	return out, err
}

// publish makes the snapshot, if the branch has not moved.
func (c *call) publish(ctx context.Context, t *table.Table, added, gone, dead []iceberg.DataFile) (int64, error) {
	want := c.Commit
	tx, err := t.NewTransactionOnBranchWithError(target(want))
	if err != nil {
		return 0, faultf(kindUsage, "cannot commit to %s of %s: %w", target(want), c.Table, err)
	}
	// Pinned: a conflict comes back to us, who look for the marker, instead of being tried again by the library.
	if err := tx.AssertRefSnapshotID(target(want)); err != nil {
		return 0, err
	}
	summary := iceberg.Properties{summaryMarker: want.Marker}
	if want.Pipeline != "" {
		properties, err := placed{Epoch: want.Epoch, Marker: want.Marker, Branch: want.Branch}.properties(want.Pipeline)
		if err != nil {
			return 0, err
		}
		if err := tx.SetProperties(properties); err != nil {
			return 0, err
		}
		summary[summaryPipeline], summary[summaryEpoch] = want.Pipeline, strconv.FormatInt(want.Epoch, 10)
	}
	if len(gone) > 0 {
		err = tx.ReplaceFiles(ctx, gone, added, dead, summary, table.WithoutAutoNameMapping())
	} else {
		// Names are drawn for each file and the marker says which are in, so the table is not searched for them.
		err = tx.AddDataFiles(ctx, added, summary, table.WithoutAutoNameMapping(), table.WithoutDuplicateCheck())
	}
	if err != nil {
		return 0, err
	}
	done, err := tx.Commit(ctx)
	if err != nil {
		return 0, err
	}
	if s := done.Metadata().SnapshotByName(target(want)); s != nil && s.Summary != nil && s.Summary.Properties[summaryMarker] == want.Marker {
		return s.SnapshotID, nil
	}
	return committed(done, want.Pipeline, want.Marker), nil
}

// removals finds the files that a commit replaces, with the deletes that are of them alone. Conflict: one is gone, or its deletes are not those that the
// writer had read.
func (c *call) removals(ctx context.Context, t *table.Table) (gone, dead []iceberg.DataFile, conflict bool, err error) {
	want := c.Commit
	if len(want.Remove) == 0 {
		return nil, nil, false, nil
	}
	head, err := headOf(t, want.Branch)
	if err != nil || head == nil {
		return nil, nil, err == nil, err
	}
	now, err := holdings(ctx, t, head)
	if err != nil {
		return nil, nil, false, err
	}
	then := now
	if want.Base != 0 && want.Base != head.SnapshotID {
		base := t.Metadata().SnapshotByID(want.Base)
		if base == nil { // expired: what was read then is not known any more
			return nil, nil, true, nil
		}
		if then, err = holdings(ctx, t, base); err != nil {
			return nil, nil, false, err
		}
	}
	for _, path := range want.Remove {
		e, was := now.entryOf(address(path)), then.entryOf(address(path))
		if e == nil {
			e, was = now.entryOf(path), then.entryOf(path)
		}
		if e == nil || was == nil || !sameDeletes(now.deletesOf(e), then.deletesOf(was)) {
			return nil, nil, true, nil
		}
		gone = append(gone, e.DataFile())
		for _, d := range now.byPath[e.DataFile().FilePath()] {
			if d.DataFile().ReferencedDataFile() != nil {
				dead = append(dead, d.DataFile())
			}
		}
	}
	return gone, dead, false, nil
}
