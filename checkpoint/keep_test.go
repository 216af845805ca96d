package checkpoint

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// early is a store that shows a name before it is durable, as a file system does: the put fails behind that.
type early struct {
	*objstore.Double
	failing bool
	keeps   []string
}

var errDisk = errors.New("the disk does not answer")

func (e *early) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	err := e.Double.PutIfAbsent(ctx, name, data)
	if err == nil && e.failing {
		err = errDisk
	}
	return err
}

func (e *early) Keep(_ context.Context, name string) error {
	if e.failing {
		return errDisk
	}
	e.keeps = append(e.keeps, name)
	return nil
}

// A manifest that is there, and may be lost with the power, is not published: the sink would have what no checkpoint knows.
func TestAManifestThatMayBeLostIsNotPublished(t *testing.T) {
	e := &early{Double: objstore.NewDouble()}
	s, ctx := open(t, testOptions(e, clock.NewFake(time.Unix(0, 0)))), context.Background()
	m := &Manifest{Pipeline: "p", Run: "r"}
	if err := s.Write(ctx, nil, m, nil); err != nil {
		t.Fatal(err)
	}
	e.failing = true
	for range 2 {
		if err := s.Publish(ctx, m); !errors.Is(err, errDisk) || !errs.As(err).Transient {
			t.Fatalf("its name was not made durable, and the answer is %v", err)
		}
	}
	e.failing = false
	if err := s.Publish(ctx, m); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(e.keeps, func(name string) bool { return strings.Contains(name, "manifest-") }) {
		t.Errorf("kept are only %v", e.keeps)
	}
}
