package sim

import (
	"math/rand/v2"
	"strconv"
	"time"
)

var sinks = []string{"sim_transactions", "sim_staging", "json"}

// drawPlot draws a history: a query and its sink, some processes with troubles, and outages of services.
func drawPlot(seed uint64) plot {
	r := rand.New(rand.NewPCG(seed, 1))
	pl := plot{query: queries[r.IntN(len(queries))], sink: sinks[r.IntN(len(sinks))], outages: map[string][2]time.Duration{}, config: drawConfig}
	rate := []float64{0, 0.01, 0.03, 0.1}[r.IntN(4)]
	for range 1 + r.IntN(5) {
		tr := trouble{rate: rate, slow: []time.Duration{100 * time.Microsecond, 5 * time.Millisecond, 100 * time.Millisecond}[r.IntN(3)]}
		at := 1 + r.IntN(1+r.IntN(400)) // the beginning is looked at more closely
		switch r.IntN(5) {
		case 0, 1:
			tr.crashAt, tr.crashAfter = at, r.IntN(2) == 0
		case 2:
			tr.freezeAt, tr.freezeFor = at, time.Duration(r.Int64N(int64(40*time.Second)))
		case 3:
			tr.stopAfter = time.Duration(r.Int64N(int64(3 * time.Second)))
		}
		pl.troubles = append(pl.troubles, tr)
	}
	for _, service := range []string{"store", "broker", "sink"} {
		if r.IntN(6) == 0 {
			from := time.Duration(r.Int64N(int64(4 * time.Second)))
			pl.outages[service] = [2]time.Duration{from, from + time.Duration(r.Int64N(int64(20*time.Second)))}
		}
	}
	return pl
}

// drawConfig draws what a process may have otherwise than the one before it.
func drawConfig(r *rand.Rand) map[string]string {
	return map[string]string{
		"parallelism":            strconv.Itoa(1 + r.IntN(3)),
		"checkpoint_interval_ms": []string{"1", "10", "50", "300", "2000"}[r.IntN(5)],
		"step_rows":              []string{"1", "10", "1000"}[r.IntN(3)],
	}
}
