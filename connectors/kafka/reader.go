package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// stream is a topic. A split is a partition, named by its number.
type stream struct {
	settings connectors.Settings
	name     string
	clock    clock.Clock
	fields   []types.Field
	key      []int       // of an upsert stream
	avro     *avroFormat // nil: another format
	start    start
	ends     map[int32]span // bounded: what to read of each partition
	resumed  bool           // the run goes on from positions
	clients  *consumers

	mu    sync.Mutex
	topic kadm.TopicID   // at the first look
	first map[int32]bool // the partitions at the first look; later ones begin at their beginning
}

// span is the offsets of a partition from begin on, end not included.
type span struct{ begin, end int64 }

func openStream(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
	s := &stream{settings: req.Settings, name: req.Name, clock: req.Time(), fields: req.Schema}
	if s.name == "" {
		s.name = req.Settings.String("topic")
	}
	var err error
	if s.start, err = parseStart(req.Settings.String("start")); err != nil {
		return nil, err
	}
	if s.avro, err = newAvro(req.Settings); err != nil {
		return nil, err
	}
	if _, err := s.Splits(ctx); err != nil { // the broker and the topic are there
		return nil, err
	}
	s.clients = &consumers{settings: req.Settings, clock: s.clock}
	if s.fields == nil {
		if s.fields, err = s.infer(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.setKey(req); err != nil {
		return nil, err
	}
	if req.Settings.Bool("metadata") {
		for _, m := range metaFields {
			if !has(s.fields, m.Name) {
				s.fields = append(s.fields[:len(s.fields):len(s.fields)], m)
			}
		}
	}
	if err := checkMeta(s.fields); err != nil {
		return nil, errs.New(errs.Schema, "open", "stream %q: %w", s.name, err)
	}
	if _, err := newRows(req.Settings, s.avro, s.fields, s.key); err != nil {
		return nil, errs.New(errs.Schema, "open", "stream %q: %w", s.name, err)
	}
	return s, nil
}

func has(fields []types.Field, name string) bool {
	for _, f := range fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

func (s *stream) Fields() []types.Field { return s.fields }
func (s *stream) Bounded() bool         { return s.ends != nil }
func (s *stream) Updating() bool        { return s.key != nil || s.settings.String("format") == "debezium" }
func (s *stream) Key() []int            { return s.key }
func (s *stream) Replayable() bool      { return true }

// Splits lists the partitions that are there now.
func (s *stream) Splits(ctx context.Context) ([]flow.Split, error) {
	parts, err := s.partitions(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]flow.Split, len(parts))
	for i, p := range parts {
		out[i] = flow.Split{ID: strconv.Itoa(int(p))}
	}
	return out, nil
}

func (s *stream) partitions(ctx context.Context) ([]int32, error) {
	if s.ends != nil {
		var parts []int32
		for p := int32(0); len(parts) < len(s.ends); p++ {
			if _, ok := s.ends[p]; ok {
				parts = append(parts, p)
			}
		}
		return parts, nil
	}
	t, err := topicOf(ctx, s.settings, s.clock)
	if err != nil {
		return nil, err
	}
	parts := t.Partitions.Numbers()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first != nil && s.topic != t.ID {
		return nil, s.madeAnew()
	}
	s.topic = t.ID
	if s.first == nil {
		s.first = map[int32]bool{}
		for _, p := range parts {
			s.first[p] = true
		}
	}
	return parts, nil
}

// Settles: where latest and a time begin is another place each time.
func (s *stream) Settles() bool {
	return s.ends == nil && (s.start.kind == startLatest || s.start.kind == startTime)
}

func (s *stream) madeAnew() error {
	return errs.New(errs.Source, "read", "the topic %q was deleted and made anew, so that its offsets are others", s.settings.String("topic")).
		WithHint("its records are not those that were read before: begin anew, as another pipeline or with new checkpoints")
}

// another says whose position it is that is not of our topic: of one that was there under the name, or of one with another name.
func (s *stream) another(ctx context.Context, id kadm.TopicID) error {
	all, err := admin(ctx, s.settings, s.clock, func(ctx context.Context, a *kadm.Client) (kadm.TopicDetails, error) { return a.ListTopics(ctx) })
	if err != nil {
		return s.madeAnew()
	}
	for name, t := range all {
		if t.ID == id {
			return errs.New(errs.State, "open", "the checkpoints are of the topic %q, and the stream %q reads the topic %q", name, s.name, s.settings.String("topic")).
				WithHint("name the topic that it had, or begin anew, as another pipeline or with new checkpoints")
		}
	}
	return s.madeAnew()
}

// UntilLatest ends each partition where it ends now: for read_committed before the first transaction still open.
func (s *stream) UntilLatest(ctx context.Context) (flow.Stream, error) {
	ends, err := s.spans(ctx, s.settings.String("isolation") != "read_uncommitted")
	if err != nil {
		return nil, err
	}
	bounded := s.copy()
	bounded.ends = ends
	return bounded, nil
}

// copy is the stream for another run.
func (s *stream) copy() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &stream{settings: s.settings, name: s.name, clock: s.clock, fields: s.fields, key: s.key, avro: s.avro, start: s.start, ends: s.ends, resumed: s.resumed,
		topic: s.topic, first: s.first, clients: &consumers{settings: s.settings, clock: s.clock}}
}

// Resumed gives the stream for a run that goes on: a partition without a position is one that appeared since.
func (s *stream) Resumed() flow.Stream {
	c := s.copy()
	c.resumed = true
	return c
}

// spans are what the partitions hold now; committed: up to the first transaction that is still open.
func (s *stream) spans(ctx context.Context, committed bool) (map[int32]span, error) {
	topic := s.settings.String("topic")
	return admin(ctx, s.settings, s.clock, func(ctx context.Context, a *kadm.Client) (map[int32]span, error) {
		list := a.ListEndOffsets
		if committed {
			list = a.ListCommittedOffsets
		}
		last, err := list(ctx, topic)
		if err == nil {
			err = last.Error()
		}
		if err != nil {
			return nil, err
		}
		first, err := a.ListStartOffsets(ctx, topic)
		if err == nil {
			err = first.Error()
		}
		if err != nil {
			return nil, err
		}
		out := map[int32]span{}
		last.Each(func(o kadm.ListedOffset) {
			f, _ := first.Lookup(topic, o.Partition)
			out[o.Partition] = span{f.Offset, o.Offset}
		})
		return out, nil
	})
}

// PositionAt is where the record of an offset comes next, in this topic.
func (s *stream) PositionAt(offset int64) flow.Position {
	return flow.Position(position{offset, -1, s.id()}.String())
}

// Held are the offsets that the partitions have now.
func (s *stream) Held(ctx context.Context) (map[string][2]int64, error) {
	spans, err := s.spans(ctx, false)
	if err != nil {
		return nil, err
	}
	out := map[string][2]int64{}
	for p, sp := range spans {
		out[strconv.Itoa(int(p))] = [2]int64{sp.begin, sp.end}
	}
	return out, nil
}

// Open reads a partition from an offset, or from where the option start says.
func (s *stream) Open(ctx context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	n, err := strconv.ParseInt(split.ID, 10, 32)
	if err != nil {
		return nil, errs.New(errs.State, "open", "%q is no partition of the topic %q", split.ID, s.settings.String("topic"))
	}
	r := &reader{s: s, partition: int32(n), split: split.ID, next: -1, epoch: -1, end: -1}
	if r.rows, err = newRows(s.settings, s.avro, s.fields, s.key); err != nil {
		return nil, errs.New(errs.Schema, "open", "stream %q: %w", s.name, err)
	}
	at := s.start.offset(r.partition, s.known(r.partition))
	if from != "" {
		p, err := parsePosition(from)
		if err != nil {
			return nil, errs.New(errs.State, "open", "a position in the topic %q: %w", s.settings.String("topic"), err)
		}
		if p.topic != (kadm.TopicID{}) && p.topic != s.id() {
			return nil, s.another(ctx, p.topic)
		}
		at, r.next, r.epoch = kgo.NewOffset().At(p.offset).WithEpoch(p.epoch), p.offset, p.epoch
	} else if exact, ok := s.start.exact(r.partition); ok {
		r.next = exact
	}
	// AIDEV-NOTE: where latest or a time begins is settled once and said at once, as a position. A run that goes on from a
	// checkpoint would otherwise settle it anew for partitions that have had no record, and leave out what came meanwhile.
	if from == "" && s.ends == nil && (s.start.kind == startLatest && s.known(r.partition) || s.start.kind == startTime) {
		spans, err := s.spans(ctx, s.settings.String("isolation") != "read_uncommitted")
		if err != nil {
			return nil, err
		}
		if r.next, err = s.resolve(ctx, r.partition, spans[r.partition]); err != nil {
			return nil, err
		}
		at, r.settled = kgo.NewOffset().At(r.next), true
	}
	if s.ends != nil {
		sp := s.ends[r.partition]
		r.end = sp.end
		if r.next < 0 && (s.start.kind == startEarliest || s.start.kind == startLatest && !s.known(r.partition)) {
			r.next = sp.begin
		}
		if r.next < 0 { // latest, or a time: where that is must be known, as nothing may follow it
			if r.next, err = s.resolve(ctx, r.partition, sp); err != nil {
				return nil, err
			}
		}
		at = kgo.NewOffset().At(r.next).WithEpoch(r.epoch)
		if r.next >= r.end {
			return r, nil // nothing to read, no client needed
		}
	}
	if r.consumer, r.queue, err = s.clients.open(r.partition, at, r.next); err != nil {
		return nil, err
	}
	r.heard.Store(r.consumer)
	return r, nil
}

func (s *stream) id() kadm.TopicID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topic
}

