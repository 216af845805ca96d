package riverbed

import (
	"context"
	"encoding/json"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// checkpointsOf opens the checkpoints of a pipeline to look at them, also while it runs. An empty pipeline says that url is the folder itself, as of a savepoint.
func checkpointsOf(ctx context.Context, url, pipeline string) (*checkpoint.Store, error) {
	if url == "" {
		return nil, errs.New(errs.Usage, "inspect", "no place of checkpoints is given").WithHint("name it, or set RIVERBED_CHECKPOINT_URL")
	}
	if pipeline != "" && !pipelineID.MatchString(pipeline) {
		return nil, errs.New(errs.Usage, "inspect", "%q cannot be the id of a pipeline", pipeline)
	}
	return checkpoint.Open(ctx, checkpoint.Options{URL: url, Pipeline: pipeline, Version: Version, Clock: clock.Wall{}, ReadOnly: true})
}

// Inspect tells as JSON what the checkpoints of a pipeline hold: epochs, positions, watermarks, state by operator, what its sinks have committed.
func Inspect(ctx context.Context, url, pipeline string) (string, error) {
	store, err := checkpointsOf(ctx, url, pipeline)
	if err != nil {
		return "", err
	}
	defer func() { _ = store.Close() }() // it holds nothing
	found, err := store.Inspect(ctx)
	if err != nil {
		return "", err
	}
	if len(found.Epochs) == 0 {
		return "", noCheckpoints(pipeline, url)
	}
	text, err := json.Marshal(found)
	return string(text), err
}

func noCheckpoints(pipeline, url string) error {
	return errs.New(errs.State, "inspect", "there are no checkpoints of the pipeline %q at %s", pipeline, url).
		WithHint("the folder below the checkpoint URL has the pipeline's id: of INSERT INTO the name of the sink")
}

// Savepoint copies a pipeline's newest checkpoint, or that of an epoch, to a folder of its own, which stays until somebody deletes it.
func Savepoint(ctx context.Context, url, pipeline string, epoch int64, to string) error {
	store, err := checkpointsOf(ctx, url, pipeline)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	if epoch < 0 {
		return errs.New(errs.Usage, "savepoint", "there is no epoch %d", epoch)
	}
	m, err := store.Newest(ctx)
	if err == nil && epoch > 0 {
		m, err = store.Manifest(ctx, flow.Epoch(epoch))
	}
	if err != nil {
		return err
	}
	if m == nil {
		return noCheckpoints(pipeline, url)
	}
	return store.Savepoint(ctx, m, to)
}
