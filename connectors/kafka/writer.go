package kafka

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// Sink declares topics as sinks.
var Sink = connectors.Sink{
	Name: "kafka", Class: "Kafka", Summary: "Write rows or changes to a topic: under exactly_once in one transaction an epoch, otherwise at least once.",
	ExactlyOnce: true, Held: true,
	Options: connection.With(
		connectors.Option{Name: "format", Type: connectors.Enum, Values: []string{"json", "debezium", "raw"}, Default: "json", Doc: "How a row becomes the value of a record. debezium: each change as an envelope in JSON with before, after and op (c, u, d); with a key one a key and epoch, otherwise a d and a c for an update. raw: the one column, VARCHAR or BLOB, as it is; NULL is a record without a value."},
		connectors.Option{Name: "key", Type: connectors.List, Doc: "Columns that become the key of the record; they stay in the value, unless that is raw.", Example: "symbol"},
		connectors.Option{Name: "key_format", Type: connectors.Enum, Values: []string{"text", "json"}, Doc: "How the columns of the key become the record's key. text: the text of the one column, no key where it is NULL; json: an object. Left out, text for one column and json for several."},
		connectors.Option{Name: "headers", Type: connectors.List, Doc: "Columns that become headers of the record, as text, and are left out of the value.", Example: "source, error"},
		connectors.Option{Name: "upsert", Type: connectors.Bool, Default: "false", Doc: "Write what becomes of keys: the new row, or a record without a value (tombstone) when it went, one a key and epoch. It takes queries whose rows change; the key must be unique in the query."},
		connectors.Option{Name: "create", Type: connectors.Bool, Default: "true", Doc: "Create the topic, and the topic of the markers, when it is missing."},
		connectors.Option{Name: "partitions", Type: connectors.Int, Doc: "Partitions of a topic that is created; the broker's default when absent.", Example: "3"},
		connectors.Option{Name: "compression", Type: connectors.Enum, Values: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Default: "lz4", Doc: "How batches of records are compressed."},
		connectors.ChangelogOption,
		connectors.Option{Name: "marker_topic", Type: connectors.String, Default: "__riverbed_markers", Doc: "Under exactly_once: the compacted topic that keeps the last committed epoch of each sink. It belongs to the rows: whoever empties it, or copies the rows without it, ends what is known of them."},
		connectors.Option{Name: "transactional_id", Type: connectors.String, Doc: "Under exactly_once: under what id we write, and the key of our marker; riverbed/<pipeline>/<topic> when absent. Give one where rights are granted by ids, or where a pipeline has several sinks to one topic.", Example: "team-a.trades"},
		connectors.Option{Name: "transaction_timeout", Type: connectors.Duration, Default: "5m", Doc: "Under exactly_once: how long writing the rows of one epoch may take. When we die within, others wait as long for the end of the transaction, unless we are started again before."},
		connectors.Option{Name: "commit_timeout", Type: connectors.Duration, Doc: "Under exactly_once: how long the commit of an epoch is tried while the brokers do not answer. Left out, as long as max_outage_ms of the session says. After that the pipeline fails; started again, it commits the epoch.", Example: "10m"},
	),
	Open: openSink,
}

// sendBatch is how many messages wait for the brokers before Write does.
const sendBatch = 100_000

// writer sends rows as they come, at least once.
type writer struct {
	rows   *epochRecords
	client *kgo.Client
	topic  string
	failed failure
}

func openSink(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
	s, c := req.Settings, connectors.OpenRequest{Clock: req.Clock}.Time()
	recs, err := newRecords(req)
	if err != nil {
		return nil, err
	}
	topic := s.String("topic")
	if s.Bool("create") {
		partitions := int32(-1)
		if s.Has("partitions") {
			partitions = int32(s.Int("partitions"))
		}
		if err := createTopic(ctx, s, c, topic, partitions, nil); err != nil {
			return nil, err
		}
	}
	if _, err := partitionsOf(ctx, s, c); err != nil {
		return nil, err
	}
	opts, err := produceOptions(ctx, s, c)
	if err != nil {
		return nil, err
	}
	if req.ExactlyOnce {
		return newCommitter(req, recs, c, opts), nil
	}
	w := &writer{rows: recs.epoch(), topic: topic, failed: newFailure(topic)}
	w.client, err = kgo.NewClient(append(opts, kgo.RecordRetries(100))...)
	if err != nil {
		return nil, errs.New(errs.Usage, "connect", "the options for Kafka: %w", err)
	}
	// The client fails its records when the coordinator is still loading, as in the seconds after a broker's start.
	if _, err := retry(ctx, s, c, func(ctx context.Context) (int64, error) {
		id, _, err := w.client.ProducerID(ctx)
		return id, err
	}); err != nil {
		w.client.Close()
		return nil, err
	}
	return w, nil
}

