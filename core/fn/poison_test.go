package fn_test

import "github.com/riverbed/riverbed/core/kernels"

// As in tests/go/parity.
func init() { kernels.Poison = true }
