package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/core/flow"
)

// holdFor is how long the pipeline keeps what somebody holds and does not let go: readers may end without a word.
const holdFor = time.Hour

// Hold keeps an epoch's objects from being collected until release is called, for an hour at most, while they are read beside a running pipeline. It may
// be called of a store that is only read: the hold is a file that whoever collects looks for.
//
// AIDEV-NOTE: who collects deletes the manifest first, then looks for holds, then deletes objects. So when the manifest is still there behind our put, either
// our hold is seen, or nothing of the epoch was to be deleted.
func (s *Store) Hold(ctx context.Context, epoch flow.Epoch) (release func(), err error) {
	name := fmt.Sprintf("hold-%010d-%s-%d-%d.json", epoch, url.PathEscape(s.self.Host), s.self.PID, stores.Add(1))
	if data, err := json.Marshal(s.self); err != nil {
		return nil, err
	} else if err := s.put(ctx, name, data); err != nil {
		return nil, err
	}
	release = func() { _ = s.delete(context.WithoutCancel(ctx), name) }
	if _, err := s.Manifest(ctx, epoch); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// holds are the epochs that somebody holds. Files that were there for holdFor of our clock are deleted.
func (s *Store) holds(ctx context.Context) (map[flow.Epoch]bool, error) {
	found, err := s.list(ctx, "hold-*.json")
	if err != nil {
		return nil, err
	}
	now, since, out := s.o.Clock.Now(), map[string]time.Time{}, map[flow.Epoch]bool{}
	for _, name := range found {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "hold-"), "-")
		epoch, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		first, seen := s.seenHolds[name]
		if !seen {
			first = now
		}
		if now.Sub(first) >= holdFor {
			if err := s.delete(ctx, name); err != nil {
				return nil, err
			}
			continue
		}
		since[name] = first
		out[flow.Epoch(epoch)] = true
	}
	s.seenHolds = since
	return out, nil
}
