package riverbed

import (
	"context"
	"errors"
	"io"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// fed is what a reader hands to the loop.
type fed struct {
	source  int
	split   string
	opened  bool
	rows    flow.Rows
	ended   bool
	noMore  bool // the source has no further splits
	err     error
	unknown int64 // fields that the schema does not have
}

// read starts a reader; a panic of it fails the run.
func (r *runner) read(f func()) {
	r.readers.Add(1)
	go func() {
		defer r.readers.Done()
		if err := guarded(func() error { f(); return nil }); err != nil {
			r.put(fed{err: err})
		}
	}()
}

// closeReaders waits for the readers, whose context has ended.
func (r *runner) closeReaders() {
	gone := make(chan struct{})
	go func() {
		r.readers.Wait()
		close(gone)
	}()
	for {
		select {
		case <-r.feed: // let blocked readers leave
		case <-gone:
			return
		}
	}
}

// put hands something to the loop; false when the run has ended.
func (r *runner) put(f fed) bool {
	select {
	case r.feed <- f:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// pushed is a stream that this process feeds: it tells at once of new splits and of its end.
type pushed interface {
	Changed() <-chan struct{} // closed at the next change
	Ended() bool
}

// readStream opens every split, now and as they appear.
func (r *runner) readStream(source int, st flow.Stream) {
	known := map[string]bool{}
	own, _ := st.(pushed)
	for {
		// Asked before the splits, so that neither a change nor a last split is missed.
		var changed <-chan struct{}
		ended := st.Bounded()
		if own != nil {
			changed, ended = own.Changed(), ended || own.Ended()
		}
		splits, err := st.Splits(r.ctx)
		if err != nil {
			if r.ctx.Err() == nil {
				r.put(fed{source: source, err: err})
			}
			return
		}
		for _, sp := range splits {
			if known[sp.ID] {
				continue
			}
			known[sp.ID] = true
			if !r.put(fed{source: source, split: sp.ID, opened: true}) {
				return
			}
			r.read(func() { r.readSplit(source, st, sp) })
		}
		if ended {
			r.put(fed{source: source, noMore: true})
			return
		}
		select {
		case <-changed:
		case <-r.s.clock.After(splitPoll):
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *runner) readSplit(source int, st flow.Stream, sp flow.Split) {
	rd, err := st.Open(r.ctx, sp, "")
	if err != nil {
		r.put(fed{source: source, split: sp.ID, err: err})
		return
	}
	defer rd.Close()
	counter, _ := rd.(connectors.FieldCounter)
	var unknown int64
	for {
		rows, err := rd.Read(r.ctx, readRows)
		f := fed{source: source, split: sp.ID, rows: rows}
		if counter != nil {
			now := counter.UnknownFields()
			f.unknown, unknown = now-unknown, now
		}
		switch {
		case errors.Is(err, io.EOF):
			f.ended = true
			r.put(f)
			return
		case err != nil:
			if r.ctx.Err() == nil {
				f.err = err
				r.put(f)
			}
			return
		}
		if f.rows.Batch == nil && len(f.rows.Bad) == 0 && f.rows.Watermark == nil && !f.rows.Idle {
			if r.ctx.Err() != nil {
				return
			}
			continue
		}
		if !r.put(f) {
			return
		}
	}
}

// readRelation reads bounded input whole; it is one split without a name.
func (r *runner) readRelation(source int, rel flow.Relation) {
	sc, err := rel.Scan(r.ctx, flow.ScanRequest{Columns: r.infos[source].Columns, Workers: 1})
	if err != nil {
		r.put(fed{source: source, err: err})
		return
	}
	defer sc.Close()
	for {
		m, err := sc.Next(r.ctx, 0)
		if err != nil {
			r.put(fed{source: source, err: err})
			return
		}
		if m == nil {
			break
		}
		if !r.put(fed{source: source, rows: flow.Rows{Batch: m.Batch}}) {
			return
		}
	}
	r.put(fed{source: source, ended: true, noMore: true})
}

// streamOf returns the stream that a run reads of a live source.
func streamOf(ctx context.Context, src *plan.Source, until string) (flow.Stream, error) {
	switch until {
	case "":
		return src.Stream, nil
	case "latest":
		if src.Stream.Bounded() {
			return src.Stream, nil
		}
		l, ok := src.Stream.(flow.LatestStream)
		if !ok {
			return nil, errs.New(errs.Usage, "subscribe", "the stream %q has no present end, so until='latest' is not possible", src.Name)
		}
		return l.UntilLatest(ctx)
	}
	return nil, errs.New(errs.Usage, "subscribe", "until must be empty or 'latest', not %q", until)
}
