package incremental_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/incremental/optest"
)

const propertyStreams = `
CREATE STREAM s (ts TIMESTAMP, k TEXT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '2 seconds');
CREATE STREAM r (ts TIMESTAMP, k TEXT, w BIGINT, WATERMARK FOR ts AS ts - INTERVAL '3 seconds') WITH (lateness_ms = 1000)`

const (
	tumbling = "TUMBLE(ts, INTERVAL '4 seconds')"
	hopping  = "HOP(ts, INTERVAL '2 seconds', INTERVAL '5 seconds')"
)

// streamQueries run over event time. Those that close on the watermark give the window's end first.
var streamQueries = map[string]string{
	"pass through":       "SELECT ts, k, v FROM s EMIT IMMEDIATE",
	"tumble":             "SELECT k, TUMBLE_START(ts, INTERVAL '4 seconds'), count(*), sum(v), min(v) FROM s GROUP BY k, " + tumbling + " EMIT IMMEDIATE",
	"hop":                "SELECT k, HOP_START(ts, INTERVAL '2 seconds', INTERVAL '5 seconds'), count(*), max(v) FROM s GROUP BY k, " + hopping + " EMIT IMMEDIATE",
	"interval join":      "SELECT s.k, v, w, s.ts, r.ts FROM s JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts - INTERVAL '2 seconds' AND s.ts + INTERVAL '3 seconds' EMIT IMMEDIATE",
	"interval left join": "SELECT s.k, v, w FROM s LEFT JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts - INTERVAL '2 seconds' AND s.ts + INTERVAL '3 seconds' EMIT IMMEDIATE",
	"interval anti join": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE s.k = r.k AND r.ts >= s.ts AND r.ts < s.ts + INTERVAL '3 seconds') EMIT IMMEDIATE",
	"one-sided join":     "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k AND r.ts <= s.ts EMIT IMMEDIATE",
	"join":               "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k EMIT IMMEDIATE",
	"distinct":           "SELECT DISTINCT ts, k FROM s EMIT IMMEDIATE",
	"best of a window": "SELECT s.k, v, s.ts FROM s JOIN (SELECT TUMBLE_START(ts, INTERVAL '5 seconds') AS b, TUMBLE_END(ts, INTERVAL '5 seconds') AS e, max(v) AS most FROM s GROUP BY TUMBLE(ts, INTERVAL '5 seconds')) m " +
		"ON v = m.most AND s.ts >= m.b AND s.ts < m.e EMIT IMMEDIATE",
	"best groups of hops": "WITH n AS (SELECT k, count(*) AS num, HOP_START(ts, INTERVAL '2 seconds', INTERVAL '6 seconds') AS b FROM s GROUP BY k, HOP(ts, INTERVAL '2 seconds', INTERVAL '6 seconds')) " +
		"SELECT n.k, n.num, n.b FROM n JOIN (SELECT b, max(num) AS most FROM n GROUP BY b) m ON n.b = m.b AND n.num >= m.most EMIT IMMEDIATE",
	"best of a key":       "SELECT k, v FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS r FROM s) WHERE r = 1 EMIT IMMEDIATE",
	"last per key":        "SELECT k, v, ts FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY ts DESC, v) AS rn FROM s) WHERE rn = 1 EMIT IMMEDIATE",
	"windows joined":      "SELECT p.k, p.ws, n, m FROM (SELECT k, TUMBLE_START(ts, INTERVAL '4 seconds') AS ws, count(*) AS n FROM s GROUP BY k, " + tumbling + ") p JOIN (SELECT k, TUMBLE_START(ts, INTERVAL '4 seconds') AS ws, count(*) AS m FROM r GROUP BY k, " + tumbling + ") q ON p.k = q.k AND p.ws = q.ws EMIT IMMEDIATE",
	"windows left joined": "SELECT p.k, p.ws, n, m FROM (SELECT k, TUMBLE_START(ts, INTERVAL '4 seconds') AS ws, count(*) AS n FROM s GROUP BY k, " + tumbling + ") p LEFT JOIN (SELECT k, TUMBLE_START(ts, INTERVAL '4 seconds') AS ws, count(*) AS m FROM r GROUP BY k, " + tumbling + ") q ON p.k = q.k AND p.ws = q.ws EMIT IMMEDIATE",
	"two steps":           "SELECT we, max(n), count(*) FROM (SELECT k, TUMBLE_END(ts, INTERVAL '4 seconds') AS we, count(*) AS n FROM s GROUP BY k, " + tumbling + ") GROUP BY we EMIT IMMEDIATE",
	"top-N of windows":    "SELECT we, k, n, rn FROM (SELECT *, row_number() OVER (PARTITION BY we ORDER BY n DESC) AS rn FROM (SELECT k, HOP_END(ts, INTERVAL '2 seconds', INTERVAL '5 seconds') AS we, count(*) AS n FROM s GROUP BY k, " + hopping + ")) WHERE rn <= 2 EMIT IMMEDIATE",
	"distinct windows":    "SELECT DISTINCT TUMBLE_START(ts, INTERVAL '4 seconds'), k FROM s GROUP BY k, v, " + tumbling + " EMIT IMMEDIATE",
	"hop only, closed":    "SELECT HOP_END(ts, INTERVAL '2 seconds', INTERVAL '5 seconds'), min(v), avg(v), string_agg(k, ',' ORDER BY k) FROM s GROUP BY " + hopping + " EMIT ON WATERMARK",
	"joined hops, closed": "SELECT p.we, n, m FROM (SELECT HOP_END(ts, INTERVAL '2 seconds', INTERVAL '4 seconds') AS we, count(*) AS n FROM s GROUP BY HOP(ts, INTERVAL '2 seconds', INTERVAL '4 seconds')) p JOIN (SELECT HOP_END(ts, INTERVAL '2 seconds', INTERVAL '4 seconds') AS we, sum(w) AS m FROM r GROUP BY HOP(ts, INTERVAL '2 seconds', INTERVAL '4 seconds')) q ON p.we = q.we EMIT ON WATERMARK",
	"tumble, closed":      "SELECT TUMBLE_END(ts, INTERVAL '4 seconds'), k, count(*), sum(v), count(DISTINCT v) FROM s GROUP BY k, " + tumbling + " EMIT ON WATERMARK",
	"hop, closed":         "SELECT HOP_END(ts, INTERVAL '2 seconds', INTERVAL '5 seconds'), k, count(*), sum(v) FROM s GROUP BY k, " + hopping + " EMIT ON WATERMARK",
	"cumulate, closed":    "SELECT CUMULATE_END(ts, INTERVAL '2 seconds', INTERVAL '6 seconds'), k, count(*) FROM s GROUP BY k, CUMULATE(ts, INTERVAL '2 seconds', INTERVAL '6 seconds') EMIT ON WATERMARK",
	"two steps, closed":   "SELECT we, max(n) FROM (SELECT k, TUMBLE_END(ts, INTERVAL '4 seconds') AS we, count(*) AS n FROM s GROUP BY k, " + tumbling + ") GROUP BY we EMIT ON WATERMARK",
	"joined, closed":      "SELECT p.we, p.k, n, m FROM (SELECT k, TUMBLE_END(ts, INTERVAL '4 seconds') AS we, count(*) AS n FROM s GROUP BY k, " + tumbling + ") p JOIN (SELECT k, TUMBLE_END(ts, INTERVAL '4 seconds') AS we, count(*) AS m FROM r GROUP BY k, " + tumbling + ") q ON p.k = q.k AND p.we = q.we EMIT ON WATERMARK",
	"first per time":      "SELECT ts, k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY ts ORDER BY v DESC) AS rn FROM s) WHERE rn <= 6 EMIT IMMEDIATE",
	"first of joined":     "SELECT k, v, w, rn FROM (SELECT s.k, v, w, row_number() OVER (PARTITION BY s.k ORDER BY v + w, w DESC) AS rn FROM s JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts - INTERVAL '2 seconds' AND s.ts + INTERVAL '3 seconds') WHERE rn <= 2 EMIT IMMEDIATE",
	"first of all joined": "SELECT k, w, v, ts FROM (SELECT s.*, w, row_number() OVER (PARTITION BY v ORDER BY w DESC NULLS FIRST, s.ts) AS rn FROM s JOIN r ON s.k = r.k) WHERE rn <= 3 EMIT IMMEDIATE",
	"first, closed":       "SELECT window_end, k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY window_end ORDER BY v DESC NULLS FIRST) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '4 seconds'))) WHERE rn <= 6 EMIT ON WATERMARK",
	"top-N, closed":       "SELECT we, k, n, rn FROM (SELECT *, row_number() OVER (PARTITION BY we ORDER BY n DESC) AS rn FROM (SELECT k, TUMBLE_END(ts, INTERVAL '4 seconds') AS we, count(*) AS n FROM s GROUP BY k, " + tumbling + ")) WHERE rn <= 2 EMIT ON WATERMARK",
	"best hops, closed": "WITH n AS (SELECT HOP_END(ts, INTERVAL '2 seconds', INTERVAL '6 seconds') AS e, k, count(*) AS num FROM s GROUP BY k, HOP(ts, INTERVAL '2 seconds', INTERVAL '6 seconds')) " +
		"SELECT n.e, n.k, m.most FROM n JOIN (SELECT e, max(num) AS most FROM n GROUP BY e) m ON n.e = m.e AND n.num = m.most EMIT ON WATERMARK",
	"union, closed": "SELECT TUMBLE_END(ts, INTERVAL '4 seconds'), k, count(*) FROM (SELECT ts, k FROM s UNION ALL SELECT ts, k FROM r) GROUP BY k, " + tumbling + " EMIT ON WATERMARK",
}

