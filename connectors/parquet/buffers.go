package parquet

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// Buffers that never leave the reader are used again: fresh ones would have to be cleared, and would be cold. They are
// kept by size, in powers of two.
const (
	smallestClass = 10 // 1 KiB
	classes       = 16 // to 32 MiB
)

var spare [classes]sync.Pool

// class is the size class whose buffers hold n bytes; -1 for sizes that are not kept.
func class(n int) int {
	c := max(bits.Len(uint(max(n, 1)-1)), smallestClass) - smallestClass
	if c >= classes {
		return -1
	}
	return c
}

// grab returns n bytes of any content.
func grab(n int) []byte {
	c := class(n)
	if c < 0 {
		return make([]byte, n)
	}
	if b, ok := spare[c].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, 1<<(c+smallestClass))
}

// giveBack takes a buffer that grab returned and that nobody uses any more.
func giveBack(b []byte) {
	if c := class(cap(b)); c >= 0 && cap(b) == 1<<(c+smallestClass) {
		b = b[:0]
		spare[c].Put(&b)
	}
}

// grabOf is grab for values that lie in a buffer.
func grabOf[T element](n int) []T {
	var zero [1]T
	return arrow.GetData[T](grab(n * len(arrow.GetBytes(zero[:]))))
}

// recycle gives the buffers of an array back that nobody but the caller has.
//
// AIDEV-NOTE: a buffer that somebody still reads would change under them. So only columns of our own decoders come here,
// gathered away before anyone but a filter saw them, and pages whose values have been decoded.
func recycle(a arrow.Array) {
	for _, b := range a.Data().Buffers() {
		if b != nil {
			giveBack(b.Buf())
		}
	}
}
