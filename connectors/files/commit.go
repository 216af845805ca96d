package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// A file sink under exactly once.
//
// Stage leaves the files of an epoch whole, durable and invisible: files beside their names, uploads that are not completed. Commit makes them
// visible one by one and then puts an entry into the sink's manifest, the folder _riverbed/<pipeline>/ below the sink's: entry n+1, if
// absent, with the epoch's marker and files. The newest entry's marker is the sink's. Entries are numbered without gaps and stay.
//
// AIDEV-NOTE: every operation of Commit may be done twice. Ended before the entry, the files are visible and the marker is old: the engine has the
// epoch in its checkpoint and commits it again, which finds what is published already. So whoever lists the folder sees each row once, in
// whole files; who wants whole epochs reads the manifest's files instead.

// entry is one commit in the sink's manifest.
type entry struct {
	Format   int               `json:"format"`
	Pipeline string            `json:"pipeline"`
	Marker   connectors.Marker `json:"marker"`
	Previous connectors.Marker `json:"previous,omitempty"`
	Epoch    flow.Epoch        `json:"epoch"`
	Files    []committed       `json:"files"` // paths below the sink's folder
}

type committed struct {
	Path string `json:"path"`
	Rows int64  `json:"rows"`
	Size int64  `json:"bytes"`
}

// committable is what Stage hands to Commit.
type committable struct {
	Writer string       `json:"writer"` // token of the process
	Number int64        `json:"number"` // in the files' names
	Files  []stagedFile `json:"files"`
}

type stagedFile struct {
	objstore.Staged
	Rows int64 `json:"rows"`
}

// committer is a writer whose epochs become visible once.
type committer struct {
	*writer
	token string       // of this writer, in the names of its files: nobody else ever takes them
	ready []stagedFile // of the epoch that is written
	parts int          // of the epoch, so far

	number atomic.Int64 // newest in the names of files

	mu       sync.Mutex // Commit is called behind Write and Stage
	entries  int64      // number of the newest entry
	marker   connectors.Marker
	leftover []objstore.Staged // what was staged when we began
}

func newCommitter(w *writer) *committer {
	c := &committer{writer: w, token: strings.ToLower(clock.Unique()[:8]), entries: -1}
	w.commit = c
	return c
}

// fileID is the pipeline's id as a part of a name.
func (c *committer) fileID() string {
	id := url.PathEscape(c.pipeline)
	if strings.HasPrefix(id, ".") || strings.HasPrefix(id, "_") { // names that readers pass by
		id = "p" + id
	}
	return id
}

// nextName names the next file of the epoch. The names rise, so that those who list the folder meet the epochs in order.
func (c *committer) nextName() string {
	name := fmt.Sprintf("%s-%08d-%04d-%s%s", c.fileID(), c.number.Load()+1, c.parts, c.token, c.format.Extensions[0])
	c.parts++
	return name
}

// past lets names go on behind a number.
func (c *committer) past(n int64) {
	for have := c.number.Load(); have < n && !c.number.CompareAndSwap(have, n); have = c.number.Load() {
	}
}

// Close drops what no Stage handed over.
func (c *committer) Close() error {
	err := c.writer.Close()
	for _, f := range c.ready {
		_ = c.store.Discard(context.Background(), f.Staged) // what stays is dropped by the next process
	}
	c.ready = nil
	return err
}

// ours reports whether a file's name is one that nextName made, in whatever process.
func (c *committer) ours(name string) bool {
	base, ext := strings.CutSuffix(filepath.Base(name), c.format.Extensions[0])
	rest, id := strings.CutPrefix(base, c.fileID()+"-")
	part := strings.Split(rest, "-")
	return ext && id && len(part) == 3 && len(part[2]) == len(c.token)
}

// Stage leaves the epoch's files for Commit.
func (c *committer) Stage(_ context.Context, epoch flow.Epoch) (connectors.Committable, error) {
	if err := c.finishAll(); err != nil {
		return nil, c.fail(err)
	}
	if len(c.ready) == 0 {
		return nil, nil
	}
	out, err := json.Marshal(committable{Writer: c.token, Number: c.number.Add(1), Files: c.ready})
	if err != nil {
		return nil, errs.Bug("stage", "epoch %d of %s: %w", epoch, c.format.Name, err)
	}
	c.ready, c.parts = nil, 0
	return out, nil
}

// folder is where the manifest is.
func (c *committer) folder() string {
	return filepath.Join(c.path, "_riverbed", url.PathEscape(c.pipeline))
}

func (c *committer) entryName(n int64) string {
	return filepath.Join(c.folder(), fmt.Sprintf("%012d.commit", n))
}

// Begin finds the newest entry, and what an earlier process left staged.
func (c *committer) Begin(ctx context.Context, first connectors.Marker) (connectors.Marker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return "", c.fail(err)
	}
	if c.entries < 0 && first != "" {
		if err := c.append(ctx, entry{Marker: first}); err != nil {
			return "", err
		}
	}
	c.leftover = nil
	staged, err := c.store.ListStaged(ctx, c.path)
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err()
	}
	for _, s := range staged { // none after an error: what is left over costs room and nothing else, and not all services list it
		if c.ours(s.Name) {
			c.leftover = append(c.leftover, s)
		}
	}
	return c.marker, nil
}

