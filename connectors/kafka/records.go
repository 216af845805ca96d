package kafka

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/decode"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// records is how the rows of a query become records.
type records struct {
	fields    []types.Field // of the query, with the weight last for a changelog
	format    string
	key       []int // columns of the record's key; empty: none
	text      bool  // the key is the text of its one column, not a JSON object
	headers   []int // columns that become headers
	value     []int // those of the value: all but the headers, and for raw the key
	changelog bool
	upsert    bool
}

func newRecords(req connectors.SinkRequest) (*records, error) {
	s := req.Settings
	r := &records{format: s.String("format"), changelog: s.Bool(connectors.ChangelogOption.Name), upsert: s.Bool("upsert")}
	takesChanges := r.upsert || r.format == "debezium"
	switch {
	case r.changelog && takesChanges:
		return nil, errs.New(errs.Usage, "open sink", "the Kafka sink: changelog = true goes neither with upsert = true nor with format = 'debezium', which write changes in their own way")
	case r.upsert && r.format == "debezium":
		return nil, errs.New(errs.Usage, "open sink", "the Kafka sink: upsert = true and format = 'debezium' exclude each other").
			WithHint("with a key, format = 'debezium' writes one change a key already")
	}
	req.Updating = req.Updating && !takesChanges
	var err error
	if r.fields, _, err = connectors.AppendFields("the Kafka sink", req); err != nil {
		return nil, err
	}
	if r.key, err = r.columns(s.List("key"), "the key"); err != nil {
		return nil, err
	}
	if r.headers, err = r.columns(s.List("headers"), "a header"); err != nil {
		return nil, err
	}
	for i := range r.fields {
		if !slices.Contains(r.headers, i) && !(r.format == "raw" && slices.Contains(r.key, i)) {
			r.value = append(r.value, i)
		}
	}
	if r.format == "raw" {
		if len(r.value) != 1 || r.fields[r.value[0]].Type.Kind != types.Varchar && r.fields[r.value[0]].Type.Kind != types.Blob {
			return nil, errs.New(errs.Schema, "open sink", "with format = 'raw' the value is one column, VARCHAR or BLOB; it would be %s", r.names(r.value)).
				WithHint("write the other columns as headers, or leave them out of the query")
		}
	}
	if format := s.String("key_format"); format == "text" && len(r.key) > 1 {
		return nil, errs.New(errs.Usage, "open sink", "a key of %d columns is not written with key_format = 'text'; it takes json", len(r.key))
	} else if len(r.key) == 1 {
		r.text = format != "json"
	}
	for _, at := range append(slices.Clone(r.headers), r.keyText()...) {
		if t := r.fields[at].Type; t.IsNested() {
			return nil, errs.New(errs.Schema, "open sink", "the column %q is %s, which has no text to be a key or a header", r.fields[at].Name, t).WithHint("cast it in the query, or set key_format = 'json'")
		}
	}
	if !r.upsert && !r.byKey() {
		return r, nil
	}
	return r, r.checkUnique(req)
}

func (r *records) keyText() []int {
	if r.text {
		return r.key
	}
	return nil
}

// byKey: changes are gathered by key, and each key is written once an epoch.
func (r *records) byKey() bool { return r.upsert || r.format == "debezium" && len(r.key) > 0 }

// checkUnique refuses a key that several rows may have: one of them would overwrite, and its going delete, the others.
func (r *records) checkUnique(req connectors.SinkRequest) error {
	if r.upsert && len(r.key) == 0 {
		return errs.New(errs.Usage, "open sink", "upsert = true needs the option key: whose row is it that a new one replaces?").WithHint("write key = 'column, …'")
	}
	return connectors.UniqueKey("the Kafka sink", r.key, req)
}

func (r *records) names(columns []int) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = r.fields[c].Name
	}
	if len(names) == 0 {
		return "no column"
	}
	return strings.Join(names, ", ")
}

