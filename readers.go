package riverbed

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/incremental"
)

// fed is what a reader hands to the loop.
type fed struct {
	source  int
	split   string
	gate    *gate    // of a split that was opened
	first   []string // the splits of the first listing, where a checkpoint waits for their beginnings
	rows    flow.Rows
	ended   bool
	noMore  bool // the source has no further splits
	err     error
	unknown int64 // fields that the schema does not have
	read    bool  // by readSplit, whose gate counts it until it is taken
}

// feedDepth is how many reads may wait for the loop, all splits together; readRows is the most of one read.
const (
	feedDepth = 16
	readRows  = 64 << 10
	splitPoll = 3 * time.Second
)

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
		case f := <-r.feed: // let blocked readers leave
			giveBack(f.rows)
		case <-gone:
			return
		}
	}
}

// put hands something to the loop; false when the run has ended.
func (r *runner) put(f fed) bool {
	if f.rows.Batch != nil {
		r.queued.Add(f.rows.Batch.NumRows())
	}
	select {
	case r.feed <- f:
		return true
	case <-r.ctx.Done():
		giveBack(f.rows)
		return false
	}
}

// fail ends the run, unless the reader failed because it was told to stop.
func (r *runner) fail(source int, err error) {
	if r.reading.Err() == nil {
		r.put(fed{source: source, err: ofSource(r.inputs[source].info.Source.Name, err)})
	}
}

// ofSource says which source failed.
func ofSource(name string, err error) error {
	e := *errs.As(err)
	if e.Kind == errs.Internal && !errs.Is(err, errs.Internal) { // not one of ours, and so of the source's
		e.Kind, e.Op = errs.Source, "read"
	}
	e.Msg = name + ": " + e.Msg
	return &e
}

// streamOf returns the stream that a run reads of a live source.
func streamOf(ctx context.Context, src *plan.Source, until string) (flow.Stream, error) {
	if until == "" || src.Stream.Bounded() {
		return src.Stream, nil
	}
	l, ok := src.Stream.(flow.LatestStream)
	if !ok {
		return nil, errs.New(errs.Usage, "run", "the stream has no present end, so until='latest' is not possible")
	}
	return l.UntilLatest(ctx)
}

// pushed is a stream that this process feeds: it tells at once of new splits and of its end.
type pushed interface {
	Changed() <-chan struct{} // closed at the next change
	Ended() bool
	// Attend gives the stream for a run that begins now, which misses nothing that is pushed from here on, and what ends that.
	Attend() (flow.Stream, func())
	Close() // nothing more is pushed; who waits for room is told
}

// concluder is a pushed stream that ends when all its splits have. Those that had ended before a run went on are not opened again, so it is told.
type concluder interface{ Concluded(split string) }

// readStream opens every split, now and as they appear.
func (r *runner) readStream(source int, st flow.Stream, from map[string]checkpoint.SplitPosition) {
	known := map[string]bool{}
	for id, at := range from {
		known[id] = at.Ended
	}
	if re, ok := st.(flow.Resumer); ok && len(from) > 0 {
		st = re.Resumed()
	}
	if re, ok := st.(flow.Rememberer); ok && len(from) > 0 {
		upTo := map[string]flow.Position{}
		for id, at := range from {
			upTo[id] = at.Position
		}
		re.Remember(upTo)
	}
	se, settles := st.(flow.Settler)
	settles = settles && len(from) == 0 && se.Settles()
	own, _ := st.(pushed)
	if c, ok := st.(concluder); ok {
		for id, at := range from {
			if at.Ended {
				c.Concluded(id)
			}
		}
	}
	again := r.newRetry()
	defer again.Done()
	attempt := again.In(r.reading)
	for {
		// Asked before the splits, so that neither a change nor a last split is missed.
		var changed <-chan struct{}
		ended := st.Bounded()
		if own != nil {
			changed, ended = own.Changed(), ended || own.Ended()
		}
		splits, err := st.Splits(attempt)
		if err != nil {
			if again.again(r.reading, err) {
				continue
			}
			r.fail(source, err)
			return
		}
		again.Done()
		for id, at := range from { // what is not listed any more was not read to its end: opening it says so
			if at.Position != "" && !known[id] && st.Replayable() && !slices.ContainsFunc(splits, func(sp flow.Split) bool { return sp.ID == id }) {
				splits = append(splits[:len(splits):len(splits)], flow.Split{ID: id})
			}
		}
		// AIDEV-NOTE: all splits that were found together are made known before one of them is read. A split that is not known holds no watermark back: were the
		// first read to its end meanwhile, rows of the next would be late, in a run that is slow and in no other.
		var begin []func()
		for _, sp := range splits {
			if known[sp.ID] {
				continue
			}
			known[sp.ID] = true
			g, f := newGate(), fed{source: source, split: sp.ID}
			if f.gate = g; settles {
				settles = false
				for _, sp := range splits {
					f.first = append(f.first, sp.ID)
				}
			}
			if !r.put(f) {
				return
			}
			begin = append(begin, func() { r.readSplit(source, st, sp, from[sp.ID].Position, g) })
		}
		for _, read := range begin {
			r.read(read)
		}
		if ended {
			r.put(fed{source: source, noMore: true})
			return
		}
		select {
		case <-changed:
		case <-r.s.clock.After(splitPoll):
		case <-r.reading.Done():
			return
		}
	}
}