func (s *stream) known(partition int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.resumed && (s.first == nil || s.first[partition])
}

// resolve finds the offset at which the option start begins.
func (s *stream) resolve(ctx context.Context, partition int32, sp span) (int64, error) {
	if s.start.kind == startLatest {
		return sp.end, nil
	}
	topic := s.settings.String("topic")
	return admin(ctx, s.settings, s.clock, func(ctx context.Context, a *kadm.Client) (int64, error) {
		o, err := a.ListOffsetsAfterMilli(ctx, s.start.millis, topic)
		if err == nil {
			err = o.Error()
		}
		if err != nil {
			return 0, err
		}
		if at, ok := o.Lookup(topic, partition); ok && at.Offset >= 0 {
			return at.Offset, nil
		}
		return sp.end, nil
	})
}

// reader reads one partition.
type reader struct {
	s         *stream
	partition int32
	split     string
	consumer  *consumer
	queue     *queue // nil: nothing to read
	rows      *rows

	recs    []*kgo.Record // fetched and not yet decoded
	next    int64         // offset of the next record, -1 before the first
	epoch   int32         // of the record before, -1: not known
	end     int64         // -1: never ends
	settled bool          // next was found out just now, and must be told

	tombstones atomic.Int64
	heard      atomic.Pointer[consumer] // whom to ask when the brokers answered
}

