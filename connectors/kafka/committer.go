package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// committer writes each epoch once: its rows and its marker in one transaction, which begins and ends within Commit.
//
// What we know of the topic is what the marker says, read to the end while nobody writes under our transactional id. So
// whenever an answer was lost the client is thrown away, with all that it may still send: the next one fences it, which also ends its
// transaction, one way or the other; and only then is the marker read and decided whether the epoch is to be written again.
type committer struct {
	*records
	settings connectors.Settings
	clock    clock.Clock
	topic    string
	id       string
	options  []kgo.Opt // of clients that write to the topic

	markers *markers
	client  *kgo.Client // nil: the id must be taken (again) before anything is written
	stands  marker      // what the marker topic holds; valid while client is not nil
	begun   bool
}

func newCommitter(req connectors.SinkRequest, recs *records, c clock.Clock, opts []kgo.Opt) *committer {
	id := transactionalID(req)
	return &committer{records: recs, settings: req.Settings, clock: c, topic: req.Settings.String("topic"), id: id, options: opts,
		markers: newMarkers(req.Settings, c, id)}
}

// Begin takes the transactional id, which fences other processes and aborts what they left open, and signs the marker as ours.
func (c *committer) Begin(ctx context.Context, first connectors.Marker) (connectors.Marker, error) {
	if err := c.markers.ready(ctx); err != nil {
		return "", err
	}
	err := c.try(ctx, func(ctx context.Context) error { return c.take(ctx, true, string(first)) })
	if err != nil {
		return "", err
	}
	c.begun = true
	return connectors.Marker(c.stands.Marker), nil
}

// Commit writes the rows of an epoch and its marker, unless the marker stands already.
func (c *committer) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	if !c.begun {
		return errs.Bug("commit", "the Kafka sink commits before it has begun")
	}
	return c.try(ctx, func(ctx context.Context) error {
		if c.client == nil {
			if err := c.take(ctx, false, ""); err != nil {
				return err
			}
		}
		switch connectors.Marker(c.stands.Marker) {
		case e.Marker:
			return nil
		case e.Previous:
		default:
			return errs.New(errs.ExactlyOnce, "commit", "the topic %q holds the epoch %q of %q, which is neither %q nor the epoch before it", c.topic, c.stands.Marker, c.id, e.Marker).
				WithHint("another pipeline has written under this id, or the checkpoints are not those of this topic; use another pipeline id, or another topic")
		}
		next := marker{Marker: string(e.Marker), Writer: c.markers.writer}
		if err := c.transact(ctx, e.Rows, next); err != nil {
			return err
		}
		c.stands = next
		return nil
	})
}

// patience is for how long commits are tried where neither commit_timeout nor the run says it.
const patience = 10 * time.Minute

// try does what needs the brokers until it succeeds, fails for good, or the patience is at its end: commit_timeout, or the run's.
func (c *committer) try(ctx context.Context, do func(context.Context) error) error {
	limit, told, p := patience, c.settings.Has("commit_timeout"), clock.PatienceIn(ctx)
	switch {
	case told:
		limit = c.settings.Duration("commit_timeout")
	case p != nil:
		limit = p.Limit()
	}
	again := clock.Retry{Clock: c.clock, Attempts: math.MaxInt, Limit: limit, First: firstWait, Longest: longestWait}
	defer again.Done()
	begun := c.clock.Now()
	for {
		// A broker ends a transaction that takes longer, so to wait longer for one attempt is in vain.
		attempt, cancel := context.WithTimeout(again.In(ctx), c.settings.Duration("transaction_timeout"))
		err := c.watched(attempt, do)
		cancel()
		if err == nil {
			return nil
		}
		// AIDEV-NOTE: after any error the outcome of what was sent is unknown until the id was taken and the marker read again.
		c.drop()
		over := (told || p == nil) && c.clock.Now().Sub(begun) >= limit
		switch {
		case ctx.Err() != nil:
			return errs.New(errs.Cancelled, "commit", "committing to the topic %q was cancelled: %w", c.topic, ctx.Err())
		case final(err):
			return err
		case over, !again.Again(ctx, err) && ctx.Err() == nil:
			e := errs.New(errs.Source, "commit", "nothing could be committed to the topic %q for %s: %w", c.topic, limit, err).
				WithHint("check that the brokers run and answer; the epoch is in the checkpoint and will be committed when the pipeline is started again")
			if over && told { // nobody is to try again
				return e
			}
			return e.AsTransient()
		}
	}
}

