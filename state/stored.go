package state

// Stored is what a graph asks of a table, however it holds its rows: a Table or a Log.
type Stored interface {
	Name() string
	// Len is the number of rows, Bytes the memory held, roughly, and Touched how many rows were looked up, made or dropped so far.
	Len() int
	Bytes() int64
	Touched() int64
	// Track starts the dirty list, Cut ends an epoch of it, and Dirty gives what changed after one, until Forget.
	Track()
	Cut() uint64
	Dirty(since uint64) (Part, error)
	Forget(epoch uint64)
	Snapshot() (Part, error)
	// Restore takes the rows of a part whose key groups are mine; parts come in order.
	Restore(p Part, mine func(group uint8) bool) error
}

// Late is a table whose rows may be copied behind a barrier (Table.CopyLate).
type Late interface {
	Stored
	Begin(since uint64) (bool, error)
	Copy(rows int) (parts []Part, more bool, err error)
}

var _ Late = (*Table)(nil)

// Name is that of the declaration.
func (t *Table) Name() string { return t.Decl.Name }