// refresh reads the newest entry. Entries have no gaps, so it is found by doubling and halving, however many there are.
func (c *committer) refresh(ctx context.Context) error {
	exists := func(n int64) (bool, error) {
		switch _, err := c.store.Stat(ctx, c.entryName(n)); {
		case err == nil:
			return true, nil
		case errors.Is(err, objstore.ErrNotExist):
			return false, nil
		default:
			return false, err
		}
	}
	have, step := max(c.entries, 0)-1, int64(1)
	for {
		ok, err := exists(have + step)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		have, step = have+step, step*2
	}
	for missing := have + step; missing-have > 1; {
		middle := have + (missing-have)/2
		ok, err := exists(middle)
		if err != nil {
			return err
		}
		if ok {
			have = middle
		} else {
			missing = middle
		}
	}
	if have < 0 {
		return nil
	}
	e, err := c.found(ctx, have)
	if err != nil {
		return err
	}
	c.entries, c.marker = have, e.Marker
	c.past(have)
	return nil
}

// found reads an entry that is there, and makes sure that it stays: the engine is told of its marker, and then forgets how to commit that epoch.
func (c *committer) found(ctx context.Context, n int64) (entry, error) {
	var e entry
	if err := objstore.Keep(ctx, c.store, c.entryName(n)); err != nil {
		return e, err
	}
	text, err := objstore.Get(ctx, c.store, c.entryName(n))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil || e.Format != 1 || e.Marker == "" {
		return e, errs.New(errs.ExactlyOnce, "read manifest", "%q is no entry of a sink's manifest that this version reads", objstore.URL(c.store, c.entryName(n))).
			WithHint("it was changed, or written by a later version; the files below %q tell what was committed", objstore.URL(c.store, c.folder()))
	}
	return e, nil
}

// append puts the next entry. One that is there already is ours when its marker is: the answer to the put was lost.
func (c *committer) append(ctx context.Context, e entry) error {
	e.Format, e.Pipeline = 1, c.pipeline
	text, err := json.Marshal(e)
	if err != nil {
		return errs.Bug("commit", "%w", err)
	}
	next := c.entries + 1
	err = c.store.PutIfAbsent(ctx, c.entryName(next), append(text, '\n'))
	if errors.Is(err, objstore.ErrExists) {
		have, e2 := c.found(ctx, next)
		if e2 != nil {
			return c.fail(e2)
		}
		if have.Marker != e.Marker {
			return c.disagree(have.Marker, e.Previous)
		}
	} else if err != nil {
		return c.fail(err)
	}
	c.entries, c.marker = next, e.Marker
	return nil
}

func (c *committer) disagree(have, want connectors.Marker) error {
	return errs.New(errs.ExactlyOnce, "commit", "%s in %q holds the marker %q of the pipeline %q, and %q was to be the last: another process writes it", c.format.Name, objstore.URL(c.store, c.path), have, c.pipeline, want).
		WithHint("let one process run a pipeline; give another one an id of its own")
}

// Commit makes the files of an epoch visible, and then its marker the sink's.
func (c *committer) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.marker != e.Previous && c.marker != e.Marker {
		if err := c.refresh(ctx); err != nil {
			return c.fail(err)
		}
	}
	if c.marker == e.Marker {
		return nil
	}
	if c.marker != e.Previous {
		return c.disagree(c.marker, e.Previous)
	}
	var staged committable
	if len(e.Committable) > 0 {
		if err := json.Unmarshal(e.Committable, &staged); err != nil {
			return errs.New(errs.ExactlyOnce, "commit", "what epoch %d of %s staged cannot be read: %v", e.Epoch, c.format.Name, err)
		}
	}
	next := entry{Marker: e.Marker, Previous: e.Previous, Epoch: e.Epoch, Files: []committed{}}
	for _, f := range staged.Files {
		if err := c.publish(ctx, e.Epoch, f); err != nil {
			return err
		}
		path, err := filepath.Rel(c.path, f.Name)
		if err != nil {
			return errs.Bug("commit", "%w", err)
		}
		next.Files = append(next.Files, committed{filepath.ToSlash(path), f.Rows, f.Size})
	}
	if err := c.append(ctx, next); err != nil {
		return err
	}
	c.past(staged.Number)
	if staged.Writer == c.token {
		c.tidy(ctx)
	}
	return nil
}

func (c *committer) publish(ctx context.Context, epoch flow.Epoch, f stagedFile) error {
	err := c.store.Publish(ctx, f.Staged)
	switch {
	case errors.Is(err, objstore.ErrNotExist):
		return errs.New(errs.ExactlyOnce, "commit", "the file %q that epoch %d staged is gone, and so its %d rows", objstore.URL(c.store, f.Name), epoch, f.Rows).
			WithHint("something removes files or ends uploads that are not completed: let rules for that wait longer than a pipeline may stand still")
	case errors.Is(err, objstore.ErrExists):
		return errs.New(errs.ExactlyOnce, "commit", "the name %q that epoch %d staged is taken by another file", objstore.URL(c.store, f.Name), epoch).
			WithHint("let nothing else write into the folder of a sink under the pipeline's names")
	case err != nil:
		return c.fail(err)
	}
	return nil
}

// tidy drops what an earlier process staged and never published.
//
// AIDEV-NOTE: not in Begin, where the epochs that the last checkpoint names are still to be committed, but behind the first commit of an epoch of our own,
// which comes after all of those. Only what was there when we began goes: what a process that fenced us stages came later. What
// cannot be dropped now stays for the next.
func (c *committer) tidy(ctx context.Context) {
	for _, s := range c.leftover {
		_ = c.store.Discard(ctx, s)
	}
	c.leftover = nil
}
