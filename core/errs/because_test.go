package errs

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestBecause(t *testing.T) {
	below := New(State, "read", "the object is gone").WithHint("bring it back").AsTransient()
	for _, c := range []struct {
		err        error
		kind       Kind
		hint, says string
		transient  bool
	}{
		{fmt.Errorf("opening: %w", below), State, "bring it back", `the table "t": opening: the object is gone`, true},
		{fmt.Errorf("no such host"), Source, "look", `the table "t": no such host`, false},
	} {
		got := As(Because(c.err, Source, "scan", "look", "the table %q", "t"))
		if got.Kind != c.kind || got.Hint != c.hint || got.Msg != c.says || got.Transient != c.transient || got.Op != "scan" || strings.Count(got.Error(), "Hint") != 1 {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
	if err := Because(context.Canceled, Source, "scan", "", "the table"); err != context.Canceled {
		t.Errorf("the end of a context became %v", err)
	}
}
