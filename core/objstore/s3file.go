package objstore

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/riverbed/riverbed/core/errs"
)

// Open asks for the object's size and version; all its bytes then come from that version.
func (s *S3) Open(ctx context.Context, name string) (File, error) {
	h, err := s.head(ctx, name)
	if err != nil {
		return nil, err
	}
	return &s3File{s: s, ctx: ctx, info: infoOf(name, h), etag: h.Get("ETag")}, nil
}

const (
	firstWindow = 256 << 10
	lastWindow  = 8 << 20  // a request that takes longer gains nothing
	windowRoom  = 32 << 20 // of all windows of a file together
	maxWindows  = 64
)

// s3File reads ranges. Small reads are served from windows that are read ahead: readers walk forward at a few places at once (the columns of
// a row group), so a read that goes on where a window ends moves that window and doubles it. A read at the end, where footers are, takes
// the end whole.
type s3File struct {
	s    *S3
	ctx  context.Context // of the opener, as io.ReaderAt has none
	info Info
	etag string

	mu      sync.Mutex
	windows []*window // the one used last at the end
}

type window struct {
	at    int64
	data  []byte
	ahead int // how much to read when it moves
}

func (f *s3File) Info() Info { return f.info }

func (f *s3File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.windows = nil
	return nil
}

func (f *s3File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %q: negative offset", f.s.URL(f.info.Name))
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= f.info.Size {
		return 0, io.EOF
	}
	var end error
	if left := f.info.Size - off; int64(len(p)) > left {
		p, end = p[:left], io.EOF
	}
	if len(p) >= lastWindow {
		if err := f.fetch(p, off); err != nil {
			return 0, err
		}
		return len(p), end
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for n < len(p) {
		w, err := f.window(off+int64(n), len(p)-n)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], w.data[off+int64(n)-w.at:])
	}
	return n, end
}

// window is one that has the byte at off; of want bytes the rest may lie behind it.
func (f *s3File) window(off int64, want int) (*window, error) {
	w := &window{ahead: firstWindow}
	for i, have := range f.windows {
		if off < have.at || off > have.at+int64(len(have.data)) {
			continue
		}
		w = have
		f.windows = append(append(f.windows[:i:i], f.windows[i+1:]...), w)
		if off < w.at+int64(len(w.data)) {
			return w, nil
		}
		break
	}
	if w.data == nil {
		f.windows = append(f.windows, w)
		if len(f.windows) > maxWindows {
			f.windows = f.windows[1:]
		}
	}
	size := int64(max(w.ahead, want))
	w.ahead = min(w.ahead*2, lastWindow, max(windowRoom/len(f.windows), firstWindow))
	if tail := f.info.Size - firstWindow; off >= tail { // footers are read from the end backwards
		off = max(tail, 0)
	}
	size = min(size, f.info.Size-off)
	w.at, w.data = off, make([]byte, size)
	if err := f.fetch(w.data, off); err != nil {
		f.windows = f.windows[:len(f.windows)-1]
		return nil, err
	}
	return w, nil
}

// fetch reads exactly p. The client tries again until there is an answer; a body that breaks off is asked for anew, from where it broke.
func (f *s3File) fetch(p []byte, off int64) error {
	bucket, key := split(f.info.Name)
	again := attempts()
	defer again.Done()
	for got := 0; ; {
		c, err := f.s.connect(f.ctx)
		if err != nil {
			return err
		}
		from := off + int64(got)
		resp, err := c.do(f.ctx, request{method: http.MethodGet, bucket: bucket, key: key, header: map[string]string{
			"If-Match": f.etag, "Range": fmt.Sprintf("bytes=%d-%d", from, off+int64(len(p))-1)}})
		if err != nil {
			if _, status := code(err); status == http.StatusPreconditionFailed {
				return errs.New(errs.Source, "read", "the object %q was replaced while it was being read", f.s.URL(f.info.Name)).
					WithHint("write new objects under new names; then run the query again")
			}
			return f.s.fail(f.ctx, "read", f.info.Name, err)
		}
		if resp.StatusCode != http.StatusPartialContent && (from != 0 || resp.ContentLength != int64(len(p)-got)) {
			_ = resp.Body.Close()
			return errs.New(errs.Source, "read", "cannot read %q: %s does not answer with the range that was asked for", f.s.URL(f.info.Name), f.s.endpoint)
		}
		n, err := io.ReadFull(resp.Body, p[got:])
		_ = resp.Body.Close()
		if err == nil {
			return nil
		}
		if got += n; n >= firstWindow {
			again.Done() // it moves
		}
		if !transient(err) || !again.Again(f.ctx, err) {
			return f.s.fail(f.ctx, "read", f.info.Name, err)
		}
	}
}
