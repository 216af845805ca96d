package optest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rules"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// catalog holds the relations of a test. CREATE TABLE makes an updating table, CREATE STREAM an append-only stream, one with
// PRIMARY KEY a stream without old images; WITH
// (kind = 'updating' | 'bounded') makes an updating stream or a relation that ends, lateness_ms sets the allowed lateness.
type catalog struct {
	sources map[string]*plan.Source
	order   []*plan.Source
}

func declare(t testing.TB, ddl string) *catalog {
	t.Helper()
	c := &catalog{sources: map[string]*plan.Source{}}
	stmts, err := sql.Parse(ddl)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range stmts {
		var rel sql.Relation
		src := &plan.Source{}
		switch st := st.(type) {
		case *sql.CreateTable:
			rel, src.Table = st.Relation, true
		case *sql.CreateStream:
			rel, src.Stream = st.Relation, &stream{}
		default:
			t.Fatalf("%T declares no relation", st)
		}
		if err := fill(src, &rel); err != nil {
			t.Fatal(err)
		}
		c.sources[strings.ToLower(src.Name)] = src
		c.order = append(c.order, src)
	}
	return c
}

func fill(src *plan.Source, rel *sql.Relation) error {
	src.Name = rel.Name[len(rel.Name)-1].Name
	for _, col := range rel.Columns {
		typ, err := bind.Type(col.Type)
		if err != nil {
			return err
		}
		src.Fields = append(src.Fields, types.Field{Name: col.Name.Name, Type: typ})
	}
	lateness := int64(0)
	for _, o := range rel.With {
		text := strings.Trim(sql.Print(o.Value), "'")
		switch {
		case o.Key == "kind" && text == "updating":
			src.Stream = &stream{updating: true}
		case o.Key == "kind" && text == "bounded":
			src.Stream, src.Table = nil, false
		case o.Key == "lateness_ms":
			if _, err := fmt.Sscan(text, &lateness); err != nil {
				return err
			}
		}
	}
	for _, k := range rel.Constraints {
		for i, f := range src.Fields {
			if src.Stream != nil && slices.ContainsFunc(k.Columns, func(c sql.Ident) bool { return c.Name == f.Name }) {
				src.Upsert = append(src.Upsert, i)
				src.Stream = &stream{updating: true}
			}
		}
	}
	if src.Stream == nil {
		src.Relation = &relation{fields: src.Fields}
	} else {
		src.Stream.(*stream).fields = src.Fields
	}
	if w := rel.Watermark; w != nil {
		src.Watermark = &plan.WatermarkSpec{LatenessUS: lateness * 1000}
		for i, f := range src.Fields {
			if strings.EqualFold(f.Name, w.Column.Name) {
				src.Watermark.Column = i
			}
		}
		e, err := bind.New(&catalog{}, bind.Options{}).Expr(w.Expr, src.Fields, types.Type{})
		if err != nil {
			return err
		}
		// A bare column says nothing of when: such a stream is moved by hand, as a push stream is.
		if _, bare := e.(*expr.Col); !bare {
			src.Watermark.Expr = e
		}
	}
	return nil
}

func (c *catalog) Resolve(name []string) (*bind.Relation, error) {
	if s := c.sources[strings.ToLower(name[len(name)-1])]; s != nil {
		return &bind.Relation{Source: s}, nil
	}
	return nil, nil
}

func (c *catalog) Names() []string                          { return nil }
func (c *catalog) ResolveFile(string) (*plan.Source, error) { return nil, fmt.Errorf("no files here") }
func (c *catalog) TableFunction(string, []types.Value, []types.Type, map[string]types.Value) (*plan.Source, error) {
	return nil, nil
}
func (c *catalog) TableFunctions() []string   { return nil }
func (c *catalog) Function(string) *fn.Scalar { return nil }
func (c *catalog) Functions() []string        { return nil }

// query plans a SELECT for a mode.
func (c *catalog) query(text string, mode plan.Mode) (*plan.Query, error) {
	st, err := sql.ParseOne(text)
	if err != nil {
		return nil, err
	}
	sel, ok := st.(*sql.Query)
	if !ok {
		return nil, fmt.Errorf("%T is no query", st)
	}
	q, err := bind.New(c, bind.Options{SQL: text}).Query(sel)
	if err != nil {
		return nil, err
	}
	q, _, err = rules.Optimize(q, mode, rules.Options{})
	return q, err
}

// stream is declared and never read: tests push its rows.
type stream struct {
	fields   []types.Field
	updating bool
}

func (s *stream) Fields() []types.Field                        { return s.fields }
func (s *stream) Splits(context.Context) ([]flow.Split, error) { return nil, nil }
func (s *stream) Open(context.Context, flow.Split, flow.Position) (flow.Reader, error) {
	return nil, fmt.Errorf("a test stream is pushed, not read")
}
func (s *stream) Bounded() bool    { return false }
func (s *stream) Updating() bool   { return s.updating }
func (s *stream) Replayable() bool { return false }

// relation is a bounded input. An incremental test pushes its rows; the oracle scans them.
type relation struct {
	fields []types.Field
	cols   []arrow.Array
	rows   int
}

func (r *relation) Fields() []types.Field { return r.fields }
func (r *relation) Stats() flow.Stats     { return flow.Stats{Rows: -1} }
func (r *relation) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return &scan{rel: r, at: req.Columns}, nil
}
