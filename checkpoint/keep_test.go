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
	"github.com/riverbed/riverbed/core/objstore/objtest"
)

// A manifest that is there, and may be lost with the power, is not published: the sink would have what no checkpoint knows.
func TestAManifestThatMayBeLostIsNotPublished(t *testing.T) {
	e := &objtest.Early{Double: objstore.NewDouble()}
	s, ctx := open(t, testOptions(e, clock.NewFake(time.Unix(0, 0)))), context.Background()
	m := &Manifest{Pipeline: "p", Run: "r"}
	if err := s.Write(ctx, nil, m, nil); err != nil {
		t.Fatal(err)
	}
	e.Failing = true
	for range 2 {
		if err := s.Publish(ctx, m); !errors.Is(err, objtest.ErrDisk) || !errs.As(err).Transient {
			t.Fatalf("its name was not made durable, and the answer is %v", err)
		}
	}
	e.Failing = false
	if err := s.Publish(ctx, m); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(e.Keeps, func(name string) bool { return strings.Contains(name, "manifest-") }) {
		t.Errorf("kept are only %v", e.Keeps)
	}
}
