package kafka

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/decode"
	dcsv "github.com/riverbed/riverbed/connectors/decode/csv"
	"github.com/riverbed/riverbed/connectors/decode/debezium"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// metaFields are the columns that come from the record around the value. They are hidden unless a declared schema
// names them or metadata = true asks for all.
var metaFields = []types.Field{
	{Name: "_topic", Type: types.String},
	{Name: "_partition", Type: types.Int32},
	{Name: "_offset", Type: types.Int64},
	{Name: "_timestamp", Type: types.TsTZ}, // NULL when the record has none
	{Name: "_key", Type: types.String},     // or BLOB, when declared so
	{Name: "_headers", Type: types.ListOf(types.StructOf(types.Field{Name: "key", Type: types.String}, types.Field{Name: "value", Type: types.Binary}))},
}

func metaOf(name string) (types.Field, bool) {
	for _, f := range metaFields {
		if f.Name == name {
			return f, true
		}
	}
	return types.Field{}, false
}

// checkMeta refuses metadata columns that are declared with another type.
func checkMeta(fields []types.Field) error {
	for _, f := range fields {
		m, ok := metaOf(f.Name)
		if !ok || f.Type.Equal(m.Type) || f.Name == "_key" && (f.Type.Kind == types.Blob || f.Type.Kind == types.JSON) || f.Name == "_timestamp" && f.Type.Kind == types.Timestamp {
			continue
		}
		return fmt.Errorf("the column %s of Kafka is %s, not %s", f.Name, m.Type, f.Type)
	}
	return nil
}

// rows gathers the rows of one partition: columns of the value, and columns of the record around it.
type rows struct {
	fields []types.Field
	schema *arrow.Schema
	value  decode.Messages
	meta   []metaColumn      // by field; nil for columns of the value and the key
	key    *keyColumns       // nil: no columns come from the record's key
	change *debezium.Decoder // nil: not change events; otherwise it is value
	n      int
	ctx    context.Context // of the read that is under way
}

func newRows(s connectors.Settings, format *avroFormat, fields []types.Field, key []int) (*rows, error) {
	r := &rows{fields: fields, schema: types.ArrowSchema(fields), meta: make([]metaColumn, len(fields))}
	changes := s.String("format") == "debezium"
	var body []types.Field
	for i, f := range fields {
		if slices.Contains(key, i) && !changes {
			continue
		}
		if _, ok := metaOf(f.Name); ok {
			r.meta[i] = newMeta(f)
		} else {
			body = append(body, f)
		}
	}
	var err error
	if changes {
		r.schema = flow.WithWeights(r.schema)
		var names []string
		for _, at := range key {
			names = append(names, fields[at].Name)
		}
		r.change, err = debezium.New(body, names)
		r.value = r.change
		return r, err
	}
	if key != nil {
		r.schema = flow.WithWeights(r.schema)
		if r.key, err = newKeyColumns(s.String("key_format"), fields, key); err != nil {
			return nil, err
		}
	}
	switch s.String("format") {
	case "raw":
		if len(body) == 0 { // metadata alone: the values are not read
			r.value, err = djson.New(nil, djson.Options{})
			break
		}
		r.value, err = decode.NewRaw(body)
	case "avro":
		r.value, err = format.decoder(body, func() context.Context { return r.ctx })
	case "csv":
		var d dcsv.Dialect
		if d, err = dcsv.ParseDialect(s.String("delim"), `"`, `"`); err == nil {
			r.value, err = dcsv.NewMessages(body, d)
		}
	default:
		r.value, err = djson.New(body, djson.Options{})
	}
	return r, err
}

// add adds the row of a record, or those of a change event; on error nothing is added.
func (r *rows) add(rec *kgo.Record) error {
	for i, m := range r.meta {
		if m == nil {
			continue
		}
		if err := m.check(rec); err != nil {
			return fmt.Errorf("column %q: %w", r.fields[i].Name, err)
		}
	}
	if r.key != nil {
		if err := r.key.add(rec); err != nil {
			return err
		}
	}
	if rec.Value == nil {
		r.value.AppendNulls()
	} else if err := r.value.Append(rec.Value); err != nil {
		if r.key != nil {
			r.key.truncate(r.n)
		}
		return err
	}
	for ; r.n < r.value.Rows(); r.n++ {
		for _, m := range r.meta {
			if m != nil {
				m.add(rec)
			}
		}
	}
	return nil
}