// columns finds columns by their names.
func (r *records) columns(names []string, what string) ([]int, error) {
	all := make([]string, len(r.fields))
	for i, f := range r.fields {
		all[i] = f.Name
	}
	var out []int
	for _, name := range names {
		at := slices.IndexFunc(all, func(have string) bool { return strings.EqualFold(have, name) })
		if at < 0 {
			return nil, errs.New(errs.Schema, "open sink", "the query has no column %q to be %s; it has %s", name, what, strings.Join(all, ", "))
		}
		if slices.Contains(out, at) {
			return nil, errs.New(errs.Schema, "open sink", "the column %q is %s twice", name, what)
		}
		out = append(out, at)
	}
	return out, nil
}

// epoch gathers what becomes records until the epoch ends.
type epochRecords struct {
	*records
	keys  map[string]*keyChange // by the bytes of the key
	order []string              // in which keys came
}

func (r *records) epoch() *epochRecords {
	return &epochRecords{records: r, keys: map[string]*keyChange{}}
}

// keyChange is what became of the row of a key.
type keyChange struct {
	key    []byte
	values []weighted // distinct
}

type weighted struct {
	value   []byte
	headers []kgo.RecordHeader
	weight  int64
}

// add hands the records of a delta to send, or keeps them for the end of the epoch.
func (e *epochRecords) add(d flow.Delta, send func(*kgo.Record)) error {
	if d.Rows() == 0 {
		return nil
	}
	cols := d.Columns()
	if e.changelog {
		cols = connectors.ChangeColumns(d)
	} else if !e.upsert && e.format != "debezium" {
		if _, err := connectors.Repeats("the Kafka sink", d); err != nil {
			return err
		}
	}
	w, err := e.writer(cols)
	if err != nil {
		return errs.New(errs.Usage, "write", "the Kafka sink: %w", err)
	}
	weights := d.Weights()
	for row := range d.Rows() {
		weight := int64(1)
		if weights != nil && !e.changelog {
			weight = weights[row]
		}
		key, err := w.key(row)
		if err != nil {
			return err
		}
		switch {
		case e.byKey():
			if key == nil {
				return errs.New(errs.Data, "write", "a row for the topic has NULL in its key, the column %s", e.names(e.key)).WithHint("filter such rows, or set key_format = 'json', which writes null")
			}
			e.change(key, weighted{w.value(row), w.headers(row), weight})
		case e.format == "debezium":
			for range max(weight, -weight) {
				change := envelope(nil, w.value(row))
				if weight < 0 {
					change = envelope(w.value(row), nil)
				}
				send(&kgo.Record{Value: change, Headers: w.headers(row)})
			}
		default:
			value, headers := w.value(row), w.headers(row)
			for range weight {
				send(&kgo.Record{Key: key, Value: value, Headers: headers})
			}
		}
	}
	return nil
}

// change adds to what is known of a key.
func (e *epochRecords) change(key []byte, v weighted) {
	c := e.keys[string(key)]
	if c == nil {
		c = &keyChange{key: key}
		e.keys[string(key)] = c
		e.order = append(e.order, string(key))
	}
	for i := range c.values {
		if bytes.Equal(c.values[i].value, v.value) && slices.EqualFunc(c.values[i].headers, v.headers, sameHeader) {
			c.values[i].weight += v.weight
			return
		}
	}
	c.values = append(c.values, v)
}

func sameHeader(a, b kgo.RecordHeader) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }

// end hands on what was kept: one record for each key whose row changed.
func (e *epochRecords) end(send func(*kgo.Record)) error {
	for _, k := range e.order {
		c := e.keys[k]
		var before, after *weighted
		for i, v := range c.values {
			switch {
			case v.weight == 1 && after == nil:
				after = &c.values[i]
			case v.weight == -1 && before == nil:
				before = &c.values[i]
			case v.weight != 0:
				return errs.New(errs.Data, "write", "several rows have the key %s, of which the topic can hold one", decode.Clip(k)).
					WithHint("write by a key that is unique in the query")
			}
		}
		switch {
		case before == nil && after == nil: // it came and went
		case e.format == "debezium":
			change := &kgo.Record{Key: c.key, Value: envelope(valueOf(before), valueOf(after))}
			if after != nil {
				change.Headers = after.headers
				send(change)
				continue
			}
			send(change)
			send(&kgo.Record{Key: c.key}) // for compaction
		case after == nil:
			send(&kgo.Record{Key: c.key})
		default:
			send(&kgo.Record{Key: c.key, Value: after.value, Headers: after.headers})
		}
	}
	clear(e.keys)
	e.order = e.order[:0]
	return nil
}

