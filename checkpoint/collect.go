package checkpoint

import (
	"context"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// Tend lets the store be tended, from the next publication on.
func (s *Store) Tend() { s.tended.Store(true) }

// tend collects and merges after each publication, until ctx ends.
func (s *Store) tend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.published:
			if ctx.Err() != nil { // both may be ready, and the end comes first
				return
			}
			s.tendOnce(ctx)
		}
	}
}

// mergePause is for how many epochs nothing is merged after a merge has failed: it may have read a gigabyte to find a damaged byte.
const mergePause = 32

// tendOnce does what is to be done behind a publication. What fails now is tried again behind a later one.
func (s *Store) tendOnce(ctx context.Context) {
	if s.o.Untended && !s.tended.Load() {
		return
	}
	if err := s.collect(ctx); err != nil {
		s.warn(ctx, err)
		return
	}
	if n := s.known(); n.Epoch >= s.mergeAt {
		if err := s.merge(ctx); err != nil {
			s.mergeAt = n.Epoch + mergePause
			s.warn(ctx, err)
		}
	}
}

func (s *Store) warn(ctx context.Context, err error) {
	if s.o.Warn != nil && ctx.Err() == nil && s.loss() == nil {
		s.o.Warn(err)
	}
}

// collect deletes manifests older than those that are kept, objects that no kept manifest names, and older leases. A crash on the way
// leaves files that the next call finds again.
//
// AIDEV-NOTE: it lists objects first and asks then what is protected. An object that is being made is protected from before its upload
// begins until a manifest that names it is kept; and no name is used twice. Objects of newer leases than ours are not ours to judge.
func (s *Store) collect(ctx context.Context) error {
	files, err := s.list(ctx, "**")
	if err != nil {
		return err
	}
	epochs := epochsIn(files)
	if n := s.known(); n == nil || len(epochs) == 0 || epochs[len(epochs)-1] != n.Epoch {
		return s.held(ctx) // something newer was published meanwhile, by us or another
	}
	holds, err := s.holds(ctx)
	if err != nil {
		return err
	}
	kept := epochs[max(0, len(epochs)-s.o.Retain):]
	oldest := kept[0]
	for _, e := range epochs[:len(epochs)-len(kept)] {
		if holds[e] {
			continue
		}
		if err := s.delete(ctx, manifestName(e)); err != nil {
			return err
		}
	}
	if holds, err = s.holds(ctx); err != nil {
		return err
	}
	protected, err := s.protected(ctx, kept, oldest, holds)
	if err != nil {
		return err
	}
	for _, name := range files {
		useless := false
		if data, ok := strings.CutPrefix(name, "data/"); ok {
			fence, ours := fenceOf(data)
			useless = ours && fence <= s.fence() && !protected[name]
		} else if n, ok := numberOf(name, "lease-", ".json"); ok {
			useless = n < s.fence()
		}
		if useless {
			if err := s.delete(ctx, name); err != nil {
				return err
			}
		}
	}
	return s.sweep(ctx)
}

// sweep discards, once, uploads that ended with their process: those of older leases and of epochs that are published. Others may be ours and under way.
func (s *Store) sweep(ctx context.Context) error {
	if s.swept {
		return nil
	}
	staged, err := s.objects.ListStaged(ctx, s.dir)
	if err != nil {
		return storeFailed(ctx, errs.Source, "list", s.url(""), err)
	}
	for _, up := range staged {
		name, ok := strings.CutPrefix(up.Name, s.dir+"/") // of a folder whose name begins with ours it is none of our business
		if !ok || !s.leftOver(name) {
			continue
		}
		if err := s.objects.Discard(ctx, up); err != nil {
			return storeFailed(ctx, errs.Checkpoint, "discard", s.url(name), err)
		}
	}
	s.swept = true
	return nil
}

// leftOver reports whether an upload under a name has ended.
func (s *Store) leftOver(name string) bool {
	if data, ok := strings.CutPrefix(name, "data/"); ok {
		fence, ours := fenceOf(data)
		return ours && fence < s.fence()
	}
	if n, ok := numberOf(name, "lease-", ".json"); ok {
		return n < s.fence()
	}
	n, ok := numberOf(name, "manifest-", ".json")
	return ok && n <= int64(s.known().Epoch)
}

// protected are the names that may not be deleted. A manifest of the newest that cannot be read protects everything.
func (s *Store) protected(ctx context.Context, kept []flow.Epoch, oldest flow.Epoch, holds map[flow.Epoch]bool) (map[string]bool, error) {
	for e := range holds {
		kept = append(kept[:len(kept):len(kept)], e)
	}
	for _, e := range kept {
		s.mu.Lock()
		_, known := s.kept[e]
		s.mu.Unlock()
		if known {
			continue
		}
		if _, err := s.Manifest(ctx, e); err != nil && (e >= oldest || !errs.Is(err, errs.State)) {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]bool{}
	for e, names := range s.kept {
		if e < oldest && !holds[e] {
			delete(s.kept, e)
			continue
		}
		for _, n := range names {
			out[n] = true
		}
	}
	for n := range s.making {
		out[n] = true
	}
	return out, nil
}

func (s *Store) delete(ctx context.Context, name string) error {
	if err := s.objects.Delete(ctx, s.at(name)); err != nil {
		return storeFailed(ctx, errs.Checkpoint, "delete", s.url(name), err)
	}
	return nil
}

// retained are the epochs before one that can still be gone back to, newest first.
func retained(epochs []flow.Epoch, before flow.Epoch) []flow.Epoch {
	out := slices.DeleteFunc(slices.Clone(epochs), func(e flow.Epoch) bool { return e >= before })
	slices.Reverse(out)
	return out
}
