package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// marker is the value of a record of the marker topic; its key is the transactional id of the sink.
type marker struct {
	Marker string `json:"marker"` // of the last epoch whose rows are in the topic
	Writer string `json:"writer"` // who wrote it
}

// markers are the records of one sink in the marker topic, which has one partition and is compacted.
type markers struct {
	settings connectors.Settings
	clock    clock.Clock
	topic    string
	id       string
	writer   string // who we are
	client   *kgo.Client
	probes   int
}

// opened makes writers of one process different.
var opened atomic.Int64

func newMarkers(s connectors.Settings, c clock.Clock, id string) *markers {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	writer := fmt.Sprintf("process %d on %s, since %s, sink %d", os.Getpid(), host, c.Now().UTC().Format(time.RFC3339Nano), opened.Add(1))
	return &markers{settings: s, clock: c, topic: s.String("marker_topic"), id: id, writer: writer}
}

// segmentBytes keeps the topic short: only whole segments are compacted.
const segmentBytes = "4194304"

// ready makes the topic, or sees that it keeps what is written.
func (m *markers) ready(ctx context.Context) error {
	compact, segment := "compact", segmentBytes
	if m.settings.Bool("create") {
		if err := createTopic(ctx, m.settings, m.clock, m.topic, 1, map[string]*string{"cleanup.policy": &compact, "segment.bytes": &segment}); err != nil {
			return err
		}
	}
	policy, err := topicConfig(ctx, m.settings, m.clock, m.topic, "cleanup.policy")
	if err == nil && policy != "" && policy != compact { // without rights to ask, we trust whoever made it
		return errs.New(errs.ExactlyOnce, "open sink", "the topic %q of the markers has cleanup.policy = %s, so that markers would be lost", m.topic, policy).
			WithHint("set its cleanup.policy to compact, or give another with marker_topic")
	}
	return err
}

// record is the record of a marker.
func (m *markers) record(v marker) *kgo.Record {
	value, _ := json.Marshal(v) // two strings
	return &kgo.Record{Topic: m.topic, Key: []byte(m.id), Value: value}
}

// read finds the marker of the sink, empty when there is none: the last one before a record that we write now.
//
// The record is a probe. Committed records alone are read, so that it is seen only when every transaction before it has
// ended, those of other sinks included, and what compaction has removed cannot make us wait for what will not come.
func (m *markers) read(ctx context.Context) (marker, error) {
	var found marker
	opts, err := clientOptions(m.settings)
	if err != nil {
		return found, err
	}
	if m.client == nil {
		// Not idempotent: twice the same probe does no harm, and so its sending can be cancelled.
		m.client, err = kgo.NewClient(append(opts, kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(partitioner{m.topic}), kgo.RetryTimeout(10*time.Second))...)
		if err != nil {
			return found, errs.New(errs.Usage, "connect", "the options for Kafka: %w", err)
		}
	}
	m.probes++
	key, probe := m.id+" probe", fmt.Sprintf("%s, probe %d", m.writer, m.probes)
	if err := m.client.ProduceSync(ctx, &kgo.Record{Topic: m.topic, Key: []byte(key), Value: []byte(probe)}).FirstErr(); err != nil {
		m.close() // it may not have been sent yet, and must not come later
		return found, fmt.Errorf("writing to the topic %q of the markers: %w", m.topic, err)
	}
	consumer, err := kgo.NewClient(append(opts,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{m.topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	if err != nil {
		return found, errs.New(errs.Usage, "connect", "the options for Kafka: %w", err)
	}
	defer consumer.Close()
	for {
		fetches := consumer.PollFetches(ctx)
		if ctx.Err() != nil {
			return found, fmt.Errorf("reading the topic %q of the markers took too long; another sink's transaction may be open there: %w", m.topic, ctx.Err())
		}
		for _, e := range fetches.Errors() {
			if !transient(e.Err) {
				return found, fmt.Errorf("reading the topic %q of the markers: %w", m.topic, e.Err)
			}
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			switch string(r.Key) {
			case m.id:
				found = marker{}
				if err := json.Unmarshal(r.Value, &found); err != nil {
					return found, errs.New(errs.ExactlyOnce, "open sink", "the record at offset %d of the topic %q is no marker: %w", r.Offset, m.topic, err).
						WithHint("give another topic with marker_topic; this one must be written by sinks alone")
				}
			case key:
				if string(r.Value) == probe {
					return found, nil
				}
			}
		}
	}
}

func (m *markers) close() {
	if m.client != nil {
		m.client.UnsafeAbortBufferedRecords()
		m.client.Close()
		m.client = nil
	}
}

// partitioner puts markers where they are read, and rows where Kafka's own clients would.
type partitioner struct{ markers string }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	if topic == p.markers {
		return kgo.ManualPartitioner().ForTopic(topic)
	}
	return kgo.UniformBytesPartitioner(64<<10, true, true, nil).ForTopic(topic)
}

// transactionalID is the name under which a sink writes, and the key of its marker.
func transactionalID(req connectors.SinkRequest) string {
	if id := req.Settings.String("transactional_id"); id != "" {
		return id
	}
	return strings.Join([]string{"riverbed", req.Pipeline, req.Settings.String("topic")}, "/")
}
