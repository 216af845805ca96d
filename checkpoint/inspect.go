package checkpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// Inspection is what a folder of checkpoints tells without reading its rows.
type Inspection struct {
	Pipeline string         `json:"pipeline"`
	Folder   string         `json:"folder"`
	Holder   *Holder        `json:"holder,omitempty"` // nil: nobody has run it
	Epochs   []EpochInfo    `json:"epochs"`           // oldest first
	Run      string         `json:"run,omitempty"`
	SQL      string         `json:"sql,omitempty"`
	Step     flow.Step      `json:"step"` // this and what follows, of the newest epoch
	ShownAt  *time.Time     `json:"shown_at,omitempty"`
	Sources  []Source       `json:"sources"`
	Sinks    []SinkInfo     `json:"sinks"`
	Tables   []TableInfo    `json:"tables"` // by owner and name
	Bytes    int64          `json:"bytes"`  // that a restore reads
	Plan     string         `json:"plan,omitempty"`
	Files    map[string]int `json:"files"` // of each kind: manifests, objects, leases
}

// Holder is who has the lease, or had it last.
type Holder struct {
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Fence    int64  `json:"fence"`
	Version  string `json:"riverbed"`
	Released bool   `json:"released"`
}

// EpochInfo is a manifest that is kept.
type EpochInfo struct {
	Epoch   flow.Epoch `json:"epoch"`
	Step    flow.Step  `json:"step"`
	Written time.Time  `json:"written"`
	Version string     `json:"riverbed"`
	Fence   int64      `json:"fence"`
	Objects int        `json:"objects"`
	Bytes   int64      `json:"bytes"`     // of all its objects
	New     int64      `json:"new_bytes"` // that this epoch wrote
	Error   string     `json:"error,omitempty"`
}

// SinkInfo is what a sink has committed, without what it staged.
type SinkInfo struct {
	Name    string       `json:"name"`
	Done    string       `json:"done"`
	Pending []flow.Epoch `json:"pending,omitempty"`
}

// TableInfo is a state table, or rows of another kind. Until objects are merged a row is stored as often as it was changed.
type TableInfo struct {
	Kind        Kind   `json:"kind"`
	Owner       string `json:"owner"`
	Table       string `json:"table,omitempty"`
	Version     int    `json:"version,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"` // of the operator
	Rows        int64  `json:"stored_rows"`
	Bytes       int64  `json:"bytes"`
	Sections    int    `json:"sections"`
}

// Inspect tells of the checkpoints. A damaged manifest is told of, not an error.
func (s *Store) Inspect(ctx context.Context) (*Inspection, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return nil, err
	}
	out := &Inspection{Pipeline: s.o.Pipeline, Folder: s.dir, Epochs: []EpochInfo{}, Sources: []Source{}, Sinks: []SinkInfo{}, Tables: []TableInfo{}, Files: map[string]int{}}
	for what, pattern := range map[string]string{"manifests": manifestPattern, "objects": dataPattern, "leases": leasePattern} {
		found, err := s.list(ctx, pattern)
		if err != nil {
			return nil, err
		}
		out.Files[what] = len(found)
	}
	if out.Holder, err = s.holder(ctx); err != nil {
		return nil, err
	}
	var newest *Manifest
	for _, e := range epochs {
		newest = nil
		m, err := s.Manifest(ctx, e)
		switch {
		case err == nil:
			newest = m
			out.Epochs = append(out.Epochs, infoOf(m))
		case errs.Is(err, errs.State):
			out.Epochs = append(out.Epochs, EpochInfo{Epoch: e, Error: errs.As(err).Message()})
		default:
			return nil, err
		}
	}
	if newest != nil {
		out.describe(newest)
	}
	return out, nil
}

func infoOf(m *Manifest) EpochInfo {
	e := EpochInfo{Epoch: m.Epoch, Step: m.Step, Written: m.Written, Version: m.Version, Fence: m.Fence, Objects: len(m.Objects)}
	for _, o := range m.Objects {
		e.Bytes += o.Size
		if o.Epochs == [2]flow.Epoch{m.Epoch, m.Epoch} {
			e.New = o.Size
		}
	}
	return e
}

func (i *Inspection) describe(m *Manifest) {
	i.Pipeline, i.Run, i.SQL, i.Plan, i.Step = m.Pipeline, m.Run, m.SQL, m.Plan, m.Step
	if !m.ShownAt.IsZero() {
		i.ShownAt = &m.ShownAt
	}
	i.Sources = append(i.Sources, m.Sources...)
	for _, s := range m.Sinks {
		info := SinkInfo{Name: s.Name, Done: s.Done}
		for _, l := range s.Pending {
			info.Pending = append(info.Pending, l.Epoch)
		}
		i.Sinks = append(i.Sinks, info)
	}
	at := map[sectionKey]*TableInfo{}
	for _, o := range m.Objects {
		i.Bytes += o.Size
		for _, s := range o.Sections {
			t := at[s.key()]
			if t == nil {
				t = &TableInfo{Kind: s.Kind, Owner: s.Owner, Table: s.Table, Version: s.Version, Fingerprint: m.Operators[m.Path(s.Owner)]}
				at[s.key()] = t
			}
			t.Rows, t.Bytes, t.Sections = t.Rows+s.Rows, t.Bytes+s.Length, t.Sections+1
		}
	}
	for _, t := range at {
		i.Tables = append(i.Tables, *t)
	}
	slices.SortFunc(i.Tables, func(a, b TableInfo) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
}

// holder is who has the lease; nil when nobody ever had.
func (s *Store) holder(ctx context.Context) (*Holder, error) {
	newest, err := s.newestLease(ctx)
	if err != nil || newest == 0 {
		return nil, err
	}
	data, err := s.get(ctx, leaseName(newest))
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l lease
	if json.Unmarshal(data, &l) != nil {
		l = lease{Fence: newest} // that is all that can be told
	}
	return &Holder{l.Host, l.PID, l.Fence, l.Version, l.Released}, nil
}

// Log visits the rows of a log, such as __bad, as they are at a manifest, in the order in which they came. The objects that hold them are verified first.
func (s *Store) Log(ctx context.Context, m *Manifest, owner, table string, visit func(arrow.RecordBatch) error) error {
	of := keepSections(m.Objects, func(_ Object, at SectionIndex) bool { return at.Kind == Log && at.Owner == owner && at.Table == table })
	return s.Read(ctx, &Manifest{Epoch: m.Epoch, Objects: of}, func(sec Section) error {
		for _, b := range sec.Rows {
			if err := visit(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// State visits the rows of a state table as they are at a manifest: each key once, sorted by key group and key. The columns are those of state.Part.
// The objects that hold them are verified first.
func (s *Store) State(ctx context.Context, m *Manifest, owner, table string, visit func(arrow.RecordBatch) error) error {
	of := keepSections(m.Objects, func(_ Object, at SectionIndex) bool {
		return at.Kind == State && at.Owner == owner && at.Table == table
	})
	return s.Read(ctx, &Manifest{Epoch: m.Epoch, Objects: of}, func(sec Section) error {
		if !sec.Fresh {
			return errs.New(errs.Unsupported, "state", "the rows of the state table %s of %s were written by several versions, with different columns", table, owner).
				WithHint("they are put together when the pipeline has read and written them anew")
		}
		return visit(sec.Rows[0])
	})
}
