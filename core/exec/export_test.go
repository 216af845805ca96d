package exec

// RecordsFrom says from how many rows on a sort writes records, and returns what undoes it.
func RecordsFrom(rows int) (undo func()) {
	before := recordRows
	recordRows = rows
	return func() { recordRows = before }
}
