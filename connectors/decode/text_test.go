package decode

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/types"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		typ      types.Type
		in, want string // want "": refused
	}{
		{types.Int64, "+5", "5"}, {types.Int64, "-9223372036854775808", "-9223372036854775808"}, {types.Int64, "1e3", "1000"}, {types.Int64, "", ""}, {types.Int64, "-", ""}, {types.Int64, "1.5", ""}, {types.Int64, "0x10", ""},
		{types.Uint8, "255", "255"}, {types.Uint8, "256", ""}, {types.Uint8, "-1", ""}, {types.Uint64, "18446744073709551615", "18446744073709551615"},
		{types.Float64, ".5", "0.5"}, {types.Float64, "5.", "5.0"}, {types.Float64, "-0.0", "-0.0"}, {types.Float64, "nan", "NaN"}, {types.Float64, "1e400", ""}, {types.Float64, "1_0", ""}, {types.Float64, ".", ""},
		{types.Float32, "1e39", ""}, {types.Float32, "0.1", "0.1"},
		{types.Dec(4, 2), "1.005", "1.01"}, {types.Dec(4, 2), "-1.005", "-1.01"}, {types.Dec(4, 2), "99.994", "99.99"}, {types.Dec(4, 2), "99.995", ""}, {types.Dec(4, 2), "1e1", "10.00"}, {types.Dec(38, 0), "99999999999999999999999999999999999999", "99999999999999999999999999999999999999"},
		{types.Int128, "170141183460469231731687303715884105727", "170141183460469231731687303715884105727"}, {types.Int128, "170141183460469231731687303715884105728", ""},
		{types.Bool, "T", "true"}, {types.Bool, "FALSE", "false"}, {types.Bool, "maybe", ""},
		{types.Date32, "2020-02-29", "2020-02-29"}, {types.Date32, "2019-02-29", ""}, {types.Date32, "2020-1-2", "2020-01-02"}, {types.Date32, "2020-01-01x", ""}, {types.Date32, "0001-01-01", "0001-01-01"},
		{types.TimeUS, "12:34", "12:34:00"}, {types.TimeUS, "23:59:59.999999", "23:59:59.999999"}, {types.TimeUS, "24:00:01", ""}, {types.TimeUS, "12:60", ""},
		{types.TsUS, "2020-01-01 1:2:3", "2020-01-01 01:02:03"}, {types.TsUS, "2020-01-01", "2020-01-01 00:00:00"}, {types.TsUS, "2020-01-01T00:00:00.1234567Z", "2020-01-01 00:00:00.123456"}, {types.TsUS, "1969-12-31 23:59:59.5", "1969-12-31 23:59:59.5"}, {types.TsUS, "2020-01-01 00:00:00 +0530", "2020-01-01 00:00:00"}, {types.TsUS, "2020-01-01 ", ""}, {types.TsUS, "2020-13-01", ""},
		{types.TsTZ, "2020-01-01 00:00:00-05:30", "2020-01-01 05:30:00+00"}, {types.TsNS, "2020-01-01 00:00:00.123456789", "2020-01-01 00:00:00.123456789"}, {types.TsNS, "2300-01-01", ""}, {types.TsMS, "2020-01-01 00:00:00.999999", "2020-01-01 00:00:00.999"},
		{types.UUIDType, "550E8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"}, {types.UUIDType, "550e8400e29b41d4a716446655440000", ""},
	} {
		b, err := NewBuilder(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		b.AppendNull()
		err = b.AppendText([]byte(c.in))
		if c.want == "" {
			if err == nil || b.Len() != 1 {
				t.Errorf("%s %q is taken", c.typ, c.in)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", c.typ, c.in, err)
			continue
		}
		a := b.Finish()
		w, err := Text(c.typ, a)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(w(nil, 1)); got != c.want || !a.IsNull(0) {
			t.Errorf("%s %q is %q, want %q", c.typ, c.in, got, c.want)
		}
	}
}

// Floats read as the standard library reads them, and read back what is written.
func TestFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		f := math.Float64frombits(r.Uint64())
		if r.IntN(2) == 0 {
			f = float64(r.IntN(1_000_000)) / math.Pow10(r.IntN(9))
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		for _, text := range []string{string(AppendFloat(nil, f, 64)), strconv.FormatFloat(f, 'f', r.IntN(20), 64)} {
			want, _ := strconv.ParseFloat(text, 64)
			if got, ok := parseFloat([]byte(text)); !ok || got != want {
				t.Fatalf("%s reads as %v, want %v", text, got, want)
			}
		}
	}
}

func TestDates(t *testing.T) {
	for day := int32(-800_000); day < 800_000; day += 37 {
		text := time.Unix(int64(day)*86400, 0).UTC().Format(time.DateOnly)
		if text[0] == '-' {
			continue
		}
		if got, ok := parseDate([]byte(text)); !ok || got != day {
			t.Fatalf("%s is day %d, want %d", text, got, day)
		}
	}
}

// NULLs and Truncate keep the validity of what stays.
func TestTruncate(t *testing.T) {
	for _, typ := range []types.Type{types.Int64, types.String, types.Bool, types.UUIDType} {
		b, _ := NewBuilder(typ)
		text := []byte("1")
		if typ.Kind == types.UUID {
			text = []byte("550e8400-e29b-41d4-a716-446655440000")
		}
		for i := range 40 {
			if i%3 == 0 {
				b.AppendNull()
			} else if err := b.AppendText(text); err != nil {
				t.Fatal(err)
			}
		}
		b.Truncate(10)
		b.AppendNull()
		if err := b.AppendText(text); err != nil {
			t.Fatal(err)
		}
		a := b.Finish()
		if a.Len() != 12 || a.NullN() != 5 || !a.IsNull(10) || a.IsNull(11) || !a.IsNull(9) || a.IsNull(8) {
			t.Errorf("%s: %v", typ, a)
		}
		if b.Len() != 0 {
			t.Errorf("%s: Finish keeps %d values", typ, b.Len())
		}
	}
}
