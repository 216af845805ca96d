package types

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Each text is read as the type and written back.
func TestParseAndFormat(t *testing.T) {
	for _, c := range []struct {
		text string
		typ  Type
		want string // "" for an error
	}{
		{" 42 ", Int32, "42"}, {"-0.5", Int32, "-1"}, {"1e3", Int32, "1000"}, {"0x1F", Int32, "31"}, {"1_000", Int32, "1000"},
		{"", Int32, ""}, {"2147483647.5", Int32, ""}, {"127.5", Int8, ""}, {"127.4", Int8, "127"},
		{"18446744073709551615", Uint64, "18446744073709551615"}, {"18446744073709551616", Uint64, ""},
		{"-170141183460469231731687303715884105728", Int128, "-170141183460469231731687303715884105728"},
		{"170141183460469231731687303715884105728", Int128, ""},
		{"340282366920938463463374607431768211455", Uint128, "340282366920938463463374607431768211455"},
		{"1.555", Dec(4, 2), "1.56"}, {"-1.555", Dec(4, 2), "-1.56"}, {"99.995", Dec(4, 2), ""}, {"-1e2", Dec(5, 1), "-100.0"}, {"0.004", Dec(4, 2), "0.00"},
		{"12345678901234567890123456789012345678.9", Dec(38, 0), "12345678901234567890123456789012345679"},
		{"1e16", Float64, "1e+16"}, {"123456", Float64, "123456.0"}, {"1e-5", Float64, "1e-05"}, {"0.1", Float32, "0.1"}, {"1e400", Float64, "inf"},
		{"2024-01-02T03:04:05.120Z", TsUS, "2024-01-02 03:04:05.12"}, {"2024-1-2 3:4", TsUS, "2024-01-02 03:04:00"},
		{"2024-01-01 24:00:00", TsUS, "2024-01-02 00:00:00"}, {"2024-01-01 25:00:00", TsUS, ""}, {"2024-02-30", Date32, ""},
		{"0044-03-15 (BC)", Date32, "0044-03-15 (BC)"}, {"-0044-03-15", Date32, "0045-03-15 (BC)"}, {"10000-01-01", Date32, "10000-01-01"},
		{"2024-01-01 00:00:00 America/New_York", TsTZ, "2024-01-01 05:00:00+00"}, {"2024-01-01 00:00:00+0530", TsTZ, "2023-12-31 18:30:00+00"},
		{"2024-01-02 03:04:05.6", TsS, "2024-01-02 03:04:06"}, {"2024-01-02 03:04:05.123456789", TsNS, "2024-01-02 03:04:05.123456789"},
		{"24:00:00", TimeUS, "24:00:00"}, {"1:2:3", TimeUS, "01:02:03"},
		{"1 year 2 months 3 days 04:05:06.789", Span, "1 year 2 months 3 days 04:05:06.789"}, {"1 day ago", Span, "-1 day"},
		{"1.5 months", Span, "1 month 15 days"}, {"-13 months", Span, "-1 year -1 month"}, {"100 hours", Span, "100:00:00"}, {"1 12:00:00", Span, ""},
		{`\x41\x00b`, Binary, `A\x00b`}, {"é", Binary, ""}, {"{00112233445566778899aabbccddeeff}", UUIDType, "00112233-4455-6677-8899-aabbccddeeff"},
		{"[1, null, 3]", ListOf(Int32), "[1, NULL, 3]"}, {`[a, "b c", 'd,e']`, ListOf(String), "[a, b c, 'd,e']"},
		{"{a: 1, 'b': x}", StructOf(Field{"a", Int32}, Field{"b", String}), "{'a': 1, 'b': x}"}, {"{a=1, b=2}", MapOf(String, Int32), "{a=1, b=2}"},
		{`{"a": 1}`, JSONType, `{"a": 1}`}, {"abc", JSONType, ""},
	} {
		v, err := ParseValue(c.text, c.typ)
		switch {
		case err != nil && c.want != "":
			t.Errorf("%q as %s: %v", c.text, c.typ, err)
		case err == nil && Format(v, c.typ) != c.want:
			t.Errorf("%q as %s: %s, want %q", c.text, c.typ, Format(v, c.typ), c.want)
		}
	}
}

func TestWideMatchesBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	num := func() decimal128.Num {
		n := decimal128.New(int64(r.Uint64()), r.Uint64())
		for range r.IntN(3) {
			n = decimal128.New(n.HighBits()>>r.IntN(64), n.LowBits()>>r.IntN(64))
		}
		return n
	}
	in := func(x *big.Int) bool {
		return x.Cmp(new(big.Int).Lsh(big.NewInt(-1), 127)) >= 0 && x.Cmp(new(big.Int).Lsh(big.NewInt(1), 127)) < 0
	}
	check := func(op string, a, b, got decimal128.Num, ok bool, want *big.Int) {
		t.Helper()
		if ok != in(want) || ok && got.BigInt().Cmp(want) != 0 {
			t.Fatalf("%s %s %s = %s, %v; want %s", a.BigInt(), op, b.BigInt(), got.BigInt(), ok, want)
		}
	}
	for range 200_000 {
		a, b := num(), num()
		s, ok := AddWide(a, b)
		check("+", a, b, s, ok, new(big.Int).Add(a.BigInt(), b.BigInt()))
		s, ok = SubWide(a, b)
		check("-", a, b, s, ok, new(big.Int).Sub(a.BigInt(), b.BigInt()))
		s, ok = MulWide(a, b)
		check("*", a, b, s, ok, new(big.Int).Mul(a.BigInt(), b.BigInt()))
		if b != (decimal128.Num{}) {
			q, rem, ok := DivWide(a, b)
			wq, wr := new(big.Int).QuoRem(a.BigInt(), b.BigInt(), new(big.Int))
			check("//", a, b, q, ok, wq)
			check("%", a, b, rem, true, wr)
		}
		if got := string(AppendWide(nil, a, 0)); got != a.BigInt().String() {
			t.Fatalf("%s printed as %s", a.BigInt(), got)
		}
	}
}

func TestCalendar(t *testing.T) {
	for day := int64(-800_000); day < 800_000; day += 13 {
		y, m, d := CivilOf(day)
		if got := DaysOf(y, m, d); got != day {
			t.Fatalf("day %d is %d-%d-%d, which is day %d", day, y, m, d, got)
		}
	}
	if got := string(AppendDate(nil, AddMonths(DaysOf(2024, 1, 31), 1))); got != "2024-02-29" {
		t.Errorf("a month after 2024-01-31: %s", got)
	}
}
