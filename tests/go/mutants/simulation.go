package mutants

import "slices"

// simulated are faults that the simulation finds (tests/go/sim): its own, and some of those that the tests of the packages find.
var simulated = slices.Concat(ofTheSimulation,
	named(pipelines, "early-commit", "read-ahead", "no-recovery", "lost-rows", "late-again", "no-last-barrier"),
	named(checkpoints, "unprotected"),
	named(all, "forgotten-splits"))

var ofTheSimulation = []mutant{
	{"early-acknowledgement", "the sources are told that rows are needed no more before a manifest has them", "durable.go",
		"\tagain := d.r.newRetry()\n", "\tfor i, in := range d.r.inputs {\n\t\tif a, ok := in.stream.(flow.Acknowledger); ok && len(b.upTo[i]) > 0 {\n\t\t\t_ = a.Acknowledge(ctx, b.upTo[i])\n\t\t}\n\t}\n\tagain := d.r.newRetry()\n", simHistories},
	{"forgotten-pending", "changes that EMIT EVERY has not shown are not in the checkpoint", "snapshots.go",
		"if len(s.Pending) > 0 || held {", "if false {", simHistories},
	{"lost-dirty-row", "of the rows that changed some are not in the checkpoint", "state/table.go",
		"if e := t.touched.At(s); *e != t.epoch {", "if e := t.touched.At(s); *e != t.epoch && s%3 != 2 {", simHistories},
	{"dropped-early", "files that a process staged are dropped before their epoch is committed", "connectors/files/commit.go",
		"c.leftover = append(c.leftover, s)", "_ = c.store.Discard(ctx, s)", simHistories},
	{"unanswered-publication", "a file counts as visible although the store did not answer", "connectors/files/commit.go",
		"\tcase err != nil:\n\t\treturn c.fail(err)\n\t}\n\treturn nil\n}\n\n// tidy", "\t}\n\treturn nil\n}\n\n// tidy", simHistories},
}

// simHistories is the test of the simulation that is asked.
const simHistories = "^TestHistories$"

// named are some of a list, for the simulation.
func named(list []mutant, names ...string) (out []mutant) {
	for _, m := range list {
		if slices.Contains(names, m.name) {
			m.ops = simHistories
			out = append(out, m)
		}
	}
	return out
}
