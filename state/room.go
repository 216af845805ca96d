package state

import "sync"

// Room is the memory that the state of several graphs shares. A graph that needs more than its part takes what the others leave; it is
// never told to hold less than its part, so what it holds is right again when each has stepped.
type Room struct {
	mu     sync.Mutex
	limit  int64
	shares map[*Share]struct{}
	held   int64 // by all
}

// NewRoom is room of so many bytes.
func NewRoom(limit int64) *Room { return &Room{limit: limit, shares: map[*Share]struct{}{}} }

// Limit is the room of all.
func (r *Room) Limit() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit
}

// SetLimit changes it.
func (r *Room) SetLimit(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = bytes
}

// Share is one graph's.
type Share struct {
	of   *Room
	held int64
}

// Join takes a part in the room.
func (r *Room) Join() *Share {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Share{of: r}
	r.shares[s] = struct{}{}
	return s
}

// Hold says what the graph holds and returns what it may.
func (s *Share) Hold(bytes int64) int64 {
	r := s.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, in := r.shares[s]; !in {
		return r.limit
	}
	r.held += bytes - s.held
	s.held = bytes
	return max(r.limit-(r.held-s.held), r.limit/int64(len(r.shares)))
}

// Leave gives the part back.
func (s *Share) Leave() {
	r := s.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, in := r.shares[s]; in {
		delete(r.shares, s)
		r.held -= s.held
	}
}