func valueOf(w *weighted) []byte {
	if w == nil {
		return nil
	}
	return w.value
}

// envelope is a change as Debezium writes it.
func envelope(before, after []byte) []byte {
	op := "u"
	switch {
	case before == nil:
		before, op = []byte("null"), "c"
	case after == nil:
		after, op = []byte("null"), "d"
	}
	return fmt.Appendf(nil, `{"before":%s,"after":%s,"op":"%s"}`, before, after, op)
}

// rowWriter writes the parts of the records of one batch.
type rowWriter struct {
	key     func(row int) ([]byte, error) // nil: the record has none
	value   func(row int) []byte
	headers func(row int) []kgo.RecordHeader
}

func (r *records) writer(cols []arrow.Array) (rowWriter, error) {
	room := &chunk{}
	w := rowWriter{key: func(int) ([]byte, error) { return nil, nil }, headers: func(int) []kgo.RecordHeader { return nil }}
	pick := func(at []int) (fields []types.Field, arrays []arrow.Array) {
		for _, c := range at {
			fields, arrays = append(fields, r.fields[c]), append(arrays, cols[c])
		}
		return fields, arrays
	}
	switch fields, arrays := pick(r.key); {
	case r.text:
		text, err := decode.Text(fields[0].Type, arrays[0])
		if err != nil {
			return w, err
		}
		w.key = func(row int) ([]byte, error) {
			if arrays[0].IsNull(row) {
				return nil, nil
			}
			return room.put(text, row), nil // never nil: the empty text is a key
		}
	case len(r.key) > 0:
		enc, err := djson.NewEncoder(fields, arrays)
		if err != nil {
			return w, err
		}
		w.key = func(row int) ([]byte, error) { return room.put(enc.Append, row), nil }
	}
	if fields, arrays := pick(r.value); r.format == "raw" {
		w.value = func(row int) []byte { return rawValue(arrays[0], row) }
	} else {
		enc, err := djson.NewEncoder(fields, arrays)
		if err != nil {
			return w, err
		}
		w.value = func(row int) []byte { return room.put(enc.Append, row) }
	}
	if len(r.headers) == 0 {
		return w, nil
	}
	fields, arrays := pick(r.headers)
	texts := make([]decode.TextWriter, len(fields))
	for i, f := range fields {
		var err error
		if texts[i], err = decode.Text(f.Type, arrays[i]); err != nil {
			return w, err
		}
	}
	w.headers = func(row int) []kgo.RecordHeader {
		hs := make([]kgo.RecordHeader, len(fields))
		for i, f := range fields {
			if hs[i].Key = f.Name; arrays[i].IsValid(row) {
				hs[i].Value = texts[i]([]byte{}, row)
			}
		}
		return hs
	}
	return w, nil
}

// chunk holds keys and values of many records, which live as long as the last of them.
type chunk struct {
	buf  []byte
	most int // what the longest of them took
}

const chunkBytes = 64 << 10

// put appends what write writes of a row. What it returns is never nil.
func (c *chunk) put(write func(dst []byte, row int) []byte, row int) []byte {
	if cap(c.buf)-len(c.buf) < max(c.most, 512) {
		c.buf = make([]byte, 0, max(chunkBytes, 4*c.most))
	}
	from := len(c.buf)
	c.buf = write(c.buf, row)
	c.most = max(c.most, len(c.buf)-from)
	return c.buf[from:len(c.buf):len(c.buf)]
}

// rawValue is a copy: batches go back to the engine before records are sent.
func rawValue(a arrow.Array, row int) []byte {
	if a.IsNull(row) {
		return nil
	}
	if s, ok := a.(*array.String); ok {
		return []byte(s.Value(row))
	}
	return append([]byte{}, a.(*array.Binary).Value(row)...)
}
