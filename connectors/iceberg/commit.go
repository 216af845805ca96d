package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// A sink under exactly once.
//
// Stage leaves the data files of an epoch whole, durable and invisible. Commit makes them visible, which puts them into no table, and then asks for
// one snapshot of the table that adds them and moves the pipeline's marker, which stands in a property of the table: both or neither.
//
// AIDEV-NOTE: every part of Commit may be done twice. Ended before the snapshot, the files are visible and nobody refers to them: the engine has the epoch in
// its checkpoint and commits it again, which finds what is visible already. Ended behind it, the marker says so. Files that were staged and whose epoch no
// checkpoint names are dropped by the next process; they were never visible, so that nothing can refer to them.

// committable is what Stage hands to Commit.
type committable struct {
	Writer string       `json:"writer"` // token of the process
	Number int64        `json:"number"` // in the files' names
	Files  []stagedFile `json:"files"`
	// By key: the rows of Files replace those of their keys, and those of the keys in Gone go.
	Keyed bool         `json:"keyed,omitempty"`
	Gone  []stagedFile `json:"gone,omitempty"`
}

// Stage ends an epoch: its data files are whole.
func (w *writer) Stage(ctx context.Context, epoch flow.Epoch) (connectors.Committable, error) {
	c := committable{Writer: w.token, Number: w.number + 1, Keyed: w.key != nil}
	var err error
	if w.key != nil {
		if c.Gone, err = w.stageChanges(ctx); err != nil {
			return nil, err
		}
	}
	if c.Files, err = w.data.finishAll(); err != nil {
		return nil, err
	}
	if len(c.Files) == 0 && len(c.Gone) == 0 {
		return nil, nil
	}
	w.number++
	w.part = 0
	if !w.exactly {
		return nil, w.publish(ctx, c)
	}
	out, err := json.Marshal(c)
	if err != nil {
		return nil, errs.Bug("stage", "epoch %d of the Iceberg sink: %w", epoch, err)
	}
	return out, nil
}

// publish makes rows visible at once, of a sink without checkpoints. The marker is drawn for the occasion, so that an answer that is lost doubles nothing.
func (w *writer) publish(ctx context.Context, c committable) error {
	return w.commit(ctx, c, meta.Commit{Epoch: c.Number, Marker: w.token + ":" + clock.Unique()})
}

// Begin reads the table's marker, and finds what an earlier process left staged.
func (w *writer) Begin(ctx context.Context, first connectors.Marker) (connectors.Marker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	req := meta.Request{Op: "marker", Commit: &meta.Commit{Pipeline: w.pipeline, Marker: string(first), Branch: w.t.branch}}
	if first != "" {
		req.Op = "begin"
	}
	a, err := w.t.ask(ctx, req)
	if err != nil {
		return "", err
	}
	w.marker, w.leftover = connectors.Marker(a.Marker), nil
	staged, err := w.place.store.ListStaged(ctx, w.place.folder)
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err()
	}
	for _, s := range staged { // none after an error: what is left over costs room and nothing else, and not all services list it
		if w.ours(s.Name) {
			w.leftover = append(w.leftover, s)
		}
	}
	return w.marker, nil
}

// ours reports whether a file's name is one that fileName made for the pipeline, in whatever process.
func (w *writer) ours(name string) bool {
	rest, ok := strings.CutPrefix(path.Base(name), w.fileID()+"-")
	base, ext := strings.CutSuffix(rest, ".parquet")
	part := strings.Split(base, "-")
	return ok && ext && len(part) == 3 && len(part[2]) == len(w.token) && part[2] != w.token
}

// tidy drops what an earlier process staged and never published.
//
// AIDEV-NOTE: not in Begin, where the epochs that the last checkpoint names are still to be committed, but behind the first commit of an epoch of our own,
// which comes after all of those. Only what was there when we began goes: what a process that fenced us stages came later.
func (w *writer) tidy(ctx context.Context) {
	for _, s := range w.leftover {
		_ = w.place.store.Discard(ctx, s)
	}
	w.leftover = nil
}

// Commit makes the files of an epoch part of the table, and its marker the table's.
func (w *writer) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marker != e.Previous { // it is ahead, or we do not know what came of the last attempt
		a, err := w.t.ask(ctx, meta.Request{Op: "marker", Commit: &meta.Commit{Pipeline: w.pipeline}})
		if err != nil {
			return err
		}
		w.marker = connectors.Marker(a.Marker)
	}
	switch w.marker {
	case e.Marker:
		return nil
	case e.Previous:
	default:
		return errs.New(errs.ExactlyOnce, "commit", "the Iceberg table %q holds the marker %q of the pipeline %q, and %q was to be the last: another process writes it", w.t.name, w.marker, w.pipeline, e.Previous).
			WithHint("let one process run a pipeline; give another one an id of its own")
	}
	var c committable
	for _, text := range append(slices.Clip(e.Gathered), e.Committable) {
		var one committable
		if err := json.Unmarshal(text, &one); err != nil {
			return errs.New(errs.ExactlyOnce, "commit", "what epoch %d staged for the Iceberg table %q cannot be read: %v", e.Epoch, w.t.name, err)
		}
		one.Files = append(c.Files, one.Files...)
		c = one
	}
	w.marker = ""
	err := w.commit(ctx, c, meta.Commit{Pipeline: w.pipeline, Epoch: int64(e.Epoch), Marker: string(e.Marker), Previous: string(e.Previous)})
	if err != nil {
		return err
	}
	w.marker = e.Marker
	if c.Writer == w.token {
		w.tidy(ctx)
	}
	return nil
}

// Gather lets one snapshot take several epochs. By key the rows of an epoch replace those of the one before, which must be in the table by then.
func (w *writer) Gather() int { return w.every }

// commit makes staged files part of the table.
func (w *writer) commit(ctx context.Context, c committable, req meta.Commit) error {
	for _, list := range [][]stagedFile{c.Files, c.Gone} {
		for _, f := range list {
			if err := w.show(ctx, f, c.Number); err != nil {
				return err
			}
		}
	}
	req.Branch = w.t.branch
	add(&req, c.Files)
	if !c.Keyed {
		_, err := w.t.ask(ctx, meta.Request{Op: "commit", Commit: &req})
		return err
	}
	if err := w.replace(ctx, c, req); err != nil {
		return err
	}
	for _, f := range c.Gone { // the next commit does not need it, nor does this one, when it is tried again
		_ = w.place.store.Delete(ctx, f.Name)
	}
	return nil
}

// add puts files into a commit.
func add(req *meta.Commit, list []stagedFile) {
	for _, f := range list {
		req.Add = append(req.Add, f.Address)
		req.Files = append(req.Files, meta.File{Path: f.Address, Rows: f.Rows, Bytes: f.Size, Partition: f.Partition, Spec: f.Spec})
	}
}

// show makes a staged file visible.
func (w *writer) show(ctx context.Context, f stagedFile, number int64) error {
	err := w.place.store.Publish(ctx, f.Staged)
	switch {
	case errors.Is(err, objstore.ErrNotExist):
		return errs.New(errs.ExactlyOnce, "commit", "the file %q that was staged as number %d is gone, and so its %d rows", f.Address, number, f.Rows).
			WithHint("something removes files or ends uploads that are not completed: let rules for that wait longer than a pipeline may stand still")
	case errors.Is(err, objstore.ErrExists):
		return errs.New(errs.ExactlyOnce, "commit", "the name %q that was staged is taken by another file", f.Address).
			WithHint("let nothing else write into the folder of a table under the pipeline's names")
	case err != nil:
		return w.data.fail(err)
	}
	return nil
}