// TestStreamsAccumulateToTheBatchAnswer is the promise over event time: A is the rows read less the late ones; what closes on
// the watermark is the batch answer restricted to the windows that W has closed.
func TestStreamsAccumulateToTheBatchAnswer(t *testing.T) {
	names := make([]string, 0, len(streamQueries))
	for name := range streamQueries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			first, last := uint64(1), uint64(*cases)
			if *seed > 0 {
				first, last = *seed, *seed
			}
			for s := first; s <= last; s++ {
				if msg := tryStreamCase(t, streamQueries[name], s); msg != "" {
					t.Fatalf("%s\n%s\nagain with: go test ./incremental -run '%s' -seed %d", streamQueries[name], msg, t.Name(), s)
				}
			}
		})
	}
}

func tryStreamCase(t *testing.T, query string, seed uint64) string {
	r := clock.NewRand(seed)
	op, err := optest.Build(t, propertyStreams, query, restartBy(seed), optest.Parallel(1+r.IntN(4)))
	if err != nil {
		return err.Error()
	}
	closes := strings.Contains(query, "ON WATERMARK")
	input := map[string][]string{}
	var log []string
	at := 0 // event time moves on by and by
	steps := 3 + r.IntN(6)
	for step := range steps {
		if r.IntN(3) == 0 {
			op.RestartWith(1 + r.IntN(4))
			log = append(log, "restart")
		}
		var rows []string
		for range r.IntN(8) {
			at += r.IntN(3)
			ts := fmt.Sprintf("00:%02d", max(0, at-r.IntN(6)))
			if r.IntN(25) == 0 {
				ts = "NULL"
			}
			source := []string{"s", "r"}[r.IntN(2)]
			if !reads(op, source) {
				continue
			}
			row := fmt.Sprintf("%s %s %s", ts, []string{"p", "q", "NULL"}[r.IntN(3)], []string{"1", "2", "3", "NULL"}[r.IntN(4)])
			rows = append(rows, fmt.Sprintf("%s/%d +1 %s", source, r.IntN(2), row))
			input[source] = append(input[source], "+1 "+row)
		}
		log = append(log, fmt.Sprintf("step %d: %q", step+1, rows))
		op.Push(rows...)
		switch {
		case step == steps-1:
			op.End("")
		case r.IntN(4) == 0:
			op.Idle("", "0")
			log = append(log, "idle 0")
		}
		if err := op.TryStep(); err != nil {
			return strings.Join(log, "\n") + "\n" + err.Error()
		}
		accepted := map[string][]string{}
		for source, rows := range input {
			accepted[source] = slices.Clone(rows)
			for _, late := range op.LateOf(source) {
				accepted[source] = append(accepted[source], "-1"+strings.TrimPrefix(late, "+1"))
			}
		}
		want, err := oracle(op, accepted)
		if err != nil {
			return strings.Join(log, "\n") + "\noracle: " + err.Error()
		}
		if closes {
			want = slices.DeleteFunc(want, func(row string) bool { return !endedBy(row, op.Graph().Watermark()) })
		}
		if got := op.Rows(); !slices.Equal(got, want) {
			return fmt.Sprintf("%s\nlate %q\n  got  %q\n  want %q", strings.Join(log, "\n"), op.LateOf(""), got, want)
		}
	}
	if closes {
		if n := op.StateRows(); n != 0 {
			return fmt.Sprintf("%s\n%d rows of state are left after the end", strings.Join(log, "\n"), n)
		}
	}
	return ""
}

// endedBy reports whether the window that ends at a row's first column is closed at w.
func endedBy(row string, w flow.Watermark) bool {
	first, _, _ := strings.Cut(row, " ")
	if first == "NULL" {
		return w == flow.EndWatermark
	}
	end, err := optest.Time(first)
	return err == nil && end <= w
}
