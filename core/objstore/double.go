package objstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// Fault is what the double does to one operation.
type Fault uint8

const (
	NoFault Fault = iota
	// Fail: the operation does nothing and returns a transient error.
	Fail
	// Ambiguous: the operation is done and returns a transient error all the same, so that its retry is a second answer.
	Ambiguous
	// Stall: the operation waits for Double.Delay of the clock, then runs.
	Stall
)

// Double is a store in memory for tests. It forgets what was published and not synced when it crashes, and does
// to each operation what Plan says.
type Double struct {
	Clock clock.Clock   // for Stall and modification times; nil is a fake clock that stands still
	Delay time.Duration // of Stall
	// Plan decides the fault of the nth operation (from 1); nil is none.
	Plan func(n int, op, name string) Fault
	// Lazy: Commit publishes without syncing, as a file system without fsync would; Crash then loses it.
	Lazy bool

	mu      sync.Mutex
	ops     int
	durable map[string]object
	live    map[string]object
	staged  map[string]object // by key
	keys    int
}

type object struct {
	data     []byte
	modified time.Time
	name     string // of a staged one
	mark     string // of one that was staged
}

// NewDouble returns an empty double.
func NewDouble() *Double {
	return &Double{Clock: clock.NewFake(time.Unix(0, 0).UTC()), durable: map[string]object{}, live: map[string]object{}, staged: map[string]object{}}
}

// Ops is the number of operations so far, so that a test can fail the 1st, the 2nd, … in turn.
func (d *Double) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Sync makes all published objects durable.
func (d *Double) Sync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.durable = clone(d.live)
}

// Crash forgets what was not synced. Open uploads can no longer commit anything that survives Sync.
func (d *Double) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live = clone(d.durable)
}

func clone(m map[string]object) map[string]object {
	out := make(map[string]object, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// do runs one operation under the fault that Plan chose for it.
func (d *Double) do(ctx context.Context, op, name string, run func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	d.ops++
	n := d.ops
	d.mu.Unlock()
	fault := NoFault
	if d.Plan != nil {
		fault = d.Plan(n, op, name)
	}
	transient := errs.New(errs.Source, op, "the store failed on operation %d: %s %q", n, op, name).AsTransient()
	switch fault {
	case Fail:
		return transient
	case Stall:
		if err := d.Clock.Sleep(ctx, d.Delay); err != nil {
			return err
		}
	}
	d.mu.Lock()
	err := run()
	d.mu.Unlock()
	if fault == Ambiguous && err == nil {
		return transient
	}
	return err
}

func (d *Double) publish(name string, data []byte) {
	o := object{data: bytes.Clone(data), modified: d.Clock.Now()}
	d.live[name] = o
	if !d.Lazy {
		d.durable[name] = o
	}
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

func (d *Double) Glob(ctx context.Context, pattern string) (out []Info, err error) {
	err = d.do(ctx, "glob", pattern, func() error {
		for name, o := range d.live {
			ok, err := doublestar.Match(pattern, name)
			if err != nil {
				return err
			}
			if ok {
				out = append(out, Info{name, int64(len(o.data)), o.modified})
			}
		}
		sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
		return nil
	})
	return out, err
}

func (d *Double) Stat(ctx context.Context, name string) (info Info, err error) {
	err = d.do(ctx, "stat", name, func() error {
		o, ok := d.live[name]
		if !ok {
			return notExist("stat", name)
		}
		info = Info{name, int64(len(o.data)), o.modified}
		return nil
	})
	return info, err
}

type doubleFile struct {
	*bytes.Reader
	d    *Double
	info Info
}

func (f doubleFile) Info() Info   { return f.info }
func (f doubleFile) Close() error { return nil }

func (f doubleFile) ReadAt(p []byte, off int64) (n int, err error) {
	if e := f.d.do(context.Background(), "read", f.info.Name, func() error {
		n, err = f.Reader.ReadAt(p, off)
		return nil
	}); e != nil {
		return 0, e
	}
	return n, err
}

func (d *Double) Open(ctx context.Context, name string) (f File, err error) {
	err = d.do(ctx, "open", name, func() error {
		o, ok := d.live[name]
		if !ok {
			return notExist("open", name)
		}
		f = doubleFile{bytes.NewReader(o.data), d, Info{name, int64(len(o.data)), o.modified}}
		return nil
	})
	return f, err
}

type doubleUpload struct {
	bytes.Buffer
	d    *Double
	ctx  context.Context
	name string
	done bool
}

func (u *doubleUpload) Commit() error {
	if u.done {
		return io.ErrClosedPipe
	}
	return u.d.do(u.ctx, "commit", u.name, func() error {
		u.d.publish(u.name, u.Bytes())
		return nil
	})
}

func (u *doubleUpload) Abort() error { u.done = true; return nil }

func (u *doubleUpload) Stage() (s Staged, err error) {
	if u.done {
		return Staged{}, io.ErrClosedPipe
	}
	err = u.d.do(u.ctx, "stage", u.name, func() error {
		u.d.keys++
		key := fmt.Sprintf("%s#%d", u.name, u.d.keys)
		u.d.staged[key] = object{data: bytes.Clone(u.Bytes()), modified: u.d.Clock.Now(), name: u.name}
		s = Staged{Name: u.name, Size: int64(u.Len()), Key: key, Mark: key}
		return nil
	})
	u.done = u.done || err == nil
	return s, err
}

func (d *Double) Publish(ctx context.Context, s Staged) error {
	return d.do(ctx, "publish", s.Name, func() error {
		if o, ok := d.live[s.Name]; ok {
			if o.mark == s.Mark {
				return nil
			}
			return fmt.Errorf("publish %q: %w", s.Name, ErrExists)
		}
		o, ok := d.staged[s.Key]
		if !ok {
			return notExist("publish", s.Name)
		}
		delete(d.staged, s.Key)
		o.mark = s.Mark
		d.live[s.Name] = o
		d.durable[s.Name] = o // Lazy is about Commit: what was staged is durable
		return nil
	})
}

func (d *Double) Discard(ctx context.Context, s Staged) error {
	return d.do(ctx, "discard", s.Name, func() error {
		delete(d.staged, s.Key)
		return nil
	})
}

func (d *Double) ListStaged(ctx context.Context, folder string) (out []Staged, err error) {
	err = d.do(ctx, "list staged", folder, func() error {
		for key, o := range d.staged {
			if strings.HasPrefix(o.name, strings.TrimSuffix(folder, "/")+"/") {
				out = append(out, Staged{Name: o.name, Key: key})
			}
		}
		sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
		return nil
	})
	return out, err
}

func (d *Double) Create(ctx context.Context, name string) (u Upload, err error) {
	err = d.do(ctx, "create", name, func() error {
		u = &doubleUpload{d: d, ctx: ctx, name: name}
		return nil
	})
	return u, err
}

func (d *Double) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return d.do(ctx, "put", name, func() error {
		if _, ok := d.live[name]; ok {
			return fmt.Errorf("put %q: %w", name, ErrExists)
		}
		d.publish(name, data)
		return nil
	})
}

func (d *Double) Delete(ctx context.Context, name string) error {
	return d.do(ctx, "delete", name, func() error {
		delete(d.live, name)
		if !d.Lazy {
			delete(d.durable, name)
		}
		return nil
	})
}
