package sqltest

import (
	"context"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Growing is a relation whose rows a test changes between runs. It hands its rows out in small morsels, so that
// parallel operators have something to share.
type Growing struct {
	fields []types.Field
	key    []int // of an upsert relation, whose rows have the split and the weight behind their fields
	rows   [][]types.Value
	Morsel int // rows; 0 is all in one
}

// NewGrowing starts empty.
func NewGrowing(fields []types.Field) *Growing { return &Growing{fields: fields} }

// NewGrowingOf starts empty, for what TakenLogs gives of a relation.
func NewGrowingOf(r *Relation) *Growing { return &Growing{fields: r.Fields, key: r.Key} }

// Key implements flow.Upserts.
func (g *Growing) Key() []int { return g.key }

// Set replaces the rows.
func (g *Growing) Set(rows [][]types.Value) { g.rows = rows }

// Fields implements flow.Relation.
func (g *Growing) Fields() []types.Field { return g.fields }

// Stats implements flow.Relation.
func (g *Growing) Stats() flow.Stats { return flow.Stats{Rows: int64(len(g.rows)), Exact: true} }

// Scan implements flow.Relation.
func (g *Growing) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	fields := at(append(slices.Clone(g.fields), types.Field{Name: flow.SplitColumn, Type: types.Int64}, types.Field{Name: flow.WeightColumn, Type: types.Int64}), req.Columns)
	size := g.Morsel
	if size == 0 {
		size = max(len(g.rows), 1)
	}
	var parts []flow.Morsel
	for from := 0; from < len(g.rows); from += size {
		rows := make([][]types.Value, 0, size)
		for _, r := range g.rows[from:min(from+size, len(g.rows))] {
			row := make([]types.Value, len(fields))
			for i, c := range req.Columns {
				row[i] = r[c]
			}
			rows = append(rows, row)
		}
		parts = append(parts, flow.Morsel{Seq: int64(len(parts)), Batch: Batch(fields, rows)})
	}
	out := &growingScan{next: make(chan flow.Morsel, len(parts))}
	for _, p := range parts {
		out.next <- p
	}
	close(out.next)
	return out, nil
}

type growingScan struct{ next chan flow.Morsel }

func (s *growingScan) Next(context.Context, int) (*flow.Morsel, error) {
	m, ok := <-s.next
	if !ok {
		return nil, nil
	}
	return &m, nil
}

func (s *growingScan) Close() error { return nil }

// pushed is a stream that a manual run pushes to; nobody opens it.
type pushed struct {
	fields   []types.Field
	updating bool
	key      []int
}

func (p pushed) Fields() []types.Field                        { return p.fields }
func (p pushed) Splits(context.Context) ([]flow.Split, error) { return nil, nil }
func (p pushed) Bounded() bool                                { return false }
func (p pushed) Updating() bool                               { return p.updating }
func (p pushed) Key() []int                                   { return p.key }
func (p pushed) Replayable() bool                             { return false }
func (p pushed) Open(context.Context, flow.Split, flow.Position) (flow.Reader, error) {
	return nil, errs.Bug("test", "a pushed stream was opened")
}
