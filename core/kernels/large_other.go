//go:build !linux

package kernels

// Large is a wish that only Linux is asked for.
func Large[T any](s []T) []T { return s }
