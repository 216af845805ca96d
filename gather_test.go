package riverbed

import (
	"context"
	"slices"
	"testing"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/flow"
)

// gathering is a sink over a vault that takes three epochs a commit.
type gathering struct {
	*vaultWriter
	commits int
}

func (*gathering) Gather() int { return 3 }

func (g *gathering) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	g.commits++
	if len(e.Gathered) > 0 {
		g.v.mu.Lock()
		var rows []string
		for _, c := range append(slices.Clone(e.Gathered), e.Committable) {
			rows = append(rows, g.v.staged[string(c)]...)
		}
		key := connectors.Committable("gathered up to " + string(e.Committable))
		g.v.staged[string(key)] = rows
		g.v.mu.Unlock()
		e.Committable = key
	}
	return g.vaultWriter.Commit(ctx, e)
}

var lastGathering *gathering

func init() {
	all.Sinks = append(all.Sinks, connectors.Sink{Name: "vault_gathering", Class: "Vault", Updates: connectors.Changelog, ExactlyOnce: true,
		Options: connectors.Options{{Name: "name", Type: connectors.String, Doc: "Which."}},
		Open: func(_ context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
			lastGathering = &gathering{vaultWriter: &vaultWriter{v: vaults[req.Settings.String("name")], pipeline: req.Pipeline, fields: len(req.Fields)}}
			return lastGathering, nil
		}})
}

// One commit takes three epochs, and the last one what is left. (TestEndedInEveryPhase ends such a pipeline.)
func TestGatheredEpochs(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	feedFolder(t, dir, 0, 8, 50)
	statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"}
	config := map[string]string{"checkpoint_url": t.TempDir(), "checkpoint_interval_ms": "1", "step_rows": "60"}
	epochs := map[flow.Epoch]bool{}
	if _, err := runEnded(t, config, statements, "SELECT k, v FROM s", "vault_gathering", "p", func(_ string, e flow.Epoch) bool {
		epochs[e] = true
		return false
	}); err != nil {
		t.Fatal(err)
	}
	if want := wantRows(t, statements, "SELECT k, v FROM s"); len(v.all()) != len(want) {
		t.Errorf("the sink has %d rows, and should have %d", len(v.all()), len(want))
	}
	if n := len(epochs); lastGathering.commits > (n+2)/3 {
		t.Errorf("%d commits of %d epochs", lastGathering.commits, n)
	}
}
