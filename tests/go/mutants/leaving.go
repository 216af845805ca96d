package mutants

// leaving are faults of state that leaves memory and comes back; ops names the tests of incremental that are asked.
var leaving = []mutant{
	{"closed-groups-stay-out", "groups that have left memory are not closed", "incremental/aggregate.go",
		"\treturn putOff(a.later, a.table, slots, a.closingTimes)\n", "\treturn nil\n", "GroupsThatLeave"},
	{"values-outlive-groups", "values of a DISTINCT aggregate that have left memory outlive their group", "incremental/aggregate_distinct.go",
		"\treturn d.table.DropBegins(at, begins)\n", "\treturn nil\n", "GroupsThatLeave"},
	{"old-partition-comes-back", "a partition comes back as it was when it left first", "incremental/firstrows.go",
		"\tf.parts.units.Changed(f.touched)\n", "", "GroupsThatLeave"},
	{"settled-slices-stay-out", "slices of hopping windows that have left memory are not added to their windows", "incremental/hop.go",
		"if err := endOut(h.later, h.table, w, h.settle); err != nil {", "if err := error(nil); err != nil {", "GroupsThatLeave"},
	{"settled-rows-stay-out", "rows of a log that have left memory outlive their time", "incremental/rowlog.go",
		"if err := l.rows.DropSettled(int64(w)); err != nil {", "if err := error(nil); err != nil {", "GroupsThatLeave"},
	{"settled-keys-stay-out", "rows of an outer join that have left memory outlive their time", "incremental/coldarrangement.go",
		"\t\ta.remove(gone)\n", "\t\t_ = gone\n", "GroupsThatLeave"},
	{"restart-holds-all", "a restart holds all rows of a join", "incremental/pieces.go",
		"|| !a.over() {", "|| true {", "RestartStays"},
	{"restart-drops-what-left", "a deletion in a later part misses a row that has left memory in the restart", "incremental/pieces.go",
		"if err := a.undo(); err != nil {", "if err := error(nil); err != nil {", "GroupsThatLeave"},
}
