package objstore

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

const (
	s3Attempts     = 5
	s3Pause        = 150 * time.Millisecond // the first; the next ones double
	s3LongestPause = 5 * time.Second
	s3AnyRegion    = "us-east-1" // where a bucket of another region answers with its own, and what services that are not AWS ignore
)

// s3Silence is how long nothing may move on a connection before it is given up.
var s3Silence = time.Minute

// stores are the S3 stores of this process, by the environment that they were made in: a changed variable is a new store.
var stores = struct {
	sync.Mutex
	by map[string]*S3
}{by: map[string]*S3{}}

// s3FromEnvironment is the store that the usual AWS variables describe. It costs nothing until it is used.
func s3FromEnvironment() *S3 {
	var env strings.Builder
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "AWS_") {
			env.WriteString(v + "\n")
		}
	}
	stores.Lock()
	defer stores.Unlock()
	s := stores.by[env.String()]
	if s == nil {
		s = &S3{}
		stores.by[env.String()] = s
	}
	return s
}

// connect makes the client. What failed is tried again by the next caller: credentials may come later.
func (s *S3) connect(ctx context.Context) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	web := s3HTTP()
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(web), config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, errs.New(errs.Usage, "connect to S3", "the AWS configuration cannot be read: %v", err).
			WithHint("check AWS_PROFILE, AWS_CONFIG_FILE and the files in ~/.aws")
	}
	c := &client{http: web, signer: v4.NewSigner(), keys: cfg.Credentials, region: cfg.Region}
	if c.region == "" {
		c.region = s3AnyRegion
	}
	if c.endpoint, err = endpointOf(ctx, cfg); err != nil {
		return nil, err
	}
	if c.keys == nil {
		return nil, noCredentials(nil)
	}
	if _, err := c.keys.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, noCredentials(err)
	}
	s.region, s.endpoint = c.region, "AWS"
	if c.endpoint != nil {
		s.endpoint = c.endpoint.Host
	}
	s.client = c
	return c, nil
}

// endpointOf is that of the S3 service in particular (AWS_ENDPOINT_URL_S3, services in a profile), or of all; nil is AWS.
func endpointOf(ctx context.Context, cfg aws.Config) (*url.URL, error) {
	at := aws.ToString(cfg.BaseEndpoint)
	for _, source := range cfg.ConfigSources {
		if s, ok := source.(interface {
			GetServiceBaseEndpoint(ctx context.Context, service string) (string, bool, error)
		}); ok {
			if own, found, err := s.GetServiceBaseEndpoint(ctx, "S3"); err == nil && found {
				at = own
				break
			}
		}
	}
	if at == "" {
		return nil, nil
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errs.New(errs.Usage, "connect to S3", "AWS_ENDPOINT_URL is no URL of a service").WithHint("write it as http://host:port")
	}
	u.User = nil
	return u, nil
}

func noCredentials(cause error) error {
	e := errs.New(errs.Source, "connect to S3", "there are no AWS credentials").
		WithHint("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for one in ~/.aws, or run where a role gives them")
	if cause != nil {
		e.Err = cause // its text may quote a credentials program
	}
	return e
}

// s3HTTP is the SDK's HTTP client, whose connections end when nothing moves on them: a service that is up and silent must not hold us.
func s3HTTP() *awshttp.BuildableClient {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = 16
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return impatient{c}, nil
		}
	})
}

// impatient is a connection that ends when neither a read nor a write has moved anything for a while.
type impatient struct{ net.Conn }

func (c impatient) Read(p []byte) (int, error) {
	if err := c.SetDeadline(clock.Wall{}.Now().Add(s3Silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c impatient) Write(p []byte) (int, error) {
	if err := c.SetDeadline(clock.Wall{}.Now().Add(s3Silence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
