package fn

var (
	arithmetic, comparisons, bitwise, mathematics, texts, patterns, encodings []*Scalar
	dates, dateParts, nested, jsons, utilities                                []*Scalar
)
