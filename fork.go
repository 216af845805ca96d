package riverbed

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/errs"
)

// fork begins a pipeline that has no checkpoints from a savepoint, when the session names one. The savepoint is copied and stays as it is. What is
// begun is a new run: its sink gets what comes behind the savepoint, under markers of its own.
func (d *durable) fork(ctx context.Context, id string) error {
	if d.r.cfg.fromSavepoint == "" {
		return nil
	}
	if epochs, err := d.store.Epochs(ctx); err != nil || len(epochs) > 0 {
		return err // it goes on from its own, so that the same command starts it again
	}
	url, found, err := d.savepoint(ctx, id)
	if err != nil {
		return err
	}
	prints, text, err := d.r.fingerprints()
	if err != nil {
		return err
	}
	if _, err := d.fits(found, found.Pipeline, prints, text); err != nil {
		return err
	}
	m, err := d.store.From(ctx, url)
	if err != nil {
		return err
	}
	// AIDEV-NOTE: another run, so that a sink which holds markers of the old one is refused instead of getting rows twice.
	m.Run = fmt.Sprintf("%016x", d.r.s.rand.Uint64())
	m.Sinks = []checkpoint.Sink{{Name: sinkName, Done: markerOf(m.Run, 0)}}
	if err := d.store.Publish(ctx, m); err != nil {
		return checkpointFailed(err)
	}
	return nil
}

// savepoint finds the one that the session names for a pipeline: a folder of savepoints has one for each.
func (d *durable) savepoint(ctx context.Context, id string) (url string, m *checkpoint.Manifest, err error) {
	from := d.r.cfg.fromSavepoint
	for _, url := range []string{strings.TrimRight(from, "/") + "/" + id, from} {
		point, err := checkpoint.Open(ctx, checkpoint.Options{URL: url, Version: Version, Clock: d.r.s.clock, ReadOnly: true})
		if err != nil {
			return "", nil, err
		}
		if m, err := point.Newest(ctx); err != nil || m != nil {
			return url, m, err
		}
	}
	return "", nil, errs.New(errs.State, "restore", "%s holds no savepoint of the pipeline %q", from, id).
		WithHint("name the folder that `riverbed savepoint` wrote, or the one above it, where each pipeline has a folder of its id")
}

// here are the pipelines with checkpoints that run in this process: a second one of the same folder would wait for the first as for another process.
var here = struct {
	sync.Mutex
	runs map[string]bool
}{runs: map[string]bool{}}

// enter notes that a pipeline runs here; leave takes it back, once.
func enter(url, id string) (leave func(), err error) {
	key := strings.TrimRight(url, "/") + "\x00" + id
	here.Lock()
	defer here.Unlock()
	if here.runs[key] {
		return nil, errs.New(errs.Usage, "run", "the pipeline %q runs in this process already", id).
			WithHint("stop it first, or give one of the two another id (pipeline_id): ids name checkpoints, and two queries with callables may have the same")
	}
	here.runs[key] = true
	var once sync.Once
	return func() {
		once.Do(func() {
			here.Lock()
			delete(here.runs, key)
			here.Unlock()
		})
	}, nil
}
