package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// vault is what the sink's readers see: rows and how often each is there, and the marker that came with the last of them.
type vault struct {
	w       *World
	q       query
	kind    string // name of the connector
	rows    map[string]int64
	marker  connectors.Marker
	commits int

	producer int                 // the newest of the transactional id: older ones are fenced
	open     []string            // changes of its transaction
	begun    connectors.Marker   // of that; "": there is none
	staged   map[string][]string // of the sink that stages
}

func newVault(w *World, q query, kind string) *vault {
	return &vault{w: w, q: q, kind: kind, rows: map[string]int64{}, staged: map[string][]string{}}
}

func (v *vault) options(p *Process) map[string]string {
	if v.kind == "json" {
		return map[string]string{"path": p.url(p.w.files.sink, "out"), "changelog": "true"}
	}
	return map[string]string{"process": strconv.Itoa(p.id)}
}

// apply makes changes visible with their marker, and holds all that is visible by then against the model. The world is held.
func (v *vault) apply(marker connectors.Marker, changes []string) {
	v.commits++
	v.marker = marker
	for _, c := range changes {
		weight, text, _ := strings.Cut(c, " ")
		n, _ := strconv.ParseInt(weight, 10, 64)
		if v.rows[text] += n; v.rows[text] == 0 {
			delete(v.rows, text)
		}
	}
	m := v.w.store.manifests[string(marker)]
	if m == nil {
		v.w.violate("%s is committed, and no manifest of it was ever published", marker[strings.IndexByte(string(marker), ':')+1:])
		return
	}
	if want := v.q.at(v.w.broker, m); want != nil && !maps.Equal(v.rows, want) {
		v.w.violate("behind epoch %d the sink holds what is not of its positions: %s", m.Epoch, difference(v.rows, want))
	}
}

// difference names some rows in which two contents differ.
func difference(got, want map[string]int64) string {
	var out []string
	for r, n := range want {
		if got[r] != n {
			out = append(out, fmt.Sprintf("%d of (%s) instead of %d", got[r], r, n))
		}
	}
	for r, n := range got {
		if _, ok := want[r]; !ok {
			out = append(out, fmt.Sprintf("%d of (%s) instead of none", n, r))
		}
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 6)], "; ")
}

// changesIn are the rows of a batch as text, with their weights.
func changesIn(b arrow.RecordBatch, fields []types.Field) []string {
	var out []string
	for r := range int(b.NumRows()) {
		weight := int64(1)
		if int(b.NumCols()) > len(fields) {
			weight = b.Column(len(fields)).(*array.Int64).Value(r)
		}
		cells := make([]string, len(fields))
		for c, f := range fields {
			cells[c] = fmt.Sprint(types.ValueAt(b.Column(c), r, f.Type))
		}
		out = append(out, fmt.Sprintf("%d %s", weight, strings.Join(cells, "|")))
	}
	return out
}

func init() {
	option := connectors.Options{{Name: "process", Type: connectors.String, Doc: "Whose view of the world."}}
	open := func(req connectors.SinkRequest) sink {
		p := processOf(req.Settings.String("process"))
		return sink{p: p, v: p.w.vault, fields: req.Fields}
	}
	all.Sinks = append(all.Sinks,
		connectors.Sink{Name: "sim_transactions", Class: "SimTransactions", Updates: connectors.Changelog, ExactlyOnce: true, Held: true, Options: option,
			Open: func(_ context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
				return &transactions{sink: open(req)}, nil
			}},
		connectors.Sink{Name: "sim_staging", Class: "SimStaging", Updates: connectors.Changelog, ExactlyOnce: true, Options: option,
			Open: func(_ context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
				return &staging{sink: open(req)}, nil
			}})
}

// sink is what both kinds have.
type sink struct {
	p      *Process
	v      *vault
	fields []types.Field
}

func (s *sink) do(ctx context.Context, op string, run func() error) error {
	return s.p.w.do(ctx, s.p, "sink", op, "", run)
}

func (s *sink) Close() error { return nil }

// markerOf asks the sink for its marker.
func (s *sink) read(ctx context.Context) (m connectors.Marker, err error) {
	err = s.do(ctx, "marker", func() error { m = s.v.marker; return nil })
	return m, err
}

