package iceberg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// because makes an error about the table out of what went wrong below: kind, hint and whether a retry helps come from there, the hint
// that is given stands in where there is none.
func because(err error, op, hint, format string, args ...any) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	below := &errs.Error{Kind: errs.Source}
	errors.As(err, &below)
	if below.Hint != "" {
		hint = below.Hint
	}
	reason, _, _ := strings.Cut(err.Error(), "\nHint: ")
	out := errs.New(below.Kind, op, "%s: %s", fmt.Sprintf(format, args...), reason).WithHint("%s", hint)
	out.Err, out.Transient = err, below.Transient
	return out
}

// kindOf is the kind of the library's error; "" for others.
func kindOf(err error) string {
	var r refusal
	errors.As(err, &r)
	return string(r)
}
