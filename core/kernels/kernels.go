// Package kernels holds the loops over Arrow buffers: gather, concatenate, select, sort, hash, exact sums, and the
// element-wise arithmetic, comparisons and casts.
//
// Invariant: kernels know no SQL and allocate what they return on the Go heap. They take slices of arrays, whose offsets
// every one of them applies, and never write to what they were given.
package kernels
