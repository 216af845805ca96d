package kafka

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/decode/avro"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// avroFormat is how the values of a topic in Avro are read.
type avroFormat struct {
	given    *avro.Schema // nil: none
	registry *registry    // nil: none
}

// newAvro reads the options of format = 'avro'; nil for other formats.
func newAvro(s connectors.Settings) (*avroFormat, error) {
	if s.String("format") != "avro" {
		return nil, nil
	}
	f := &avroFormat{}
	if text := strings.TrimSpace(s.String("avro_schema")); text != "" {
		data := []byte(text)
		if text[0] != '{' {
			var err error
			if data, err = os.ReadFile(text); err != nil {
				return nil, errs.New(errs.Source, "open", "cannot read the file of avro_schema: %w", err)
			}
		}
		var err error
		if f.given, err = avro.ParseSchema(data, nil); err != nil {
			return nil, errs.New(errs.Schema, "open", "avro_schema: %w", err)
		}
	}
	var err error
	f.registry, err = newRegistry(s)
	return f, err
}

// decoder reads values as the fields. ctx gives the context of the read that is under way, for questions to the registry.
func (f *avroFormat) decoder(fields []types.Field, ctx func() context.Context) (*avro.Decoder, error) {
	opt := avro.Options{Reader: f.given}
	if f.registry != nil {
		opt.ByID = func(id int32) (*avro.Schema, error) { return f.registry.schema(ctx(), id) }
	} else {
		opt.Writer = f.given
	}
	return avro.New(fields, opt)
}

// inferAvro finds the columns: of the schema given, of the registry's newest, or of the schemas of the first records.
func (s *stream) inferAvro(ctx context.Context) ([]types.Field, error) {
	schema := s.avro.given
	if schema == nil && s.avro.registry != nil {
		var err error
		schema, err = retry(ctx, s.settings, s.clock, func(ctx context.Context) (*avro.Schema, error) {
			return s.avro.registry.latest(ctx, s.settings.String("topic"))
		})
		if err != nil && !errors.Is(err, errNoSchema) {
			return nil, err
		}
	}
	if schema != nil {
		fields, err := schema.Fields()
		if err != nil {
			return nil, errs.New(errs.Schema, "open", "stream %q: %w", s.name, err)
		}
		return fields, nil
	}
	var fields []types.Field
	seen := map[string]bool{}
	err := s.sample(ctx, "a message in Avro", func(rec *kgo.Record) error {
		schema, err := s.avro.schemaOf(ctx, rec.Value)
		if err != nil {
			return err
		}
		more, err := schema.Fields()
		if err != nil {
			return err
		}
		for _, f := range more {
			if !seen[f.Name] {
				seen[f.Name] = true
				fields = append(fields, f)
			}
		}
		return nil
	})
	return slices.Clip(fields), err
}

// schemaOf is the schema that a message was written with.
func (f *avroFormat) schemaOf(ctx context.Context, msg []byte) (*avro.Schema, error) {
	if f.registry == nil {
		return avro.ContainerSchema(msg)
	}
	id, err := avro.ID(msg)
	if err != nil {
		return nil, err
	}
	return f.registry.schema(ctx, id)
}
