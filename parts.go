package riverbed

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// opener opens the parts of a source that is made of others.
type opener struct{ s *Session }

// Part implements connectors.Opener.
func (o opener) Part(text string) (connectors.Part, error) {
	if strings.HasPrefix(text, "{") { // as the classes of Python give it
		var spec StreamSpec
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			return connectors.Part{}, errs.New(errs.Usage, "open", "a source is written as the name of a table or a stream, and not so: %w", err)
		}
		fields, err := o.s.declared(spec.Columns)
		if spec.Options == nil {
			spec.Options = map[string]string{}
		}
		return connectors.Part{Connector: spec.Connector, Options: spec.Options, Schema: fields}, err
	}
	cat := o.s.cat.Load()
	e := cat.get(text)
	if e == nil {
		return connectors.Part{}, errs.New(errs.Schema, "open", "there is no table or stream %q", text).WithHint("%s", errs.DidYouMean(text, cat.names()))
	}
	if e.origin == nil {
		return connectors.Part{}, errs.New(errs.Schema, "open", "%q is a %s, and not read from a connector", e.name, strings.ToLower(e.kind())).WithHint("declare it WITH (connector = …)")
	}
	return connectors.Part{Connector: e.origin.Connector, Options: maps.Clone(e.origin.Options)}, nil
}

func (o opener) request(name string, p connectors.Part) (*connectors.Source, connectors.OpenRequest, error) {
	src := all.Source(p.Connector)
	if src == nil {
		return nil, connectors.OpenRequest{}, unknownConnector(p.Connector, sourceNames())
	}
	if b := o.s.cfg.Load().kafkaBrokers; src.Name == "kafka" && p.Options["brokers"] == "" && b != "" {
		p.Options["brokers"] = b
	}
	set, err := src.Options.Parse("connector '"+src.Name+"'", p.Options)
	return src, connectors.OpenRequest{Name: name, Settings: set, Schema: p.Schema, Clock: o.s.clock}, err
}

// Relation implements connectors.Opener.
func (o opener) Relation(ctx context.Context, name string, p connectors.Part) (flow.Relation, error) {
	src, req, err := o.request(name, p)
	if err != nil {
		return nil, err
	}
	if src.Relation == nil {
		return nil, errs.New(errs.Usage, "open", "the connector %q never ends, so it is no history", src.Name)
	}
	return src.Relation(ctx, req)
}

// Stream implements connectors.Opener.
func (o opener) Stream(ctx context.Context, name string, p connectors.Part) (flow.Stream, error) {
	src, req, err := o.request(name, p)
	if err != nil {
		return nil, err
	}
	if src.Stream == nil {
		return nil, errs.New(errs.Usage, "open", "the connector %q cannot be read as a stream", src.Name)
	}
	return src.Stream(ctx, req)
}