// batch returns the rows gathered and starts again.
func (r *rows) batch() arrow.RecordBatch {
	cols := make([]arrow.Array, r.schema.NumFields())
	if r.key != nil {
		r.key.finish(cols)
	}
	if r.change != nil {
		cols[len(cols)-1] = weightColumn(r.change.Weights())
	}
	body := r.value.Finish()
	for i, m := range r.meta {
		switch {
		case m != nil:
			cols[i] = m.finish()
		case cols[i] == nil:
			cols[i], body = body[0], body[1:]
		}
	}
	n := r.n
	r.n = 0
	return array.NewRecordBatch(r.schema, cols, int64(n))
}

// metaColumn gathers one metadata column.
type metaColumn interface {
	check(*kgo.Record) error
	add(*kgo.Record)
	finish() arrow.Array
}

func newMeta(f types.Field) metaColumn {
	typ := f.Type.Arrow()
	switch f.Name {
	case "_topic":
		return &stringMeta{b: decode.NewStrings(), of: func(r *kgo.Record) []byte { return []byte(r.Topic) }}
	case "_key":
		if f.Type.Kind == types.Blob {
			return &stringMeta{b: decode.NewBlobs(), of: func(r *kgo.Record) []byte { return r.Key }}
		}
		return &stringMeta{b: decode.NewStrings(), text: true, of: func(r *kgo.Record) []byte { return r.Key }}
	case "_partition":
		return &builderMeta{array.NewBuilder(memory.DefaultAllocator, typ), func(b array.Builder, r *kgo.Record) { b.(*array.Int32Builder).Append(r.Partition) }}
	case "_offset":
		return &builderMeta{array.NewBuilder(memory.DefaultAllocator, typ), func(b array.Builder, r *kgo.Record) { b.(*array.Int64Builder).Append(r.Offset) }}
	case "_timestamp":
		return &builderMeta{array.NewBuilder(memory.DefaultAllocator, typ), func(b array.Builder, r *kgo.Record) {
			if r.Timestamp.UnixMilli() < 0 { // −1: the producer gave none
				b.AppendNull()
				return
			}
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(r.Timestamp.UnixMicro()))
		}}
	}
	return &builderMeta{array.NewBuilder(memory.DefaultAllocator, typ), addHeaders}
}

// addHeaders keeps the order of headers, names that repeat, and values that are NULL.
func addHeaders(b array.Builder, r *kgo.Record) {
	lb := b.(*array.ListBuilder)
	lb.Append(true)
	sb := lb.ValueBuilder().(*array.StructBuilder)
	for _, h := range r.Headers {
		sb.Append(true)
		sb.FieldBuilder(0).(*array.StringBuilder).Append(h.Key)
		if h.Value == nil {
			sb.FieldBuilder(1).AppendNull()
		} else {
			sb.FieldBuilder(1).(*array.BinaryBuilder).Append(h.Value)
		}
	}
}

type stringMeta struct {
	b    *decode.Bytes
	text bool
	of   func(*kgo.Record) []byte
}

func (m *stringMeta) check(r *kgo.Record) error {
	if m.text && !utf8.Valid(m.of(r)) {
		return fmt.Errorf("the key is not UTF-8; declare _key BLOB to take any bytes")
	}
	return nil
}

func (m *stringMeta) add(r *kgo.Record) {
	if s := m.of(r); s != nil {
		_ = m.b.AppendText(s) // fails only beyond 2 GiB, which one read cannot bring
		return
	}
	m.b.AppendNull()
}

func (m *stringMeta) finish() arrow.Array { return m.b.Finish() }

type builderMeta struct {
	b   array.Builder
	put func(array.Builder, *kgo.Record)
}

func (m *builderMeta) check(*kgo.Record) error { return nil }
func (m *builderMeta) add(r *kgo.Record)       { m.put(m.b, r) }
func (m *builderMeta) finish() arrow.Array     { return m.b.NewArray() }
