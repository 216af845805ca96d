package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/riverbed/riverbed/checkpoint"
)

// query is a statement, and what it answers, worked out apart from the engine.
type query struct {
	name      string
	sql       string
	topics    []string
	watermark bool // the topics have one
	updating  bool // rows of the topics go again
	// answer is what the rows of topics give by a watermark.
	answer func(in map[string][]row, watermark int64) map[string]int64
	// shownLater: what is shown behind an epoch is not of its positions alone.
	shownLater bool
}

// lagSeconds is how far a partition's watermark is behind its newest row.
const lagSeconds = 3

const second = 1_000_000

var queries = []query{
	{name: "rows", topics: []string{"s"}, sql: "SELECT k, v FROM s WHERE v <> 3", answer: func(in map[string][]row, _ int64) map[string]int64 {
		out := map[string]int64{}
		for _, r := range in["s"] {
			if r.v != 3 {
				add(out, r.weight, r.k, r.v)
			}
		}
		return out
	}},
	{name: "groups", topics: []string{"s"}, updating: true, sql: "SELECT k, count(*) AS n, CAST(sum(v) AS BIGINT) AS total, max(v) AS most FROM s GROUP BY k", answer: groups},
	{name: "groups that are shown every second", topics: []string{"s"}, updating: true, shownLater: true, answer: groups,
		sql: "SELECT k, count(*) AS n, CAST(sum(v) AS BIGINT) AS total, max(v) AS most FROM s GROUP BY k EMIT EVERY INTERVAL '1 second'"},
	{name: "distinct rows", topics: []string{"s"}, updating: true, sql: "SELECT DISTINCT k, v FROM s", answer: func(in map[string][]row, _ int64) map[string]int64 {
		out := map[string]int64{}
		for r, n := range counted(in["s"], func(r row) row { return row{k: r.k, v: r.v} }) {
			if n > 0 {
				add(out, 1, r.k, r.v)
			}
		}
		return out
	}},
	{name: "join", topics: []string{"s", "d"}, sql: "SELECT a.k, a.v, b.v AS w FROM s AS a JOIN d AS b ON a.k = b.k AND a.v < b.v", answer: func(in map[string][]row, _ int64) map[string]int64 {
		out := map[string]int64{}
		for _, a := range in["s"] {
			for _, b := range in["d"] {
				if a.k == b.k && a.v < b.v {
					add(out, a.weight*b.weight, a.k, a.v, b.v)
				}
			}
		}
		return out
	}},
	{name: "left join", topics: []string{"s", "d"}, updating: true, sql: "SELECT a.k, a.v, b.v AS w FROM s AS a LEFT JOIN d AS b ON a.k = b.k AND a.v = b.v", answer: func(in map[string][]row, _ int64) map[string]int64 {
		out := map[string]int64{}
		right := counted(in["d"], func(r row) row { return row{k: r.k, v: r.v} })
		for _, a := range in["s"] {
			if n := right[row{k: a.k, v: a.v}]; n > 0 {
				add(out, a.weight*n, a.k, a.v, a.v)
			} else {
				add(out, a.weight, a.k, a.v, nil)
			}
		}
		return out
	}},
	{name: "first rows of a key", topics: []string{"s"}, updating: true, sql: "SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) <= 2", answer: func(in map[string][]row, _ int64) map[string]int64 {
		byKey := map[int64][]int64{}
		for r, n := range counted(in["s"], func(r row) row { return row{k: r.k, v: r.v} }) {
			for range n {
				byKey[r.k] = append(byKey[r.k], r.v)
			}
		}
		out := map[string]int64{}
		for k, vs := range byKey {
			slices.SortFunc(vs, func(a, b int64) int { return cmp.Compare(b, a) })
			for _, v := range vs[:min(2, len(vs))] {
				add(out, 1, k, v)
			}
		}
		return out
	}},
	{name: "windows", topics: []string{"s"}, watermark: true, answer: func(in map[string][]row, watermark int64) map[string]int64 {
		const width = 5 * second
		out := map[string]int64{}
		for r, n := range counted(in["s"], func(r row) row { return row{k: r.k, ts: r.ts / width * width} }) {
			if r.ts+width <= watermark {
				add(out, 1, r.k, r.ts, n)
			}
		}
		return out
	}, sql: "SELECT k, TUMBLE_START(ts, INTERVAL '5 seconds') AS w, count(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds') EMIT ON WATERMARK"},
	{name: "join within a time", topics: []string{"s", "d"}, watermark: true, answer: func(in map[string][]row, _ int64) map[string]int64 {
		out := map[string]int64{}
		for _, a := range in["s"] {
			for _, b := range in["d"] {
				if a.k == b.k && b.ts >= a.ts-2*second && b.ts <= a.ts+2*second {
					add(out, 1, a.k, a.v, b.v)
				}
			}
		}
		return out
	}, sql: "SELECT a.k, a.v, b.v AS w FROM s AS a JOIN d AS b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '2 seconds' AND a.ts + INTERVAL '2 seconds' EMIT IMMEDIATE"},
}

