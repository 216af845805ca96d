package files

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// Widens reports whether every value of from is a value of to, so that Widen turns one into the other.
func Widens(from, to types.Type) bool { return canWiden(from, to) }

// Widen brings an array of a type into one that Widens.
func Widen(a arrow.Array, from, to types.Type) arrow.Array { return widen(a, from, to) }
