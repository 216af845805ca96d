package checkpoint

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/objstore/objtest"
)

// TestOnS3 runs epochs with merges on a real S3 service that is killed in the midst of them, restarts, and races for the lease.
func TestOnS3(t *testing.T) {
	service, ctx := objtest.S3(t), context.Background()
	o := Options{URL: "s3://" + objtest.Bucket + "/some/folder", Pipeline: "p", Clock: clock.Wall{}, Version: "1.0", Inline: true}
	sc := newScript(1)
	s, m, err := sc.begin(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 24 {
		if n%8 == 7 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, m, err = sc.begin(ctx, o); err != nil {
				t.Fatal(err)
			}
			sc.check(t, s, m)
		}
		if n == 12 {
			service.Kill()
			go func() {
				time.Sleep(200 * time.Millisecond)
				service.Start()
			}()
		}
		next, sections := sc.next(m)
		if err := patiently(func() error { return s.Write(ctx, m, next, sections) }); err != nil {
			t.Fatal(err)
		}
		if err := patiently(func() error { return s.Publish(ctx, next) }); err != nil {
			t.Fatal(err)
		}
		m = next
	}
	if err := patiently(func() error { return s.collect(ctx) }); err != nil {
		t.Fatal(err)
	}
	checkKept(t, sc, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	won := make(chan *Store, 8)
	for i := range 8 {
		wg.Go(func() {
			o := o
			o.Wait, o.Rand = time.Millisecond, clock.NewRand(uint64(i))
			if s, err := Open(ctx, o); err == nil {
				won <- s
			}
		})
	}
	wg.Wait()
	close(won)
	if len(won) != 1 {
		t.Errorf("%d won", len(won))
	}
	for s := range won {
		sc.check(t, s, m)
		if err := s.Savepoint(ctx, m, "s3://"+objtest.Bucket+"/saved"); err != nil {
			t.Fatal(err)
		}
		other := o
		other.Pipeline = "other"
		begun := open(t, other)
		from, err := begun.From(ctx, "s3://"+objtest.Bucket+"/saved")
		if err != nil {
			t.Fatal(err)
		}
		sc.check(t, begun, from)
	}
}

// patiently calls again for as long as a service may take to come back.
func patiently(run func() error) error {
	var err error
	for range 20 {
		if err = persistent(run); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
