package fn

// What the tests of the finished expressions (package fn_test) take from those of the accumulators.
var (
	Variants  = variants
	Constants = constants
)
