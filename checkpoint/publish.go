package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// Publish makes an epoch durable: the number after the newest one's. After an error that may pass it is to be called again with the
// same manifest, since the first attempt may have been done all the same.
//
// AIDEV-NOTE: an epoch may be committed to sinks only when this returned nil. The put fails when another process has published this
// number; a number that is free because it was collected is found out by looking for a newer lease *after* the put: whoever collected it
// took the lease before.
func (s *Store) Publish(ctx context.Context, m *Manifest) error {
	if err := s.writable(); err != nil {
		return err
	}
	if n := s.known(); n != nil && m.Epoch != n.Epoch+1 && m.Epoch != n.Epoch {
		return errs.Bug("checkpoint", "epoch %d is published behind epoch %d", m.Epoch, n.Epoch)
	}
	m.Format, m.Version, m.Fence = Format, s.o.Version, s.fence()
	data, err := m.encode()
	if err != nil {
		return err
	}
	if err := s.putManifest(ctx, m, data); err != nil {
		return err
	}
	if err := s.held(ctx); err != nil {
		return err
	}
	s.became(m)
	if s.o.Inline {
		_ = s.renew(ctx)
		s.tendOnce(ctx)
		return nil
	}
	select {
	case s.published <- struct{}{}:
	default: // it is told already
	}
	return nil
}

// putManifest puts a manifest under a name that is free. When the answer is not a clear yes, what is there decides, once it is sure to stay.
func (s *Store) putManifest(ctx context.Context, m *Manifest, data []byte) error {
	name := manifestName(m.Epoch)
	err := s.put(ctx, name, data)
	if err == nil {
		return nil
	}
	there, readErr := s.get(ctx, name)
	switch {
	case readErr == nil && bytes.Equal(there, data):
		if err := objstore.Keep(ctx, s.objects, s.at(name)); err != nil {
			return storeFailed(ctx, errs.Checkpoint, "write", s.url(name), err)
		}
		return nil
	case readErr == nil:
		return s.refused(m, there)
	case errors.Is(err, objstore.ErrExists): // and cannot be read now
		return readErr
	}
	return err
}

// refused says why another manifest of this epoch is there.
func (s *Store) refused(m *Manifest, there []byte) error {
	other, err := decodeManifest(s.url(manifestName(m.Epoch)), there, s.o.Version)
	if err == nil && other.Fence < s.fence() {
		e := errs.New(errs.Checkpoint, "checkpoint", "epoch %d was published by the process that ran the pipeline %q before, while this one took over", m.Epoch, s.o.Pipeline).
			WithHint("start the pipeline again: it goes on from what was published")
		e.Err = errOvertaken
		return e
	}
	if err == nil && other.Fence == s.fence() {
		return errs.New(errs.Checkpoint, "checkpoint", "epoch %d was published by an earlier attempt, with other content", m.Epoch).
			WithHint("start the pipeline again: it goes on from what was published")
	}
	return s.lose(fmt.Sprintf("epoch %d was published by another", m.Epoch))
}

// became notes that a manifest is published and the newest.
func (s *Store) became(m *Manifest) {
	c := *m
	c.Objects = slices.Clone(m.Objects)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = &c
	names := c.objectNames()
	s.kept[c.Epoch] = names
	for _, n := range names {
		delete(s.making, n)
	}
	if s.merged != nil && slices.Contains(names, s.merged.object.Name) {
		s.merged = nil
	}
}

func (s *Store) known() *Manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// errOvertaken is the cause of the error that a manifest of the lease before ours has come between Newest and Fence.
var errOvertaken = errors.New("overtaken")

// Overtaken reports whether Fence failed because whoever held the lease before has published one more manifest: Newest gives it, and then Fence may be
// called again. Two in a row can come only of two earlier holders.
func Overtaken(err error) bool { return errors.Is(err, errOvertaken) }

// Fence publishes the content of the newest manifest as the next epoch, so that nobody who held the lease before can publish
// anything more. It gives that manifest, or nil when there is none. When Newest was asked before, its manifest is meant: if
// another was published meanwhile, Fence fails (Overtaken), as what was restored is not the newest.
func (s *Store) Fence(ctx context.Context) (*Manifest, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	n := s.known()
	if n == nil {
		var err error
		if n, err = s.Newest(ctx); n == nil || err != nil {
			return nil, err
		}
	}
	if n.Fence == s.fence() {
		return n, nil // by an attempt whose answer was lost
	}
	m := *n // with its time: a second attempt has to be the same file
	m.Epoch++
	if err := s.Publish(ctx, &m); err != nil {
		return nil, err
	}
	return &m, nil
}
