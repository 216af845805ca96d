package objstore

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

const (
	s3Attempts  = 5
	s3MaxPause  = 5 * time.Second
	s3Silence   = time.Minute // a connection on which nothing moves for so long is given up
	s3AnyRegion = "us-east-1" // where a bucket of another region answers with its own, and what services that are not AWS ignore
)

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
func (s *S3) connect(ctx context.Context) (*s3.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(s3HTTP()), config.WithRetryer(s3Retryer), config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, errs.New(errs.Usage, "connect to S3", "the AWS configuration cannot be read: %v", err).
			WithHint("check AWS_PROFILE, AWS_CONFIG_FILE and the files in ~/.aws")
	}
	if cfg.Region == "" {
		cfg.Region = s3AnyRegion
	}
	if cfg.Credentials == nil {
		return nil, noCredentials(nil)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, noCredentials(err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		// Other services than AWS know their buckets by path, and few know the newest checksums; a signed payload is checked all the same.
		o.UsePathStyle = o.BaseEndpoint != nil
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	o := client.Options()
	s.region, s.endpoint = o.Region, "AWS"
	if o.BaseEndpoint != nil {
		s.endpoint = hostOf(*o.BaseEndpoint)
	}
	s.client = client
	return client, nil
}

func noCredentials(cause error) error {
	e := errs.New(errs.Source, "connect to S3", "there are no AWS credentials").
		WithHint("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for one in ~/.aws, or run where a role gives them")
	if cause != nil {
		e.Err = cause // its text may quote a credentials program
	}
	return e
}

// hostOf leaves out what else a URL may hold, such as a password.
func hostOf(endpoint string) string {
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		endpoint = rest
	}
	endpoint, _, _ = strings.Cut(endpoint, "/")
	return endpoint[strings.LastIndexByte(endpoint, '@')+1:]
}

// s3Retryer tries again what may pass: five attempts in all, with pauses that double and jitter.
func s3Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = s3Attempts, s3MaxPause
		o.RateLimiter = ratelimit.None // attempts are bounded already; one that is not made would read as a failure of the store
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			if transient(err) {
				return aws.TrueTernary
			}
			return aws.UnknownTernary
		}))
	})
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
