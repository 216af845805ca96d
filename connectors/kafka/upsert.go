package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/decode"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// setKey finds the key of an upsert stream. Columns of it that were not declared, and that no value has, are VARCHAR.
func (s *stream) setKey(req connectors.OpenRequest) (err error) {
	changes := s.settings.String("format") == "debezium"
	if changes && s.settings.String("tombstones") == "keep" {
		return errs.New(errs.Usage, "open", "stream %q: tombstones = 'keep' and format = 'debezium' exclude each other: a record without a value follows a deletion", s.name)
	}
	if !s.settings.Bool("upsert") {
		return nil
	}
	if s.settings.String("tombstones") == "keep" {
		return errs.New(errs.Usage, "open", "stream %q: tombstones = 'keep' and upsert = true exclude each other: a record without a value deletes its key", s.name)
	}
	if req.Schema == nil && !changes { // change events have their key in the value
		var more []types.Field
		for _, name := range req.Key {
			if !slices.ContainsFunc(s.fields, func(f types.Field) bool { return strings.EqualFold(f.Name, name) }) {
				more = append(more, types.Field{Name: name, Type: types.String})
			}
		}
		s.fields = append(more, s.fields...)
	}
	if s.key, err = connectors.KeyColumns(req, s.fields); err != nil {
		return err
	}
	for _, at := range s.key {
		if _, meta := metaOf(s.fields[at].Name); meta && (changes || s.fields[at].Name != "_key") {
			return errs.New(errs.Schema, "open", "stream %q: %s is not a part of a record's key", s.name, s.fields[at].Name)
		}
	}
	return nil
}

// keyColumns gathers the columns of the PRIMARY KEY from the keys of records, and the weights: what has no value deletes.
type keyColumns struct {
	at      []int // positions among the fields
	decoder keyDecoder
	weights []int64
}

// keyDecoder turns keys into columns; on an error nothing is added.
type keyDecoder interface {
	Append(key []byte) error
	Truncate(n int)
	Finish() []arrow.Array
}

func newKeyColumns(format string, fields []types.Field, at []int) (*keyColumns, error) {
	k := &keyColumns{at: at}
	key := make([]types.Field, len(at))
	for i, a := range at {
		key[i] = fields[a]
	}
	if format == "json" || format == "" && len(key) > 1 {
		d, err := djson.New(key, djson.Options{NotNull: true})
		k.decoder = d
		return k, err
	}
	if len(key) > 1 {
		return nil, fmt.Errorf("a key of %d columns is not read with key_format = 'text'; it takes json", len(key))
	}
	b, err := decode.NewBuilder(key[0].Type)
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", key[0].Name, err)
	}
	k.decoder = &textKey{b, key[0].Type.Kind != types.Blob}
	return k, nil
}

var errNoKey = errors.New("the record has no key, so it is nobody's row")

// add adds the key of a record; on error nothing is added.
func (k *keyColumns) add(rec *kgo.Record) error {
	if rec.Key == nil {
		return errNoKey
	}
	if err := k.decoder.Append(rec.Key); err != nil {
		return fmt.Errorf("the key of the record: %w", err)
	}
	weight := int64(1)
	if rec.Value == nil {
		weight = -1
	}
	k.weights = append(k.weights, weight)
	return nil
}

func (k *keyColumns) truncate(n int) {
	k.decoder.Truncate(n)
	k.weights = k.weights[:n]
}

// finish puts the columns where they belong, and the weights last, and starts again.
func (k *keyColumns) finish(cols []arrow.Array) {
	for i, c := range k.decoder.Finish() {
		cols[k.at[i]] = c
	}
	cols[len(cols)-1] = weightColumn(slices.Clone(k.weights))
	k.weights = k.weights[:0]
}

func weightColumn(weights []int64) arrow.Array {
	return array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, len(weights), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(weights))}, nil, 0, 0))
}

// textKey is a key of one column, which is written as text.
type textKey struct {
	decode.Builder
	text bool
}

func (t *textKey) Append(key []byte) error {
	if t.text && !utf8.Valid(key) {
		return fmt.Errorf("it is not UTF-8; declare its column BLOB to take any bytes")
	}
	return t.AppendText(key)
}

func (t *textKey) Finish() []arrow.Array { return []arrow.Array{t.Builder.Finish()} }
