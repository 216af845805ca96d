package mutants

// copies are faults of how rows are copied behind a barrier, while the graph steps on; ops names the tests of incremental that are asked.
var copies = []mutant{
	{"marked-before-copied", "rows are marked as closing before they are copied", "incremental/distinct.go",
		"\td.timers.marks = d.seen.Before\n", "", "CopiesBehind|ClosedRows"},
	{"written-before-copied", "groups are written to before they are copied", "incremental/aggregate.go",
		"\ta.table.Before(a.touched[first:])\n", "", "CopiesBehind"},
	{"dropped-before-copied", "rows go before they are copied", "state/table.go",
		"\tt.looks += int64(len(slots))\n\tt.Before(slots)\n", "\tt.looks += int64(len(slots))\n", "CopiesBehind"},
	{"copied-for-another", "a row that came behind the barrier is copied for the one that was in its slot", "state/late.go",
		"if c != nil && c.left > 0 && c.has(slot) {", "if false && c.has(slot) {", "CopiesBehind"},
	{"evicted-before-copied", "rows leave memory before they are copied", "state/cold.go",
		"\tt.Before(slots)\n\tc := t.cold\n", "\tc := t.cold\n", "CopiesBehind"},
}