// signOfLife is how long an attempt may be silent before the brokers are asked whether they are there.
const signOfLife = 5 * time.Second

// watched runs one attempt. The client waits for brokers that are away without a word, so it is found out beside it what is waited for: a run
// that is stopped meanwhile does not wait for them.
func (c *committer) watched(ctx context.Context, do func(context.Context) error) error {
	if clock.PatienceIn(ctx) == nil {
		return do(ctx)
	}
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	var over sync.WaitGroup
	over.Go(func() {
		defer func() { _ = recover() }() // it is told, not needed
		away := clock.Retry{Clock: c.clock}
		defer away.Done()
		for c.clock.Sleep(beside, signOfLife) == nil {
			if err := c.ping(beside); err == nil {
				away.Done()
			} else if beside.Err() == nil {
				away.Tell(ctx, err)
			}
		}
	})
	err := do(ctx)
	end()
	over.Wait()
	return err
}

// ping asks the brokers for a sign of life, once.
func (c *committer) ping(ctx context.Context) error {
	client, err := kgo.NewClient(append(slices.Clone(c.options), kgo.RequestRetries(0))...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, signOfLife)
	defer cancel()
	return client.Ping(ctx)
}

// final errors do not go away by trying again.
func final(err error) bool {
	if e := errs.As(err); e.Kind != errs.Internal {
		return !e.Transient
	}
	return false
}

// take makes a client that owns the transactional id, and reads what stands. With sign it becomes the writer; without,
// it must be that still: a client whose transaction took too long looks to the brokers like one that was fenced by
// another process, and the signature tells them apart.
func (c *committer) take(ctx context.Context, sign bool, first string) error {
	client, err := kgo.NewClient(append(slices.Clone(c.options),
		kgo.TransactionalID(c.id),
		kgo.TransactionTimeout(c.settings.Duration("transaction_timeout")),
		kgo.RecordPartitioner(partitioner{c.markers.topic}),
		kgo.RetryTimeout(10*time.Second),
	)...)
	if err != nil {
		return errs.New(errs.Usage, "connect", "the options for Kafka: %w", err)
	}
	c.client = client
	if _, _, err := client.ProducerID(ctx); err != nil {
		return c.refused(err)
	}
	// AIDEV-NOTE: the order counts. Whoever wrote under the id before is fenced now and its transaction is over, so what is
	// read here cannot change until somebody else takes the id, and then nothing that we write is taken.
	stands, err := c.markers.read(ctx)
	if err != nil {
		return err
	}
	c.stands = stands
	if !sign {
		if stands.Writer == "" {
			return errs.New(errs.ExactlyOnce, "commit", "the topic %q holds no marker of %q any more, so that nobody knows what the topic %q holds", c.markers.topic, c.id, c.topic).
				WithHint("somebody has deleted or emptied it; begin anew with an empty topic and new checkpoints")
		}
		if stands.Writer != c.markers.writer {
			return errs.New(errs.ExactlyOnce, "commit", "another process (%s) writes to the topic %q as this pipeline (%s)", stands.Writer, c.topic, c.id).
				WithHint("one of the two must end; this one has stopped, and has written nothing since the other began")
		}
		return nil
	}
	next := marker{Marker: stands.Marker, Writer: c.markers.writer}
	if next.Marker == "" {
		next.Marker = first
	}
	if err := c.transact(ctx, nil, next); err != nil {
		return err
	}
	c.stands = next
	return nil
}

