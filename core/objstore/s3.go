package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sort"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/bmatcuk/doublestar/v4"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// S3 is an object store that speaks S3. Names are bucket/key.
type S3 struct {
	mu               sync.Mutex
	client           *s3.Client
	region, endpoint string
}

// markKey is the metadata in which a writer finds its own object again.
const markKey = "riverbed-mark"

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
	pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.fail(ctx, "list", pattern, err)
		}
		for _, o := range page.Contents {
			name := bucket + "/" + aws.ToString(o.Key)
			if ok, _ := doublestar.Match(pattern, name); ok && !strings.HasSuffix(name, "/") {
				out = append(out, Info{name, aws.ToInt64(o.Size), aws.ToTime(o.LastModified).UTC()})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Stat describes an object.
func (s *S3) Stat(ctx context.Context, name string) (Info, error) {
	h, err := s.head(ctx, name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(name, h), nil
}

func infoOf(name string, h *s3.HeadObjectOutput) Info {
	return Info{name, aws.ToInt64(h.ContentLength), aws.ToTime(h.LastModified).UTC()}
}

func (s *S3) head(ctx context.Context, name string) (*s3.HeadObjectOutput, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	bucket, key := split(name)
	if key == "" || strings.HasSuffix(key, "/") {
		return nil, &fs.PathError{Op: "stat", Path: s.URL(name), Err: fs.ErrNotExist} // a folder is no object
	}
	h, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
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
	_, err = c.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader(data), IfNoneMatch: aws.String("*"), Metadata: map[string]string{markKey: mark},
	})
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
	if err != nil || h.Metadata[markKey] == mark {
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
	_, err = c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
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
	parts := make([]types.CompletedPart, len(st.Parts))
	for i, etag := range st.Parts {
		parts[i] = types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: aws.String(etag)}
	}
	in := &s3.CompleteMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: &st.Key, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}}
	if absent {
		in.IfNoneMatch = aws.String("*")
	}
	_, err = c.CompleteMultipartUpload(ctx, in)
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
	_, err = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: &st.Key})
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
	pages := s3.NewListMultipartUploadsPaginator(c, &s3.ListMultipartUploadsInput{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.fail(ctx, "list uploads of", folder, err)
		}
		for _, u := range page.Uploads {
			out = append(out, Staged{Name: fmt.Sprintf("%s/%s", bucket, aws.ToString(u.Key)), Key: aws.ToString(u.UploadId)})
		}
	}
	return out, nil
}
