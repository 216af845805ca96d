package objstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/objstore/objtest"
)

func TestS3(t *testing.T) {
	objtest.S3(t)
	s, dir, err := objstore.For("s3://" + objtest.Bucket + "/d")
	if err != nil {
		t.Fatal(err)
	}
	objstore.Conformance(t, s, dir)
	ctx := t.Context()

	t.Run("one of many that put wins", func(t *testing.T) {
		var won atomic.Int32
		var wait sync.WaitGroup
		for i := range 16 {
			wait.Go(func() {
				switch err := s.PutIfAbsent(ctx, dir+"/lease", fmt.Append(nil, i%2)); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, objstore.ErrExists):
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if won.Load() != 1 {
			t.Errorf("%d won", won.Load())
		}
	})
	t.Run("an aborted upload leaves nothing", func(t *testing.T) {
		u, err := s.Create(ctx, dir+"/aborted")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Write(make([]byte, 9<<20)); err != nil {
			t.Fatal(err)
		}
		if err := u.Abort(); err != nil {
			t.Fatal(err)
		}
		if left, err := s.ListStaged(ctx, objtest.Bucket); len(left) != 0 || err != nil {
			t.Errorf("left %v, %v", left, err)
		}
	})
	t.Run("a replaced object", func(t *testing.T) {
		name := dir + "/replaced"
		if err := objstore.Put(ctx, s, name, []byte("one")); err != nil {
			t.Fatal(err)
		}
		f, err := s.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := objstore.Put(ctx, s, name, []byte("two")); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(make([]byte, 3), 0); err == nil || !strings.Contains(err.Error(), "was replaced") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no bucket", func(t *testing.T) {
		for op, do := range map[string]func() error{
			"list":  func() error { _, err := s.Glob(ctx, "nothing/x/*"); return err },
			"write": func() error { return objstore.Put(ctx, s, "nothing/x", []byte("x")) },
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), `there is no bucket "nothing"`) {
				t.Errorf("%s: %v", op, err)
			}
		}
	})
	t.Run("a wrong secret", func(t *testing.T) {
		t.Setenv("AWS_SECRET_ACCESS_KEY", "another secret")
		wrong, _, _ := objstore.For("s3://" + dir)
		_, err := wrong.Glob(ctx, dir+"/*")
		if err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") || strings.Contains(fmt.Sprintf("%+v", err), "another secret") {
			t.Errorf("got %v", err)
		}
	})
}

// fake is a service that answers as it is told.
func fake(t *testing.T, answer http.HandlerFunc) (objstore.Store, *atomic.Int32) {
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	for name, value := range (&objtest.Service{Endpoint: srv.URL}).Environment() {
		t.Setenv(name, value)
	}
	s, _, err := objstore.For("s3://b/k")
	if err != nil {
		t.Fatal(err)
	}
	return s, &calls
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

func TestS3SaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		code     string
		status   int
		says     string
		attempts int32
		is       bool // transient
	}{
		{"AccessDenied", 403, `cannot list "s3://b/k/*": access denied` + "\nHint: the credentials in use need s3:ListBucket on the bucket \"b\"", 1, false},
		{"PermanentRedirect", 301, "the bucket \"b\" is not in the region us-east-1\nHint: set AWS_REGION=eu-west-1", 1, false},
		{"InvalidAccessKeyId", 403, "does not accept the credentials (InvalidAccessKeyId)", 1, false},
		{"SlowDown", 503, "does not answer as it should, after 5 attempts: SlowDown: m", 5, true},
		{"InternalError", 500, "after 5 attempts: InternalError: m", 5, true},
		{"InvalidRequest", 400, `cannot list "s3://b/k/*": InvalidRequest: m`, 1, false},
	} {
		s, calls := fake(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.code == "PermanentRedirect" {
				w.Header().Set("X-Amz-Bucket-Region", "eu-west-1")
			}
			refuse(w, c.status, c.code, "m")
		})
		_, err := s.Glob(t.Context(), "b/k/*")
		if err == nil || !strings.Contains(err.Error(), c.says) || errs.As(err).Transient != c.is || calls.Load() != c.attempts {
			t.Errorf("%s: after %d attempts %v", c.code, calls.Load(), err)
		}
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://user:password@127.0.0.1:1")
	s, _, _ := objstore.For("s3://b/k")
	if _, err := s.Stat(t.Context(), "b/k"); err == nil || !errs.As(err).Transient || !strings.Contains(err.Error(), "127.0.0.1:1 does not answer") || strings.Contains(err.Error(), "password") {
		t.Errorf("nobody there: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	s, _, _ = objstore.For("s3://b/k")
	if _, err := s.Stat(t.Context(), "b/k"); err == nil || !strings.Contains(err.Error(), "there are no AWS credentials\nHint: set AWS_ACCESS_KEY_ID") {
		t.Errorf("no credentials: %v", err)
	}
}

// A completion may be refused in an answer that was granted, and its retry may come too late.
func TestS3CompletionFailsLate(t *testing.T) {
	mark, tries := "", 0
	s, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.Method == http.MethodHead:
			w.Header().Set("X-Amz-Meta-Riverbed-Mark", mark)
		case r.Method == http.MethodPut:
			w.Header().Set("Etag", `"part"`)
		case q.Has("uploads"):
			mark = r.Header.Get("X-Amz-Meta-Riverbed-Mark")
			fmt.Fprint(w, "<R><UploadId>u</UploadId></R>")
		case tries == 0:
			tries++
			fmt.Fprint(w, "<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code></Error>")
		default:
			refuse(w, 404, "NoSuchUpload", "")
		}
	})
	u, err := s.Create(t.Context(), "b/k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	st, err := u.Stage()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(t.Context(), st); err != nil || tries != 1 {
		t.Errorf("after %d tries %v", tries, err)
	}
	st.Mark = "another's"
	if err := s.Publish(t.Context(), st); !errors.Is(err, objstore.ErrExists) {
		t.Error(err)
	}
}

