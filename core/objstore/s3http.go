package objstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/riverbed/riverbed/core/clock"
)

// client speaks the few requests of S3 that a store needs. Keys, regions and endpoints come from the AWS SDK, and so does the signature; its S3 package
// does not, since what it links is larger than the rest of the engine's connectors together (docs/adr/0029).
type client struct {
	http     aws.HTTPClient
	signer   *v4.Signer
	keys     aws.CredentialsProvider
	region   string
	endpoint *url.URL // nil: AWS
}

// request is one of them.
type request struct {
	method      string
	bucket, key string
	query       url.Values
	header      map[string]string
	body        []byte
}

// answer is what an S3 service says when it refuses, from the body where there is one.
type answer struct {
	Status  int    `xml:"-"`
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
	Region  string `xml:"Region"`
}

func (a *answer) Error() string {
	switch {
	case a.Code == "":
		return http.StatusText(a.Status)
	case a.Message == "":
		return a.Code
	}
	return a.Code + ": " + a.Message
}

// do sends a request, again where that may help, and returns the answer to a request that was granted; the caller closes its body.
func (c *client) do(ctx context.Context, r request) (*http.Response, error) {
	again := attempts()
	defer again.Done()
	for {
		resp, err := c.send(ctx, r)
		if err == nil || !transient(err) || !again.Again(ctx, err) {
			return resp, err
		}
	}
}

func (c *client) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r).String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.URL = c.url(r) // a parsed one might have lost how the key is escaped
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	sum := sha256.Sum256(r.body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	req.Header.Set("User-Agent", "riverbed")
	keys, err := c.keys.Retrieve(ctx)
	if err != nil {
		return nil, noCredentials(err)
	}
	if err := c.signer.SignHTTP(ctx, keys, req, hash, "s3", c.region, clock.Wall{}.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	a := &answer{}
	if text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10)); err == nil {
		_ = xml.Unmarshal(text, a) // other text is no help
	}
	_ = resp.Body.Close()
	a.Status = resp.StatusCode
	if a.Region == "" {
		a.Region = resp.Header.Get("X-Amz-Bucket-Region")
	}
	return nil, a
}

// url is where a request goes. At AWS the bucket is a part of the host, unless it has dots, which certificates do not cover; other
// services know it by path.
func (c *client) url(r request) *url.URL {
	u := url.URL{Scheme: "https"}
	path := "/" + r.bucket + "/" + r.key
	switch domain := "s3." + c.region + ".amazonaws.com"; {
	case c.endpoint != nil:
		u.Scheme, u.Host = c.endpoint.Scheme, c.endpoint.Host
		path = strings.TrimSuffix(c.endpoint.Path, "/") + path
	case strings.Contains(r.bucket, "."):
		u.Host = domain
	default:
		u.Host, path = r.bucket+"."+domain, "/"+r.key
	}
	if c.endpoint == nil && strings.HasPrefix(c.region, "cn-") {
		u.Host += ".cn"
	}
	u.Path, u.RawPath = path, escape(path)
	u.RawQuery = strings.ReplaceAll(r.query.Encode(), "+", "%20")
	return &u
}

// escape writes all bytes but the unreserved ones and the slash in hexadecimal, as the signature wants it.
func escape(path string) string {
	const hexadecimal = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hexadecimal[c>>4], hexadecimal[c&15]})
		}
	}
	return b.String()
}

// ask sends a request and reads the answer's XML into out, which may be nil.
func (c *client) ask(ctx context.Context, r request, out any) (http.Header, error) {
	again := attempts()
	defer again.Done()
	for {
		resp, err := c.do(ctx, r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && out != nil {
			err = decode(text, out)
		}
		// A completion may be refused after it was granted; it is the same request all the same.
		if err == nil || !transient(err) || !again.Again(ctx, err) {
			return resp.Header, err
		}
	}
}

// decode reads an answer that was granted, unless its body says otherwise.
func decode(text []byte, out any) error {
	var refused struct {
		XMLName xml.Name `xml:"Error"`
		answer
	}
	if bytes.Contains(text, []byte("<Error>")) && xml.Unmarshal(text, &refused) == nil {
		return &refused.answer
	}
	if err := xml.Unmarshal(text, out); err != nil {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	return nil
}

// jitter is for pauses alone, so that those who failed together do not come back together.
var jitter = clock.Shared(clock.NewRand(uint64(clock.Wall{}.Now().UnixNano())))

// attempts are those at one request: few, unless the context is that of a run, which is patient.
func attempts() *clock.Retry {
	return &clock.Retry{Clock: clock.Wall{}, Rand: jitter, Attempts: s3Attempts, First: s3Pause, Longest: s3LongestPause}
}
