package riverbed

import (
	"context"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// CreateStream declares a stream over a connector.
func (s *Session) CreateStream(ctx context.Context, name string, spec StreamSpec) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.createSource(ctx, claim{name: name, kind: "STREAM"}, spec)
}

// CreateTable declares a table over a connector's bounded form.
func (s *Session) CreateTable(ctx context.Context, name string, spec StreamSpec) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.createSource(ctx, claim{name: name, kind: "TABLE"}, spec)
}

// AddStream puts a stream of this process (MemoryStream) under a name.
func (s *Session) AddStream(name string, st flow.Stream, watermark, eventTime string) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.addStream(claim{name: name, kind: "STREAM"}, st, watermark, eventTime, 0)
}

// createSource opens a connector, which may wait for its first records, and puts it under the claimed name.
func (s *Session) createSource(ctx context.Context, c claim, spec StreamSpec) error {
	s.mu.Lock()
	exists, err := s.taken(c)
	s.mu.Unlock()
	if err != nil || exists {
		return err
	}
	src := all.Source(spec.Connector)
	if src == nil {
		return unknownConnector(spec.Connector, sourceNames())
	}
	options := map[string]string{}
	for k, v := range spec.Options {
		options[strings.ToLower(k)] = v
	}
	watermark, eventTime := take(options, "watermark", spec.Watermark), take(options, "event_time", spec.EventTime)
	lateness, err := s.lateness(take(options, "allowed_lateness", ""))
	if err != nil {
		return err
	}
	key := keyNames(spec, options)
	if b := s.cfg.Load().kafkaBrokers; src.Name == "kafka" && options["brokers"] == "" && b != "" {
		options["brokers"] = b
	}
	c.origin = &ConnectorSpec{src.Name, options}
	set, err := src.Options.Parse("connector '"+src.Name+"'", options)
	if err != nil {
		return err
	}
	fields, err := s.declared(spec.Columns)
	if err != nil {
		return err
	}
	req := connectors.OpenRequest{Name: c.name, Settings: set, Schema: fields, Key: key, Clock: s.clock, Other: opener{s}}
	if c.kind == "STREAM" {
		if src.Stream == nil {
			return errs.New(errs.Usage, "create stream", "the connector %q cannot be read as a stream", src.Name)
		}
		st, err := src.Stream(ctx, req)
		if err != nil {
			return err
		}
		if len(key) > 0 && flow.KeyOf(st) == nil {
			return uncheckedKey(c.name, src)
		}
		return s.addStream(c, st, watermark, eventTime, lateness)
	}
	if len(key) > 0 {
		return uncheckedKey(c.name, src)
	}
	if src.Relation == nil {
		return errs.New(errs.Usage, "create table", "the connector %q never ends, so it cannot be a table", src.Name).WithHint("use CREATE STREAM")
	}
	rel, err := src.Relation(ctx, req)
	if err != nil {
		return err
	}
	return s.install(c, &entry{name: c.name, source: &plan.Source{Name: c.name, Relation: rel, Fields: rel.Fields()}, origin: c.origin})
}

// keyNames is the PRIMARY KEY as it was declared, or as the option primary_key lists it.
func keyNames(spec StreamSpec, options map[string]string) []string {
	var key []string
	for name := range strings.SplitSeq(take(options, "primary_key", ""), ",") {
		if name = strings.TrimSpace(name); name != "" {
			key = append(key, name)
		}
	}
	if len(spec.PrimaryKey) > 0 {
		return spec.PrimaryKey
	}
	return key
}

// uncheckedKey refuses the PRIMARY KEY of a source that gives rows as they come.
func uncheckedKey(name string, src *connectors.Source) error {
	e := errs.New(errs.Unsupported, "create", "%q takes no PRIMARY KEY: nobody holds the rows of the connector %q to it", name, src.Name)
	if slices.Contains(src.Options.Names(), "upsert") {
		return e.WithHint("with upsert = true a row replaces the row of its key")
	}
	return e
}

// take removes an option of the session's own from a connector's options.
func take(options map[string]string, key, given string) string {
	if v, ok := options[key]; ok {
		delete(options, key)
		if given == "" {
			return v
		}
	}
	return given
}

