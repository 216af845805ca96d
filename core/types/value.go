package types

import (
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Value is one SQL value as a Go value; nil is NULL. It is for plans, statistics and tests, never for rows in a loop.
//
//	BOOLEAN bool                     TINYINT … BIGINT int64         UTINYINT … UBIGINT uint64
//	HUGEINT, UHUGEINT, DECIMAL decimal128.Num (the unscaled integer)
//	REAL float32                     DOUBLE float64                 VARCHAR, JSON string    BLOB []byte
//	DATE int64 (days since 1970)     TIME int64 (µs of the day)     TIMESTAMP_* int64 in the type's unit since 1970
//	INTERVAL IntervalValue           UUID [16]byte
//	LIST []Value                     STRUCT []Value, in the order of the fields   MAP []MapEntry
type Value any

// IntervalValue keeps months, days and microseconds apart, as DuckDB does.
type IntervalValue struct {
	Months, Days int32
	Micros       int64
}

// MapEntry is one pair of a MAP.
type MapEntry struct{ Key, Value Value }

// BigOf returns the integer that a HUGEINT or DECIMAL value holds.
func BigOf(n decimal128.Num) *big.Int { return n.BigInt() }

// DateOf returns the DATE value of a day.
func DateOf(y int, m time.Month, d int) int64 {
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
}
