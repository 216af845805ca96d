package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/decode/avro"
	"github.com/riverbed/riverbed/core/errs"
)

// registry asks a schema registry (Confluent's interface) for schemas, each once.
type registry struct {
	base       string
	user, pass string
	client     *http.Client

	mu   sync.Mutex
	byID map[int32]*avro.Schema
}

// newRegistry makes the registry of the options; nil when they name none.
func newRegistry(s connectors.Settings) (*registry, error) {
	base := s.String("schema_registry")
	if base == "" {
		return nil, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errs.New(errs.Usage, "options", "connector 'kafka': schema_registry is no address of a registry").WithHint("write it as http://host:8081, the password in schema_registry_password")
	}
	if u.User != nil {
		return nil, errs.New(errs.Usage, "options", "connector 'kafka': schema_registry must not hold a password").WithHint("write it in schema_registry_user and schema_registry_password")
	}
	conf, err := tlsConfig(s)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = conf
	return &registry{base: strings.TrimRight(base, "/"), user: s.String("schema_registry_user"), pass: s.String("schema_registry_password"),
		client: &http.Client{Transport: transport, Timeout: registryWithin}, byID: map[int32]*avro.Schema{}}, nil
}

const (
	registryWithin = 10 * time.Second
	// mostSchema bounds what a registry may answer.
	mostSchema = 16 << 20
)

// errNoSchema: the registry answers that it has none.
var errNoSchema = errors.New("the schema registry has no such schema")

// schema finds the schema of an id. A registry that cannot be asked is a transient error; a schema that is not there, or
// is no Avro, a fault of the message.
func (r *registry) schema(ctx context.Context, id int32) (*avro.Schema, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.byID[id]; s != nil {
		return s, nil
	}
	var answer registered
	if err := r.get(ctx, &answer, "schemas", "ids", fmt.Sprint(id)); err != nil {
		if errors.Is(err, errNoSchema) {
			return nil, fmt.Errorf("%w of the id %d", errNoSchema, id)
		}
		return nil, err
	}
	s, err := r.parse(ctx, answer, map[string]*avro.Schema{}, 0)
	if err != nil {
		return nil, err
	}
	r.byID[id] = s
	return s, nil
}

// latest finds the newest schema of the values of a topic.
func (r *registry) latest(ctx context.Context, topic string) (*avro.Schema, error) {
	var answer registered
	if err := r.get(ctx, &answer, "subjects", topic+"-value", "versions", "latest"); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parse(ctx, answer, map[string]*avro.Schema{}, 0)
}

// registered is what a registry says of a schema.
type registered struct {
	Schema     string
	SchemaType string
	References []struct {
		Name    string
		Subject string
		Version int
	}
}

// parse reads a schema, and before it those that it refers to.
func (r *registry) parse(ctx context.Context, a registered, known map[string]*avro.Schema, depth int) (*avro.Schema, error) {
	if a.SchemaType != "" && a.SchemaType != "AVRO" {
		return nil, fmt.Errorf("the schema of the message is %s, not Avro", a.SchemaType)
	}
	if depth > 20 {
		return nil, errors.New("the schemas of the registry refer to each other without end")
	}
	for _, ref := range a.References {
		if known[ref.Name] != nil {
			continue
		}
		var of registered
		if err := r.get(ctx, &of, "subjects", ref.Subject, "versions", fmt.Sprint(ref.Version)); err != nil {
			return nil, err
		}
		if _, err := r.parse(ctx, of, known, depth+1); err != nil {
			return nil, err
		}
	}
	return avro.ParseSchema([]byte(a.Schema), known)
}

func (r *registry) get(ctx context.Context, into any, path ...string) error {
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/"+strings.Join(path, "/"), nil)
	if err != nil {
		return errs.New(errs.Usage, "schema registry", "the address of the schema registry: %w", err)
	}
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	if r.user != "" {
		req.SetBasicAuth(r.user, r.pass)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errs.New(errs.Source, "schema registry", "the schema registry %s cannot be reached: %w", r.base, err).
			WithHint("check that it runs and that schema_registry is right").AsTransient()
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostSchema))
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return errNoSchema
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return errs.New(errs.Source, "schema registry", "the schema registry %s does not let us in (%s)", r.base, resp.Status).
			WithHint("check schema_registry_user and schema_registry_password")
	case resp.StatusCode != http.StatusOK || err != nil:
		return errs.New(errs.Source, "schema registry", "the schema registry %s failed (%s)", r.base, resp.Status).AsTransient()
	}
	if err := json.Unmarshal(body, into); err != nil {
		return errs.New(errs.Source, "schema registry", "the answer of the schema registry %s is not what one says: %w", r.base, err)
	}
	return nil
}
