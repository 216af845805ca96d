package bench

import "runtime/debug"

// paceCollector sets about the pace that the library keeps with some 100 MB alive: as much again and 64 MB (capi/pacing.go).
func paceCollector() { debug.SetGCPercent(164) }
