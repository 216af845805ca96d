package rules

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// relation is bounded input that has statistics and no rows.
type relation struct {
	fields []types.Field
	stats  flow.Stats
}

func (r *relation) Fields() []types.Field { return r.fields }
func (r *relation) Stats() flow.Stats     { return r.stats }
func (r *relation) Scan(context.Context, flow.ScanRequest) (flow.Scan, error) {
	return nil, errs.New(errs.Internal, "test", "there are no rows")
}

// stream is live input without rows.
type stream struct {
	fields   []types.Field
	updating bool
}

func (s *stream) Fields() []types.Field                        { return s.fields }
func (s *stream) Splits(context.Context) ([]flow.Split, error) { return nil, nil }
func (s *stream) Open(context.Context, flow.Split, flow.Position) (flow.Reader, error) {
	return nil, errs.New(errs.Internal, "test", "there are no rows")
}
func (s *stream) Bounded() bool    { return false }
func (s *stream) Updating() bool   { return s.updating }
func (s *stream) Replayable() bool { return true }

// catalog holds what declare made.
type catalog map[string]*plan.Source

func (c catalog) Resolve(name []string) (*bind.Relation, error) {
	if s := c[strings.ToLower(name[len(name)-1])]; s != nil {
		return &bind.Relation{Source: s}, nil
	}
	return nil, nil
}
func (c catalog) Names() []string                               { return nil }
func (c catalog) ResolveFile(path string) (*plan.Source, error) { return nil, nil }
func (c catalog) TableFunction(string, []types.Value, []types.Type, map[string]types.Value) (*plan.Source, error) {
	return nil, nil
}
func (c catalog) TableFunctions() []string   { return nil }
func (c catalog) Function(string) *fn.Scalar { return nil }
func (c catalog) Functions() []string        { return nil }

// declare adds relations: "name(column TYPE [min max], …) rows", and with the word stream streams whose first column
// of a timestamp type is the event time; a leading * marks a column that is a unique key, or the key of an upsert stream.
func declare(t testing.TB, decls ...string) catalog {
	t.Helper()
	c := catalog{}
	for _, decl := range decls {
		decl, live := strings.CutPrefix(decl, "stream ")
		name, rest, _ := strings.Cut(decl, "(")
		at := strings.LastIndex(rest, ")")
		var rows int64 = 1000
		fmt.Sscan(rest[at+1:], &rows)
		src := &plan.Source{Name: name}
		stats := flow.Stats{Rows: rows, Exact: true, Columns: map[int]flow.ColumnStats{}}
		for i, col := range strings.Split(rest[:at], "; ") {
			parts := strings.Fields(col)
			if strings.HasPrefix(parts[0], "*") {
				parts[0] = parts[0][1:]
				src.Keys = append(src.Keys, []int{i})
			}
			st, err := sql.ParseOne("CREATE TABLE x (a " + parts[1] + ")")
			if err != nil {
				t.Fatal(err)
			}
			typ, err := bind.Type(st.(*sql.CreateTable).Columns[0].Type)
			if err != nil {
				t.Fatal(err)
			}
			src.Fields = append(src.Fields, types.Field{Name: parts[0], Type: typ})
			if len(parts) >= 4 {
				var lo, hi int64
				fmt.Sscan(parts[2], &lo)
				fmt.Sscan(parts[3], &hi)
				stats.Columns[i] = flow.ColumnStats{Min: lo, Max: hi}
			}
			if live && typ.IsTimestamp() && src.Watermark == nil {
				src.Watermark = &plan.WatermarkSpec{Column: i}
			}
		}
		if live {
			for _, k := range src.Keys {
				src.Upsert = append(src.Upsert, k...)
			}
			src.Stream, src.Keys = &stream{fields: src.Fields, updating: src.Upsert != nil}, nil
		} else {
			src.Relation = &relation{fields: src.Fields, stats: stats}
		}
		c[name] = src
	}
	return c
}

func parsed(t testing.TB, text string) *sql.Query {
	t.Helper()
	st, err := sql.ParseOne(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return st.(*sql.Query)
}

func bound(t testing.TB, c catalog, text string) *plan.Query {
	t.Helper()
	q, err := bind.New(c, bind.Options{SQL: text}).Query(parsed(t, text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return q
}
