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

// drawPlotOnDisk puts what drawPlot draws on the disk of one machine, its checkpoints, its files or both. The machine loses power where a process ends, or does not:
// then what it did is seen by the next one, and may be lost with that.
func drawPlotOnDisk(seed uint64) plot {
	r := rand.New(rand.NewPCG(seed, 2))
	pl := drawPlot(seed)
	pl.files = []files{{checkpoints: true}, {sink: true}, {true, true}, {true, true}}[r.IntN(4)]
	if pl.files.sink {
		pl.sink = "json"
	}
	for i := range pl.troubles {
		tr := &pl.troubles[i]
		switch r.IntN(4) {
		case 0, 1: // there are more operations than with services
			tr.stopAfter, tr.freezeAt = 0, 0
			tr.crashAt, tr.crashAfter = 1+r.IntN(1+r.IntN(600)), r.IntN(2) == 0
		case 2:
			tr.stopAfter, tr.freezeAt, tr.crashAt = 0, 0, 0
			tr.crashLink = 1 + r.IntN(10)
		}
		tr.power = r.IntN(2) == 0
	}
	if r.IntN(6) == 0 {
		from := time.Duration(r.Int64N(int64(4 * time.Second)))
		pl.outages["disk"] = [2]time.Duration{from, from + time.Duration(r.Int64N(int64(20*time.Second)))}
	}
	return pl
}
