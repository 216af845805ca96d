package riverbed

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// entry is what a name in the catalog stands for; exactly one of the pointers is set.
type entry struct {
	name   string
	temp   bool
	table  *memTable
	view   *bind.View
	mat    *matView
	source *plan.Source // stream, or table over a connector
	sink   *sinkEntry
	sql    string         // CREATE statement, for SHOW
	origin *ConnectorSpec // of a stream over a connector
}

type sinkEntry struct {
	spec    ConnectorSpec
	columns []types.Field // declared; may be empty
}

func (e *entry) kind() string {
	switch {
	case e.table != nil:
		return "TABLE"
	case e.view != nil:
		return "VIEW"
	case e.mat != nil:
		return "MATERIALIZED VIEW"
	case e.sink != nil:
		return "SINK"
	case e.source.Stream != nil:
		return "STREAM"
	}
	return "TABLE"
}

func (e *entry) columns() []types.Field {
	switch {
	case e.table != nil:
		return e.table.columns
	case e.mat != nil:
		return e.mat.fields
	case e.source != nil:
		return e.source.Fields
	case e.sink != nil:
		return e.sink.columns
	}
	return nil
}

// catalog holds the names of a session. Lookups ignore case. It is never changed once a session has it: a statement that
// creates or drops puts another in its place, and what a statement reads is one moment's.
type catalog struct {
	entries map[string]*entry // by lower-case name
	udfs    map[string]*fn.Scalar
	objects map[string]any // macros, sequences, indexes and schemas, by kind and name in lower case; see objects.go
	schema  string         // the current one
}

func newCatalog() *catalog {
	return &catalog{entries: map[string]*entry{}, udfs: map[string]*fn.Scalar{}, objects: map[string]any{}, schema: mainSchema}
}

func (c *catalog) get(name string) *entry { return c.entries[strings.ToLower(name)] }

// with is the catalog with an entry more, in the place of the one of its name.
func (c *catalog) with(e *entry) *catalog {
	n := *c
	n.entries = maps.Clone(c.entries)
	n.entries[strings.ToLower(e.name)] = e
	return &n
}

// without is the catalog without a name.
func (c *catalog) without(name string) *catalog {
	n := *c
	n.entries = maps.Clone(c.entries)
	delete(n.entries, strings.ToLower(name))
	return &n
}

// withFunction is the catalog with a function of the host more.
func (c *catalog) withFunction(f *fn.Scalar) *catalog {
	n := *c
	n.udfs = maps.Clone(c.udfs)
	n.udfs[f.Name] = f
	return &n
}

// names lists everything, for suggestions.
func (c *catalog) names() []string {
	var out []string
	for _, e := range c.entries {
		out = append(out, e.name)
	}
	slices.Sort(out)
	return out
}

