package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors/decode/debezium"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// sampleRecords is how many records the columns are inferred from.
const sampleRecords = 1000

// infer finds the columns from the first records of the topic. An empty topic is waited for, until schema_timeout.
func (s *stream) infer(ctx context.Context) ([]types.Field, error) {
	switch s.settings.String("format") {
	case "raw":
		return []types.Field{{Name: "value", Type: types.String}}, nil
	case "avro":
		return s.inferAvro(ctx)
	case "csv":
		return nil, errs.New(errs.Schema, "open", "the columns of CSV messages cannot be inferred, as they have no names").WithHint("give schema=")
	}
	in := djson.Inferrer{UTCAsTimestamp: true}
	wanted, see := "a JSON object", func(rec *kgo.Record) error { return in.See(rec.Value) }
	if s.settings.String("format") == "debezium" {
		wanted, see = "a change event of Debezium", func(rec *kgo.Record) error {
			c, err := debezium.Parse(rec.Value)
			for _, object := range [][]byte{c.Before, c.After} {
				if err == nil && object != nil {
					err = in.See(object)
				}
			}
			return err
		}
	}
	if err := s.sample(ctx, wanted, see); err != nil {
		return nil, err
	}
	return in.Fields(), nil
}

// sample shows the first records of the topic to see, which fails for those that are not what is wanted.
func (s *stream) sample(ctx context.Context, wanted string, see func(*kgo.Record) error) error {
	topic := s.settings.String("topic")
	parts, err := s.partitions(ctx)
	if err != nil {
		return err
	}
	opts, err := clientOptions(s.settings)
	if err != nil {
		return err
	}
	from := map[int32]kgo.Offset{}
	for _, p := range parts {
		from[p] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	if err != nil {
		return errs.New(errs.Usage, "connect", "the options for Kafka: %w", err)
	}
	defer client.Close()
	seen, bad := 0, 0
	var lastErr error
	waited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.clock.After(s.settings.Duration("schema_timeout")):
			cancel(errTimeout)
		case <-waited.Done():
		}
	}()
	next := map[int32]int64{}
	for seen < sampleRecords && waited.Err() == nil {
		if seen > 0 {
			// There is something: go on to the present end of the topic, and do not wait for more.
			if done, err := s.reached(ctx, next); err != nil || done {
				if err != nil {
					return err
				}
				break
			}
		}
		poll, stop := context.WithTimeout(waited, 500*time.Millisecond)
		fetches := client.PollRecords(poll, sampleRecords-seen)
		stop()
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			next[rec.Partition] = rec.Offset + 1
			if rec.Value == nil {
				continue
			}
			if err := see(rec); err != nil {
				if errs.As(err).Kind == errs.Source { // no fault of the record
					return err
				}
				bad++
				lastErr = err
				continue
			}
			seen++
		}
	}
	if ctx.Err() != nil {
		return errs.New(errs.Cancelled, "open", "reading the first records of %q was cancelled: %w", topic, ctx.Err())
	}
	switch {
	case seen == 0 && bad > 0:
		return errs.New(errs.Source, "read schema", "none of the first %d records of the topic %q is %s: %w", bad, topic, wanted, lastErr).
			WithHint("give schema=, or choose another format")
	case seen == 0:
		return errs.New(errs.Source, "read schema", "the topic %q was empty for %s, so its columns are unknown", topic, s.settings.Duration("schema_timeout")).
			WithHint("give schema=, or raise schema_timeout")
	}
	return nil
}

var errTimeout = errors.New("schema_timeout has passed")

// reached reports whether the records seen go up to the present end of every partition.
func (s *stream) reached(ctx context.Context, next map[int32]int64) (bool, error) {
	topic := s.settings.String("topic")
	return admin(ctx, s.settings, s.clock, func(ctx context.Context, a *kadm.Client) (bool, error) {
		ends, err := a.ListCommittedOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return false, err
		}
		starts, err := a.ListStartOffsets(ctx, topic)
		if err != nil {
			return false, err
		}
		done := true
		ends.Each(func(o kadm.ListedOffset) {
			first, _ := starts.Lookup(topic, o.Partition)
			// A control record may be the last one, which a sample never sees.
			if o.Offset > first.Offset && next[o.Partition] < o.Offset-1 {
				done = false
			}
		})
		return done, nil
	})
}
