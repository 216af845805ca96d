// Package flight declares Arrow Flight: a service to read from, as a table or a stream, and to write to. What talks to it is the Python
// package's pyarrow: gRPC for Go is more than the library has room for (ADR 36).
//
// Invariant: options that cannot be right are refused here, before anything of the host is asked; what else goes to it as it is declared.
package flight

import (
	"context"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/host"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

const name = "flight"

// connection are the options by which a service is reached.
var connection = connectors.Options{
	{Name: "location", Type: connectors.String, Required: true, Doc: "Where the service is: grpc://host:port, or grpc+tls://host:port when the connection is encrypted.", Example: "grpc+tls://flight.example.org:443"},
	{Name: "token", Type: connectors.String, Secret: true, Doc: "Bearer token, sent with every call; write a reference to an environment variable.", Example: "${FLIGHT_TOKEN}"},
	{Name: "user", Type: connectors.String, Doc: "User, for a service that exchanges user and password for a token when a connection begins.", Example: "app"},
	{Name: "password", Type: connectors.String, Secret: true, Doc: "Password of the user; write a reference to an environment variable.", Example: "${FLIGHT_PASSWORD}"},
	{Name: "headers", Type: connectors.List, Secret: true, Doc: "Further headers of every call, as name=value.", Example: "x-tenant=acme"},
	{Name: "tls_ca", Type: connectors.String, Doc: "File with the certificates that we trust, in PEM. Left out: the system's.", Example: "/etc/ssl/flight-ca.pem"},
	{Name: "tls_cert", Type: connectors.String, Doc: "File with our own certificate, in PEM, for services that ask for one.", Example: "/etc/ssl/app.pem"},
	{Name: "tls_key", Type: connectors.String, Doc: "File with the key of our certificate, in PEM.", Example: "/etc/ssl/app.key"},
	{Name: "tls_skip_verify", Type: connectors.Bool, Default: "false", Doc: "Trust whoever answers. For tests."},
	{Name: "timeout", Type: connectors.Duration, Default: "30s", Doc: "How long a call may take: to list, to begin to read, and each one that writes. Reading itself goes on for as long as the service likes."},
}

// descriptor are the options that say what is read or written.
var descriptor = connectors.Options{
	{Name: "path", Type: connectors.List, Doc: "What to read or write, by its path. One of path and command.", Example: "lake,trades", Shown: true},
	{Name: "command", Type: connectors.String, Doc: "What to read or write, as the service understands it.", Example: "SELECT * FROM trades"},
}

// Source declares what a service gives as a table or a stream.
var Source = connectors.Source{
	Name: name, Class: "Flight", Summary: "Read what an Arrow Flight service gives, whole or for as long as it goes on.",
	Options: connection.With(descriptor...).With(
		connectors.Option{Name: "ticket", Type: connectors.String, Doc: "What to read, by a ticket, instead of path or command: the service is not asked where it is.", Example: "trades"},
		connectors.Option{Name: "on_break", Type: connectors.Enum, Values: []string{"fail", "restart"}, Default: "fail", Doc: "What a stream does when it breaks off and the service keeps no positions: end with an error, or ask again and go on with what comes, where rows may be missed or come twice."},
	),
	Relation: func(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
		options, err := readOptions("connector 'flight'", req.Settings, "path", "command", "ticket")
		if err != nil {
			return nil, err
		}
		return host.OpenRelation(ctx, name, options, req)
	},
	Stream: func(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
		options, err := readOptions("connector 'flight'", req.Settings, "path", "command", "ticket")
		if err != nil {
			return nil, err
		}
		return host.OpenStream(ctx, name, options, req.Settings.String("on_break") == "restart", req)
	},
}

// Sink declares services that take rows. DoPut has no transaction that outlives a call, so it is at least once.
var Sink = connectors.Sink{
	Name: name, Class: "Flight", Summary: "Send rows to an Arrow Flight service, changes with their weights.", Updates: connectors.Changelog,
	Options: connection.With(descriptor...),
	Open: func(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
		options, err := readOptions("sink 'flight'", req.Settings, "path", "command")
		if err != nil {
			return nil, err
		}
		return host.OpenSink(ctx, host.SinkOf{Connector: name, What: "the Flight sink", Fields: append([]types.Field{}, req.Fields...), Weights: req.Updating, Forwards: true, Options: options}, req)
	},
}

// options is what the host's classes take.
type options struct {
	Location      string   `json:"location"`
	Token         string   `json:"token,omitempty"`
	User          string   `json:"user,omitempty"`
	Password      string   `json:"password,omitempty"`
	Headers       []string `json:"headers,omitempty"`
	TLSCA         string   `json:"tls_ca,omitempty"`
	TLSCert       string   `json:"tls_cert,omitempty"`
	TLSKey        string   `json:"tls_key,omitempty"`
	TLSSkipVerify bool     `json:"tls_skip_verify,omitempty"`
	Timeout       float64  `json:"timeout"` // seconds
	Path          []string `json:"path,omitempty"`
	Command       string   `json:"command,omitempty"`
	Ticket        string   `json:"ticket,omitempty"`
}

// readOptions checks what one option alone cannot say.
func readOptions(what string, s connectors.Settings, oneOf ...string) (options, error) {
	o := options{
		Location: s.String("location"), Token: s.String("token"), User: s.String("user"), Password: s.String("password"), Headers: s.List("headers"),
		TLSCA: s.String("tls_ca"), TLSCert: s.String("tls_cert"), TLSKey: s.String("tls_key"), TLSSkipVerify: s.Bool("tls_skip_verify"),
		Timeout: s.Duration("timeout").Seconds(), Path: s.List("path"), Command: s.String("command"),
	}
	refuse := func(hint, format string, args ...any) (options, error) {
		return o, errs.New(errs.Usage, "options", what+": "+format, args...).WithHint("%s", hint)
	}
	given := 0
	for _, option := range oneOf {
		if s.Has(option) {
			given++
		}
	}
	if given != 1 {
		return refuse("give one of "+strings.Join(oneOf, ", "), "%d of the options %s say what is meant", given, strings.Join(oneOf, ", "))
	}
	if s.Has(oneOf[0]) && len(o.Path) == 0 {
		return refuse("write path = 'lake,trades'", "the path is empty")
	}
	if len(oneOf) > 2 {
		o.Ticket = s.String("ticket")
	}
	scheme, address, ok := strings.Cut(o.Location, "://")
	tls := scheme == "grpc+tls"
	switch {
	case !ok || address == "" || !tls && scheme != "grpc" && scheme != "grpc+tcp" && scheme != "grpc+unix":
		return refuse("write grpc://host:port or grpc+tls://host:port", "the location is no address of a Flight service")
	case strings.Contains(address, "@"):
		return refuse("give user and password as options", "the location holds a user, which it cannot")
	case !tls && (o.TLSCA != "" || o.TLSCert != "" || o.TLSKey != "" || o.TLSSkipVerify):
		return refuse("write location = 'grpc+tls://…', or leave the options out", "options of TLS are given, and the location is not encrypted")
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return refuse("a certificate goes with its key", "one of tls_cert and tls_key is missing")
	case (o.User == "") != (o.Password == ""):
		return refuse("a user goes with a password", "one of user and password is missing")
	case o.User != "" && o.Token != "":
		return refuse("leave one out", "token and user exclude each other")
	case o.Timeout <= 0:
		return refuse("write timeout = '30s'", "the timeout is not positive")
	}
	for _, h := range o.Headers {
		key, _, ok := strings.Cut(h, "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ToLower(key) != key || strings.ContainsAny(key, " \t:") {
			return refuse("headers are name=value, names in lower case; several are separated by commas", "one of the headers is none")
		}
	}
	return o, nil
}
