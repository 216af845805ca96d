package riverbed

import (
	"maps"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/incremental"
)

// countRead books what a reader brought.
func (r *runner) countRead(f fed) {
	src := r.inputs[f.source]
	rows := int64(0)
	if f.rows.Batch != nil {
		rows = f.rows.Batch.NumRows()
	}
	r.queued.Add(-rows)
	r.mu.Lock()
	defer r.mu.Unlock()
	src.stats.Splits = len(src.splits) + src.done
	src.stats.Rows += rows
	src.stats.Bytes += f.rows.Bytes
	src.stats.Bad += int64(len(f.rows.Bad))
	r.stats.RowsIn += rows
	r.stats.UnknownFields += f.unknown
	if f.rows.Next != "" {
		src.stats.Positions[f.split] = string(f.rows.Next)
	}
}

// countTold books changes of tables, which are told, not read.
func (r *runner) countTold(src *input, rows int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	src.stats.Rows += rows
	r.stats.RowsIn += rows
}

// count books a step.
func (r *runner) count(in incremental.Input, out incremental.Output) {
	took := r.s.clock.Now().Sub(in.Now)
	st := r.graph.Stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Steps = int64(st.Step)
	r.stats.StepMicros = took.Microseconds()
	r.stats.RowsOut += int64(out.Delta.Rows())
	r.stats.BadRows += int64(len(out.Bad))
	r.stats.StateTouched = st.StateTouched
	r.stats.StateRows, r.stats.StateBytes, r.stats.BadRetractions = st.StateRows, st.StateBytes, st.BadRetractions
	r.stats.WatermarkUS = int64(out.Delta.Watermark)
	if w := out.Delta.Watermark; w != flow.NoWatermark && w != flow.EndWatermark {
		r.stats.LagMS = in.Now.UnixMilli() - int64(w)/1000
	}
	r.stats.LateRows = 0
	for _, n := range st.Late {
		r.stats.LateRows += n
	}
	for _, src := range r.inputs {
		src.stats.Late = st.Late[src.info.Source.Name]
	}
}

func (r *runner) metrics() Metrics {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.stats
	m.QueueRows = r.queued.Load()
	if r.patience != nil {
		outages, since, failure := r.patience.Waiting()
		more, sinceThen, other := r.sources.Waiting()
		if failure == nil || other != nil && sinceThen.Before(since) {
			failure = other
		}
		if m.Outages = outages + more; failure != nil {
			m.WaitingFor = errs.As(failure).Message()
		}
	}
	m.Sources = map[string]SourceMetrics{}
	for _, in := range r.inputs {
		name := in.info.Source.Name
		st, seen := m.Sources[name], in.stats
		// A file that is named twice is two sources of one name.
		st.Rows, st.Bytes, st.Bad, st.Splits = st.Rows+seen.Rows, st.Bytes+seen.Bytes, st.Bad+seen.Bad, st.Splits+seen.Splits
		st.Late = seen.Late
		st.Positions = maps.Clone(seen.Positions)
		m.Sources[name] = st
	}
	return m
}
