package checkpoint

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/riverbed/riverbed/core/flow"
)

// Format is the version of manifests and data objects that this program writes.
const Format = 2

// Manifest says what belongs to an epoch. It is JSON, for people too.
type Manifest struct {
	Checksum string    `json:"crc32c"` // of the file; filled in by Publish
	Format   int       `json:"format"`
	Version  string    `json:"riverbed"` // of the program that wrote it
	Pipeline string    `json:"pipeline"` // id that is stable across restarts
	Run      string    `json:"run"`      // drawn when the pipeline first started: a sink's markers name it
	Fence    int64     `json:"fence"`    // of the lease under which it was written
	Written  time.Time `json:"written"`

	Epoch   flow.Epoch `json:"epoch"`
	Step    flow.Step  `json:"step"`
	ShownAt time.Time  `json:"shown_at"` // of the last emission of EMIT EVERY

	SQL       string            `json:"sql"`
	Plan      string            `json:"plan"`      // as EXPLAIN prints it
	Operators map[string]string `json:"operators"` // path → fingerprint of those that have state
	// Owners names the owners of the state of operators that stood at other paths when it was first written, in a query that was changed since.
	Owners  map[string]string `json:"owners,omitempty"` // path → owner of sections
	Sources []Source          `json:"sources"`
	Sinks   []Sink            `json:"sinks"`
	Objects []Object          `json:"objects"` // oldest first
}

// Source is where one source stands.
type Source struct {
	Name  string          `json:"name"`
	State json.RawMessage `json:"state"` // incremental.SourceState: watermarks, late rows
	// Splits are the positions behind the last row that the state has seen.
	Splits map[string]SplitPosition `json:"splits"`
	// Ended is how many splits were read to their end and are not among them: they are rows of a Log of EndedSplits, under the source's name.
	Ended int64 `json:"ended_splits,omitempty"`
}

// EndedSplits owns the rows (split, position) of splits that were read to their end.
const EndedSplits = "splits"

// SplitPosition is where a split goes on.
type SplitPosition struct {
	Position flow.Position `json:"position"`
	Ended    bool          `json:"ended,omitempty"`
}

// Sink is what a sink has committed and is still to commit.
type Sink struct {
	Name string `json:"name"`
	Done string `json:"done"` // newest marker known to be committed
	// Pending are the staged epochs behind Done, oldest first: a chain, each link names its predecessor.
	Pending []Link `json:"pending,omitempty"`
}

// Link is one staged epoch of a sink.
type Link struct {
	Epoch       flow.Epoch `json:"epoch"`
	Marker      string     `json:"marker"`
	Previous    string     `json:"previous"`
	Committable []byte     `json:"committable,omitempty"`
	// Held: the rows are a section (Once, the sink's name) of this epoch's object.
	Held bool `json:"held,omitempty"`
}

// Object is a file of sections. The index names those that count: what a newer epoch replaced stays in the file and is gone from the
// index of its manifest.
type Object struct {
	Name     string         `json:"name"`   // below the pipeline's folder
	Epochs   [2]flow.Epoch  `json:"epochs"` // first and last whose changes it has
	Size     int64          `json:"size"`
	CRC      uint32         `json:"crc32c"`
	Sections []SectionIndex `json:"sections"`
}

// SectionIndex says where a section lies in its object.
type SectionIndex struct {
	Kind    Kind   `json:"kind"`
	Owner   string `json:"owner"`
	Table   string `json:"table,omitempty"`
	Version int    `json:"version,omitempty"`
	Rows    int64  `json:"rows"`
	Offset  int64  `json:"offset"`
	Length  int64  `json:"length"`
	CRC     uint32 `json:"crc32c"`
}

// Owner is the name under which the state of the operator at a path is stored.
func (m *Manifest) Owner(path string) string {
	if o := m.Owners[path]; o != "" {
		return o
	}
	return path
}

// Path is where the operator stands whose state has an owner's name.
func (m *Manifest) Path(owner string) string {
	for path, o := range m.Owners {
		if o == owner {
			return path
		}
	}
	return owner
}

// StateOwners are the owners of the state tables that are stored, each once.
func (m *Manifest) StateOwners() []string {
	var out []string
	for _, o := range m.Objects {
		for _, s := range o.Sections {
			if s.Kind == State && !slices.Contains(out, s.Owner) {
				out = append(out, s.Owner)
			}
		}
	}
	return out
}

// Drop gives the manifest without the sections of an owner: what a changed query remembers no more.
func (m *Manifest) Drop(owner string) *Manifest {
	out := *m
	out.Objects = keepSections(m.Objects, func(_ Object, s SectionIndex) bool { return s.Owner != owner })
	return &out
}

// Rows is how many rows of a table are stored as a kind.
func (m *Manifest) Rows(kind Kind, owner, table string) int64 {
	n := int64(0)
	for _, o := range m.Objects {
		for _, s := range o.Sections {
			if s.Kind == kind && s.Owner == owner && s.Table == table {
				n += s.Rows
			}
		}
	}
	return n
}

// keepSections narrows the index of objects; an object of which nothing is kept goes.
func keepSections(objects []Object, keep func(Object, SectionIndex) bool) []Object {
	var out []Object
	for _, o := range objects {
		var kept []SectionIndex
		for _, s := range o.Sections {
			if keep(o, s) {
				kept = append(kept, s)
			}
		}
		if len(kept) > 0 {
			o.Sections = kept
			out = append(out, o)
		}
	}
	return out
}
