package delta

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// readable are the reader features of table protocol 3 that this reader knows.
var readable = []string{
	"deletionVectors",
	"columnMapping",
	"timestampNtz",
	"v2Checkpoint",
	"typeWidening", "typeWidening-preview",
	"vacuumProtocolCheck",                // binds who vacuums
	"variantType", "variantType-preview", // a column of the type is refused by itself, and some writers list it without any
}

// check refuses a table that asks its readers for more than we know, and names what.
func (p *protocol) check(table string) error {
	var unknown []string
	for _, f := range p.ReaderFeatures {
		if !slices.Contains(readable, f) {
			unknown = append(unknown, f)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return errs.New(errs.Unsupported, "open", "the Delta table %q uses %s, which this reader does not know", table, strings.Join(unknown, ", ")).
			WithHint("it knows %s; drop the feature from the table, or copy the table to Parquet files", strings.Join(readable, ", "))
	}
	if p.MinReaderVersion < 1 || p.MinReaderVersion > 3 {
		return errs.New(errs.Unsupported, "open", "the Delta table %q asks for a reader of protocol %d, and this one reads 1, 2 and 3", table, p.MinReaderVersion).
			WithHint("copy the table to Parquet files with the engine that wrote it")
	}
	return nil
}
