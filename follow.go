package riverbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// A pipeline over __late or __bad is chained behind those whose rows it takes (ADR 39). Each run numbers its rows; a split is a run, and a
// position the number of the next row. Rows of a durable run are shown when the manifest of their epoch is published, never before: so a
// follower's checkpoint knows no row that the run it follows may lose and number anew.

// keptMarks are up to where the late and the bad rows of a run go.
type keptMarks struct{ late, bad int64 }

// keptMarks tells where the rows of a run end now.
func (s *Session) keptMarks(run string) keptMarks {
	return keptMarks{s.late.end(run), s.bad.end(run)}
}

// showKept shows followers the rows of a run that are durable.
//
// AIDEV-NOTE: it comes behind the publication of the manifest that has the rows, and the marks were taken when its sections were. Shown before, a row could be in a
// follower's sink and be lost, or get another number, in a crash.
func (s *Session) showKept(run string, upTo keptMarks) {
	s.late.show(run, upTo.late)
	s.bad.show(run, upTo.bad)
}

// beginKept makes the rows of a run those of a durable one, which its manifests call began. What was restored is durable.
func (s *Session) beginKept(run, began string, follows bool) {
	for _, k := range []*keptRows{s.late, s.bad} {
		k.mu.Lock()
		l := k.log(run)
		l.durable, l.began, l.own, l.shown = true, began, follows, l.next
		k.wake()
		k.mu.Unlock()
	}
}

func (k *keptRows) end(run string) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log(run).next
}

func (k *keptRows) show(run string, upTo int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.log(run); upTo > l.shown {
		l.shown = upTo
		k.wake()
	}
}

// skip leaves the rows of a run to those who read them, and shows them to nobody who follows.
func (k *keptRows) skip(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log(run).own = true
}

// endKept tells those who follow that a run has ended. The name of a durable one comes back with it, those of others never do.
func (s *Session) endKept(run string, durable bool) {
	for _, k := range []*keptRows{s.late, s.bad} {
		k.mu.Lock()
		if l := k.logs[run]; l != nil {
			l.over = !durable
		}
		k.wake()
		k.mu.Unlock()
	}
}

// changed is closed at the next change.
func (k *keptRows) changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.change()
}

func (k *keptRows) change() <-chan struct{} {
	if k.news == nil {
		k.news = make(chan struct{})
	}
	return k.news
}

// followed is the relation as a stream of what is there and what comes.
func (k *keptRows) followed(s *Session) *plan.Source {
	return &plan.Source{Name: k.name, Stream: &keptStream{s: s, k: k, durable: s.cfg.Load().checkpointURL != ""}, Fields: k.Fields()}
}

// keptStream is __late or __bad as a stream. In a session with checkpoints its splits are the pipelines, which have them; what subscriptions
// and views leave out would come again after a restart under other names. Otherwise every run is one.
type keptStream struct {
	s       *Session
	k       *keptRows
	durable bool
	latest  bool // it ends when the pipelines that it follows have ended
}

func (f *keptStream) Fields() []types.Field { return f.k.Fields() }
func (f *keptStream) Bounded() bool         { return false }
func (f *keptStream) Updating() bool        { return false }
func (f *keptStream) Replayable() bool      { return f.durable }

// Splits are the runs known now, without those that follow: what a follower leaves out itself would come back to it.
func (f *keptStream) Splits(context.Context) ([]flow.Split, error) {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	var out []flow.Split
	for run, l := range f.k.logs {
		if !l.own && (l.durable || !f.durable) {
			out = append(out, flow.Split{ID: run})
		}
	}
	slices.SortFunc(out, func(a, b flow.Split) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// UntilLatest is the stream that ends with the pipelines that it follows.
func (f *keptStream) UntilLatest(context.Context) (flow.Stream, error) {
	c := *f
	c.latest = true
	return &c, nil
}

// Changed, Ended, Attend and Close make it a stream that tells of new splits at once.
func (f *keptStream) Changed() <-chan struct{} { return f.k.changed() }

// Ended reports whether nothing comes any more.
func (f *keptStream) Ended() bool { return f.latest && !f.s.runs.feeding() }

// Attend implements pushed: nothing is missed in any case.
func (f *keptStream) Attend() (flow.Stream, func()) { return f, func() {} }

// Close implements pushed.
func (f *keptStream) Close() {}

// feeding reports whether a pipeline runs that others may follow.
func (r *runs) feeding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		if h, ok := c.(*Handle); ok && !h.run.q.follows {
			return true
		}
	}
	return false
}

// keptPosition is which row of a run comes next, and which run of that name it is: one that began anew numbers from 0.
type keptPosition struct {
	number int64
	began  string
}

func (p keptPosition) text() flow.Position {
	return flow.Position(strings.TrimSpace(fmt.Sprintf("%d %s", p.number, p.began)))
}

func parseKeptPosition(s flow.Position) (p keptPosition, err error) {
	if s == "" {
		return p, nil
	}
	number, began, _ := strings.Cut(string(s), " ")
	p.began = began
	p.number, err = strconv.ParseInt(number, 10, 64)
	return p, err
}

// Open follows a run, which may begin later.
func (f *keptStream) Open(_ context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	at, err := parseKeptPosition(from)
	if err != nil {
		return nil, errs.New(errs.State, "open", "%q is no position in %s", from, f.k.name)
	}
	return &keptReader{of: f, run: split.ID, at: at}, nil
}

type keptReader struct {
	of  *keptStream
	run string
	at  keptPosition
	old []arrow.RecordBatch // rows from the checkpoints that are no longer in memory
}

