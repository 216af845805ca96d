package objstore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

const (
	firstPart  = 8 << 20
	partsADay  = 1000 // parts of one size; the next ones are twice as large, so that 10,000 parts hold the largest object
	partsAtOne = 3    // in flight, of one object
)

// s3Upload writes an object. One that fits into a part is put at once; otherwise its parts go up behind the writer.
type s3Upload struct {
	s    *S3
	ctx  context.Context
	name string
	mark string
	buf  []byte
	id   string // of the upload; "": none was started
	size int64
	done bool

	room chan struct{} // one for each part in flight
	wait sync.WaitGroup
	mu   sync.Mutex
	tags []string
	err  error // of a part
}

// Create starts an upload. The service hears of it when a part is full.
func (s *S3) Create(ctx context.Context, name string) (Upload, error) {
	if _, err := s.connect(ctx); err != nil {
		return nil, err
	}
	if _, key := split(name); key == "" {
		return nil, errs.New(errs.Usage, "write", "%q names no object", s.URL(name)).WithHint("write s3://bucket/key")
	}
	return &s3Upload{s: s, ctx: ctx, name: name, mark: clock.Unique(), room: make(chan struct{}, partsAtOne)}, nil
}

// partSize is that of the nth part, from 0.
func partSize(n int) int { return firstPart << (n / partsADay) }

func (u *s3Upload) Write(p []byte) (int, error) {
	if u.done {
		return 0, io.ErrClosedPipe
	}
	n := len(p)
	for len(p) > 0 {
		if u.buf == nil {
			u.buf = make([]byte, 0, min(partSize(len(u.tags)), max(len(p), 256<<10)))
		}
		take := min(len(p), partSize(len(u.tags))-len(u.buf))
		u.buf = append(u.buf, p[:take]...)
		p = p[take:]
		if len(u.buf) == partSize(len(u.tags)) {
			if err := u.flush(); err != nil {
				return n - len(p), err
			}
		}
	}
	u.size += int64(n)
	return n, nil
}

// flush sends what is buffered as a part.
func (u *s3Upload) flush() error {
	if err := u.failed(); err != nil {
		return err
	}
	c, err := u.s.connect(u.ctx)
	if err != nil {
		return err
	}
	bucket, key := split(u.name)
	if u.id == "" {
		var out struct {
			UploadID string `xml:"UploadId"`
		}
		r := request{method: http.MethodPost, bucket: bucket, key: key, query: url.Values{"uploads": {""}}, header: map[string]string{markHeader: u.mark}}
		if _, err := c.ask(u.ctx, r, &out); err != nil {
			return u.s.fail(u.ctx, "write", u.name, err)
		}
		u.id = out.UploadID
	}
	data, at := u.buf, len(u.tags)
	u.buf = nil
	u.mu.Lock()
	u.tags = append(u.tags, "")
	u.mu.Unlock()
	u.room <- struct{}{}
	u.wait.Go(func() {
		defer func() { <-u.room }()
		header, err := c.ask(u.ctx, request{method: http.MethodPut, bucket: bucket, key: key, body: data,
			query: url.Values{"partNumber": {strconv.Itoa(at + 1)}, "uploadId": {u.id}}}, nil)
		u.mu.Lock()
		defer u.mu.Unlock()
		if err != nil {
			u.err = errors.Join(u.err, u.s.fail(u.ctx, "write", u.name, err))
			return
		}
		u.tags[at] = header.Get("ETag")
	})
	return nil
}

func (u *s3Upload) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// finish waits until all parts are up.
func (u *s3Upload) finish() error {
	if len(u.buf) > 0 || len(u.tags) == 0 {
		if err := u.flush(); err != nil {
			return err
		}
	}
	u.wait.Wait()
	return u.failed()
}

// Stage leaves the upload uncompleted, which is what is staged.
func (u *s3Upload) Stage() (Staged, error) {
	if u.done {
		return Staged{}, io.ErrClosedPipe
	}
	if err := u.finish(); err != nil {
		return Staged{}, err
	}
	u.done = true
	return Staged{Name: u.name, Size: u.size, Key: u.id, Parts: u.tags, Mark: u.mark}, nil
}

func (u *s3Upload) Commit() error {
	if u.done {
		return io.ErrClosedPipe
	}
	c, err := u.s.connect(u.ctx)
	if err != nil {
		return err
	}
	bucket, key := split(u.name)
	if u.id == "" {
		_, err := c.ask(u.ctx, request{method: http.MethodPut, bucket: bucket, key: key, body: u.buf}, nil)
		if err := u.s.fail(u.ctx, "write", u.name, err); err != nil {
			return err
		}
		u.done, u.buf = true, nil
		return nil
	}
	if err := u.finish(); err != nil {
		return err
	}
	if err := u.s.complete(u.ctx, Staged{Name: u.name, Key: u.id, Parts: u.tags, Mark: u.mark}, false); err != nil {
		return err
	}
	u.done = true
	return nil
}

// Abort gives the parts back. The writer's context may be the reason for it, so it is not asked.
func (u *s3Upload) Abort() error {
	if u.done {
		return nil
	}
	u.done, u.buf = true, nil
	u.wait.Wait()
	if u.id == "" {
		return nil
	}
	return u.s.Discard(context.WithoutCancel(u.ctx), Staged{Name: u.name, Key: u.id})
}