// TestS3LosesAnswers lets the first answer to a put be lost after it was done.
func TestS3LosesAnswers(t *testing.T) {
	for _, ours := range []bool{true, false} {
		mark := "another's"
		puts := 0
		s, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodHead:
				w.Header().Set("X-Amz-Meta-Riverbed-Mark", mark)
			case puts == 0:
				puts++
				if r.Header.Get("If-None-Match") != "*" {
					t.Error("put without a condition")
				}
				if ours {
					mark = r.Header.Get("X-Amz-Meta-Riverbed-Mark")
				}
				refuse(w, 500, "InternalError", "")
			default:
				refuse(w, 412, "PreconditionFailed", "")
			}
		})
		err := s.PutIfAbsent(t.Context(), "b/k", []byte("x"))
		if ours && err != nil || !ours && !errors.Is(err, objstore.ErrExists) {
			t.Errorf("ours %v: %v", ours, err)
		}
	}
}

// TestS3ReadsOnWhereABodyBreaks cuts every answer short.
func TestS3ReadsOnWhereABodyBreaks(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	s, calls := fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"v"`)
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			return
		}
		var from, to int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(text)))
		w.Header().Set("Content-Length", fmt.Sprint(to-from+1))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, text[from:min(to+1, from+4000)])
	})
	got, err := objstore.Get(t.Context(), s, "b/k")
	if err != nil || string(got) != text || calls.Load() != 4 {
		t.Errorf("%d bytes in %d requests, %v", len(got), calls.Load(), err)
	}
}

func TestS3Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, calls := fake(t, func(w http.ResponseWriter, _ *http.Request) { cancel(); refuse(w, 500, "InternalError", "") })
	if _, err := s.Stat(ctx, "b/k"); !errors.Is(err, context.Canceled) || calls.Load() != 1 {
		t.Errorf("after %d calls %v", calls.Load(), err)
	}
}

// TestS3BehindABadNetwork loses every third answer on the way back: half of them become a 503, half break off.
func TestS3BehindABadNetwork(t *testing.T) {
	service := objtest.S3(t)
	at, err := url.Parse(service.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var n, lost atomic.Int32
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = at.Scheme, at.Host, r.In.Host
		}, // the signature names our host
		ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: func(resp *http.Response) error {
			// An upload that was begun and is not known of is left over, which the suite would see.
			if _, begins := resp.Request.URL.Query()["uploads"]; begins || n.Add(1)%3 != 0 {
				return nil
			}
			body, err := io.ReadAll(resp.Body)
			if lost.Add(1)%2 == 0 {
				return errors.New("lost")
			}
			resp.Body = io.NopCloser(bytes.NewReader(body[:len(body)/2])) // shorter than was said
			return err
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusServiceUnavailable) },
	}
	srv := httptest.NewUnstartedServer(proxy)
	srv.Config.ErrorLog = proxy.ErrorLog
	srv.Start()
	defer srv.Close()
	t.Setenv("AWS_ENDPOINT_URL", srv.URL)
	s, dir, err := objstore.For("s3://" + objtest.Bucket + "/bad")
	if err != nil {
		t.Fatal(err)
	}
	objstore.Conformance(t, s, dir)
	if lost.Load() < 20 {
		t.Errorf("only %d answers were lost", lost.Load())
	}
}
