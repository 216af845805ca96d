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