// Heard implements flow.Listener.
func (r *reader) Heard() (since, last time.Time) {
	if c := r.heard.Load(); c != nil {
		return c.Heard()
	}
	return time.Time{}, r.s.clock.Now() // it waits for nothing
}

func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	var out flow.Rows
	if r.settled {
		r.settled = false
		return flow.Rows{Next: r.position()}, nil
	}
	for len(r.recs) == 0 {
		if r.end >= 0 && r.next >= r.end {
			return flow.Rows{}, io.EOF
		}
		recs, err := r.consumer.take(r.partition, r.queue)
		if err != nil {
			return r.failed(ctx, err)
		}
		if r.recs = recs; len(recs) > 0 {
			break
		}
		select {
		case <-r.queue.news:
		case <-ctx.Done():
			return flow.Rows{}, ctx.Err()
		}
	}
	limit = max(limit, 1)
	places := &flow.Places{Split: r.split, Kind: flow.Partition, Unit: flow.Offset}
	keep := r.s.settings.String("tombstones") == "keep"
	done := 0
	r.rows.ctx = ctx
	for _, rec := range r.recs {
		if n := r.rows.n + len(out.Bad); n >= limit || n > 0 && r.rows.change != nil && n == limit-1 { // an update is two rows
			break
		}
		if r.end >= 0 && rec.Offset >= r.end {
			r.next = r.end
			done = len(r.recs)
			break
		}
		var err error
		switch {
		case rec.Attrs.IsControl():
		case rec.Value == nil && !keep && r.rows.key == nil: // upsert = true deletes by it; change events have said so before
			r.tombstones.Add(1)
		default:
			from := r.rows.n
			err = r.rows.add(rec)
			for ; from < r.rows.n; from++ {
				places.Add(from, rec.Offset)
			}
		}
		if err != nil && (ctx.Err() != nil || errs.As(err).Kind == errs.Source) { // no fault of the record: it waits
			if done == 0 {
				return flow.Rows{}, err
			}
			break
		}
		done++
		r.next, r.epoch = rec.Offset+1, rec.LeaderEpoch
		out.Bytes += int64(len(rec.Key) + len(rec.Value))
		if err != nil {
			out.Bad = append(out.Bad, flow.BadRow{Source: r.s.name, Split: r.split, Position: strconv.FormatInt(rec.Offset, 10),
				Raw: bytes.Clone(rec.Value), Key: bytes.Clone(rec.Key), Error: err.Error(), Time: r.s.clock.Now()})
		}
	}
	r.recs = r.recs[done:]
	if r.rows.n > 0 {
		out.Batch, out.Places = r.rows.batch(), places
	}
	out.Next = r.position()
	return out, nil
}

func (r *reader) position() flow.Position {
	return flow.Position(position{r.next, r.epoch, r.s.id()}.String())
}

