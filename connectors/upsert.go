package connectors

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// UpsertOption is the option of sources that can be read as what becomes of keys (flow.Upserts). how says what a row and
// what a deletion is there.
func UpsertOption(how string) Option {
	return Option{Name: "upsert", Type: Bool, Default: "false", Doc: "The stream is a table by key, whose PRIMARY KEY must be declared: " + how}
}

// KeyColumns finds the columns of the declared PRIMARY KEY, for a source opened with upsert = true; nil for others.
func KeyColumns(req OpenRequest, fields []types.Field) ([]int, error) {
	if !req.Settings.Bool("upsert") {
		return nil, nil
	}
	if len(req.Key) == 0 {
		return nil, errs.New(errs.Schema, "open", "with upsert = true the stream %q needs a PRIMARY KEY: whose row is it that a new one replaces?", req.Name).
			WithHint("write PRIMARY KEY (column, …) behind the columns, or the option primary_key = 'column, …'")
	}
	var key []int
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	for _, name := range req.Key {
		at := slices.IndexFunc(fields, func(f types.Field) bool { return strings.EqualFold(f.Name, name) })
		if at < 0 {
			return nil, errs.New(errs.Schema, "open", "the key of the stream %q names no column %q", req.Name, name).WithHint("%s", errs.DidYouMean(name, names))
		}
		if slices.Contains(key, at) {
			return nil, errs.New(errs.Schema, "open", "the key of the stream %q names the column %q twice", req.Name, name)
		}
		key = append(key, at)
	}
	return key, nil
}

// CheckUpserts refuses rows that a program pushes and that say nothing of a key: a NULL in the key, another weight than
// those of a row and of a deletion. weights nil is +1 each.
func CheckUpserts(name string, fields []types.Field, key []int, cols []arrow.Array, weights []int64) error {
	for _, at := range key {
		if cols[at].NullN() > 0 {
			return errs.New(errs.Data, "push", "a row of %q is NULL in the column %q of its PRIMARY KEY", name, fields[at].Name)
		}
	}
	for _, w := range weights {
		if w != 1 && w != -1 {
			return errs.New(errs.Usage, "push", "a row of %q has the weight %d", name, w).
				WithHint("%s is a table by key: +1 is the row of a key, -1 deletes the key", flow.WeightColumn)
		}
	}
	return nil
}

// SinkKey finds the columns that the option key of a sink names, as positions in its fields; nil where it names none. A key that does not tell the rows of the
// query apart is refused, and so is one beside a changelog.
func SinkKey(what string, req SinkRequest) ([]int, error) {
	given := req.Settings.List("key")
	if len(given) == 0 {
		return nil, nil
	}
	if req.Settings.Bool(ChangelogOption.Name) {
		return nil, errs.New(errs.Usage, "options", "%s: the options key and changelog exclude each other", what).WithHint("with a key the table holds the rows themselves; a changelog holds what happened to them")
	}
	key, err := keyNamed(given, req.Fields)
	if err != nil {
		return nil, err
	}
	return key, UniqueKey(what, key, req)
}

// keyNamed finds the columns of a sink's key by their names, in whatever case.
func keyNamed(names []string, fields []types.Field) (key []int, err error) {
	for _, name := range names {
		at := slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == name })
		if at < 0 {
			at = slices.IndexFunc(fields, func(f types.Field) bool { return strings.EqualFold(f.Name, name) })
		}
		switch {
		case at < 0:
			have := make([]string, len(fields))
			for i, f := range fields {
				have[i] = f.Name
			}
			e := errs.New(errs.Schema, "open sink", "the query has no column %q to be of the key; it has %s", name, strings.Join(have, ", "))
			if hint := errs.DidYouMean(name, have); hint != "" {
				return nil, e.WithHint("%s", hint)
			}
			return nil, e
		case slices.Contains(key, at):
			return nil, errs.New(errs.Usage, "open sink", "the key names the column %q twice", name)
		}
		key = append(key, at)
	}
	return key, nil
}

// UniqueKey refuses a key that several rows of the query may have: one of them would overwrite the others, and its going delete them.
func UniqueKey(what string, key []int, req SinkRequest) error {
	names := func(columns []int) string {
		out := make([]string, len(columns))
		for i, at := range columns {
			out[i] = req.Fields[at].Name
		}
		if len(out) == 0 {
			return "no column"
		}
		return strings.Join(out, ", ")
	}
	var unique []string
	for _, u := range req.Keys {
		if !slices.ContainsFunc(u, func(at int) bool { return !slices.Contains(key, at) }) {
			return nil
		}
		unique = append(unique, names(u))
	}
	e := errs.New(errs.Unsupported, "open sink", "%s cannot write by the key %s, as several rows of the query may have the same", what, names(key))
	if len(unique) == 0 {
		return e.WithHint("group by these columns, or keep one row of each: QUALIFY row_number() OVER (PARTITION BY %s ORDER BY …) = 1", names(key))
	}
	return e.WithHint("these columns are unique: %s", strings.Join(unique, "; "))
}