// lateness reads the option allowed_lateness, in milliseconds. State is kept for that long, so a setting bounds it.
func (s *Session) lateness(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := types.ParseValue(text, types.Span)
	if err != nil {
		return 0, errs.New(errs.Usage, "create stream", "allowed_lateness: %q is not an interval", text)
	}
	iv := v.(types.IntervalValue)
	ms := iv.Micros/1000 + int64(iv.Days)*86_400_000
	if iv.Months != 0 || ms < 0 {
		return 0, errs.New(errs.Usage, "create stream", "allowed_lateness: %q is not a fixed, positive time", text).WithHint("write it in days or less")
	}
	if limit := s.cfg.Load().maxWatermarkLag; limit > 0 && ms > limit {
		return 0, errs.New(errs.Usage, "create stream", "allowed_lateness: %q is more than max_watermark_lag_ms, which is %d", text, limit).
			WithHint("ask for less, or raise it: SET max_watermark_lag_ms = %d", ms)
	}
	return ms, nil
}

func (s *Session) declared(cols []ColumnSpec) ([]types.Field, error) {
	if len(cols) == 0 {
		return nil, nil
	}
	fields := make([]types.Field, len(cols))
	for i, c := range cols {
		x, err := sql.ParseExpr("CAST(NULL AS " + c.Type + ")")
		if err != nil {
			return nil, errs.New(errs.Schema, "create stream", "column %q: %q is not a type", c.Name, c.Type)
		}
		e, err := bind.New(s.scope(), bind.Options{}).Expr(x, nil, types.Type{})
		if err != nil {
			return nil, err
		}
		fields[i] = types.Field{Name: c.Name, Type: e.Type()}
	}
	return fields, nil
}

func (s *Session) addStream(c claim, st flow.Stream, watermark, eventTime string, latenessMS int64) error {
	if latenessMS > 0 && st.Updating() {
		return errs.New(errs.Unsupported, "create stream", "%q is an updating stream and takes no allowed_lateness: what comes late would be dropped row by row, and a change without its other half is wrong", c.name).
			WithHint("leave allowed_lateness out: an updating stream never loses rows to a watermark")
	}
	src := &plan.Source{Name: c.name, Stream: st, Fields: st.Fields(), Upsert: flow.KeyOf(st)}
	if u, ok := st.(flow.Unique); ok {
		src.Keys = u.UniqueKeys()
	}
	for _, f := range src.Fields {
		if flow.Reserved(f.Name) {
			return errs.New(errs.Schema, "create stream", "a column may not be named %q", f.Name)
		}
	}
	if watermark != "" || eventTime != "" {
		spec, err := s.watermark(src.Fields, watermark, eventTime)
		if err != nil {
			return err
		}
		cfg := s.cfg.Load()
		spec.LatenessUS = min(latenessMS, cfg.maxWatermarkLag) * 1000
		spec.IdleTimeout = cfg.idleTimeout
		src.Watermark = spec
	}
	return s.install(c, &entry{name: c.name, source: src, origin: c.origin})
}

// watermark reads how a stream tells event time: a watermark expression, whose one column is the event time unless
// eventTime names it; or eventTime alone, whose watermark is then only set by hand.
func (s *Session) watermark(fields []types.Field, text, eventTime string) (*plan.WatermarkSpec, error) {
	spec := &plan.WatermarkSpec{SQL: text}
	named := map[expr.ColID]bool{}
	if text != "" {
		x, err := sql.ParseExpr(text)
		if err != nil {
			return nil, errs.As(err).WithSQL(text)
		}
		if spec.Expr, err = bind.New(s.scope(), bind.Options{SQL: text}).Expr(x, fields, types.Type{}); err != nil {
			return nil, err
		}
		if t := spec.Expr.Type(); !t.IsTemporal() || t.Kind == types.Time {
			return nil, errs.New(errs.Schema, "create stream", "the watermark %q is of type %s, not a timestamp", text, t)
		}
		expr.Columns(spec.Expr, named)
	}
	var at []int
	var names []string
	for i, f := range fields {
		names = append(names, f.Name)
		if strings.EqualFold(f.Name, eventTime) || (eventTime == "" && named[expr.ColID(i)]) {
			at = append(at, i)
		}
	}
	switch {
	case len(at) > 1:
		return nil, errs.New(errs.Schema, "create stream", "the watermark %q names several columns", text).WithHint("say which one is the event time: event_time = '…'")
	case len(at) == 0 && eventTime != "":
		return nil, errs.New(errs.Schema, "create stream", "the stream has no column %q to be its event time", eventTime).WithHint("%s", errs.DidYouMean(eventTime, names))
	case len(at) == 0:
		return nil, errs.New(errs.Schema, "create stream", "the watermark %q names no column of the stream", text)
	}
	spec.Column = at[0]
	if f := fields[spec.Column]; !f.Type.IsTimestamp() && f.Type.Kind != types.Date {
		return nil, errs.New(errs.Schema, "create stream", "the event-time column %q is of type %s, not a timestamp", f.Name, f.Type)
	}
	return spec, nil
}

