package kafka

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares topics as sinks.
var Sink = connectors.Sink{
	Name: "kafka", Class: "Kafka", Summary: "Write rows as JSON to a topic, at least once.",
	Options: connection.With(
		connectors.Option{Name: "format", Type: connectors.Enum, Values: []string{"json"}, Default: "json", Doc: "How a row becomes the value of a record."},
		connectors.Option{Name: "key", Type: connectors.String, Doc: "VARCHAR column that becomes the key of the message; it stays in the value.", Example: "symbol"},
		connectors.Option{Name: "create", Type: connectors.Bool, Default: "true", Doc: "Create the topic when it is missing."},
		connectors.Option{Name: "partitions", Type: connectors.Int, Doc: "Partitions of a topic that is created; the broker's default when absent.", Example: "3"},
		connectors.ChangelogOption,
	),
	Open: openSink,
}

// sendBatch is how many messages wait for the brokers before Write does.
const sendBatch = 100_000

type writer struct {
	client    *kgo.Client
	topic     string
	fields    []types.Field
	key       int // column of the key, -1: none
	changelog bool
	failed    chan error // the first failure of a message
}

func openSink(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
	s := req.Settings
	w := &writer{topic: s.String("topic"), key: -1, failed: make(chan error, 1)}
	var err error
	if w.fields, w.changelog, err = connectors.AppendFields("the Kafka sink", req); err != nil {
		return nil, err
	}
	if name := s.String("key"); name != "" {
		names := make([]string, len(w.fields))
		for i, f := range w.fields {
			if names[i] = f.Name; f.Name == name {
				w.key = i
			}
		}
		if w.key < 0 {
			return nil, errs.New(errs.Schema, "open sink", "the query has no column %q to be the key; it has %s", name, strings.Join(names, ", "))
		}
		if k := w.fields[w.key].Type.Kind; k != types.Varchar {
			return nil, errs.New(errs.Schema, "open sink", "the key column %q is %s and must be VARCHAR", name, w.fields[w.key].Type).WithHint("cast it in the query")
		}
	}
	c := connectors.OpenRequest{Clock: req.Clock}.Time()
	if s.Bool("create") {
		if err := createTopic(ctx, s, c); err != nil {
			return nil, err
		}
	}
	if _, err := partitionsOf(ctx, s, c); err != nil {
		return nil, err
	}
	opts, err := clientOptions(s)
	if err != nil {
		return nil, err
	}
	w.client, err = kgo.NewClient(append(opts, kgo.DefaultProduceTopic(w.topic), kgo.MaxBufferedRecords(sendBatch), kgo.RecordRetries(100))...)
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

// createTopic makes the topic unless it exists, with the broker's replication and, unless told, its number of partitions.
func createTopic(ctx context.Context, s connectors.Settings, c clock.Clock) error {
	topic, partitions := s.String("topic"), int32(-1)
	if s.Has("partitions") {
		partitions = int32(s.Int("partitions"))
	}
	_, err := admin(ctx, s, c, func(ctx context.Context, a *kadm.Client) (struct{}, error) {
		found, err := a.ListTopics(ctx, topic)
		if err != nil || found.Has(topic) {
			return struct{}{}, err
		}
		_, err = a.CreateTopic(ctx, partitions, -1, nil, topic)
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
	if d.Rows() == 0 {
		return w.err()
	}
	cols := d.Columns()
	var repeats []int64
	var err error
	if w.changelog {
		cols = connectors.ChangeColumns(d)
	} else if repeats, err = connectors.Repeats("the Kafka sink", d); err != nil {
		return err
	}
	enc, err := djson.NewEncoder(w.fields, cols)
	if err != nil {
		return errs.New(errs.Usage, "write", "the Kafka sink: %w", err)
	}
	for row := range d.Rows() {
		times := int64(1)
		if repeats != nil {
			times = repeats[row]
		}
		var key []byte
		if w.key >= 0 && cols[w.key].IsValid(row) {
			key = []byte(cols[w.key].(*array.String).Value(row))
		}
		value := enc.Append(nil, row)
		for range times {
			w.client.Produce(ctx, &kgo.Record{Key: key, Value: value}, w.sent)
		}
	}
	return w.err()
}

func (w *writer) sent(_ *kgo.Record, err error) {
	if err != nil {
		select {
		case w.failed <- err:
		default:
		}
	}
}

func (w *writer) err() error {
	select {
	case err := <-w.failed:
		w.sent(nil, err) // it stays failed
		if errors.Is(err, kerr.MessageTooLarge) {
			return errs.New(errs.Source, "write", "a row is larger than the topic %q takes: %w", w.topic, err).WithHint("raise max.message.bytes of the topic")
		}
		if errors.Is(err, context.Canceled) {
			return errs.New(errs.Cancelled, "write", "writing to the topic %q was cancelled", w.topic)
		}
		return errs.New(errs.Source, "write", "writing to the topic %q: %w", w.topic, err)
	default:
		return nil
	}
}

// Stage waits until the brokers have everything that was written.
func (w *writer) Stage(ctx context.Context, _ flow.Epoch) (connectors.Committable, error) {
	if err := w.client.Flush(ctx); err != nil {
		return nil, errs.New(errs.Cancelled, "write", "waiting for the brokers was cancelled: %w", err)
	}
	return nil, w.err()
}

func (w *writer) Close() error {
	w.client.Close()
	return nil
}
