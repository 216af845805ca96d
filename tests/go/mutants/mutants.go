// Package mutants makes deliberate faults and looks whether the property tests find them. A test that no fault can fail
// proves nothing.
//
// Invariant: a fault lives in an overlay of the build, never in the code: each names a text that stands exactly once in its
// file, and what stands there instead.
package mutants

// mutant is one fault.
type mutant struct {
	name string
	what string
	file string // from the root of the module
	old  string
	new  string
	ops  string // operators of tests/go/prop that are asked, a regular expression
}

var all = []mutant{
	{"wrong-retraction", "a group of one row is not retracted when it changes", "incremental/aggregate.go",
		"if a.count.V[s] > 0 || a.global && a.step > 0 {", "if a.count.V[s] > 1 || a.global && a.step > 0 {", "sum-integer|count"},
	{"lost-null-key", "an outer join loses its rows whose key is NULL", "incremental/join.go",
		"if lonely.N > 0 && j.kept[port] && j.kind != plan.Semi {", "if false && lonely.N > 0 && j.kept[port] && j.kind != plan.Semi {", "left-join|full-join"},
	{"window-end", "a window closes one microsecond after its end", "incremental/timers.go",
		"\treturn closing{pos, 0}\n", "\treturn closing{pos, 1}\n", "tumble|hop"},
	{"late-by-batch", "a row is judged by the watermark at its batch's end", "incremental/source.go",
		"\t\tfor i, t := range some {\n", "\t\town = max(own, flow.Watermark(most-lag))\n\t\tfor i, t := range some {\n", "tumble|interval-join"},
	{"dropped-weight", "consolidating rows keeps the last weight instead of the sum", "incremental/consolidate.go",
		"sum += in.W[order[i].row]", "sum = in.W[order[i].row]", "project|union"},
	{"min-after-delete", "the minimum stays when its row goes", "core/fn/agg_extreme.go",
		"New: newExtreme(false), NewRetract: newBag(first)}", "New: newExtreme(false)}", "min-max"},
	{"old-and-old", "rows of both sides that come in one step do not meet", "incremental/arrangement.go",
		"if a.weight != nil && a.weight.V[s] == 0 {\n\t\t\t\tcontinue", "if a.weight != nil && a.weight.V[s] == 0 || func() bool {\n\t\t\t\tfor _, t := range a.touched {\n\t\t\t\t\tif t == s {\n\t\t\t\t\t\treturn true\n\t\t\t\t\t}\n\t\t\t\t}\n\t\t\t\treturn false\n\t\t\t}() {\n\t\t\t\tcontinue", "left-join|full-join"},
	{"newest-rows", "the newest rows of a log are not looked at", "incremental/rowlog.go",
		"for _, p := range l.parts {\n\t\tif p.indexed ||", "for _, p := range l.parts[:max(0, len(l.parts)-1)] {\n\t\tif p.indexed ||", "appended-join"},
	{"not-in-without-null", "a NULL in the set of NOT IN is overlooked", "core/rules/mark_joins.go",
		"if yNull { // a set", "if false && yNull { // a set", "mark"},
	{"fallen-rows", "top-N forgets rows that fell out although they may come back", "incremental/topn.go",
		"t.trims = plan.Trims(n, emit)", "t.trims = t.rank == \"row_number\" && t.limit != never", "top-n"},
	{"idle-split", "an idle split holds the watermark back", "incremental/source.go",
		"if !sp.Idle {\n\t\t\tcounted++", "if true {\n\t\t\tcounted++", "tumble|hop"},
	{"last-copy", "DISTINCT keeps a row whose last copy goes", "incremental/distinct.go",
		"case before > 0 && after <= 0:", "case before > 0 && after < 0:", "distinct"},
	{"forgotten-splits", "a snapshot forgets the watermarks of the splits", "incremental/snapshot.go",
		"st.Splits = append(st.Splits, *sp)", "_ = sp", "tumble|hop|interval-join"},
	{"other-groups", "a restored instance takes key groups that are not its own", "incremental/restore.go",
		"return owner(int(group), len(n.keyed)) == i }", "return int(group)%len(n.keyed) == i }", "sum-integer|inner-join"},
	{"first-of-equal-beginning", "a row whose key begins like the last one's is not looked at", "incremental/firstrows.go",
		"f.lead[i] <= h.bound", "f.lead[i] < h.bound || h.bound == math.MaxUint64", "group-top-n"},
	{"short-log", "rows leave a log before the watermark has closed them", "incremental/rowlog.go",
		"p.last = slices.Max(closes)", "p.last = slices.Min(closes)", "interval-join"},
	{"ties", "rows that tie stand in the opposite order", "incremental/topn.go",
		"rowkey.Key{Exact: true})", "rowkey.Key{Exact: true, Desc: true})", "top-n"},
	{"lone-peer", "a running aggregate does not change for the peers before a new row", "incremental/overstep.go",
		"from = o.walk(from, -1, o.reach.AffectsBack, o.reach.Peers)", "from = o.walk(from, -1, o.reach.AffectsBack, false)", "over-rank|over-range-groups"},
	{"short-reach", "a frame of rows reaches one row less than it looks at", "core/plan/reach.go",
		"max(-start, 0), max(-start, 0); !okStart {", "max(-start, 0), max(-start-1, 0); !okStart {", "over-rows|over-value"},
	{"filter-after-aggregate", "count(DISTINCT) forgets that an argument is still there", "incremental/aggregate_distinct.go",
		"case before > 0 && after <= 0:", "case before > 0 && after <= 1:", "count-distinct"},
	{"negative-floor", "windows before 1970 are cut one too late, in both modes", "core/types/compare.go",
		"\tif a%b < 0 {\n\t\tq--", "\tif false {\n\t\tq--", "tumble-epoch"},
	{"first-row", "of the rows of a key in one batch the first stands", "incremental/normalize.go",
		"for i := in.N - 1; i >= 0; i-- {", "for i := 0; i < in.N; i++ {", "normalize"},
	{"covered-row", "a row that a later split covers does not come back", "incremental/normalize.go",
		"o.coverRows(cover)", "o.coverRows(cover[:0])", "normalize|normalize-keys"},
	{"last-read-split", "of the splits of a key the one that was read last stands", "incremental/normalize.go",
		"held != own && o.src.inOrder(own, held) < 0:", "held != own && o.src.inOrder(own, held) < -9:", "normalize|normalize-join"},
	{"left-out-key", "GROUPING() numbers the keys from the other end when it counts incrementally", "incremental/groupingsets.go",
		"left &^= 1 << (len(g.node.Keys) - 1 - k)", "left &^= 1 << k", "grouping-sets"},
	{"window-offset", "a window is cut at its offset and shown without it, in both modes", "core/window/window.go",
		"from, to = start+c.offset,", "from, to = start,", "tumble-offset"},
	{"touching-sessions", "rows that are exactly a gap apart are in two sessions, in both modes", "core/window/session.go",
		"return b-a <= int64(g)", "return b-a < int64(g)", "session"},
	{"session-end", "a session closes at its end, although a row at its end belongs to it", "core/plan/props_time.go",
		"out[n.End.ID] = TimeColumn{t.Kind, t.SizeUS, n.Start.ID}", "out[n.End.ID] = TimeColumn{WindowEnd, 0, n.Start.ID}", "session"},
	{"parted-session", "a session does not part when a row goes", "incremental/session.go",
		"if s.weight.V[x] <= 0 {\n\t\t\t\tcontinue", "if s.weight.V[x] < 0 {\n\t\t\t\tcontinue", "session-updating"},
	{"captured-of-another-row", "what a lambda reads of its row is taken from the row of the element's place, in both modes", "core/expr/lambda.go",
		"cols = append(cols, kernels.Take(c.Array, rows))", "cols = append(cols, kernels.Take(c.Array, append(rows[1:len(rows):len(rows)], rows[0])))", "lambda"},
	{"best-of-two-windows", "a row that is best in several windows comes of EXISTS once for each, in both modes", "core/rules/best_rows.go",
		"if x.j.Kind == plan.Semi && overlap(w) {", "if false && overlap(w) {", "best-of-windows"},
}