// readSplit reads one split to its end. When the run is drained, what a read still gives without waiting belongs to it:
// only the error of the ended context stops the reader.
func (r *runner) readSplit(source int, st flow.Stream, sp flow.Split, from flow.Position, g *gate) {
	rd := &splitReader{st: st, split: sp, at: from, gate: g}
	defer rd.close()
	again := r.newRetry()
	defer again.Done()
	attempt := again.In(r.reading)
	stands := from != "" // the loop knows where the split begins
	put := func(f fed) bool {
		f.read = true
		g.gives()
		return r.put(f)
	}
	g.begins(r.s.clock.Now())
	for {
		g.pass(r.reading)
		rows, err := rd.read(attempt)
		f := fed{source: source, split: sp.ID, rows: rows, unknown: rd.unknown()}
		switch {
		case errors.Is(err, io.EOF):
			f.ended = true
			put(f)
			return
		case err != nil:
			g.answers(false, r.s.clock.Now())
			if again.again(r.reading, err) {
				continue
			}
			r.fail(source, err)
			return
		}
		again.Done()
		g.answers(true, r.s.clock.Now())
		settles := !stands && rows.Next != ""
		stands = stands || settles
		if rows.Batch == nil && len(rows.Bad) == 0 && rows.Watermark == nil && !rows.Idle && !settles && r.reading.Err() == nil {
			continue
		}
		if !put(f) || r.reading.Err() != nil && rows.Batch == nil && rows.Watermark == nil && !rows.Idle {
			return
		}
	}
}

// splitReader is a reader that is opened again where it stopped when it has failed, if its stream can be read again.
type splitReader struct {
	st    flow.Stream
	split flow.Split
	at    flow.Position
	rd    flow.Reader
	gate  *gate
	count int64 // unknown fields told so far
}

func (s *splitReader) read(ctx context.Context) (rows flow.Rows, err error) {
	if s.rd == nil {
		if s.rd, err = s.st.Open(ctx, s.split, s.at); err != nil {
			s.rd = nil
			return rows, err
		}
		if l, ok := s.rd.(flow.Listener); ok {
			s.gate.hears(l)
		}
		s.count = 0
	}
	rows, err = s.rd.Read(ctx, readRows)
	if err == nil {
		if rows.Next != "" {
			s.at = rows.Next
		}
	} else if s.st.Replayable() && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		s.close()
	}
	return rows, err
}

// unknown is how many unknown fields were met since it was last asked.
func (s *splitReader) unknown() int64 {
	c, ok := s.rd.(connectors.FieldCounter)
	if !ok {
		return 0
	}
	before := s.count
	s.count = c.UnknownFields()
	return s.count - before
}

func (s *splitReader) close() {
	if s.rd != nil {
		_ = s.rd.Close() // its rows were taken
		s.rd = nil
	}
}

