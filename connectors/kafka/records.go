package kafka

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// records turns deltas into records.
type records struct {
	fields    []types.Field
	key       int // column of the key, -1: none
	changelog bool
}

func newRecords(req connectors.SinkRequest) (*records, error) {
	r := &records{key: -1}
	var err error
	if r.fields, r.changelog, err = connectors.AppendFields("the Kafka sink", req); err != nil {
		return nil, err
	}
	name := req.Settings.String("key")
	if name == "" {
		return r, nil
	}
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		if names[i] = f.Name; f.Name == name {
			r.key = i
		}
	}
	if r.key < 0 {
		return nil, errs.New(errs.Schema, "open sink", "the query has no column %q to be the key; it has %s", name, strings.Join(names, ", "))
	}
	if k := r.fields[r.key].Type.Kind; k != types.Varchar {
		return nil, errs.New(errs.Schema, "open sink", "the key column %q is %s and must be VARCHAR", name, r.fields[r.key].Type).WithHint("cast it in the query")
	}
	return r, nil
}

// each hands the records of a delta to send.
func (r *records) each(d flow.Delta, send func(*kgo.Record)) error {
	if d.Rows() == 0 {
		return nil
	}
	cols := d.Columns()
	var repeats []int64
	var err error
	if r.changelog {
		cols = connectors.ChangeColumns(d)
	} else if repeats, err = connectors.Repeats("the Kafka sink", d); err != nil {
		return err
	}
	enc, err := djson.NewEncoder(r.fields, cols)
	if err != nil {
		return errs.New(errs.Usage, "write", "the Kafka sink: %w", err)
	}
	for row := range d.Rows() {
		times := int64(1)
		if repeats != nil {
			times = repeats[row]
		}
		var key []byte
		if r.key >= 0 && cols[r.key].IsValid(row) {
			key = []byte(cols[r.key].(*array.String).Value(row))
		}
		value := enc.Append(nil, row)
		for range times {
			send(&kgo.Record{Key: key, Value: value})
		}
	}
	return nil
}
