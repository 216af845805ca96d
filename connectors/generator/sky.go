package generator

import (
	"fmt"
	"math"

	"github.com/riverbed/riverbed/core/types"
)

// Alerts of a sky survey, as brokers of the Zwicky Transient Facility send them: an object of the sky, seen again and
// again in one of three filters, with its brightness and a score that it is real. One hundred alerts a second of event
// time, mildly out of order; brightness and score are missing now and then.
const (
	alertsPerSec = 100
	alertStart   = 1_767_225_600_000_000 // 2026-01-01, µs
	objects      = 5_000
	disorderUS   = 2_000_000 // an alert comes at most this much late
)

var filters = []string{"g", "r", "i"}

var alertKind = kind{name: "sky_alerts", fields: []types.Field{
	{Name: "alert_id", Type: types.Int64}, {Name: "object_id", Type: types.String}, {Name: "ra", Type: types.Float64}, {Name: "dec", Type: types.Float64},
	{Name: "mag", Type: types.Float64}, {Name: "mag_err", Type: types.Float64}, {Name: "filter", Type: types.String}, {Name: "ts", Type: types.TsUS},
	{Name: "score", Type: types.Float64}, {Name: "night", Type: types.Int64}},
	fill: func(c *columns, seed uint64, first int64, rows int) {
		for i := range rows {
			n := first + int64(i)
			d := roll(seed, "alert", n)
			// Few objects send most alerts.
			object := int64(float64(objects) * (d.unit() * d.unit()))
			o := roll(seed, "object", object)
			// The conversions round each product, so that no platform fuses it with the sum and gives another last digit.
			ra, dec, bright := float64(360*o.unit()), float64(180/math.Pi*math.Asin(float64(2*o.unit())-1)), 14+float64(7*o.unit())

			c.ints[0][i] = 1_000_000 + n
			c.add(1, fmt.Sprintf("ZTF26a%06d", object))
			c.floats[2][i] = round(ra+(d.unit()-0.5)/3600, 1e6)
			c.floats[3][i] = round(dec+(d.unit()-0.5)/3600, 1e6)
			c.floats[4][i] = round(bright+d.unit()-0.5, 1e4)
			c.floats[5][i] = round(0.01+float64(0.2*d.unit()*d.unit()), 1e4)
			c.add(6, filters[d.below(3)])
			at := alertStart + n*1_000_000/alertsPerSec
			if d.unit() < 0.1 {
				at -= int64(d.unit() * disorderUS)
			}
			c.ints[7][i] = at
			c.floats[8][i] = round(d.unit(), 1e4)
			c.ints[9][i] = 1 + (at-alertStart)/86_400_000_000
			if d.unit() < 0.01 {
				c.null(4, i)
				c.null(5, i)
			}
			if d.unit() < 0.02 {
				c.null(8, i)
			}
		}
	}}

// round keeps as many digits as a survey would give; the conversion keeps the product and the sum from being fused.
func round(x, unit float64) float64 { return math.RoundToEven(float64(x*unit)) / unit }