// transact writes rows and a marker in one transaction.
func (c *committer) transact(ctx context.Context, rows []arrow.RecordBatch, m marker) error {
	id, epoch, err := c.client.ProducerID(ctx)
	if err != nil {
		return c.refused(err)
	}
	if err := c.client.BeginTransaction(); err != nil {
		return err
	}
	failed := newFailure(c.topic)
	if err := c.send(rows, func(r *kgo.Record) error {
		c.client.Produce(ctx, r, failed.sent)
		return failed.cause()
	}); err != nil && failed.cause() == nil {
		c.abort(ctx)
		return err
	}
	// The marker comes last: while a transaction holds a partition of markers, nobody can read beyond it.
	if err := c.client.Flush(ctx); err != nil {
		return err
	}
	if err := failed.cause(); err != nil {
		return c.broken(ctx, c.topic, err)
	}
	unmarked := newFailure(c.markers.topic)
	c.client.Produce(ctx, c.markers.record(m), unmarked.sent)
	if err := c.client.Flush(ctx); err != nil { // unlike ProduceSync it ends with ctx, also while the broker is away
		return err
	}
	if err := unmarked.cause(); err != nil {
		return c.broken(ctx, c.markers.topic, err)
	}
	// AIDEV-NOTE: a client that lost its producer id within the transaction takes a new one by itself, and the rows
	// before would be missing from what is committed.
	if id2, epoch2, err := c.client.ProducerID(ctx); err != nil || id2 != id || epoch2 != epoch {
		return fmt.Errorf("the transaction was lost: %w", errors.Join(err, kerr.InvalidTxnState))
	}
	return c.client.EndTransaction(ctx, kgo.TryCommit)
}

// send hands on the records of an epoch until one fails.
func (c *committer) send(rows []arrow.RecordBatch, produce func(*kgo.Record) error) error {
	epoch := c.epoch()
	var failed error
	one := func(r *kgo.Record) {
		if failed == nil {
			failed = produce(r)
		}
	}
	for _, b := range rows {
		if err := epoch.add(flow.ReadEdge(b), one); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
	}
	if err := epoch.end(one); err != nil {
		return err
	}
	return failed
}

// broken says what a failed record means; when trying again is in vain the transaction is ended at once.
func (c *committer) broken(ctx context.Context, topic string, err error) error {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge), errors.Is(err, kerr.InvalidRecord), errors.Is(err, kerr.PolicyViolation),
		errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.TopicAuthorizationFailed):
		c.abort(ctx)
		return writeError(topic, err)
	}
	return c.refused(err)
}

// refused makes final what will not change.
func (c *committer) refused(err error) error {
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return errs.New(errs.Source, "commit", "this user may not write in transactions as %q: %w", c.id, err).WithHint("grant it WRITE on this transactional id, or give another with transactional_id")
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return errs.New(errs.Usage, "commit", "the brokers allow no transaction_timeout of %s: %w", c.settings.Duration("transaction_timeout"), err).
			WithHint("give a shorter one, or raise transaction.max.timeout.ms of the brokers")
	case !retriable(err):
		return unreachable(c.settings, 1, err)
	}
	return err
}

// abort ends the transaction, as well as it can.
func (c *committer) abort(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c.client.UnsafeAbortBufferedRecords()
	_ = c.client.EndTransaction(short, kgo.TryAbort) // whoever takes the id next ends it otherwise
}

// drop throws the client away, with what it has not sent.
func (c *committer) drop() {
	if c.client == nil {
		return
	}
	c.client.UnsafeAbortBufferedRecords()
	c.client.Close()
	c.client = nil
}

// Write is not called: the rows of an epoch are kept in the checkpoint and come with Commit.
func (c *committer) Write(context.Context, flow.Delta) error {
	return errs.Bug("write", "the Kafka sink was handed rows before their commit")
}

// Stage is not called either.
func (c *committer) Stage(context.Context, flow.Epoch) (connectors.Committable, error) {
	return nil, errs.Bug("write", "the Kafka sink was asked to stage rows")
}

func (c *committer) Close() error {
	c.drop()
	c.markers.close()
	return nil
}