func (c *catalog) list(kinds ...string) []*entry {
	var out []*entry
	for _, e := range c.entries {
		if slices.Contains(kinds, e.kind()) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return out
}

// scopeCatalog is the catalog as one statement sees it: the session's, with the caller's local variables behind it.
type scopeCatalog struct {
	s      *Session
	cat    *catalog
	ctx    context.Context
	locals map[string]flow.Relation // by the name of the variable
	params bind.Params              // of the statement's text
	macros map[string]*bind.Macro   // what the statement called, by name in lower case
	used   []*entry                 // what the statement reads, for dependencies
	// reading: a materialized view is read as its rows; otherwise (in the definition of another view) as its query.
	reading bool
	// following: __late and __bad are read as streams of what comes; otherwise as the rows that are there.
	following bool
	instead   map[string]*bind.Relation // rows of a statement that stand for a name, in lower case
	kept      bool                      // the statement reads __late or __bad
	values    []types.Type              // of the columns that an INSERT's VALUES fill
	opened    map[string]flow.Relation  // files, so that all that mention them see the same
}

var _ bind.SessionCatalog = (*scopeCatalog)(nil)

// scope is the present catalog for what stands by itself: an option, a default, the type of a column.
func (s *Session) scope() *scopeCatalog { return &scopeCatalog{s: s, cat: s.cat.Load()} }

func (c *scopeCatalog) Resolve(name []string) (*bind.Relation, error) {
	key, ok := c.cat.key(name)
	if !ok || c.cat.get(key) == nil {
		if src, err := c.system(strings.ToLower(strings.Join(name, ".")), true, nil); src != nil || err != nil {
			return &bind.Relation{Source: src}, err
		}
	}
	if !ok {
		return nil, nil
	}
	if r := c.instead[strings.ToLower(key)]; r != nil {
		return r, nil
	}
	base := name[len(name)-1]
	if e := c.cat.get(key); e != nil {
		c.used = append(c.used, e)
		switch {
		case e.table != nil:
			return &bind.Relation{Source: e.table.source()}, nil
		case e.view != nil:
			return &bind.Relation{View: e.view}, nil
		case e.mat != nil:
			if !c.reading {
				return &bind.Relation{View: e.mat.view}, nil
			}
			return &bind.Relation{Source: e.mat.source()}, nil
		case e.source != nil:
			return &bind.Relation{Source: e.source}, nil
		}
		return nil, errs.New(errs.Schema, "bind", "%q is a sink; it can be written, not read", e.name)
	}
	for _, k := range []*keptRows{c.s.late, c.s.bad} {
		if strings.EqualFold(base, k.name) {
			c.kept = true
			if c.following {
				return &bind.Relation{Source: k.followed(c.s)}, nil
			}
			return &bind.Relation{Source: k.source()}, nil
		}
	}
	if rel := c.local(base); rel != nil {
		return &bind.Relation{Source: &plan.Source{Name: base, Relation: rel, Fields: rel.Fields()}}, nil
	}
	return nil, nil
}

// local finds a variable of the caller: the one of exactly this name, or else the first whose name differs by case alone.
func (c *scopeCatalog) local(name string) flow.Relation {
	if rel := c.locals[name]; rel != nil {
		return rel
	}
	for _, n := range slices.Sorted(maps.Keys(c.locals)) {
		if strings.EqualFold(n, name) {
			return c.locals[n]
		}
	}
	return nil
}

func (c *scopeCatalog) Names() []string {
	var out []string
	for _, e := range c.cat.entries {
		if e.sink == nil {
			out = append(out, e.name)
		}
	}
	out = slices.AppendSeq(out, maps.Keys(c.locals))
	slices.Sort(out)
	return out
}

func (c *scopeCatalog) ResolveFile(path string) (*plan.Source, error) {
	ext := strings.ToLower(filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")))
	var known []string
	for i := range all.Sources {
		src := &all.Sources[i]
		for _, e := range src.Extensions {
			if e == ext {
				return c.open(src, path, map[string]string{"path": path}, nil)
			}
			known = append(known, e)
		}
	}
	if src := c.holding(path); src != nil {
		return c.open(src, path, map[string]string{"path": path}, nil)
	}
	return nil, errs.New(errs.Schema, "bind", "cannot tell the format of %q from its ending", path).
		WithHint("known endings: %s; or name the format: read_parquet('%s')", strings.Join(known, ", "), path)
}

// holding finds the source of a folder by what is in it.
func (c *scopeCatalog) holding(path string) *connectors.Source {
	store, dir, err := objstore.For(path)
	if err != nil || objstore.HasGlob(dir) {
		return nil
	}
	for i := range all.Sources {
		if src := &all.Sources[i]; src.Holds != "" {
			if found, err := store.Glob(c.ctx, strings.TrimRight(dir, "/")+"/"+src.Holds+"/*.{json,parquet}"); err == nil && len(found) > 0 {
				return src
			}
		}
	}
	return nil
}

func (c *scopeCatalog) open(src *connectors.Source, name string, options map[string]string, schema []types.Field) (*plan.Source, error) {
	set, err := src.Options.Parse("connector '"+src.Name+"'", options)
	if err != nil {
		return nil, err
	}
	if src.Relation == nil {
		return nil, errs.New(errs.Usage, "open", "the connector %q has no bounded form; declare a stream over it", src.Name)
	}
	key := fmt.Sprintf("%s %q %q %v", src.Name, name, options, schema) // a map is printed in the order of its keys
	rel := c.opened[key]
	if rel == nil {
		if rel, err = src.Relation(c.ctx, connectors.OpenRequest{Name: name, Settings: set, Schema: schema, Clock: c.s.clock}); err != nil {
			return nil, err
		}
		if c.opened == nil {
			c.opened = map[string]flow.Relation{}
		}
		c.opened[key] = rel
	}
	return &plan.Source{Name: name, Relation: rel, Fields: rel.Fields()}, nil
}

func (c *scopeCatalog) TableFunction(name string, args []types.Value, argTypes []types.Type, named map[string]types.Value) (*plan.Source, error) {
	lower := strings.ToLower(name)
	if lower == "range" || lower == "generate_series" {
		rel, err := newSeries(lower, args, argTypes)
		if err != nil {
			return nil, err
		}
		return &plan.Source{Name: name, Relation: rel, Fields: rel.Fields()}, nil
	}
	if src, err := c.system(lower, false, args); src != nil || err != nil {
		return src, err
	}
	if lower == "state" {
		rel, err := c.s.stateRelation(c.ctx, args)
		if err != nil {
			return nil, err
		}
		return &plan.Source{Name: name, Relation: rel, Fields: rel.Fields()}, nil
	}
	for i := range all.Sources {
		src := &all.Sources[i]
		for _, f := range src.Functions {
			if f != lower {
				continue
			}
			options := map[string]string{}
			for k, v := range named {
				options[strings.ToLower(k)] = optionText(v)
			}
			if len(args) == 1 {
				what := "path"
				if !slices.Contains(src.Options.Names(), what) {
					what = "table"
				}
				options[what] = optionText(args[0])
			} else if len(args) > 1 {
				return nil, errs.New(errs.Schema, "bind", "%s takes one path, one list of paths or one table, not %d arguments", name, len(args))
			}
			return c.open(src, name, options, nil)
		}
	}
	return nil, nil
}

// optionText writes a constant as the text of a connector option; a list becomes comma separated.
func optionText(v types.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []types.Value:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = optionText(x)
		}
		return strings.Join(parts, ",")
	case bool:
		if v {
			return "true"
		}
		return "false"
	case int64:
		return types.Format(v, types.Int64)
	case float64:
		return types.Format(v, types.Float64)
	}
	return fmt.Sprint(v)
}

func (c *scopeCatalog) TableFunctions() []string {
	names := []string{"range", "generate_series", "state"}
	for _, r := range systemRelations {
		if !r.table {
			names = append(names, r.name)
		}
	}
	for _, s := range all.Sources {
		names = append(names, s.Functions...)
	}
	return names
}

func (c *scopeCatalog) Functions() []string { return slices.Sorted(maps.Keys(c.cat.udfs)) }

func (c *scopeCatalog) Function(name string) *fn.Scalar {
	low := strings.ToLower(name)
	if f := c.cat.udfs[low]; f != nil {
		return f
	}
	return c.s.sequenceFunction(low)
}
