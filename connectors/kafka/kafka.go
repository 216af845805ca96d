// Package kafka reads topics as streams and writes rows to topics.
//
// Invariant: a position is the offset of the next record to read, and what is at an offset never changes. Nothing that
// was read is left out in silence: a record gives a row, a deletion (upsert), a row of __bad, or (tombstones) a count.
package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// connection are the options of sources and sinks by which the brokers are reached.
var connection = connectors.Options{
	{Name: "brokers", Type: connectors.List, Env: "KAFKA_BROKERS", Required: true, Doc: "Brokers to ask for the cluster, comma separated.", Example: "localhost:9092"},
	{Name: "topic", Type: connectors.String, Required: true, Doc: "The topic.", Example: "trades"},
	{Name: "security_protocol", Type: connectors.Enum, Values: []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, Default: "PLAINTEXT", Doc: "Whether the connection is encrypted, and whether we log in."},
	{Name: "sasl_mechanism", Type: connectors.Enum, Values: []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}, Default: "PLAIN", Doc: "How we log in."},
	{Name: "sasl_username", Type: connectors.String, Doc: "User name.", Example: "${KAFKA_USER}"},
	{Name: "sasl_password", Type: connectors.String, Secret: true, Doc: "Password; write a reference to an environment variable.", Example: "${KAFKA_PASSWORD}"},
	{Name: "sasl_token", Type: connectors.String, Secret: true, Doc: "Token of the mechanism OAUTHBEARER.", Example: "${KAFKA_TOKEN}"},
	{Name: "ssl_ca_location", Type: connectors.String, Doc: "File with the certificates that we trust, in PEM; the system's when absent.", Example: "/etc/ssl/kafka-ca.pem"},
	{Name: "ssl_certificate_location", Type: connectors.String, Doc: "File with our certificate, in PEM, where brokers ask for one.", Example: "/etc/ssl/riverbed.pem"},
	{Name: "ssl_key_location", Type: connectors.String, Doc: "File with the key of our certificate, in PEM; the file of the certificate when absent.", Example: "/etc/ssl/riverbed.key"},
	{Name: "client_id", Type: connectors.String, Default: "riverbed", Doc: "Name under which brokers see us."},
}

// Source declares topics as streams.
var Source = connectors.Source{
	Name: "kafka", Class: "Kafka", Summary: "Read a topic, all its partitions, as a stream.", Replayable: true,
	Options: connection.With(
		connectors.Option{Name: "format", Type: connectors.Enum, Values: []string{"json", "csv", "raw", "avro", "debezium"}, Default: "json", Doc: "How the value of a record becomes a row. debezium: change events in JSON; the stream is what came and went."},
		connectors.Option{Name: "avro_schema", Type: connectors.String, Doc: "With format avro: the reader's schema, as JSON or as a file's name. Messages that do not say otherwise are written with it. Left out, each message has its schema inside (an object container), or its id in the registry.", Example: "trade.avsc"},
		connectors.Option{Name: "schema_registry", Type: connectors.String, Doc: "With format avro: address of the schema registry whose ids the messages begin with.", Example: "http://localhost:8081"},
		connectors.Option{Name: "schema_registry_user", Type: connectors.String, Doc: "User name at the schema registry."},
		connectors.Option{Name: "schema_registry_password", Type: connectors.String, Secret: true, Doc: "Password at the schema registry; write a reference to an environment variable.", Example: "${REGISTRY_PASSWORD}"},
		connectors.Option{Name: "start", Type: connectors.String, Default: "earliest", Doc: "Where to begin: earliest, latest, a point in time, or offsets by partition (0:120,1:80; partitions that are not named begin at the earliest).", Example: "2026-01-01T00:00:00Z"},
		connectors.Option{Name: "isolation", Type: connectors.Enum, Values: []string{"read_committed", "read_uncommitted"}, Default: "read_committed", Doc: "Whether records of open and aborted transactions are read."},
		connectors.Option{Name: "lost_records", Type: connectors.Enum, Values: []string{"fail", "skip"}, Default: "fail", Doc: "What to do when retention has removed records that were not read yet: fail, or go on with the first that is there, and a row of __bad that names the offsets."},
		connectors.Option{Name: "group_id", Type: connectors.String, Doc: "Consumer group whose offsets show how far durable checkpoints are, for those who watch the lag; they are never read.", Example: "riverbed-trades"},
		connectors.Option{Name: "tombstones", Type: connectors.Enum, Values: []string{"skip", "keep"}, Default: "skip", Doc: "Records without a value, unless they delete (upsert): leave them out, or read a row of NULLs."},
		connectors.UpsertOption("a record is the new row of its key, from which the columns of the PRIMARY KEY are filled, and one without a value (tombstone) deletes the row. A record without a key goes to __bad. With format debezium the key is in the rows, and events that come twice do no harm."),
		connectors.Option{Name: "key_format", Type: connectors.Enum, Values: []string{"text", "json"}, Doc: "With upsert: how the key of a record gives the columns of the PRIMARY KEY. text: it is the value of the one column; json: an object with a member for each. Left out, text for one column and json for several."},
		connectors.Option{Name: "metadata", Type: connectors.Bool, Default: "false", Doc: "Add the columns _topic, _partition, _offset, _timestamp, _key and _headers. A declared schema may name any of them without this."},
		connectors.Option{Name: "schema_timeout", Type: connectors.Duration, Default: "10s", Doc: "How long to wait for a first record when the columns are to be inferred from an empty topic."},
		connectors.Option{Name: "delim", Type: connectors.String, Default: ",", Doc: "Character between the values of the format csv."},
	),
	Stream: openStream,
}

