package iceberg

import (
	"context"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/errs"
)

// Call asks the library of Iceberg metadata. The C library sets it to one that loads that library when it is first asked; a program in Go that
// links the library of metadata sets it to that.
var Call Caller = func(context.Context, meta.Request) (meta.Answer, error) {
	return meta.Answer{}, errs.New(errs.Unsupported, "open", "this program has no library of Iceberg metadata").
		WithHint("install the Python package, whose wheel has it, or link capi/iceberg/service")
}
