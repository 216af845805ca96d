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
	{"unsynced-file", "a file gets its name although it was not synced", "core/objstore/local.go",
		"if err := u.f.Sync(); err != nil {", "if err := error(nil); err != nil {", simOnDisk},
	{"unsynced-folder", "no folder is synced", "core/objstore/local.go",
		"return d.Sync()", "return nil", simOnDisk},
	{"late-sync", "a manifest is published before the object that it names is synced", "core/objstore/local.go",
		"if err := u.sync(); err != nil {\n\t\treturn err\n\t}\n\tif err := u.l.system().Rename", "go func() { _ = u.sync() }()\n\tif err := u.l.system().Rename", simOnDisk},
	{"unsynced-manifest", "the sink commits before the name of the manifest is synced", "core/objstore/local.go",
		"\treturn l.syncDir(filepath.Dir(name))\n", "\treturn nil\n", simOnDisk},
	{"trusted-folder", "a folder that is there counts as durable, whoever made it", "core/objstore/local.go",
		"if had && system.stays(dir) {", "if had {", simOnDisk},
	{"unkept-manifest", "a manifest counts that is there and whose name could not be synced", "checkpoint/publish.go",
		"if err := objstore.Keep(ctx, s.objects, s.at(name)); err != nil {", "if err := error(nil); err != nil {", simOnDisk},
	{"unkept-entry", "an entry of a sink's manifest counts whose name another process did not come to sync", "connectors/files/commit.go",
		"if err := objstore.Keep(ctx, c.store, c.entryName(n)); err != nil {", "if err := error(nil); err != nil {", simOnDisk},
	{"unanswered-publication", "a file counts as visible although the store did not answer", "connectors/files/commit.go",
		"\tcase err != nil:\n\t\treturn c.fail(err)\n\t}\n\treturn nil\n}\n\n// tidy", "\t}\n\treturn nil\n}\n\n// tidy", simHistories},
}

// Tests of the simulation that are asked.
const (
	simHistories = "^TestHistories$"
	simOnDisk    = "^TestHistoriesOnDisk$"
)

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
