package objstore

import (
	"context"
	"encoding/xml"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// S3 is an object store that speaks S3. Names are bucket/key.
type S3 struct {
	mu               sync.Mutex
	client           *client
	region, endpoint string
}

// markHeader is the metadata in which a writer finds its own object again.
const markHeader = "X-Amz-Meta-Riverbed-Mark"

// URL is the name with its scheme.
func (*S3) URL(name string) string { return "s3://" + name }

func split(name string) (bucket, key string) {
	bucket, key, _ = strings.Cut(name, "/")
	return bucket, key
}

// Glob lists the keys below the part of the pattern that is no pattern.
func (s *S3) Glob(ctx context.Context, pattern string) ([]Info, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, errs.New(errs.Usage, "list", "%q is no pattern", s.URL(pattern))
	}
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	bucket, key := split(pattern)
	prefix := key
	if at := strings.IndexAny(key, `*?[{\`); at >= 0 {
		prefix = key[:at]
	}
	var out []Info
	for in := (url.Values{"list-type": {"2"}, "prefix": {prefix}, "encoding-type": {"url"}}); ; {
		var page struct {
			EncodingType          string
			IsTruncated           bool
			NextContinuationToken string
			Contents              []struct {
				Key          string
				Size         int64
				LastModified time.Time
			}
		}
		if _, err := c.ask(ctx, request{method: http.MethodGet, bucket: bucket, query: in}, &page); err != nil {
			return nil, s.fail(ctx, "list", pattern, err)
		}
		for _, o := range page.Contents {
			name := bucket + "/" + plain(o.Key, page.EncodingType)
			if ok, _ := doublestar.Match(pattern, name); ok && !strings.HasSuffix(name, "/") {
				out = append(out, Info{name, o.Size, o.LastModified.UTC().Truncate(time.Second)})
			}
		}
		if !page.IsTruncated || page.NextContinuationToken == "" {
			break
		}
		in.Set("continuation-token", page.NextContinuationToken)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// plain is a key as it is: XML cannot hold all of them.
func plain(key, encoding string) string {
	if encoding == "url" {
		if k, err := url.QueryUnescape(key); err == nil {
			return k
		}
	}
	return key
}

// Stat describes an object.
func (s *S3) Stat(ctx context.Context, name string) (Info, error) {
	h, err := s.head(ctx, name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(name, h), nil
}

// infoOf describes an object by the header of an answer, whose times are whole seconds; so Glob's are cut to those.
func infoOf(name string, h http.Header) Info {
	size, _ := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	modified, _ := http.ParseTime(h.Get("Last-Modified"))
	return Info{name, size, modified.UTC()}
}

func (s *S3) head(ctx context.Context, name string) (http.Header, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	bucket, key := split(name)
	if key == "" || strings.HasSuffix(key, "/") {
		return nil, &fs.PathError{Op: "stat", Path: s.URL(name), Err: fs.ErrNotExist} // a folder is no object
	}
	h, err := c.ask(ctx, request{method: http.MethodHead, bucket: bucket, key: key}, nil)
	return h, s.fail(ctx, "stat", name, err)
}

// PutIfAbsent puts under the condition that the name is free.
//
// AIDEV-NOTE: the answer to a put that was done may be lost, and its retry is told that the name is taken. So a name that is taken is looked
// at: what has our mark was put by us. The mark is of this call alone, so two writers of equal bytes are not taken for one.
func (s *S3) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	bucket, key := split(name)
	mark := clock.Unique()
	_, err = c.ask(ctx, request{method: http.MethodPut, bucket: bucket, key: key, body: data, header: map[string]string{"If-None-Match": "*", markHeader: mark}}, nil)
	if _, status := code(err); status == http.StatusPreconditionFailed {
		if err = s.ours(ctx, "put", name, mark); errors.Is(err, ErrNotExist) { // taken a moment ago
			return errs.New(errs.Source, "write", "cannot write %q: somebody else puts and deletes it", s.URL(name)).AsTransient()
		}
		return err
	}
	return s.fail(ctx, "write", name, err)
}

// ours is nil when the object of a name has the mark; otherwise the error wraps ErrExists, or ErrNotExist where there is none.
func (s *S3) ours(ctx context.Context, op, name, mark string) error {
	h, err := s.head(ctx, name)
	if err != nil || h.Get(markHeader) == mark {
		return err
	}
	return &fs.PathError{Op: op, Path: s.URL(name), Err: fs.ErrExist}
}

// Delete removes an object.
func (s *S3) Delete(ctx context.Context, name string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	bucket, key := split(name)
	_, err = c.ask(ctx, request{method: http.MethodDelete, bucket: bucket, key: key}, nil)
	if err = s.fail(ctx, "delete", name, err); errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}

// Publish completes the upload, under the condition that the name is free.
func (s *S3) Publish(ctx context.Context, st Staged) error { return s.complete(ctx, st, true) }

// complete makes an object of the parts.
//
// AIDEV-NOTE: an upload that is completed is gone, so the retry of one whose answer was lost is told that there is none; then the object's mark
// says whether it is ours. A service that ignores the condition replaces another object of the name; names must be the caller's own.
func (s *S3) complete(ctx context.Context, st Staged, absent bool) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	bucket, key := split(st.Name)
	type part struct {
		PartNumber int
		ETag       string
	}
	parts := struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []part
	}{}
	for i, etag := range st.Parts {
		parts.Part = append(parts.Part, part{i + 1, etag})
	}
	body, err := xml.Marshal(parts)
	if err != nil {
		return errs.Bug("publish", "%w", err)
	}
	r := request{method: http.MethodPost, bucket: bucket, key: key, query: url.Values{"uploadId": {st.Key}}, body: body, header: map[string]string{}}
	if absent {
		r.header["If-None-Match"] = "*"
	}
	_, err = c.ask(ctx, r, &struct{ ETag string }{})
	switch word, status := code(err); {
	case status == http.StatusPreconditionFailed, status == http.StatusNotFound && word != "NoSuchBucket":
		return s.ours(ctx, "publish", st.Name, st.Mark)
	}
	return s.fail(ctx, "publish", st.Name, err)
}

// Discard aborts the upload.
func (s *S3) Discard(ctx context.Context, st Staged) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	bucket, key := split(st.Name)
	_, err = c.ask(ctx, request{method: http.MethodDelete, bucket: bucket, key: key, query: url.Values{"uploadId": {st.Key}}}, nil)
	if err = s.fail(ctx, "abort", st.Name, err); errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}

// ListStaged lists the uploads that are not completed.
func (s *S3) ListStaged(ctx context.Context, folder string) ([]Staged, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	bucket, prefix := split(folder)
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	var out []Staged
	for in := (url.Values{"uploads": {""}, "prefix": {prefix}, "encoding-type": {"url"}}); ; {
		var page struct {
			EncodingType                      string
			IsTruncated                       bool
			NextKeyMarker, NextUploadIdMarker string //nolint:revive // S3's word
			Upload                            []struct {
				Key      string
				UploadID string `xml:"UploadId"`
			}
		}
		if _, err := c.ask(ctx, request{method: http.MethodGet, bucket: bucket, query: in}, &page); err != nil {
			return nil, s.fail(ctx, "list uploads of", folder, err)
		}
		for _, u := range page.Upload {
			out = append(out, Staged{Name: bucket + "/" + plain(u.Key, page.EncodingType), Key: u.UploadID})
		}
		if !page.IsTruncated || page.NextKeyMarker == "" {
			return out, nil
		}
		in.Set("key-marker", plain(page.NextKeyMarker, page.EncodingType))
		in.Set("upload-id-marker", page.NextUploadIdMarker)
	}
}
