package json

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

func mustNew(t testing.TB, opt Options, fields ...types.Field) *Decoder {
	t.Helper()
	d, err := New(fields, opt)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDecode(t *testing.T) {
	str, big := types.String, types.Int64
	for _, c := range []struct {
		name string
		typ  types.Type
		in   string // the value of field "v"
		want string // as the array prints it, or "!text" for an error that holds text
	}{
		{"text", str, `"a b"`, "a b"},
		{"escapes", str, `"\"\\\/\b\f\n\r\t\u00e9"`, "\"\\/\b\f\n\r\té"},
		{"a pair of surrogates", str, `"\ud83d\ude00"`, "😀"},
		{"an unpaired surrogate", str, `"a\ud800b"`, "!unpaired surrogate"},
		{"a low surrogate alone", str, `"\ude00"`, "!unpaired surrogate"},
		{"long text with an escape late", str, `"` + strings.Repeat("x", 40) + `\n"`, strings.Repeat("x", 40) + "\n"},
		{"control character", str, "\"a\x01b\"", "!control character"},
		{"not UTF-8", str, "\"a\xff\"", "!UTF-8"},
		{"number for text", str, `5`, `!it is a number, the column is VARCHAR`},
		{"integer", big, `-12`, "-12"},
		{"largest integer", big, `9223372036854775807`, "9223372036854775807"},
		{"too large", big, `9223372036854775808`, "!not a value of BIGINT"},
		{"whole number with a point", big, `1.0`, "1"},
		{"fraction for an integer", big, `1.5`, "!not a value of BIGINT"},
		{"exponent", big, `1e3`, "1000"},
		{"huge exponent", big, `1e999999999`, "!not a value of BIGINT"},
		{"text for an integer", big, `"1"`, `!it is a string, the column is BIGINT`},
		{"tinyint out of range", types.Int8, `128`, "!not a value of TINYINT"},
		{"double", types.Float64, `0.1`, "0.1"},
		{"double, many digits", types.Float64, `3.14159265358979323846`, "3.141592653589793"},
		{"double out of range", types.Float64, `1e400`, "!not a value of DOUBLE"},
		{"leading zero", types.Float64, `01`, "!comma or the end"},
		{"bare point", types.Float64, `1.`, "!digit after the point"},
		{"decimal is exact", types.Dec(38, 10), `12345678901234567890.0123456789`, "12345678901234567890.0123456789"},
		{"decimal rounds half away", types.Dec(4, 2), `-1.005`, "-1.01"},
		{"decimal from text", types.Dec(4, 2), `"1.5"`, "1.5"},
		{"decimal overflow", types.Dec(4, 2), `123.4`, "!not a value of DECIMAL(4,2)"},
		{"boolean", types.Bool, `true`, "true"},
		{"timestamp", types.TsUS, `"2020-02-29T12:34:56.123456Z"`, "2020-02-29T12:34:56.123456"},
		{"timestamp leaves the offset aside", types.TsUS, `"2020-01-01T00:00:00+02:00"`, "2020-01-01T00:00:00"},
		{"timestamptz takes it off", types.TsTZ, `"2020-01-01T00:00:00+02:00"`, "2019-12-31T22:00:00Z"},
		{"bad day", types.TsUS, `"2021-02-29"`, "!not a value of TIMESTAMP"},
		{"date", types.Date32, `"1969-12-31"`, "1969-12-31"},
		{"null", big, `null`, "(null)"},
		{"json keeps its text", types.JSONType, `{ "a" : [1, "x y"] }`, `{"a":[1,"x y"]}`},
		{"list", types.ListOf(big), `[1,null,3]`, "[1,null,3]"},
		{"list of the wrong type", types.ListOf(big), `[1,"x"]`, "!the column is BIGINT"},
		{"struct", types.StructOf(types.Field{Name: "a", Type: big}, types.Field{Name: "b", Type: str}), `{"b":"x","z":1}`, `{"a":null,"b":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mustNew(t, Options{}, types.Field{Name: "v", Type: c.typ}, types.Field{Name: "w", Type: big})
			if err := d.Append([]byte(`{"v":null,"w":1}`)); err != nil {
				t.Fatal(err)
			}
			err := d.Append([]byte(`{"w":2,"v":` + c.in + `}`))
			if want, wrong := strings.CutPrefix(c.want, "!"); wrong {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("got error %v, want one with %q", err, want)
				}
				if d.Rows() != 1 {
					t.Fatalf("the failed message left %d rows", d.Rows())
				}
				if err := d.Append([]byte(`{"w":3}`)); err != nil {
					t.Fatal(err)
				}
				b := d.Batch()
				if got := b.Column(1).ValueStr(1); got != "3" || !b.Column(0).IsNull(1) {
					t.Fatalf("the row after the failed one is %v %v", b.Column(0), got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Batch().Column(0).ValueStr(1); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, "too early"}, {`null`, "not a JSON object"}, {`[1]`, "not a JSON object"}, {`{"v":1`, "too early"},
		{`{"v":1}x`, "follows"}, {`{"v" 1}`, "colon"}, {`{v:1}`, "string"}, {`{"v":1,}`, "string"}, {`{"u":tru}`, "JSON value"},
		{`{"u":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "deeper"}, {"\xff\xfe", "object"},
	} {
		d := mustNew(t, Options{}, types.Field{Name: "v", Type: types.Int64})
		if err := d.Append([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %q", c.in, err, c.want)
		}
		if d.Rows() != 0 || d.columns[0].Len() != 0 {
			t.Errorf("%.40q: left rows", c.in)
		}
	}
}

func TestDuplicateKeysLastWins(t *testing.T) {
	d := mustNew(t, Options{}, types.Field{Name: "v", Type: types.ListOf(types.Int64)})
	if err := d.Append([]byte(`{"v":[1,2],"v":[3],"x":0}`)); err != nil {
		t.Fatal(err)
	}
	if got := d.Batch().Column(0).ValueStr(0); got != "[3]" {
		t.Errorf("got %s", got)
	}
	if d.UnknownFields != 1 {
		t.Errorf("unknown fields: %d", d.UnknownFields)
	}
}

func TestMissingFieldsAreCounted(t *testing.T) {
	d := mustNew(t, Options{}, types.Field{Name: "v", Type: types.Int64}, types.Field{Name: "w", Type: types.Int64})
	d.Append([]byte(`{}`))
	d.Append([]byte(`{"w":null}`))
	if b := d.Batch(); d.MissingFields != 3 || b.Column(0).NullN() != 2 || b.Column(1).NullN() != 2 {
		t.Errorf("missing %d, %v", d.MissingFields, b)
	}
}

// FuzzDecode compares acceptance with encoding/json.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":"x\u0041","b":[1,{}],"c":{"d":null}}`, `{"a":-0.5e-3}`, `{`, `{"a":01}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		d := mustNew(t, Options{}, types.Field{Name: "a", Type: types.JSONType}, types.Field{Name: "b", Type: types.ListOf(types.JSONType)})
		err := d.Append([]byte(in))
		d.Append([]byte(`{}`))
		d.Batch()
		var v map[string]any
		if err == nil && json.Unmarshal([]byte(in), &v) != nil {
			t.Errorf("%q is taken", in)
		}
	})
}

// sample is messages of about 200 bytes.
func sample(n int) ([][]byte, int64) {
	out, size := make([][]byte, n), int64(0)
	for i := range out {
		out[i] = fmt.Appendf(nil, `{"trade_id":%d,"symbol":"SYM%03d","price":%d.%02d,"quantity":%d,"side":"%s","venue":"XNAS","ts":"2020-01-01T00:%02d:%02d.%03dZ","account":"acc-%06d","note":"a note of some length","flags":[1,2,3]}`,
			i, i%500, 100+i%50, i%100, i%1000, []string{"buy", "sell"}[i%2], i/60%60, i%60, i%1000, i%100000)
		size += int64(len(out[i]))
	}
	return out, size
}

// cpu is the user and system time of the process in seconds.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func BenchmarkDecode(b *testing.B) {
	msgs, size := sample(10_000)
	fields := []types.Field{{Name: "trade_id", Type: types.Int64}, {Name: "symbol", Type: types.String}, {Name: "price", Type: types.Float64},
		{Name: "quantity", Type: types.Int64}, {Name: "side", Type: types.String}, {Name: "venue", Type: types.String}, {Name: "ts", Type: types.TsUS}, {Name: "account", Type: types.String}}
	for _, c := range []struct {
		name string
		opt  Options
	}{{"8fields", Options{}}, {"3needed", Options{Skip: func(i int) bool { return i != 1 && i != 2 && i != 6 }}}} {
		b.Run(c.name, func(b *testing.B) {
			d := mustNew(b, c.opt, fields...)
			b.SetBytes(size)
			b.ReportAllocs()
			start := cpu(b)
			defer func() { b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpu(b)-start), "MB/cpu-s") }()
			for range b.N {
				for _, m := range msgs {
					if err := d.Append(m); err != nil {
						b.Fatal(err)
					}
				}
				d.Batch()
			}
		})
	}
}

// Fields in any order, some missing and some twice, in builders that have given columns out before.
func TestFieldsInAnyOrder(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	var fields []types.Field
	for _, n := range names {
		fields = append(fields, types.Field{Name: n, Type: types.String})
	}
	chance := rand.New(rand.NewPCG(1, 1))
	d := mustNew(t, Options{}, fields...)
	missing := int64(0)
	for range 20 {
		var want []string
		for row := range chance.IntN(40) {
			var members []string
			last := map[string]string{}
			for k := range chance.IntN(7) {
				name, value := names[chance.IntN(4)], strings.Repeat("x", chance.IntN(12))+fmt.Sprint(row, k)
				members, last[name] = append(members, fmt.Sprintf("%q:%q", name, value)), value
			}
			if err := d.Append([]byte("{" + strings.Join(members, ",") + "}")); err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				if v, ok := last[n]; ok {
					want = append(want, v)
				} else {
					want = append(want, "(null)")
					missing++
				}
			}
		}
		b := d.Batch()
		var got []string
		for row := range int(b.NumRows()) {
			for c := range names {
				got = append(got, b.Column(c).ValueStr(row))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if d.MissingFields != missing {
		t.Errorf("%d missing fields, want %d", d.MissingFields, missing)
	}
}
