package riverbed

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// PushStream is the side of a stream over the connector "memory" that the program feeds. What is said about a split
// keeps its place among the split's rows; "" is the default split.
type PushStream interface {
	// Push queues rows with the stream's columns; weights nil is +1 each. It waits while the queue is full.
	Push(ctx context.Context, split string, rows arrow.RecordBatch, weights []int64) error
	// TryPush is Push when the queue has room; otherwise it does nothing and says false.
	TryPush(split string, rows arrow.RecordBatch, weights []int64) (bool, error)
	// AdvanceWatermark says that no earlier event time will be pushed.
	AdvanceWatermark(split string, to flow.Watermark) error
	// Idle says that nothing comes until the next push.
	Idle(split string)
	// Close ends the stream: what is queued can still be read.
	Close()
}

// PushStream returns the side to feed of a stream over the connector "memory".
func (s *Session) PushStream(name string) (PushStream, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if e := s.cat.Load().get(name); e != nil && e.source != nil {
		if p, ok := e.source.Stream.(PushStream); ok {
			return p, nil
		}
	}
	return nil, errs.New(errs.Usage, "push", "%q is no stream that rows can be pushed into", name).
		WithHint("declare it over the connector 'memory'")
}
