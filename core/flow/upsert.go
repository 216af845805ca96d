package flow

import "strings"

// Upserts is input without old images, a Stream or a Relation: what it gives is not rows but what becomes of keys. A weight
// above 0 says that the row is now the row of its key; one below 0 that the key is gone, and then only the key's columns
// count; none is 0. What is said of a key counts in the order of its split. A key belongs to one split; where it comes from several,
// each has its own row of it, and that of the last split (CompareSplits) stands.
//
// A row may leave out values that are what they were (Keeping): they are those of the row that its key has by then, in the same split.
//
// A stream of this kind is Updating. A relation has two columns behind its Fields: SplitColumn, a number that rises with
// the order of splits, and WeightColumn; rows of one split are in its order.
type Upserts interface {
	// Key are the columns of the key, as positions in Fields, none of which is ever NULL. nil: this input gives rows.
	Key() []int
}

// KeyOf returns the key of an input without old images, and nil for one of rows.
func KeyOf(input any) []int {
	if u, ok := input.(Upserts); ok {
		return u.Key()
	}
	return nil
}

// MostKept is how many fields, from the first on, can be left out of a row.
const MostKept = 62

// Keeping is the weight of a row of Upserts in which the values of some fields are left out, NULL in their place.
func Keeping(fields ...int) int64 {
	w := int64(1)
	for _, f := range fields {
		w |= 1 << (f + 1)
	}
	return w
}

// Keeps reports whether a row of Upserts with this weight leaves out the value of a field.
func Keeps(weight int64, field int) bool {
	return weight > 1 && field < MostKept && weight>>(field+1)&1 == 1
}

// CompareSplits orders splits by their names: the one without a name, numbers by their value, other names.
func CompareSplits(a, b string) int {
	na, nb := number(a), number(b)
	switch {
	case a == "" || b == "":
	case na && !nb:
		return -1
	case nb && !na:
		return 1
	case na:
		x, y := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b)
}

// number reports whether a name is a whole number.
func number(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
