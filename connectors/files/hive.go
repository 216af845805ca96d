package files

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// hiveNull is how Hive spells NULL in a folder name.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// pair is one key=value folder.
type pair struct{ key, value string }

// hivePairs reads the key=value folders above a file, in the order of their keys, which is DuckDB's.
func hivePairs(path string) []pair {
	var out []pair
	parts := strings.Split(filepath.ToSlash(path), "/")
	for _, part := range parts[:len(parts)-1] {
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			continue
		}
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		if decoded, err := url.PathUnescape(value); err == nil {
			value = decoded
		}
		out = append(out, pair{key, value})
	}
	slices.SortStableFunc(out, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return out
}

// partitions are the partition columns of a set: their fields, and per file their values.
type partitions struct {
	fields []types.Field
	values [][]types.Value // by file, then by field
}

// readPartitions reads the partition columns of the paths. mode is the option hive_partitioning.
func readPartitions(paths []string, mode string) (partitions, error) {
	if mode == "false" || len(paths) == 0 {
		return partitions{}, nil
	}
	all := make([][]pair, len(paths))
	for i, path := range paths {
		all[i] = hivePairs(path)
		if !sameKeys(all[i], all[0]) {
			if mode == "true" {
				return partitions{}, errs.New(errs.Source, "read partitions", "the files %q and %q have different key=value folders", paths[0], path).
					WithHint("put all files below the same keys, or set hive_partitioning = false")
			}
			return partitions{}, nil
		}
	}
	p := partitions{fields: make([]types.Field, len(all[0])), values: make([][]types.Value, len(paths))}
	for i := range p.values {
		p.values[i] = make([]types.Value, len(p.fields))
	}
	texts := make([]string, len(paths))
	for c := range p.fields {
		for i := range all {
			texts[i] = all[i][c].value
		}
		t, parse := partitionType(texts)
		p.fields[c] = types.Field{Name: all[0][c].key, Type: t}
		for i, text := range texts {
			if text != hiveNull {
				p.values[i][c], _ = parse(text)
			}
		}
	}
	return p, nil
}

func sameKeys(a, b []pair) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].key != b[i].key {
			return false
		}
	}
	return true
}

// partitionType chooses BIGINT or DATE when every value reads as such, else VARCHAR. 01 is text, as in DuckDB.
func partitionType(texts []string) (types.Type, func(string) (types.Value, bool)) {
	for _, try := range []struct {
		t     types.Type
		parse func(string) (types.Value, bool)
	}{{types.Int64, parsePlainInt}, {types.Date32, parseDate}} {
		if fits(texts, try.parse) {
			return try.t, try.parse
		}
	}
	return types.String, func(s string) (types.Value, bool) { return s, true }
}

func fits(texts []string, parse func(string) (types.Value, bool)) bool {
	some := false
	for _, text := range texts {
		if text == hiveNull {
			continue
		}
		if _, ok := parse(text); !ok {
			return false
		}
		some = true
	}
	return some
}

func parsePlainInt(s string) (types.Value, bool) {
	if decode.Padded([]byte(s)) {
		return nil, false
	}
	return parseBigInt(s)
}

// parseBigInt also takes 01, which may come into a stream whose first files had 10, 11 and 12.
func parseBigInt(s string) (types.Value, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func parseDate(s string) (types.Value, bool) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return nil, false
	}
	return t.Unix() / 86400, true
}
