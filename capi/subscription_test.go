package main

import (
	"context"
	"testing"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// Without room for a change none is taken: it is there for the next who asks.
func TestASubscriptionTakesNoMoreThanThereIsRoomFor(t *testing.T) {
	session, err := riverbed.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ctx := t.Context()
	for _, sql := range []string{"CREATE TABLE t (a BIGINT)", "INSERT INTO t VALUES (1)"} {
		if _, err := session.Query(ctx, sql, nil); err != nil {
			t.Fatal(err)
		}
	}
	q, err := session.Query(ctx, "SELECT a FROM t EMIT IMMEDIATE", nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := q.Subscribe(ctx, riverbed.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	s, rows := &subscription{engine: engine}, int64(0)
	for _, room := range []int64{0, -1, 1} {
		ended, err := s.next(context.Background(), room, func(d flow.Delta) { rows += d.Batch.NumRows() })
		if room < 1 && !errs.Is(err, errs.Usage) || room == 1 && err != nil || ended {
			t.Errorf("room %d: %v, ended %v", room, err, ended)
		}
		if want := max(room, 0); rows != want {
			t.Errorf("room %d: %d rows of %d", room, rows, want)
		}
	}
}
