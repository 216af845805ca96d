package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// queueBytes bounds what waits for the reader of one partition; its fetching pauses above and goes on below half.
const queueBytes = 16 << 20

// consumers are the clients of a stream. A client reads a partition once; whoever opens the same partition again while
// the client lives, such as a second run, is given another client, so that readers never take each other's records.
type consumers struct {
	settings connectors.Settings
	clock    clock.Clock

	mu  sync.Mutex
	all []*consumer
}

// open starts fetching a partition with the first client that may.
func (c *consumers) open(partition int32, at kgo.Offset, next int64) (*consumer, *queue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if q, err := one.open(partition, at, next); q != nil || err != nil {
			return one, q, err
		}
	}
	one := newConsumer(c.settings, c.clock)
	c.all = append(c.all, one)
	q, err := one.open(partition, at, next)
	return one, q, err
}

// consumer is one client. A goroutine polls it and hands records to the queue of their partition. The client lives while
// a partition is open.
type consumer struct {
	settings connectors.Settings
	clock    clock.Clock
	topic    string

	ears struct {
		sync.Mutex
		since, last time.Time // answers to fetches came from then to then
	}

	mu     sync.Mutex
	client *kgo.Client
	stop   context.CancelFunc
	done   chan struct{}
	queues map[int32]*queue
	used   map[int32]bool // partitions that the client was given: what it still fetches of a closed one must not reach the next reader
}

// queue holds the fetched records of one partition.
type queue struct {
	mu     sync.Mutex
	fetch  [][]*kgo.Record
	bytes  int
	paused bool
	next   int64 // the offset that comes next, -1 while that is not known
	err    error
	news   chan struct{} // holds one token when something came
}

func (q *queue) tell() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

func newConsumer(s connectors.Settings, c clock.Clock) *consumer {
	return &consumer{settings: s, clock: c, topic: s.String("topic"), queues: map[int32]*queue{}, used: map[int32]bool{}}
}

// open starts fetching a partition; the queue is nil when the client has read it already.
func (c *consumer) open(partition int32, at kgo.Offset, next int64) (*queue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[partition] {
		return nil, nil
	}
	if c.client == nil {
		if err := c.start(); err != nil {
			return nil, err
		}
	}
	q := &queue{next: next, news: make(chan struct{}, 1)}
	c.queues[partition], c.used[partition] = q, true
	c.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: {partition: at}})
	return q, nil
}

// fetchWait is how long a broker holds a fetch that finds nothing, and so how often a silent topic is heard of. A gap of fetchGap is one.
const (
	fetchWait = 500 * time.Millisecond
	fetchGap  = 5 * time.Second
)

// OnBrokerE2E is a hook of the client: an answer came.
func (c *consumer) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if key != int16(kmsg.Fetch) || e.Err() != nil {
		return
	}
	now := c.clock.Now()
	c.ears.Lock()
	defer c.ears.Unlock()
	if now.Sub(c.ears.last) > fetchGap {
		c.ears.since = now
	}
	c.ears.last = now
}

// Heard tells when the brokers answered. Of several brokers each counts for all: which of them leads a partition is the client's knowledge.
func (c *consumer) Heard() (since, last time.Time) {
	c.ears.Lock()
	defer c.ears.Unlock()
	return c.ears.since, c.ears.last
}

// start makes the client; the lock is held.
func (c *consumer) start() error {
	opts, err := clientOptions(c.settings)
	if err != nil {
		return err
	}
	isolation := kgo.ReadCommitted()
	if c.settings.String("isolation") == "read_uncommitted" {
		isolation = kgo.ReadUncommitted()
	}
	client, err := kgo.NewClient(append(opts,
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(), // they move the position over the end of a transaction
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(32<<20), kgo.FetchMaxPartitionBytes(8<<20), kgo.FetchMaxWait(fetchWait), kgo.WithHooks(c),
	)...)
	if err != nil {
		return errs.New(errs.Usage, "connect", "the options for Kafka: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c.client, c.stop, c.done = client, stop, make(chan struct{})
	go c.poll(ctx, client, c.done)
	return nil
}

// close ends the fetching of a partition, and with the last one the client.
func (c *consumer) close(partition int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues[partition] == nil {
		return
	}
	delete(c.queues, partition)
	part := map[string][]int32{c.topic: {partition}}
	if len(c.queues) > 0 {
		c.client.RemoveConsumePartitions(part)
		return
	}
	c.stop()
	client, done := c.client, c.done
	c.client = nil
	clear(c.used)
	go func() { // Close waits for the network; nobody needs to wait for it
		<-done
		client.Close()
	}()
}

// poll hands out what comes until ctx ends.
func (c *consumer) poll(ctx context.Context, client *kgo.Client, done chan struct{}) {
	defer close(done)
	defer func() {
		if r := recover(); r != nil {
			c.failAll(errs.Recovered("poll", r))
		}
	}()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			c.mu.Lock()
			q := c.queues[p.Partition]
			if c.client != client {
				q = nil
			}
			c.mu.Unlock()
			if p.Topic == "" && p.Err != nil { // an error of the client as a whole
				c.failAll(p.Err)
				return
			}
			if q == nil {
				return
			}
			if q.put(p.Records, p.LogStartOffset, p.Err) {
				client.PauseFetchPartitions(map[string][]int32{p.Topic: {p.Partition}})
			}
		})
	}
}

func (c *consumer) failAll(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		q.put(nil, 0, err)
	}
}

// put adds records; full says that fetching should pause.
//
// AIDEV-NOTE: a client that does not know a partition yet moves an offset that is not there to the nearest that is, without
// a word. What the log has lost is seen here, whatever the client did. Gaps within the log are compaction's and the ends of transactions.
func (q *queue) put(recs []*kgo.Record, logStart int64, err error) (full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.tell()
	if len(recs) > 0 && q.next >= 0 && recs[0].Offset > q.next && logStart > q.next && q.err == nil {
		q.err = kerr.OffsetOutOfRange
	}
	if err != nil && !transient(err) && q.err == nil {
		q.err = err
	}
	if len(recs) == 0 || q.err != nil && q.err != err {
		return false
	}
	q.next = recs[len(recs)-1].Offset + 1
	q.fetch = append(q.fetch, recs)
	q.bytes += sizeOf(recs)
	full = q.bytes > queueBytes && !q.paused
	q.paused = q.paused || full
	return full
}

// transient errors are retried by the client itself. A topic whose id is unknown is one that was made anew: the client
// waits for a while before it says so.
func transient(err error) bool {
	return kerr.IsRetriable(err) && !errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, context.DeadlineExceeded)
}

func sizeOf(recs []*kgo.Record) int {
	n := 0
	for _, r := range recs {
		n += len(r.Key) + len(r.Value) + 64
	}
	return n
}

// take returns the next records, nil when none wait. Records that came before an error are given out first.
func (c *consumer) take(partition int32, q *queue) ([]*kgo.Record, error) {
	q.mu.Lock()
	if len(q.fetch) == 0 {
		defer q.mu.Unlock()
		return nil, q.err
	}
	recs := q.fetch[0]
	q.fetch[0] = nil
	q.fetch = q.fetch[1:]
	q.bytes -= sizeOf(recs)
	resume := q.paused && q.bytes < queueBytes/2
	if resume {
		q.paused = false
	}
	q.mu.Unlock()
	if resume {
		c.mu.Lock()
		if c.client != nil {
			c.client.ResumeFetchPartitions(map[string][]int32{c.topic: {partition}})
		}
		c.mu.Unlock()
	}
	return recs, nil
}
