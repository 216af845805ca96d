package types

// Format is the text form.
func Format(v Value, t Type) string { return "" }
