package main

import (
	"math"
	"runtime/debug"
	"testing"

	riverbed "github.com/riverbed/riverbed"
)

// The collector follows the limits of the sessions that are open.
func TestCollectorFollowsMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	open := func(limit string) *riverbed.Session {
		s, err := riverbed.Open(map[string]string{"memory_limit": limit})
		if err != nil {
			t.Fatal(err)
		}
		limits.add(s)
		return s
	}
	want := func(n int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != n {
			t.Errorf("the collector's limit is %d, not %d", got, n)
		}
	}
	a := open("800MB")
	want(900e6 + 16<<20)
	b := open("400MB")
	want(1350e6 + 32<<20)
	if _, err := a.Query(t.Context(), "SET memory_limit = '80MB'", nil); err != nil {
		t.Fatal(err)
	}
	limits.refresh(a)
	want(540e6 + 32<<20)
	c := open("0")
	want(math.MaxInt64)
	for _, s := range []*riverbed.Session{a, b, c} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		limits.drop(s)
		limits.refresh(s) // of a statement that ends behind the session
	}
	want(math.MaxInt64)
}
