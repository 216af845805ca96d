package riverbed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/incremental"
)

// A pipeline whose query was changed (ADR 43). By default its checkpoints are refused. On request it goes on where they stand, with the state of the operators that
// compute what they did; or begins anew from the history of its sources, under the same id and with the sink that it had.

// What the setting changed_query may say.
const (
	changedRefuse  = "refuse"
	changedReuse   = "reuse"
	changedRebuild = "rebuild"
)

// adapt makes a manifest of another query this run's, or says why it cannot be.
//
// AIDEV-NOTE: nothing is published here: the next epoch's manifest has the new query with the state that it goes on from. A process that ends
// before that finds the old manifest, and adapts it again.
func (d *durable) adapt(m *checkpoint.Manifest, q *Query, prints map[string]string, text string) (*checkpoint.Manifest, error) {
	out := *m
	out.SQL, out.Plan, out.Operators = q.statement(), text, prints
	if d.r.cfg.changedQuery == changedRebuild {
		return d.rebuilt(&out)
	}
	refuse := func(hint, format string, args ...any) (*checkpoint.Manifest, error) {
		return nil, errs.New(errs.State, "restore", "the pipeline %q cannot go on with the changed query: %s", m.Pipeline, fmt.Sprintf(format, args...)).WithHint("%s", hint)
	}
	const anew = "give the new query another id, or begin from the history of its sources: changed_query = 'rebuild'"
	if m.Operators["emit"] != prints["emit"] {
		return refuse(anew, "it was shown by EMIT %s, and is to be by EMIT %s", m.Operators["emit"], prints["emit"])
	}
	if d.r.updating && d.updates != connectors.Keyed {
		return refuse(anew, "it takes rows back that were shown with what the former query made of them, and the sink does not know them by a key")
	}
	if m.Rows(checkpoint.Whole, pendingOwner, "") > 0 && m.Operators[sinkName] != prints[sinkName] {
		return refuse("let the former query show them: run it until the next EMIT EVERY", "changes wait to be shown that have other columns")
	}
	out.Sources = nil
	free := slices.Clone(m.Sources)
	for _, in := range d.r.inputs {
		at := slices.IndexFunc(free, func(s checkpoint.Source) bool { return s.Name == in.info.Source.Name })
		if at < 0 || len(m.Sources) != len(d.r.inputs) {
			return refuse(anew, "it reads %s, and the former query read %s", d.r.reads(), sourcesOf(m))
		}
		out.Sources = append(out.Sources, free[at])
		free = slices.Delete(free, at, at+1)
	}
	owners, missing := reuse(m, d.r.graph.Fingerprints())
	if len(missing) > 0 {
		return refuse(anew, "the checkpoints have no state of %s", strings.Join(missing, ", "))
	}
	out.Owners = owners
	for _, owner := range m.StateOwners() {
		if !slices.Contains(slices.Collect(maps.Values(owners)), owner) {
			out = *out.Drop(owner)
		}
	}
	return &out, nil
}

// reuse finds for each operator with state the one in the checkpoints that computes the same, of all that is below it too. Owners says under
// which name its state is stored; missing are the paths of those that have none.
func reuse(m *checkpoint.Manifest, now []incremental.Fingerprint) (owners map[string]string, missing []string) {
	free := map[string][]string{} // print → owners
	for _, path := range slices.Sorted(maps.Keys(m.Operators)) {
		free[m.Operators[path]] = append(free[m.Operators[path]], m.Owner(path))
	}
	owners = map[string]string{}
	for _, same := range []bool{true, false} { // those that stand where they stood come first
		for _, op := range now {
			if !op.Stateful || owners[op.Path] != "" {
				continue
			}
			at := 0
			if same {
				at = slices.Index(free[op.Print], m.Owner(op.Path))
			}
			if at >= 0 && at < len(free[op.Print]) {
				owners[op.Path] = free[op.Print][at]
				free[op.Print] = slices.Delete(free[op.Print], at, at+1)
			} else if !same {
				missing = append(missing, op.Path)
			}
		}
	}
	return owners, missing
}

// rebuilt keeps the sink's chain and what was set aside, and forgets the rest: the sources are read from their beginning.
func (d *durable) rebuilt(m *checkpoint.Manifest) (*checkpoint.Manifest, error) {
	if d.updates != connectors.Keyed {
		return nil, errs.New(errs.State, "restore", "the pipeline %q cannot be rebuilt from history: its sink does not replace rows by a key, so all of them would be there twice", m.Pipeline).
			WithHint("write into another sink under another id")
	}
	for _, in := range d.r.inputs {
		if st := in.info.Source.Stream; st != nil && !st.Replayable() {
			return nil, errs.New(errs.State, "restore", "the pipeline %q cannot be rebuilt from history: the source %q cannot be read again", m.Pipeline, in.info.Source.Name).
				WithHint("write into another sink under another id")
		}
	}
	for _, owner := range append(m.StateOwners(), pendingOwner, tableOwner, checkpoint.EndedSplits, flow.LateRelation, flow.BadRelation) {
		m = m.Drop(owner)
	}
	m.Step, m.Owners, m.Sources = 0, nil, nil
	m.Run = fmt.Sprintf("%016x", d.r.s.rand.Uint64()) // late and bad rows are numbered anew; markers are words, so the sink's chain goes on
	for _, in := range d.r.inputs {
		m.Sources = append(m.Sources, checkpoint.Source{Name: in.info.Source.Name})
	}
	return m, nil
}

// reads names what the run reads, and sourcesOf what the run of a manifest did.
func (r *runner) reads() string {
	var out []string
	for _, in := range r.inputs {
		out = append(out, in.info.Source.Name)
	}
	return strings.Join(out, ", ")
}

func sourcesOf(m *checkpoint.Manifest) string {
	var out []string
	for _, s := range m.Sources {
		out = append(out, s.Name)
	}
	return strings.Join(out, ", ")
}