func sourceNames() []string {
	var out []string
	for _, s := range all.Sources {
		out = append(out, s.Name)
	}
	return out
}

func sinkNames() []string {
	var out []string
	for _, s := range all.Sinks {
		out = append(out, s.Name)
	}
	return out
}

func unknownConnector(name string, known []string) error {
	hint := errs.DidYouMean(name, known)
	if hint == "" {
		hint = "known connectors: " + strings.Join(known, ", ")
	}
	return errs.New(errs.Usage, "create", "unknown connector %q", name).WithHint("%s", hint)
}

// connectorSpec reads WITH (connector = '…', option = value, …).
func (s *Session) connectorSpec(with []sql.Option) (ConnectorSpec, error) {
	spec := ConnectorSpec{Options: map[string]string{}}
	for _, o := range with {
		v, err := s.optionValue(o)
		if err != nil {
			return spec, err
		}
		if key := strings.ToLower(o.Key); key == "connector" {
			spec.Connector = strings.ToLower(v)
		} else {
			spec.Options[key] = v
		}
	}
	if spec.Connector == "" {
		pos := errs.Pos{}
		if len(with) > 0 {
			pos = with[0].Position()
		}
		return spec, errs.E(errs.Usage, "create", pos, "WITH (…) names no connector").WithHint("write connector = 'kafka', or another of: %s", strings.Join(sourceNames(), ", "))
	}
	return spec, nil
}

// optionValue evaluates the value of an option to text.
func (s *Session) optionValue(o sql.Option) (string, error) {
	if o.Value == nil {
		return "true", nil
	}
	v, t, err := s.constant(o.Value)
	if err != nil {
		return "", err
	}
	if str, ok := v.(string); ok {
		return str, nil
	}
	if list, ok := v.([]types.Value); ok {
		return optionText(list), nil
	}
	return types.Format(v, t), nil
}

func (s *Session) streamColumns(spec *StreamSpec, r *sql.Relation) error {
	fields, err := s.columnFields(r.Columns)
	if err != nil {
		return err
	}
	for _, f := range fields {
		spec.Columns = append(spec.Columns, ColumnSpec{f.Name, f.Type.String()})
	}
	for _, d := range r.Columns {
		if d.PrimaryKey && len(spec.PrimaryKey) > 0 {
			return errs.E(errs.Schema, "create", d.Position(), "two columns are each the PRIMARY KEY").WithHint("write PRIMARY KEY (a, b) for a key of both")
		}
		if d.PrimaryKey {
			spec.PrimaryKey = append(spec.PrimaryKey, d.Name.Name)
		}
	}
	for _, k := range r.Constraints {
		if k.Kind != sql.PrimaryKey || len(spec.PrimaryKey) > 0 {
			return errs.E(errs.Unsupported, "create", k.Position(), "over a connector one PRIMARY KEY may be declared, and nothing else that rows are held to")
		}
		for _, id := range k.Columns {
			spec.PrimaryKey = append(spec.PrimaryKey, id.Name)
		}
	}
	if r.Watermark != nil {
		spec.Watermark = sql.Print(r.Watermark.Expr)
		spec.EventTime = r.Watermark.Column.Name
	}
	return nil
}
