package types

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Compare orders two values of type t as ORDER BY does: NaN equals NaN and lies above all numbers, -0.0 equals 0.0, text
// compares by bytes, a NULL lies behind everything, an INTERVAL counts 30 days to the month.
func Compare(a, b Value, t Type) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	switch x := a.(type) {
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	case int64:
		return cmp.Compare(x, b.(int64))
	case uint64:
		return cmp.Compare(x, b.(uint64))
	case float32:
		return CompareFloat(float64(x), float64(b.(float32)))
	case float64:
		return CompareFloat(x, b.(float64))
	case decimal128.Num:
		if t.Kind == UHugeInt {
			y := b.(decimal128.Num)
			if c := cmp.Compare(uint64(x.HighBits()), uint64(y.HighBits())); c != 0 {
				return c
			}
			return cmp.Compare(x.LowBits(), y.LowBits())
		}
		return x.Cmp(b.(decimal128.Num))
	case string:
		return strings.Compare(x, b.(string))
	case []byte:
		return bytes.Compare(x, b.([]byte))
	case [16]byte:
		y := b.([16]byte)
		return bytes.Compare(x[:], y[:])
	case IntervalValue:
		return CompareInterval(x, b.(IntervalValue))
	case []MapEntry:
		y := b.([]MapEntry)
		for i := range min(len(x), len(y)) {
			if c := Compare(x[i].Key, y[i].Key, *t.Key); c != 0 {
				return c
			}
			if c := Compare(x[i].Value, y[i].Value, *t.Elem); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	case []Value:
		y := b.([]Value)
		for i := range min(len(x), len(y)) {
			part := t.Elem
			if t.Kind == Struct {
				part = &t.Fields[i].Type
			}
			if c := Compare(x[i], y[i], *part); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	}
	return 0
}

// CompareFloat orders floats with NaN equal to itself and above all numbers.
func CompareFloat(x, y float64) int {
	switch {
	case x == y:
		return 0
	case x != x && y != y:
		return 0
	case x != x:
		return 1
	case y != y:
		return -1
	case x < y:
		return -1
	}
	return 1
}

// CompareInterval orders intervals as lengths: a month is 30 days, a day is 24 hours.
func CompareInterval(a, b IntervalValue) int {
	am, ad, au := normal(a)
	bm, bd, bu := normal(b)
	if c := cmp.Compare(am, bm); c != 0 {
		return c
	}
	if c := cmp.Compare(ad, bd); c != 0 {
		return c
	}
	return cmp.Compare(au, bu)
}

// NormalInterval carries whole days out of the microseconds and whole months out of the days, so that equal lengths are equal
// values: the form in which intervals are hashed and encoded as keys.
func NormalInterval(v IntervalValue) (months, days, micros int64) { return normal(v) }

func normal(v IntervalValue) (months, days, micros int64) {
	days = int64(v.Days) + FloorDiv(v.Micros, DayMicros)
	micros = v.Micros - FloorDiv(v.Micros, DayMicros)*DayMicros
	months = int64(v.Months) + FloorDiv(days, 30)
	days -= FloorDiv(days, 30) * 30
	return months, days, micros
}

// DayMicros is the length of a day without a change of clocks.
const DayMicros = 86_400_000_000

// FloorDiv divides towards minus infinity; b is positive.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