// attempts is how often a broker is tried at the start.
const attempts = 5

// clientOptions are what every client of the connector needs.
func clientOptions(s connectors.Settings) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(s.List("brokers")...),
		kgo.ClientID(s.String("client_id")),
		kgo.DialTimeout(5 * time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond), // a partition that is opened is looked up at once, not after the usual 2.5 s
	}
	protocol := s.String("security_protocol")
	if strings.HasSuffix(protocol, "SSL") {
		conf, err := tlsConfig(s)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(conf))
	}
	if strings.HasPrefix(protocol, "SASL") {
		m, err := mechanism(s)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func tlsConfig(s connectors.Settings) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := s.String("ssl_ca_location"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, errs.New(errs.Source, "connect", "cannot read the certificates of ssl_ca_location: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errs.New(errs.Source, "connect", "the file %q of ssl_ca_location holds no certificate in PEM", path)
		}
	}
	if path := s.String("ssl_certificate_location"); path != "" {
		key := s.String("ssl_key_location")
		if key == "" {
			key = path
		}
		own, err := tls.LoadX509KeyPair(path, key)
		if err != nil {
			return nil, errs.New(errs.Source, "connect", "cannot use the certificate of ssl_certificate_location: %w", err)
		}
		conf.Certificates = []tls.Certificate{own}
	}
	return conf, nil
}

func mechanism(s connectors.Settings) (sasl.Mechanism, error) {
	name, user, pass := s.String("sasl_mechanism"), s.String("sasl_username"), s.String("sasl_password")
	if name == "OAUTHBEARER" {
		if s.String("sasl_token") == "" {
			return nil, errs.New(errs.Usage, "connect", "sasl_mechanism = OAUTHBEARER needs sasl_token")
		}
		return oauth.Auth{Token: s.String("sasl_token")}.AsMechanism(), nil
	}
	if user == "" {
		return nil, errs.New(errs.Usage, "connect", "security_protocol = %s needs sasl_username and sasl_password", s.String("security_protocol"))
	}
	switch name {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: pass}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: pass}.AsSha512Mechanism(), nil
	}
	return plain.Auth{User: user, Pass: pass}.AsMechanism(), nil
}

// admin asks the cluster a question, at most attempts times.
func admin[T any](ctx context.Context, s connectors.Settings, c clock.Clock, ask func(context.Context, *kadm.Client) (T, error)) (T, error) {
	var zero T
	opts, err := clientOptions(s)
	if err != nil {
		return zero, err
	}
	client, err := kgo.NewClient(append(opts, kgo.RequestRetries(0), kgo.RetryTimeout(10*time.Second))...)
	if err != nil {
		return zero, errs.New(errs.Usage, "connect", "the options for the brokers %s: %w", strings.Join(s.List("brokers"), ", "), err)
	}
	defer client.Close()
	return retry(ctx, s, c, func(ctx context.Context) (T, error) { return ask(ctx, kadm.NewClient(client)) })
}