// produceOptions are what a client needs that writes to the topic.
func produceOptions(ctx context.Context, s connectors.Settings, c clock.Clock) ([]kgo.Opt, error) {
	opts, err := clientOptions(s)
	if err != nil {
		return nil, err
	}
	topic := s.String("topic")
	limit, err := topicConfig(ctx, s, c, topic, "max.message.bytes")
	if err != nil {
		return nil, err
	}
	// A batch that is larger is refused; without rights to ask, the client's own limit is Kafka's default.
	if n, err := strconv.ParseInt(limit, 10, 32); err == nil && n > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(int32(min(n, mostBatchBytes))))
	}
	codec := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	return append(opts, kgo.ProducerBatchCompression(codec[s.String("compression")]), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(sendBatch)), nil
}

// mostBatchBytes is what the client sends at most in one request, with room for what is around a batch.
const mostBatchBytes = 99 << 20

// topicConfig asks for a setting of a topic; "" when we may not know.
func topicConfig(ctx context.Context, s connectors.Settings, c clock.Clock, topic, key string) (string, error) {
	return admin(ctx, s, c, func(ctx context.Context, a *kadm.Client) (string, error) {
		found, err := a.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return "", err
		}
		for _, r := range found {
			for _, c := range r.Configs {
				if c.Key == key {
					return c.MaybeValue(), nil
				}
			}
		}
		return "", nil
	})
}

// createTopic makes a topic unless it exists, with the broker's replication and, below zero, its number of partitions.
func createTopic(ctx context.Context, s connectors.Settings, c clock.Clock, topic string, partitions int32, configs map[string]*string) error {
	_, err := admin(ctx, s, c, func(ctx context.Context, a *kadm.Client) (struct{}, error) {
		found, err := a.ListTopics(ctx, topic)
		if err != nil || found.Has(topic) {
			return struct{}{}, err
		}
		_, err = a.CreateTopic(ctx, partitions, -1, configs, topic)
		if errors.Is(err, kerr.TopicAlreadyExists) {
			err = nil // somebody else made it meanwhile
		}
		if err != nil && !kerr.IsRetriable(err) {
			err = errs.New(errs.Source, "open sink", "the topic %q does not exist and cannot be created: %w", topic, err).WithHint("create it by hand, or ask for the right to")
		}
		return struct{}{}, err
	})
	return err
}

// Write encodes the rows and hands them to the client, which sends behind.
func (w *writer) Write(ctx context.Context, d flow.Delta) error {
	if err := w.rows.add(d, w.send(ctx)); err != nil {
		return err
	}
	return w.failed.err()
}

func (w *writer) send(ctx context.Context) func(*kgo.Record) {
	return func(r *kgo.Record) { w.client.Produce(ctx, r, w.failed.sent) }
}

// failure is the first failure of a record.
type failure struct {
	topic string
	first chan error
}

func newFailure(topic string) failure { return failure{topic, make(chan error, 1)} }

func (f failure) sent(_ *kgo.Record, err error) {
	if err != nil {
		select {
		case f.first <- err:
		default:
		}
	}
}

// cause is the failure as the client gave it.
func (f failure) cause() error {
	select {
	case err := <-f.first:
		f.sent(nil, err) // it stays failed
		return err
	default:
		return nil
	}
}

func (f failure) err() error {
	if err := f.cause(); err != nil {
		return writeError(f.topic, err)
	}
	return nil
}

func writeError(topic string, err error) error {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return errs.New(errs.Source, "write", "a row is larger than the topic %q takes: %w", topic, err).WithHint("raise max.message.bytes of the topic")
	case errors.Is(err, context.Canceled):
		return errs.New(errs.Cancelled, "write", "writing to the topic %q was cancelled", topic)
	}
	return errs.New(errs.Source, "write", "writing to the topic %q: %w", topic, err)
}

// Stage waits until the brokers have everything that was written.
func (w *writer) Stage(ctx context.Context, _ flow.Epoch) (connectors.Committable, error) {
	if err := w.rows.end(w.send(ctx)); err != nil {
		return nil, err
	}
	if err := w.client.Flush(ctx); err != nil {
		return nil, errs.New(errs.Cancelled, "write", "waiting for the brokers was cancelled: %w", err)
	}
	return nil, w.failed.err()
}

func (w *writer) Close() error {
	w.client.Close()
	return nil
}
