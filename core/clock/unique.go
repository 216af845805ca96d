package clock

import "crypto/rand"

// Unique draws a word that nobody else has drawn, in whatever process. It is for telling things of ours apart in places that we share with
// others; nothing is computed from it, so a run that is replayed may draw another.
func Unique() string { return rand.Text() }
