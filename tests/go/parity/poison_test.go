package parity

import "github.com/riverbed/riverbed/core/kernels"

// Memory that kernels get without its being cleared holds a pattern here: a value that nobody wrote would be seen.
func init() { kernels.Poison = true }
