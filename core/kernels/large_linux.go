package kernels

import (
	"syscall"
	"unsafe"
)

const (
	advised  = 2 << 20 // the size of a large page, below which nothing is asked
	adviseBy = 4096
	hugePage = 14 // MADV_HUGEPAGE
)

// Large asks the system to put memory that is read here and there into large pages, before it is written to. A look at a random place of
// some hundred megabytes is most often a miss of the cache of page addresses, and costs five times a look that is none. That the system
// does not do it is no error.
//
// AIDEV-NOTE: unsafe: the memory of s as bytes, whole pages of it, for a call that neither reads nor writes them.
func Large[T any](s []T) []T {
	var one T
	size := uintptr(len(s)) * unsafe.Sizeof(one)
	if size < advised {
		return s
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	skip := -first & (adviseBy - 1)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size)
	_ = syscall.Madvise(b[skip:(size-skip)&^(adviseBy-1)+skip], hugePage)
	return s
}
