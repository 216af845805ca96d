package fn

import "github.com/riverbed/riverbed/core/types"

// CastFor returns the kernel that casts one type to another; fallible when a row may fail.
func CastFor(from, to types.Type) (k Kernel, fallible, ok bool) { return nil, false, false }

// Try is TRY(x).
var Try = &Scalar{Name: "try"}

// CastReadsZone reports whether a cast depends on the session's time zone.
func CastReadsZone(from, to types.Type) bool {
	return false
}