func (r *keptReader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	for {
		if rows, ok := r.fromOld(limit); ok {
			return rows, nil
		}
		ended := r.of.Ended() // asked before the rows, so that none is missed
		rows, missing, news, err := r.fromMemory(limit)
		switch {
		case err != nil:
			return flow.Rows{}, err
		case missing > 0:
			if err := r.load(ctx, missing); err != nil {
				return flow.Rows{}, err
			}
		case len(rows) > 0:
			r.at.number += int64(len(rows))
			return flow.Rows{Batch: keptBatch(r.of.Fields(), rows), Next: r.at.text()}, nil
		case ended:
			return flow.Rows{}, io.EOF
		default:
			select {
			case <-news:
			case <-ctx.Done():
				return flow.Rows{}, ctx.Err()
			}
		}
	}
}

// fromMemory takes the next rows of the run that are shown. missing is how many went from memory before they were taken.
func (r *keptReader) fromMemory(limit int) (rows []keptRow, missing int64, news <-chan struct{}, err error) {
	k := r.of.k
	k.mu.Lock()
	defer k.mu.Unlock()
	news = k.change()
	l := k.logs[r.run]
	if l == nil || r.of.durable && !l.durable {
		return nil, 0, news, nil // it has not begun
	}
	if l.began != r.at.began {
		r.at = keptPosition{began: l.began} // it began anew, or is met for the first time
	}
	if r.at.number > l.shown {
		return nil, 0, nil, errs.New(errs.State, "read", "%s: %d rows of the pipeline %q were taken, and its checkpoints know of %d: they are older than those of the pipeline that follows it", k.name, r.at.number, r.run, l.shown).
			WithHint("restore the checkpoints of both pipelines of one time, or give the one that follows another id")
	}
	first := l.next - int64(len(l.rows))
	switch missing = min(first, l.shown) - r.at.number; {
	case missing > 0:
		return nil, missing, news, nil
	case r.at.number < l.shown:
		rows = l.rows[r.at.number-first : l.shown-first]
		return slices.Clone(rows[:min(len(rows), limit)]), 0, news, nil
	case l.over:
		return nil, 0, nil, io.EOF
	}
	return nil, 0, news, nil
}

// load reads rows of the log again that memory had no room for.
func (r *keptReader) load(ctx context.Context, missing int64) error {
	if !r.of.durable {
		return errs.New(errs.Source, "read", "%d rows of %s of the run %q were dropped before they were taken: %d are kept", missing, r.of.k.name, r.run, keptLimit).
			WithHint("set checkpoint_url: the checkpoints keep all of them")
	}
	upTo := r.at.number + min(missing, keptLimit) // the rest the next time: memory is for no more
	var number int64
	began, err := readKept(ctx, r.of.s.cfg.Load().checkpointURL, r.run, r.of.k.name, func(b arrow.RecordBatch) error {
		n := b.NumRows()
		if skip, take := max(r.at.number-number, 0), min(n, upTo-number); skip < take {
			r.old = append(r.old, b.NewSlice(skip, take))
		}
		if number += n; number >= upTo {
			return errStopped
		}
		return nil
	})
	switch {
	case err != nil:
		r.old = nil
		return err
	case began != r.at.began:
		r.old = nil
		return r.other()
	case number < upTo:
		return errs.New(errs.State, "read", "the checkpoints of the pipeline %q have %d rows of %s, and it has shown %d", r.run, number, r.of.k.name, r.at.number+missing)
	}
	return nil
}

// other is for checkpoints of another run than the one that was met: it has begun anew meanwhile, which the next look tells, or they were replaced.
func (r *keptReader) other() error {
	r.of.k.mu.Lock()
	defer r.of.k.mu.Unlock()
	if r.of.k.log(r.run).began != r.at.began {
		return nil
	}
	return errs.New(errs.State, "read", "the checkpoints of the pipeline %q are of another run than the one that is followed: somebody has replaced them", r.run)
}

// fromOld gives the next of the rows that were read again.
func (r *keptReader) fromOld(limit int) (flow.Rows, bool) {
	if len(r.old) == 0 {
		return flow.Rows{}, false
	}
	b := r.old[0]
	n := min(b.NumRows(), int64(limit))
	rows := make([]keptRow, n)
	for i := range rows {
		rows[i] = keptRow{r.at.number + int64(i), keptValues(r.of.k.fields, b, i)}
		rows[i].values[0] = r.run
	}
	if r.old[0] = b.NewSlice(n, b.NumRows()); n == b.NumRows() {
		r.old = r.old[1:]
	}
	r.at.number += n
	return flow.Rows{Batch: keptBatch(r.of.Fields(), rows), Next: r.at.text()}, true
}

func (r *keptReader) Close() error { return nil }

// readKept visits the late or bad rows of a pipeline in its newest checkpoint, in their order, until errStopped. It says which run they are of.
func readKept(ctx context.Context, url, pipeline, name string, visit func(arrow.RecordBatch) error) (run string, err error) {
	store, err := checkpointsOf(ctx, url, pipeline)
	if err != nil {
		return "", err
	}
	defer func() { _ = store.Close() }() // it holds nothing
	m, err := store.Newest(ctx)
	if err != nil {
		return "", err
	}
	if m == nil {
		return "", noCheckpoints(pipeline, url)
	}
	release, err := store.Hold(ctx, m.Epoch)
	if err != nil {
		return "", err
	}
	defer release()
	if err = store.Log(ctx, m, name, "", visit); errors.Is(err, errStopped) {
		err = nil
	}
	return m.Run, err
}