// repeatable is a relation that may not give the same rows in the same order when it is read again. Others do.
type repeatable interface{ Replayable() bool }

// readRelation reads bounded input whole; it is one split without a name. A file is not replayed in part, so draining
// waits for it. A position is how many rows were taken: one worker's scan has them in the same order each time.
func (r *runner) readRelation(source int, from flow.Position) {
	if rel, ok := r.inputs[source].info.Source.Relation.(repeatable); ok && from != "" && !rel.Replayable() {
		r.put(fed{source: source, err: errs.New(errs.State, "restore", "%s was not read to its end before the restart, and cannot be read again from where that was", r.inputs[source].info.Source.Name).
			WithHint("begin anew with another id, or copy it to files first")})
		return
	}
	read := int64(0)
	skip, version, err := r.inputs[source].since(from)
	if err != nil {
		r.put(fed{source: source, err: err})
		return
	}
	err = scanAll(r.ctx, r.inputs[source].info, func(rows flow.Rows) bool {
		n := rows.Batch.NumRows()
		read += n
		if read <= skip {
			return true
		}
		if left := read - skip; left < n {
			rows.Batch, rows.Places = rows.Batch.NewSlice(n-left, n), placesFrom(rows.Places, int(n-left), int(n))
		}
		rows.Next = flow.Position(strconv.FormatInt(read, 10) + version)
		return r.put(fed{source: source, rows: rows})
	})
	if err == nil && read < skip {
		err = errs.New(errs.State, "restore", "%s has %d rows, and %d were read of it before the restart: it was changed", r.inputs[source].info.Source.Name, read, skip).
			WithHint("restore the files that it had, or begin anew with another id")
	}
	if err != nil {
		if r.ctx.Err() == nil {
			r.put(fed{source: source, err: err})
		}
		return
	}
	r.put(fed{source: source, ended: true, noMore: true})
}

// since is how many rows of a relation were read up to a position, and what stands for the relation as it is, in positions. It must be what was read.
func (in *input) since(from flow.Position) (rows int64, version string, err error) {
	if v, ok := in.info.Source.Relation.(interface{ Version() string }); ok {
		version = " of " + v.Version()
	}
	if from == "" {
		return 0, version, nil
	}
	text, of, _ := strings.Cut(string(from), " ")
	if rows, err = strconv.ParseInt(text, 10, 64); err != nil {
		return 0, "", errs.New(errs.State, "restore", "%s: %q is no position", in.info.Source.Name, from)
	}
	if of == "" || version == " "+of || strings.HasPrefix(version, " "+of+" ") { // checkpoints of before name no files
		return rows, version, nil
	}
	what := "it has other files, or others in them"
	if r, ok := in.info.Source.Relation.(interface{ Differences(version string) string }); ok {
		if files := r.Differences(strings.TrimPrefix(of, "of ")); files != "" {
			what = files
		}
	}
	return 0, "", errs.New(errs.State, "restore", "the table %s is not what it was when %d of its rows were read before the restart: %s", in.info.Source.Name, rows, what).
		WithHint("put back what it had (of a Delta or Iceberg table name the version); or begin anew with another id. A folder that gets new files can be read as a stream (CREATE STREAM), which follows them")
}

// placesFrom are those of the rows from one to another.
func placesFrom(p *flow.Places, from, to int) *flow.Places {
	if p == nil {
		return nil
	}
	rows := make([]int32, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, int32(i))
	}
	return p.Pick(rows)
}

// scanAll reads the columns of a relation that a graph needs, until take has enough.
func scanAll(ctx context.Context, info incremental.SourceInfo, take func(flow.Rows) bool) error {
	sc, err := info.Source.Relation.Scan(ctx, flow.ScanRequest{Columns: info.Columns, Workers: 1, Places: true})
	if err != nil {
		return err
	}
	for {
		m, err := sc.Next(ctx, 0)
		if err != nil {
			_ = sc.Close() // the first error is the cause
			return err
		}
		if m == nil || !take(flow.Rows{Batch: m.Batch, Places: m.Places}) {
			return sc.Close()
		}
	}
}