func groups(in map[string][]row, _ int64) map[string]int64 {
	type group struct{ n, total, most int64 }
	of := map[int64]group{}
	for r, n := range counted(in["s"], func(r row) row { return row{k: r.k, v: r.v} }) {
		if n > 0 {
			g, ok := of[r.k]
			if !ok || r.v > g.most {
				g.most = r.v
			}
			of[r.k] = group{g.n + n, g.total + n*r.v, g.most}
		}
	}
	out := map[string]int64{}
	for k, g := range of {
		add(out, 1, k, g.n, g.total, g.most)
	}
	return out
}

// counted is how often each row is there, as far as it counts.
func counted(rows []row, of func(row) row) map[row]int64 {
	out := map[row]int64{}
	for _, r := range rows {
		out[of(r)] += r.weight
	}
	return out
}

func add(out map[string]int64, weight int64, cells ...any) {
	text := ""
	for i, c := range cells {
		if i > 0 {
			text += "|"
		}
		text += fmt.Sprint(c)
	}
	if out[text] += weight; out[text] == 0 {
		delete(out, text)
	}
}

// whole is the answer over all rows.
func (q query) whole(b *broker) map[string]int64 {
	in := map[string][]row{}
	for _, t := range b.topics {
		for _, part := range t.partitions {
			in[t.name] = append(in[t.name], q.onTime(part)...)
		}
	}
	return q.answer(in, math.MaxInt64)
}

// at is the answer over the rows up to a manifest's positions, nil when they do not say it.
func (q query) at(b *broker, m *checkpoint.Manifest) map[string]int64 {
	if q.shownLater {
		return nil
	}
	in, watermark := map[string][]row{}, int64(math.MaxInt64)
	for _, src := range m.Sources {
		for _, t := range b.topics {
			if t.name != src.Name || in[t.name] != nil {
				continue
			}
			in[t.name] = []row{}
			// Partitions are found together; a manifest counts those that were read to their end, and names the others.
			allKnown := int64(len(t.partitions)-len(src.Splits)) == src.Ended
			for i, part := range t.partitions {
				sp, named := src.Splits[strconv.Itoa(i)]
				n, _ := strconv.Atoi(string(sp.Position))
				if !named && allKnown {
					n, sp.Ended = len(part), true
				}
				in[t.name] = append(in[t.name], q.onTime(part[:n])...)
				if !sp.Ended {
					watermark = min(watermark, mark(part[:n]))
				}
			}
		}
	}
	return q.answer(in, watermark)
}

// mark is a partition's watermark behind rows.
func mark(rows []row) int64 {
	most := int64(math.MinInt64)
	for _, r := range rows {
		most = max(most, r.ts-lagSeconds*second)
	}
	return most
}

// onTime are the rows of a partition that are not late.
func (q query) onTime(rows []row) []row {
	if !q.watermark {
		return rows
	}
	var out []row
	for i, r := range rows {
		if r.ts >= mark(rows[:i]) {
			out = append(out, r)
		}
	}
	return out
}

// lateIn is how many rows are late.
func (q query) lateIn(b *broker) int {
	n := 0
	for _, t := range b.topics {
		for _, part := range t.partitions {
			n += len(part) - len(q.onTime(part))
		}
	}
	return n
}
