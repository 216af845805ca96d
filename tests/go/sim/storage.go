package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// storage is the object store of a world: core/objstore's double, and a memory of each manifest that was ever published.
type storage struct {
	w         *World
	double    *objstore.Double
	manifests map[string]*checkpoint.Manifest // by the marker of the epoch
}

func newStorage(w *World) *storage {
	s := &storage{w, objstore.NewDouble(), map[string]*checkpoint.Manifest{}}
	s.double.Clock = w.clock
	return s
}

// published remembers a manifest, and tells the vault of a commit. It is not asked of the store, where it may have been collected.
func (s *storage) published(name string, data []byte) {
	if strings.HasSuffix(name, ".commit") {
		s.w.vault.entered(data)
	}
	if !strings.HasPrefix(path.Base(name), "manifest-") {
		return
	}
	m := &checkpoint.Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		s.w.violate("%s is no manifest: %v", name, err)
		return
	}
	for _, l := range m.Sinks[0].Pending {
		if l.Epoch == m.Epoch && s.manifests[l.Marker] == nil {
			s.manifests[l.Marker] = m
		}
	}
}

// view is the storage as a process sees it.
type view struct {
	p *Process
	s *storage
}

func (v view) do(ctx context.Context, op, name string, run func(context.Context) error) error {
	return v.p.w.do(ctx, v.p, "store", op, name, func() error { return run(context.WithoutCancel(ctx)) })
}

func (v view) URL(name string) string { return "sim://" + name }

func (v view) Glob(ctx context.Context, pattern string) (out []objstore.Info, err error) {
	err = v.do(ctx, "list", pattern, func(ctx context.Context) (err error) { out, err = v.s.double.Glob(ctx, pattern); return err })
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (v view) Stat(ctx context.Context, name string) (out objstore.Info, err error) {
	err = v.do(ctx, "stat", name, func(ctx context.Context) (err error) { out, err = v.s.double.Stat(ctx, name); return err })
	return out, err
}

func (v view) Open(ctx context.Context, name string) (objstore.File, error) {
	var f objstore.File
	err := v.do(ctx, "open", name, func(ctx context.Context) (err error) { f, err = v.s.double.Open(ctx, name); return err })
	if err != nil {
		return nil, err
	}
	return file{v, f}, nil
}

// file is an open object. Each read asks the store, which may have deleted it meanwhile.
type file struct {
	v view
	objstore.File
}

func (f file) ReadAt(b []byte, off int64) (n int, err error) {
	buf := make([]byte, len(b)) // what comes late is not the reader's
	var end error
	if e := f.v.do(context.Background(), "read", f.Info().Name, func(ctx context.Context) error {
		there, err := f.v.s.double.Open(ctx, f.Info().Name)
		if err == nil {
			n, end = there.ReadAt(buf, off)
		}
		return err
	}); e != nil {
		return 0, e
	}
	return copy(b, buf[:n]), end
}

// upload is an object on its way. Writing it is done in memory: the store knows nothing before the end.
type upload struct {
	v    view
	name string
	data []byte
	ctx  context.Context
}

func (v view) Create(ctx context.Context, name string) (objstore.Upload, error) {
	if err := v.do(ctx, "create", name, func(context.Context) error { return nil }); err != nil {
		return nil, err
	}
	return &upload{v: v, name: name, ctx: ctx}, nil
}

func (u *upload) Write(b []byte) (int, error) {
	u.data = append(u.data, b...)
	return len(b), nil
}

func (u *upload) again(ctx context.Context) (objstore.Upload, error) {
	up, err := u.v.s.double.Create(ctx, u.name)
	if err == nil {
		_, err = up.Write(u.data)
	}
	return up, err
}

func (u *upload) Commit() error {
	return u.v.do(u.ctx, "put", u.name, func(ctx context.Context) error {
		up, err := u.again(ctx)
		if err == nil {
			err = up.Commit()
		}
		if err == nil {
			u.v.s.published(u.name, u.data)
		}
		return err
	})
}

func (u *upload) Stage() (objstore.Staged, error) {
	var out objstore.Staged
	err := u.v.do(u.ctx, "stage", u.name, func(ctx context.Context) error {
		up, err := u.again(ctx)
		if err == nil {
			out, err = up.Stage()
		}
		return err
	})
	return out, err
}

func (u *upload) Abort() error {
	return nil
}

func (v view) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return v.do(ctx, "put new", name, func(ctx context.Context) error {
		err := v.s.double.PutIfAbsent(ctx, name, data)
		if err == nil {
			v.s.published(name, data)
		}
		return err
	})
}

func (v view) Delete(ctx context.Context, name string) error {
	return v.do(ctx, "delete", name, func(ctx context.Context) error { return v.s.double.Delete(ctx, name) })
}

func (v view) Publish(ctx context.Context, s objstore.Staged) error {
	return v.do(ctx, "publish", s.Name, func(ctx context.Context) error { return v.s.double.Publish(ctx, s) })
}

func (v view) Discard(ctx context.Context, s objstore.Staged) error {
	return v.do(ctx, "discard", s.Name, func(ctx context.Context) error { return v.s.double.Discard(ctx, s) })
}

func (v view) ListStaged(ctx context.Context, folder string) (out []objstore.Staged, err error) {
	err = v.do(ctx, "list staged", folder, func(ctx context.Context) (err error) { out, err = v.s.double.ListStaged(ctx, folder); return err })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b objstore.Staged) int { return cmp.Compare(plain(a.Key), plain(b.Key)) }) // the seed's order
	return out, nil
}

func init() {
	objstore.Mount("sim", func(rest string) (objstore.Store, string, error) {
		id, name, _ := strings.Cut(rest, "/")
		p := processOf(id)
		if p == nil {
			return nil, "", errs.New(errs.Usage, "open", "no process %q", id)
		}
		return view{p, p.w.store}, "/" + name, nil
	})
}
