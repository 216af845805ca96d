package delta

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// fileStats is what the log says of a file's rows, those included that a deletion vector hides.
type fileStats struct {
	Rows  *int64                     `json:"numRecords"`
	Min   map[string]json.RawMessage `json:"minValues"` // by physical name
	Max   map[string]json.RawMessage `json:"maxValues"`
	Nulls map[string]json.RawMessage `json:"nullCount"`
	Tight *bool                      `json:"tightBounds"`
}

func parseStats(text string) (s fileStats, err error) {
	if text == "" {
		return s, nil
	}
	err = json.Unmarshal([]byte(text), &s)
	if err == nil && s.Rows != nil && *s.Rows < 0 {
		s.Rows = nil
	}
	return s, cutOff(err)
}

// rows is how many rows of the file are in the table; -1: unknown.
func (f *dataFile) rows() int64 {
	if f.parsed.Rows == nil {
		return -1
	}
	n := *f.parsed.Rows
	if f.Vector != nil {
		n -= f.Vector.Cardinality
	}
	return max(n, 0)
}

// stats are the bounds of a column in one file; ok is false when the log says nothing of it.
func (f *dataFile) stats(c *column) (s flow.ColumnStats, ok bool) {
	s.Nulls = -1
	if c.partition {
		v, err := c.partitionValue(f)
		if err != nil {
			return s, false // the scan says so
		}
		if v == nil {
			return flow.ColumnStats{Nulls: f.rows()}, true
		}
		return flow.ColumnStats{Min: v, Max: v, Distinct: 1, Tight: true}, true
	}
	if n, err := strconv.ParseInt(string(f.parsed.Nulls[c.physical]), 10, 64); err == nil {
		switch {
		case n == 0, f.Vector == nil:
			s.Nulls = n
		case f.parsed.Rows != nil && n == *f.parsed.Rows:
			s.Nulls = f.rows()
		}
	}
	s.Min, s.Max = bound(f.parsed.Min[c.physical], c.Type), bound(f.parsed.Max[c.physical], c.Type)
	if s.Min == nil || s.Max == nil {
		s.Min, s.Max = nil, nil
		return s, s.Nulls >= 0
	}
	if v, isInt := s.Max.(int64); isInt && c.Type.IsTimestamp() {
		s.Max = v + 999 // writers cut timestamps to milliseconds
	}
	s.Tight = (c.Type.IsInteger() || c.Type.Kind == types.Date) && f.Vector == nil && (f.parsed.Tight == nil || *f.parsed.Tight)
	return s, true
}

// bound reads a bound; nil where it is not exactly known.
func bound(raw json.RawMessage, t types.Type) types.Value {
	text := string(raw)
	if len(raw) == 0 || text == "null" {
		return nil
	}
	quoted := raw[0] == '"'
	if quoted && json.Unmarshal(raw, &text) != nil {
		return nil
	}
	switch {
	case t.IsInteger():
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || quoted {
			return nil
		}
		return n
	case t.IsFloat():
		if quoted { // NaN and the infinities
			return nil
		}
	case t.Kind == types.Decimal:
		// Some writers take decimals through doubles, which are exact up to 15 digits.
		if quoted || t.Width > 15 || strings.ContainsAny(text, "eE") {
			return nil
		}
	case t.Kind == types.Varchar, t.Kind == types.Date, t.IsTimestamp():
		if !quoted {
			return nil
		}
	default:
		return nil
	}
	v, err := types.ParseValue(text, t)
	if err != nil {
		return nil
	}
	return v
}

// tableStats are the statistics of all files together.
func tableStats(columns []column, dataFiles []*dataFile) flow.Stats {
	out := flow.Stats{Exact: true, Columns: map[int]flow.ColumnStats{}}
	for _, f := range dataFiles {
		n := f.rows()
		if n < 0 {
			// For the order of joins alone: some eight bytes a value.
			out.Exact = false
			if f.Size != nil {
				n = *f.Size/int64(8*len(columns)+1) + 1
			}
		}
		out.Rows += max(n, 0)
	}
	for i := range columns {
		if s, ok := columnStats(&columns[i], dataFiles); ok {
			out.Columns[i] = s
		}
	}
	return out
}

func columnStats(c *column, dataFiles []*dataFile) (out flow.ColumnStats, some bool) {
	values, bare := map[types.Value]bool{}, false
	for _, f := range dataFiles {
		if f.rows() == 0 {
			continue
		}
		s, ok := f.stats(c)
		if !ok {
			return flow.ColumnStats{}, false
		}
		if c.partition && s.Min != nil && c.Type.Kind != types.Blob {
			values[s.Min] = true
		}
		nulls := f.rows() == s.Nulls // and nothing else
		switch {
		case !some:
			out, some, bare = s, true, nulls
		case nulls:
			out.Nulls = sum(out.Nulls, s.Nulls)
		case bare:
			s.Nulls = sum(out.Nulls, s.Nulls)
			out, bare = s, false
		default:
			out = merge(out, s)
		}
	}
	if len(values) > 0 {
		out.Distinct = int64(len(values))
	}
	return out, some
}

// merge puts the statistics of more rows to those of some.
func merge(a, b flow.ColumnStats) flow.ColumnStats {
	a.Nulls = sum(a.Nulls, b.Nulls)
	a.Distinct, a.Tight = max(a.Distinct, b.Distinct), a.Tight && b.Tight
	if a.Min == nil || b.Min == nil {
		a.Min, a.Max, a.Tight = nil, nil, false
		return a
	}
	if o, ok := flow.CompareBounds(b.Min, a.Min); ok && o < 0 {
		a.Min = b.Min
	}
	if o, ok := flow.CompareBounds(b.Max, a.Max); ok && o > 0 {
		a.Max = b.Max
	}
	return a
}

// sum adds counts of which -1 is unknown.
func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}
