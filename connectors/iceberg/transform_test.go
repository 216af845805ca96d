package iceberg

import (
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/types"
)

// The hashes are those of the format's specification, appendix B.
func TestHashes(t *testing.T) {
	long := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	for _, c := range []struct {
		name  string
		bytes []byte
		want  int32
	}{
		{"34", long(34), 2017239379},
		{"14.20", twosComplement(big.NewInt(1420)), -500754589},
		{"2017-11-16", long(17486), -653330422},
		{"22:31:08", long(81068000000), -662762989},
		{"2017-11-16T22:31:08", long(1510871468000000), -2047944441},
		{"iceberg", []byte("iceberg"), 1210000089},
		{"f79c3e09-677c-4bbd-a479-3f349cb785e7", []byte{0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd, 0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7}, 1488055340},
		{"00010203", []byte{0, 1, 2, 3}, -188683207},
	} {
		if have := int32(murmur3(c.bytes)); have != c.want {
			t.Errorf("%s: %d, not %d", c.name, have, c.want)
		}
	}
	for v, want := range map[int64]string{0: "\x00", 127: "\x7f", 128: "\x00\x80", -1: "\xff", -128: "\x80", -129: "\xff\x7f", -256: "\xff\x00", 1420: "\x05\x8c"} {
		if have := string(twosComplement(big.NewInt(v))); have != want {
			t.Errorf("%d: %x, not %x", v, have, want)
		}
	}
}

func TestTransforms(t *testing.T) {
	stamp := func(s string) types.Value { return must(types.ParseValue(s, types.TsUS)) }
	day := func(s string) types.Value { return must(types.ParseValue(s, types.Date32)) }
	for _, c := range []struct {
		word   string
		typ    types.Type
		in     types.Value
		json   string
		folder string
	}{
		{"identity", types.String, "a b", `"a b"`, "a b"},
		{"identity", types.TsTZ, stamp("2026-11-30 01:02:03"), `"2026-11-30T01:02:03+00:00"`, ""},
		{"year", types.TsUS, stamp("1969-12-31 23:59:59.999999"), "-1", "1969"},
		{"year", types.Date32, day("2026-02-03"), "56", "2026"},
		{"month", types.TsUS, stamp("1969-12-31 23:59:59"), "-1", "1969-12"},
		{"month", types.TsTZ, stamp("2026-11-30 00:00:00"), "682", "2026-11"},
		{"day", types.TsUS, stamp("1969-12-31 23:59:59"), `"1969-12-31"`, "1969-12-31"},
		{"day", types.Date32, day("2017-11-16"), `"2017-11-16"`, "2017-11-16"},
		{"hour", types.TsUS, stamp("1969-12-31 23:59:59"), "-1", "1969-12-31-23"},
		{"hour", types.TsTZ, stamp("2017-11-16 22:31:08"), "419686", "2017-11-16-22"},
		{"bucket[16]", types.String, "iceberg", "9", "9"},
		{"bucket[16]", types.Int32, int64(34), "3", "3"},
		{"truncate[10]", types.Int32, int64(-1), "-10", "-10"},
		{"truncate[10]", types.Int64, int64(19), "10", "10"},
		{"truncate[50]", types.Dec(4, 2), must(types.ParseValue("10.65", types.Dec(4, 2))), `"10.50"`, "10.50"},
		{"truncate[3]", types.String, "イロハニ", `"イロハ"`, "イロハ"},
		{"truncate[2]", types.Binary, []byte{1, 2, 3}, `"0102"`, ""},
		{"day", types.TsUS, nil, "", "null"},
		{"bucket[4]", types.Int64, nil, "", "null"},
	} {
		tr, err := transformOf(c.word, c.typ)
		if err != nil {
			t.Errorf("%s of %s: %v", c.word, c.typ, err)
			continue
		}
		p := &partitioner{parts: []part{{tr, meta.PartitionField{Name: "p"}, 0}}}
		groups, values := p.split([]arrow.Array{types.ArrayOf([]types.Value{c.in}, c.typ)}, 1)
		of := p.of(values, groups[0].rows[0])
		if of.values["p"] != c.json {
			t.Errorf("%s of %v: %s, not %s", c.word, c.in, of.values["p"], c.json)
		}
		if c.folder != "" && c.json != `"a b"` && c.typ.Kind != types.Varchar && of.folder != "p="+c.folder {
			t.Errorf("%s of %v: the folder %s, not p=%s", c.word, c.in, of.folder, c.folder)
		}
	}
	for word, typ := range map[string]types.Type{"hour": types.Date32, "bucket[4]": types.Float64, "truncate[4]": types.Date32, "identity": types.Float64, "zorder": types.Int32, "day": types.String} {
		if _, err := transformOf(word, typ); err == nil {
			t.Errorf("%s of %s is taken", word, typ)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestParts(t *testing.T) {
	for text, want := range map[string]meta.PartitionField{
		"day":              {Column: "day", Name: "day", Transform: "identity"},
		"day(ts)":          {Column: "ts", Name: "ts_day", Transform: "day"},
		"hours( ts )":      {Column: "ts", Name: "ts_hour", Transform: "hour"},
		"bucket(16, k)":    {Column: "k", Name: "k_bucket", Transform: "bucket[16]"},
		"bucket[16](k)":    {Column: "k", Name: "k_bucket", Transform: "bucket[16]"},
		"bucket(k, 16)":    {Column: "k", Name: "k_bucket", Transform: "bucket[16]"},
		"TRUNCATE(4, k l)": {Column: "k l", Name: "k l_trunc", Transform: "truncate[4]"},
	} {
		if have, err := partOf(text); err != nil || have != want {
			t.Errorf("%s: %+v, %v", text, have, err)
		}
	}
	for _, text := range []string{"bucket(k)", "zorder(k)", "truncate(0, k)"} {
		if have, err := partOf(text); err == nil {
			t.Errorf("%s: %+v", text, have)
		}
	}
	if have := splitParts([]string{"day(ts)", "bucket(16", "k)", "l"}); len(have) != 3 || have[1] != "bucket(16, k)" {
		t.Error(have)
	}
}
