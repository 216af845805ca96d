// Package delta reads Delta Lake tables: a version of one as a relation, its versions one after another as a stream. The log, its
// checkpoints and the deletion vectors are read here; the rows through connectors/parquet.
//
// Invariant: what a table asks of its readers is either done or refused by name, so that rows are right or none are given.
package delta

import (
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Source declares Delta tables.
var Source = connectors.Source{
	Name: "delta", Class: "Delta", Summary: "Read Delta Lake tables: a version, or every change as it is committed.",
	Functions: []string{"delta_scan", "read_delta"}, Holds: "_delta_log", Replayable: true,
	Options: connectors.Options{
		{Name: "path", Type: connectors.String, Required: true, Doc: "The folder of the table, which holds `_delta_log`.", Example: "lake/trades"},
		{Name: "version", Type: connectors.Int, Doc: "Read this version of the table instead of the newest. A stream begins with it.", Example: "12"},
		{Name: "timestamp", Type: connectors.String, Doc: "Read the version that was the newest at this time, which is UTC unless it names an offset.", Example: "2026-11-30 12:00:00"},
		{Name: "start", Type: connectors.Enum, Values: []string{"snapshot", "latest"}, Default: "snapshot", Doc: "Where a stream begins: with the rows of the version, or with what is committed after it."},
		{Name: "append_only", Type: connectors.Bool, Default: "false", Doc: "Rows of the table are never changed or deleted, as its property `delta.appendOnly` says too; then the stream only adds rows, and a version that takes some away is an error."},
		{Name: "poll_interval", Type: connectors.Duration, Default: "1s", Doc: "How often a stream looks for a new version."},
	},
	Relation: newRelation,
	Stream:   newStream,
}

// whichVersion reads the options version and timestamp; version is -1 and when nil where they are not given.
func whichVersion(req connectors.OpenRequest) (version int64, when *time.Time, err error) {
	version = -1
	if req.Settings.Has("version") {
		if version = req.Settings.Int("version"); version < 0 {
			return 0, nil, errs.New(errs.Usage, "options", "connector 'delta': %d is not right for the option %q: versions count from 0", version, "version").WithHint("leave it out for the newest version")
		}
	}
	stamp := req.Settings.String("timestamp")
	if stamp == "" {
		return version, nil, nil
	}
	if version >= 0 {
		return 0, nil, errs.New(errs.Usage, "options", "connector 'delta': version and timestamp both say which version to read").WithHint("leave one out")
	}
	v, err := types.ParseValue(stamp, types.TsTZ)
	if err != nil {
		return 0, nil, errs.New(errs.Usage, "options", "connector 'delta': %q is not right for the option %q: it is no time", stamp, "timestamp").WithHint("a time is written YYYY-MM-DD HH:MM:SS, with +HH:MM behind it when it is not UTC")
	}
	at := time.UnixMicro(v.(int64))
	return -1, &at, nil
}
