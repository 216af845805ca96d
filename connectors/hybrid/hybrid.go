// Package hybrid reads the history of a stream from a bounded source and goes on live, spliced without gap or overlap.
//
// Invariant: each record is read in one of the two parts. Where that cannot be known exactly, the stream is refused.
package hybrid

import (
	"context"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Source declares a history and what goes on behind it as one stream.
var Source = connectors.Source{
	Name: "hybrid", Class: "Hybrid", Summary: "Read a history from files or a table, then a topic, spliced at an offset of each partition without gap or overlap.", Replayable: true,
	Options: connectors.Options{
		{Name: "history", Type: connectors.String, Required: true, Secret: true, Doc: "Where the history is: the name of a table over a connector (CREATE TABLE … WITH (connector = …)); in Python a source such as Parquet(…).", Example: "old_trades"},
		{Name: "live", Type: connectors.String, Required: true, Secret: true, Doc: "What goes on: the name of a stream (CREATE STREAM … WITH (connector = 'kafka', …)); in Python a source such as Kafka(…). Its option start counts for nothing.", Example: "new_trades"},
		{Name: "partition_column", Type: connectors.String, Default: "_partition", Doc: "The column of the history that says in which partition a record was."},
		{Name: "offset_column", Type: connectors.String, Default: "_offset", Doc: "The column of the history that says at which offset of its partition a record was. Within a partition the offsets must rise in the order of the files."},
		{Name: "offsets", Type: connectors.String, Doc: "Where the live part begins, by partition (0:120,1:80). The history is read up to there. Left out, and for partitions that are not named, it begins behind the last record of the history.", Example: "0:120,1:80"},
	},
	Stream: open,
}

// open finds the columns of both parts, and where they are spliced.
func open(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
	if req.Other == nil {
		return nil, errs.Bug("open", "the hybrid source was opened without the means to open others")
	}
	if len(req.Key) > 0 {
		return nil, errs.New(errs.Unsupported, "open", "the hybrid stream %q takes no PRIMARY KEY", req.Name)
	}
	past, err := req.Other.Part(req.Settings.String("history"))
	if err != nil {
		return nil, err
	}
	history, err := req.Other.Relation(ctx, req.Name, past)
	if err != nil {
		return nil, err
	}
	s := &stream{name: req.Name, history: history, clock: req.Time()}
	if s.partition, s.offset, err = placeColumns(req, history.Fields()); err != nil {
		return nil, err
	}
	if err := s.setFields(req); err != nil {
		return nil, err
	}
	now, err := req.Other.Part(req.Settings.String("live"))
	if err != nil {
		return nil, err
	}
	now.Schema = s.fields
	delete(now.Options, "start") // positions say where each partition begins
	if s.live, err = req.Other.Stream(ctx, req.Name, now); err != nil {
		return nil, err
	}
	var counted bool
	if s.offsets, counted = s.live.(connectors.Offsets); !counted {
		return nil, errs.New(errs.Unsupported, "open", "the hybrid stream %q cannot go on with the connector %q: its positions are no offsets, so that nobody could say where the history ends in it", req.Name, now.Connector).
			WithHint("the live part is a Kafka topic")
	}
	if s.live.Updating() {
		return nil, errs.New(errs.Unsupported, "open", "the hybrid stream %q goes on with changes, and its history has rows: where one ends cannot be where the other begins", req.Name).
			WithHint("read records as rows, without upsert and change events")
	}
	if s.cuts, err = parseOffsets(req.Settings.String("offsets")); err != nil {
		return nil, err
	}
	return s, s.measure(ctx)
}

// placeColumns finds the columns that say where a record was.
func placeColumns(req connectors.OpenRequest, fields []types.Field) (partition, offset int, err error) {
	at := func(option string) int {
		for i, f := range fields {
			if strings.EqualFold(f.Name, req.Settings.String(option)) {
				return i
			}
		}
		return -1
	}
	partition, offset = at("partition_column"), at("offset_column")
	for _, c := range []struct {
		at     int
		option string
	}{{partition, "partition_column"}, {offset, "offset_column"}} {
		name := req.Settings.String(c.option)
		if c.at < 0 {
			return 0, 0, errs.New(errs.Schema, "open", "the history of %q has no column %q, so that nobody knows which records it has: it cannot be spliced exactly", req.Name, name).
				WithHint("write the history with the columns _partition and _offset of the topic (metadata = true), or name those that have them: partition_column, offset_column")
		}
		if k := fields[c.at].Type.Kind; k != types.Integer && k != types.BigInt {
			return 0, 0, errs.New(errs.Schema, "open", "the column %q of the history of %q is %s, and a place is INTEGER or BIGINT", name, req.Name, fields[c.at].Type)
		}
	}
	return partition, offset, nil
}

// setFields decides the columns: the declared ones, or those of the history, of which the places stay out where the topic would not fill them.
func (s *stream) setFields(req connectors.OpenRequest) error {
	have := s.history.Fields()
	s.fields = req.Schema
	if s.fields == nil {
		for i, f := range have {
			if i != s.partition && i != s.offset || strings.HasPrefix(f.Name, "_") {
				s.fields = append(s.fields, f)
			}
		}
	}
	s.columns = nil
	for _, f := range s.fields {
		at := -1
		for i, h := range have {
			if strings.EqualFold(h.Name, f.Name) {
				at = i
			}
		}
		switch {
		case at < 0:
			return errs.New(errs.Schema, "open", "the history of %q has no column %q", req.Name, f.Name)
		case !have[at].Type.Equal(f.Type):
			return errs.New(errs.Schema, "open", "the column %q of %q is %s, and %s in the history", f.Name, req.Name, f.Type, have[at].Type).
				WithHint("declare it as the history has it")
		}
		s.columns = append(s.columns, at)
	}
	return nil
}

// parseOffsets reads 0:120,1:80.
func parseOffsets(text string) (map[string]int64, error) {
	out := map[string]int64{}
	if text == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		p, o, ok := strings.Cut(strings.TrimSpace(part), ":")
		partition, err1 := strconv.ParseInt(p, 10, 32)
		offset, err2 := strconv.ParseInt(o, 10, 64)
		if !ok || err1 != nil || err2 != nil || partition < 0 || offset < 0 {
			return nil, errs.New(errs.Usage, "options", "connector 'hybrid': offsets = %q are no offsets by partition", text).WithHint("write 0:120,1:80")
		}
		out[strconv.FormatInt(partition, 10)] = offset
	}
	return out, nil
}
