package kernels

import (
	"slices"
	"strings"
	"unsafe"
)

// Poison fills what Room returns with a pattern, so that tests see values that nobody wrote.
var Poison bool

const clearedRoom = 4 << 10 // below this many bytes clearing costs nothing

// Room returns n values of any content, for loops that write every one of them: make would clear memory that is about to be
// written, at the price of a whole pass over it.
//
// AIDEV-NOTE: unsafe, and what is not written shows old memory. T has no pointers. The memory is that of a strings.Builder,
// the one way to memory of the collector that is not cleared; it is written to before it is anybody's string.
func Room[T any](n int) []T {
	var z T
	size := n * int(unsafe.Sizeof(z))
	if size < clearedRoom {
		return make([]T, n)
	}
	var b strings.Builder
	b.Grow(size)
	_ = b.WriteByte(0)
	out := unsafe.Slice((*T)(unsafe.Pointer(unsafe.StringData(b.String()))), n)
	if Poison {
		for i := range bytesOf(out) {
			bytesOf(out)[i] = 0xA5
		}
	}
	return out
}

// Sized gives a slice of n values of any content: s, where it has the room, or a new one with some to spare.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// Ahead gives the first of n texts room for the others, if they are as long as it: a megabyte at most, as it may be longer than all of them.
func Ahead(first []byte, n int) []byte {
	return slices.Grow(first, min(n*(len(first)+2), 1<<20))
}

// Grown makes s at least n long; what is new is zero, if s never was longer. It doubles: what is kept by slot grows by every row.
func Grown[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	if n > cap(s) {
		more := Large(make([]T, max(n, 2*cap(s))))
		copy(more, s)
		s = more
	}
	return s[:n]
}

// GrownTo is Grown for somebody who may have thought about n: if it is ahead of what there is by more than an eighth, there is no more room than that.
func GrownTo[T any](s []T, n int) []T {
	if n > cap(s) && n >= cap(s)+cap(s)/8 {
		more := Large(make([]T, n))
		copy(more, s)
		return more
	}
	return Grown(s, n)
}