func fenced() error {
	return errs.New(errs.ExactlyOnce, "commit", "a newer producer has this transactional id")
}

// transactions is a sink like a broker's: the engine holds the rows, a transaction has them and the marker, and whoever begins anew fences the one before.
type transactions struct {
	sink
	producer int // 0: to be asked for, since the last transaction's end is not known
}

func (s *transactions) Write(context.Context, flow.Delta) error {
	return errs.Bug("write", "the rows of this sink are held")
}

func (s *transactions) Stage(context.Context, flow.Epoch) (connectors.Committable, error) {
	return nil, errs.Bug("stage", "the rows of this sink are held")
}

// begin gets a number that fences all before, and ends what they left open.
func (s *transactions) begin(ctx context.Context) error {
	var mine int
	err := s.do(ctx, "begin", func() error {
		s.v.producer++
		mine, s.v.open, s.v.begun = s.v.producer, nil, ""
		return nil
	})
	if err == nil {
		s.producer = mine
	}
	return err
}

func (s *transactions) Begin(ctx context.Context, first connectors.Marker) (connectors.Marker, error) {
	if err := s.begin(ctx); err != nil {
		return "", err
	}
	m, err := s.read(ctx)
	if err != nil || m != "" || first == "" {
		return m, err
	}
	mine := s.producer
	return first, s.do(ctx, "first marker", func() error {
		if s.v.producer != mine {
			return fenced()
		}
		s.v.marker = first
		return nil
	})
}

func (s *transactions) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	if s.producer == 0 {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	switch m, err := s.read(ctx); {
	case err != nil:
		return err
	case m == e.Marker:
		return nil
	case m != e.Previous:
		return errs.New(errs.ExactlyOnce, "commit", "the sink holds %s and not %s", m, e.Previous)
	}
	var changes []string
	for _, b := range e.Rows {
		changes = append(changes, changesIn(b, s.fields)...)
	}
	mine := s.producer
	err := s.do(ctx, "send", func() error {
		if s.v.producer != mine {
			return fenced()
		}
		s.v.open, s.v.begun = changes, e.Marker
		return nil
	})
	if err == nil {
		err = s.do(ctx, "end", func() error {
			if s.v.producer != mine {
				return fenced()
			}
			if s.v.begun == e.Marker { // otherwise it has been ended by the request before
				s.v.apply(e.Marker, s.v.open)
			}
			s.v.open, s.v.begun = nil, ""
			return nil
		})
	}
	if err != nil {
		s.producer = 0
	}
	return err
}

// staging is a sink like a database's: rows are staged, and one conditional statement makes them and the marker visible. Nobody is fenced.
type staging struct {
	sink
	rows []string
}

func (s *staging) Write(ctx context.Context, d flow.Delta) error {
	s.rows = append(s.rows, changesIn(d.Batch, s.fields)...)
	return s.do(ctx, "write", func() error { return nil })
}

func (s *staging) Stage(ctx context.Context, epoch flow.Epoch) (connectors.Committable, error) {
	if len(s.rows) == 0 {
		return nil, nil
	}
	var key string
	rows := s.rows
	s.rows = nil
	err := s.do(ctx, "stage", func() error {
		key = fmt.Sprintf("%d/%d/%d", s.p.id, epoch, len(s.v.staged))
		s.v.staged[key] = rows
		return nil
	})
	return connectors.Committable(key), err
}

func (s *staging) Begin(ctx context.Context, first connectors.Marker) (m connectors.Marker, err error) {
	err = s.do(ctx, "begin", func() error {
		if s.v.marker == "" {
			s.v.marker = first
		}
		m = s.v.marker
		return nil
	})
	return m, err
}

func (s *staging) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	return s.do(ctx, "commit", func() error {
		switch s.v.marker {
		case e.Marker:
			return nil
		case e.Previous:
			changes, ok := s.v.staged[string(e.Committable)]
			if !ok {
				return errs.New(errs.ExactlyOnce, "commit", "nothing is staged as %q", e.Committable)
			}
			s.v.apply(e.Marker, changes)
			return nil
		}
		return errs.New(errs.ExactlyOnce, "commit", "the sink holds %s and not %s", s.v.marker, e.Previous)
	})
}
