package objstore

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/errs"
)

func TestS3URLs(t *testing.T) {
	for _, c := range []struct{ endpoint, region, bucket, key, want string }{
		{"", "eu-west-1", "b", "a/x y+%.txt", "https://b.s3.eu-west-1.amazonaws.com/a/x%20y%2B%25.txt"},
		{"", "eu-west-1", "b.c", "k", "https://s3.eu-west-1.amazonaws.com/b.c/k"},
		{"", "cn-north-1", "b", "k", "https://b.s3.cn-north-1.amazonaws.com.cn/k"},
		{"http://127.0.0.1:9000", "us-east-1", "b", "k=1/ü", "http://127.0.0.1:9000/b/k%3D1/%C3%BC"},
		{"https://host/store/", "us-east-1", "b", "k//x", "https://host/store/b/k//x"},
	} {
		cl := client{region: c.region}
		if c.endpoint != "" {
			cl.endpoint, _ = url.Parse(c.endpoint)
		}
		if got := cl.url(request{bucket: c.bucket, key: c.key}).String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if got := (&client{region: "r"}).url(request{bucket: "b", query: url.Values{"prefix": {"a b+c"}}}).String(); !strings.HasSuffix(got, "/?prefix=a%20b%2Bc") {
		t.Error(got)
	}
}

// A service that takes requests and says nothing is given up, in whatever part of the answer it falls silent.
func TestS3Silent(t *testing.T) {
	defer func(d time.Duration) { s3Silence = d }(s3Silence)
	s3Silence = 50 * time.Millisecond
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "1000")
			return
		}
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Range", "bytes 0-999/1000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
		}
		<-done
	}))
	defer srv.Close()
	defer close(done)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": srv.URL, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"} {
		t.Setenv(name, value)
	}
	s := s3FromEnvironment()
	if err := s.PutIfAbsent(t.Context(), "b/k", []byte("x")); err == nil || !errs.As(err).Transient || !strings.Contains(err.Error(), "after 5 attempts") {
		t.Errorf("put: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Get(ctx, s, "b/k"); err == nil {
		t.Error("read what never came")
	}
}

func TestS3Configuration(t *testing.T) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name)
		}
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(`[profile plain]
region = eu-north-1
aws_access_key_id = a
aws_secret_access_key = b
endpoint_url = http://all:1
[profile own]
region = eu-north-1
aws_access_key_id = a
aws_secret_access_key = b
endpoint_url = http://all:1
services = mine
[services mine]
s3 =
  endpoint_url = http://user:secret@own:2/path
[profile aws]
aws_access_key_id = a
aws_secret_access_key = b
`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", path)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	is := func(region, endpoint string) {
		t.Helper()
		s := s3FromEnvironment()
		if s != s3FromEnvironment() {
			t.Error("the same environment has two stores")
		}
		c, err := s.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if c.endpoint != nil {
			got = c.endpoint.String()
		}
		if c.region != region || got != endpoint {
			t.Errorf("region %s at %q, want %s at %q", c.region, got, region, endpoint)
		}
	}
	t.Setenv("AWS_PROFILE", "plain")
	is("eu-north-1", "http://all:1")
	t.Setenv("AWS_PROFILE", "own")
	is("eu-north-1", "http://own:2/path")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://env:3")
	is("eu-north-1", "http://env:3")
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	t.Setenv("AWS_PROFILE", "aws")
	is("us-east-1", "")
	t.Setenv("AWS_REGION", "eu-west-3")
	is("eu-west-3", "")
	t.Setenv("AWS_ENDPOINT_URL", "localhost:9000")
	if _, err := s3FromEnvironment().connect(t.Context()); err == nil || !strings.Contains(err.Error(), "is no URL of a service") {
		t.Error(err)
	}
}