// The pauses between attempts: the first, which doubles, and the longest.
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 5 * time.Second
)

// retry asks at most attempts times, with growing waits between; for a run, which is patient, as long as that has patience.
func retry[T any](ctx context.Context, s connectors.Settings, c clock.Clock, ask func(context.Context) (T, error)) (T, error) {
	var zero T
	again := clock.Retry{Clock: c, Attempts: attempts, First: firstWait, Longest: longestWait}
	defer again.Done()
	for {
		answer, err := ask(ctx)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() == nil {
			if errs.As(err).Kind != errs.Internal { // ours, and final
				return zero, err
			}
			if !retriable(err) {
				return zero, unreachable(s, again.Failures()+1, err)
			}
			if again.Again(ctx, err) {
				continue
			}
		}
		if ctx.Err() != nil {
			return zero, errs.New(errs.Cancelled, "connect", "connecting to Kafka was cancelled: %w", ctx.Err())
		}
		return zero, unreachable(s, again.Failures(), err).AsTransient()
	}
}

// retriable: everything but what the broker says is final, such as a wrong password.
func retriable(err error) bool {
	if e := kerr.TypedErrorForCode(kerr.SaslAuthenticationFailed.Code); err == error(e) {
		return false
	}
	return !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED")
}

func unreachable(s connectors.Settings, n int, err error) *errs.Error {
	return errs.New(errs.Source, "connect", "the Kafka brokers %s cannot be reached (tried %d times): %w", strings.Join(s.List("brokers"), ", "), n, err).
		WithHint("check that a broker runs there and that brokers, security_protocol and the sasl options are right")
}

// partitionsOf lists the partitions of the topic.
func partitionsOf(ctx context.Context, s connectors.Settings, c clock.Clock) ([]int32, error) {
	t, err := topicOf(ctx, s, c)
	return t.Partitions.Numbers(), err
}

// topicOf asks for the topic.
func topicOf(ctx context.Context, s connectors.Settings, c clock.Clock) (kadm.TopicDetail, error) {
	topic := s.String("topic")
	unknown := 0
	return admin(ctx, s, c, func(ctx context.Context, a *kadm.Client) (kadm.TopicDetail, error) {
		found, err := a.ListTopics(ctx, topic)
		t, ok := found[topic]
		if err != nil {
			return t, err
		}
		if !ok {
			t.Err = kerr.UnknownTopicOrPartition
		}
		switch {
		case t.Err == nil:
			return t, nil
		case t.Err == kerr.UnknownTopicOrPartition:
			// A broker may hear of a topic only after the one that created it has said that it is there.
			if unknown++; unknown < attemptsUnknown {
				return t, t.Err
			}
			return t, missingTopic(ctx, s, a, t.Err)
		case kerr.IsRetriable(t.Err):
			return t, t.Err
		}
		return t, missingTopic(ctx, s, a, t.Err)
	})
}

// attemptsUnknown is how often a topic must be unknown before we say so.
const attemptsUnknown = 3

// missingTopic names the topic and the nearest one.
func missingTopic(ctx context.Context, s connectors.Settings, a *kadm.Client, cause error) error {
	topic := s.String("topic")
	e := errs.New(errs.Source, "connect", "there is no topic %q at %s", topic, strings.Join(s.List("brokers"), ", "))
	if cause != kerr.UnknownTopicOrPartition && cause != kerr.UnknownTopicID {
		return errs.New(errs.Source, "connect", "the topic %q cannot be read: %w", topic, cause).WithHint("check that this user may read it")
	}
	all, err := a.ListTopics(ctx)
	if err != nil {
		return e.WithHint("create it, or check its name")
	}
	if near := errs.Near(topic, all.Names()); near != "" {
		return e.WithHint("did you mean %q?", near)
	}
	return e.WithHint("create it, or check its name")
}
