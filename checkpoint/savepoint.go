package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// Savepoint copies a manifest and all that it names into a folder of their own, which nobody collects. It is laid out as a pipeline's folder is:
// Open with that URL and no pipeline reads it. The manifest comes last, so that a savepoint is whole or is none. The pipeline may go on meanwhile.
func (s *Store) Savepoint(ctx context.Context, m *Manifest, url string) error {
	objects, dir, err := objstore.For(url)
	if err != nil {
		return err
	}
	return s.savepoint(ctx, m, objects, dir)
}

func (s *Store) savepoint(ctx context.Context, m *Manifest, objects objstore.Store, dir string) error {
	to, err := Open(ctx, Options{Objects: objects, Dir: dir, Version: s.o.Version, Clock: s.o.Clock, ReadOnly: true}) // it has no lease
	if err != nil {
		return err
	}
	if there, err := to.Newest(ctx); err != nil {
		return err
	} else if there != nil && (there.Epoch != m.Epoch || there.Run != m.Run) {
		return errs.New(errs.Usage, "savepoint", "%s holds epoch %d of the pipeline %q already", dir, there.Epoch, there.Pipeline).WithHint("name a folder that is empty")
	}
	if err := to.holdsOnly(ctx, m); err != nil {
		return err
	}
	release, err := s.Hold(ctx, m.Epoch)
	if err != nil {
		return err
	}
	defer release()
	for _, o := range m.Objects {
		if err := s.copyObject(ctx, o, to, o.Name); err != nil {
			return s.withWhole(ctx, err, m.Epoch)
		}
	}
	data, err := m.encode()
	if err != nil {
		return err
	}
	name := manifestName(m.Epoch)
	if err = to.put(ctx, name, data); err == nil {
		return nil
	}
	if there, readErr := to.get(ctx, name); readErr == nil && bytes.Equal(there, data) {
		return nil // we did it before, or the answer was lost
	}
	if errors.Is(err, objstore.ErrExists) {
		return errs.New(errs.Usage, "savepoint", "%s holds another epoch %d already", dir, m.Epoch).WithHint("name a folder that is empty")
	}
	return err
}

// holdsOnly refuses a folder with other files than an earlier attempt at this very savepoint has left: what reads folders would take them for its own, and
// the folder of a pipeline that runs would be damaged.
func (s *Store) holdsOnly(ctx context.Context, m *Manifest) error {
	found, err := s.list(ctx, "**/*")
	if err != nil {
		return err
	}
	for _, name := range found {
		if name != manifestName(m.Epoch) && !slices.ContainsFunc(m.Objects, func(o Object) bool { return o.Name == name }) {
			return errs.New(errs.Usage, "savepoint", "%s is not empty: it holds %s", s.dir, name).WithHint("name a folder that is empty")
		}
	}
	return nil
}

// From copies a savepoint's objects into the folder of a pipeline that has no checkpoints yet, and gives its manifest, which is not published: it is to be
// given the run and the sinks of this pipeline. The epochs go on from the savepoint's number, as its objects are named by them.
func (s *Store) From(ctx context.Context, url string) (*Manifest, error) {
	objects, dir, err := objstore.For(url)
	if err != nil {
		return nil, err
	}
	return s.from(ctx, objects, dir)
}

func (s *Store) from(ctx context.Context, objects objstore.Store, dir string) (*Manifest, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	if epochs, err := s.Epochs(ctx); err != nil {
		return nil, err
	} else if len(epochs) > 0 {
		return nil, errs.New(errs.Usage, "restore", "the pipeline %q has checkpoints of its own and does not start from a savepoint", s.o.Pipeline).
			WithHint("give it another id, or leave the savepoint out to go on from its newest checkpoint")
	}
	point, err := Open(ctx, Options{Objects: objects, Dir: dir, Version: s.o.Version, Clock: s.o.Clock, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	m, err := point.Newest(ctx)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errs.New(errs.State, "restore", "%s holds no savepoint", dir).WithHint("name the folder that the savepoint was written to")
	}
	m.Pipeline = s.o.Pipeline
	m.Objects = slices.Clone(m.Objects)
	for i, o := range m.Objects {
		m.Objects[i].Name = s.newName(o.Epochs[0], o.Epochs[1])
		if err := point.copyObject(ctx, o, s, m.Objects[i].Name); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// copyObject copies an object into another folder and fails when it is damaged.
func (s *Store) copyObject(ctx context.Context, o Object, to *Store, name string) error {
	f, err := s.open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	up, err := to.objects.Create(ctx, to.at(name))
	if err != nil {
		return storeFailed(ctx, errs.Checkpoint, "write", to.url(name), err)
	}
	defer func() { _ = up.Abort() }()
	from := &summed{r: io.NewSectionReader(f, 0, o.Size), sum: crc32.New(castagnoli)}
	if _, err := io.Copy(up, from); err != nil && from.failed == nil {
		return storeFailed(ctx, errs.Checkpoint, "write", to.url(name), err)
	}
	switch {
	case from.failed != nil:
		return s.readFailed(ctx, o.Name, from.failed)
	case from.n != o.Size:
		return s.readFailed(ctx, o.Name, io.ErrUnexpectedEOF)
	case from.sum.Sum32() != o.CRC:
		return corrupt(s.url(o.Name), "its checksum is %08x and not %08x", from.sum.Sum32(), o.CRC)
	}
	if err := up.Commit(); err != nil {
		return storeFailed(ctx, errs.Checkpoint, "write", to.url(name), err)
	}
	return nil
}
