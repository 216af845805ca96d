package mutants

// pipelines are faults of how a pipeline makes an epoch durable and takes it up again; ops names the tests of the root package that are asked.
var pipelines = []mutant{
	{"early-commit", "the sink commits before the manifest is there", "durable.go",
		"\tagain := d.r.newRetry()\n", "\tif link != nil {\n\t\tif err := d.commit(ctx, *link, rows); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\tagain := d.r.newRetry()\n", "EndedInEveryPhase"},
	{"read-ahead", "a position is of what was read, not of what a step has taken", "readers.go",
		"\t\tsettles := !stands", "\t\tr.inputs[source].splits[sp.ID].at = rows.Next\n\t\tsettles := !stands", "EndedInEveryPhase"},
	{"open-transaction", "a position moves within a source transaction that no step has taken", "cut.go",
		"if len(sp.txn) == 0 {\n\t\tsp.at = sp.read", "if true {\n\t\tsp.at = sp.read", "OpenTransaction"},
	{"no-recovery", "what was staged and not committed is forgotten at a restart", "recover.go",
		"range slices.Clone(d.last.Sinks[0].Pending) {", "range d.last.Sinks[0].Pending[:0] {", "EndedInEveryPhase"},
	{"any-marker", "a marker that the checkpoints do not know is taken", "recover.go",
		"if at < 0 && string(marker) != chain.Done {", "if false {", "RefusedRestarts"},
	{"any-query", "state of another query is restored", "check.go",
		"if d.r.cfg.changedQuery == changedRefuse {", "if false {", "RefusedRestarts"},
	{"lost-rows", "an epoch's rows of the sink are not in its checkpoint", "durable.go",
		"if d.held && link != nil {", "if false && link != nil {", "EndedInEveryPhase"},
	{"late-again", "late and bad rows go with every later epoch too", "durable.go",
		"\td.kept, b.kept = keptSince{}, ", "\tb.kept = ", "KeptRowsSurvive"},
	{"ended-again", "splits that have ended are read again after a restart", "readers.go",
		"known[id] = at.Ended", "known[id] = at.Ended && false", "EndedInEveryPhase|Stopped"},
	{"tables-again", "a restart takes the rows of a table once more", "durabletables.go",
		"if d == nil || len(d.tables[t.name]) == 0 {", "if true {", "TablesSurvive"},
	{"no-last-barrier", "a pipeline that ends does not end its epoch", "durable.go",
		"if d.steps != d.r.graph.Steps() && d.settled() {", "if false {", "Stopped|EndedInEveryPhase"},
	{"half-consolidated", "a row that came and went within an epoch reaches the sink", "sinkwriter.go",
		"if s.updates && slices.ContainsFunc(s.rows, flow.Delta.Weighted) {", "if s.updates && false && slices.ContainsFunc(s.rows, flow.Delta.Weighted) {", "EpochsAreConsolidated"},
}