// failed says what the user can do about an error that the client does not retry, or skips what is lost when told so.
func (r *reader) failed(ctx context.Context, err error) (flow.Rows, error) {
	topic := r.s.settings.String("topic")
	var lost *kgo.ErrDataLoss
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange), errors.As(err, &lost):
		return r.lost(ctx)
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return flow.Rows{}, errs.New(errs.Source, "read", "the topic %q or its partition %d is no longer there: %w", topic, r.partition, err)
	}
	e := errs.New(errs.Source, "read", "partition %d of the topic %q cannot be read: %w", r.partition, topic, err)
	if said := (*kerr.Error)(nil); !errors.As(err, &said) && errs.As(err).Kind == errs.Internal || kerr.IsRetriable(err) {
		e.Transient = true // nobody has refused: the brokers, or the network, were away
	}
	return flow.Rows{}, e
}

// lost: the partition does not hold the next record.
func (r *reader) lost(ctx context.Context) (flow.Rows, error) {
	topic, next := r.s.settings.String("topic"), max(r.next, 0)
	spans, err := r.s.spans(ctx, false)
	if err != nil {
		return flow.Rows{}, err
	}
	sp := spans[r.partition]
	if next >= sp.begin {
		return flow.Rows{}, errs.New(errs.Source, "read", "partition %d of the topic %q has lost records: it ends at %d, and was read up to %d", r.partition, topic, sp.end, next).
			WithHint("the brokers have lost what they had acknowledged (an unclean election, or a disk), or the topic was made anew; begin anew, as another pipeline or with new checkpoints")
	}
	if r.s.settings.String("lost_records") != "skip" {
		return flow.Rows{}, errs.New(errs.Source, "read", "partition %d of the topic %q does not hold the offset %d any more; it begins at %d", r.partition, topic, next, sp.begin).
			WithHint("the topic's retention has removed it. Set lost_records = 'skip' to go on without, or begin anew from start = 'earliest'; and keep records longer than a pipeline may stand still")
	}
	bad := flow.BadRow{Source: r.s.name, Split: r.split, Position: strconv.FormatInt(next, 10), Time: r.s.clock.Now(),
		Error: fmt.Sprintf("the records at the offsets %d to %d were removed by the topic's retention before they were read", next, sp.begin-1)}
	if err := r.Close(); err != nil {
		return flow.Rows{}, err
	}
	r.next, r.epoch = sp.begin, -1
	if r.end < 0 || r.next < r.end {
		if r.consumer, r.queue, err = r.s.clients.open(r.partition, kgo.NewOffset().At(r.next), r.next); err != nil {
			return flow.Rows{}, err
		}
		r.heard.Store(r.consumer)
	}
	return flow.Rows{Bad: []flow.BadRow{bad}, Next: r.position()}, nil
}

// Acknowledge shows how far checkpoints are to those who watch the group. Nothing reads it here, so that a failure is no fault of the pipeline.
func (s *stream) Acknowledge(ctx context.Context, upTo map[string]flow.Position) error {
	group, topic := s.settings.String("group_id"), s.settings.String("topic")
	if group == "" {
		return nil
	}
	var offsets kadm.Offsets
	for split, at := range upTo {
		n, err := strconv.ParseInt(split, 10, 32)
		if err != nil || at == "" {
			continue
		}
		p, err := parsePosition(at)
		if err != nil {
			return errs.New(errs.State, "acknowledge", "a position in the topic %q: %w", topic, err)
		}
		offsets.Add(kadm.Offset{Topic: topic, Partition: int32(n), At: p.offset, LeaderEpoch: p.epoch})
	}
	ctx, cancel := context.WithTimeout(ctx, acknowledgeWithin)
	defer cancel()
	_, err := admin(ctx, s.settings, s.clock, func(ctx context.Context, a *kadm.Client) (struct{}, error) {
		return struct{}{}, a.CommitAllOffsets(ctx, group, offsets)
	})
	if err != nil {
		return errs.As(err).AsTransient()
	}
	return nil
}

// acknowledgeWithin bounds how long the next checkpoint waits for those who watch.
const acknowledgeWithin = 5 * time.Second

// SkippedTombstones is the number of records without a value that were left out.
func (r *reader) SkippedTombstones() int64 { return r.tombstones.Load() }

func (r *reader) UnknownFields() int64 { return r.count(connectors.FieldCounter.UnknownFields) }
func (r *reader) MissingFields() int64 { return r.count(connectors.FieldCounter.MissingFields) }

func (r *reader) count(of func(connectors.FieldCounter) int64) int64 {
	if c, ok := r.rows.value.(connectors.FieldCounter); ok {
		return of(c)
	}
	return 0
}

func (r *reader) Close() error {
	if r.queue != nil {
		r.consumer.close(r.partition)
		r.queue = nil
		r.recs = nil
	}
	return nil
}
