package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

const (
	renewEvery = 2 * time.Second
	staleAfter = 6 * time.Second
	lookEvery  = 500 * time.Millisecond
)

// lease is what a lease file holds. Only its holder writes it again.
type lease struct {
	holder
	Fence    int64  `json:"fence"`
	Version  string `json:"riverbed"`
	Nonce    string `json:"nonce"`   // tells two stores of one process apart
	Renewed  int64  `json:"renewed"` // how often
	Released bool   `json:"released,omitempty"`
}

func (l lease) encode() []byte {
	data, _ := json.Marshal(l) // numbers and strings always can
	return append(data, '\n')
}

// newestLease is the highest number of a lease, 0 when there is none.
func (s *Store) newestLease(ctx context.Context) (int64, error) {
	found, err := s.list(ctx, leasePattern)
	if err != nil {
		return 0, err
	}
	newest := int64(0)
	for _, name := range found {
		if n, ok := numberOf(name, "lease-", ".json"); ok {
			newest = max(newest, n)
		}
	}
	return newest, nil
}

// take gets the lease: at once when nobody has it, its holder gave it back or is dead, and otherwise when it has not been renewed for
// staleAfter of our own clock; other machines' clocks say nothing.
func (s *Store) take(ctx context.Context, wait time.Duration, waiting func(string)) error {
	began := s.o.Clock.Now()
	var seen []byte // the newest lease as it was when it last changed
	var since time.Time
	for {
		newest, err := s.newestLease(ctx)
		if err != nil {
			return err
		}
		if newest == 0 {
			if ok, err := s.grab(ctx, 1); ok || err != nil {
				return err
			}
			continue
		}
		data, err := s.get(ctx, leaseName(newest))
		if err != nil && !errors.Is(err, objstore.ErrNotExist) {
			data, err = s.get(ctx, leaseName(newest)) // it may have been renewed while it was read
		}
		if errors.Is(err, objstore.ErrNotExist) {
			continue // a newer one has come
		}
		if err != nil {
			return err
		}
		var held lease
		readable := json.Unmarshal(data, &held) == nil
		now := s.o.Clock.Now()
		if !bytes.Equal(data, seen) {
			seen, since = data, now
		}
		if readable && (held.Released || held.dead(s.self)) || now.Sub(since) >= staleAfter {
			if ok, err := s.grab(ctx, newest+1); ok || err != nil {
				return err
			}
			continue
		}
		if now.Sub(began) >= wait {
			return errs.New(errs.Checkpoint, "checkpoint", "the pipeline %q is being run by %s: its lease was renewed while we waited %s", s.o.Pipeline, held, now.Sub(began)).
				WithHint("stop that process, or give this pipeline another id")
		}
		if waiting != nil {
			waiting(held.String())
			waiting = nil
		}
		if err := s.o.Clock.Sleep(ctx, lookEvery); err != nil {
			return cancelled(err)
		}
	}
}

// grab puts a lease of a number that is free; false when somebody else has it.
//
// AIDEV-NOTE: a lease below the newest may be free because it was collected, so that after the put only the highest number holds. An
// answer that was lost is found out by reading the lease: its nonce is ours or not.
func (s *Store) grab(ctx context.Context, fence int64) (bool, error) {
	l := lease{holder: s.self, Fence: fence, Version: s.o.Version, Nonce: s.nonce}
	if err := s.put(ctx, leaseName(fence), l.encode()); err != nil {
		there, readErr := s.get(ctx, leaseName(fence))
		switch {
		case readErr == nil && bytes.Equal(there, l.encode()):
		case readErr == nil, errors.Is(err, objstore.ErrExists):
			return false, nil
		default:
			return false, err
		}
	}
	newest, err := s.newestLease(ctx)
	if err != nil || newest != fence {
		return false, err
	}
	s.lease = l
	return true, nil
}

// renew shows that we are there, and finds out whether a newer lease is.
func (s *Store) renew(ctx context.Context) error {
	if err := s.held(ctx); err != nil {
		return err
	}
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	s.lease.Renewed++
	return s.replace(ctx, leaseName(s.lease.Fence), s.lease.encode())
}

// held fails when somebody has taken the lease.
func (s *Store) held(ctx context.Context) error {
	if err := s.loss(); err != nil {
		return err
	}
	newest, err := s.newestLease(ctx)
	if err != nil {
		return err
	}
	if newest > s.fence() {
		return s.lose(fmt.Sprintf("lease %d is newer than ours, %d", newest, s.fence()))
	}
	return nil
}

func (s *Store) fence() int64 { return s.lease.Fence }

// release says that we are gone, so that the next one need not wait. The file stays: its number may not be used again.
func (s *Store) release(ctx context.Context) error {
	if s.loss() != nil {
		return nil
	}
	s.leaseMu.Lock()
	defer s.leaseMu.Unlock()
	s.lease.Released = true
	return s.replace(ctx, leaseName(s.lease.Fence), s.lease.encode())
}

// lose notes that the lease is another's.
func (s *Store) lose(how string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = errs.New(errs.Checkpoint, "checkpoint", "another process runs the pipeline %q now: %s", s.o.Pipeline, how).
			WithHint("only one process may run a pipeline: stop one of them, or give it another id")
		close(s.lostCh)
	}
	return s.lost
}

// loss is the error of a lost lease.
func (s *Store) loss() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		return nil
	}
	return s.lost
}

// keepLease renews the lease until ctx ends or it is lost. A store that does not answer is asked again: whether we may publish
// is decided when we do.
func (s *Store) keepLease(ctx context.Context) {
	for s.loss() == nil {
		if s.o.Clock.Sleep(ctx, renewEvery) != nil {
			return
		}
		_ = s.renew(ctx)
	}
}
