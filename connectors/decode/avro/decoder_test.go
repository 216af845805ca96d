package avro

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/types"
)

func schema(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := ParseSchema([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func columns(fields []types.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + " " + f.Type.String()
	}
	return strings.Join(parts, ", ")
}

// rows writes what was gathered as JSON.
func rows(t testing.TB, d *Decoder) []string {
	t.Helper()
	n, cols := d.Rows(), d.Finish()
	for i, c := range cols {
		if c.Len() != n {
			t.Fatalf("column %d has %d values, and there are %d rows", i, c.Len(), n)
		}
	}
	b := array.NewRecordBatch(types.ArrowSchema(d.fields), cols, int64(n)) // checks the form
	enc, err := djson.NewEncoder(d.fields, b.Columns())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range n {
		out = append(out, string(enc.Append(nil, i)))
	}
	return out
}

// encode makes a message of a schema from JSON, in the form of defaults.
func encode(t testing.TB, s *Schema, text string) []byte {
	t.Helper()
	b, err := appendDefault(nil, s, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const everything = `{"type":"record","name":"all","namespace":"n","fields":[
 {"name":"b","type":"boolean"},{"name":"i","type":"int"},{"name":"l","type":"long"},{"name":"f","type":"float"},{"name":"d","type":"double"},
 {"name":"s","type":"string"},{"name":"y","type":"bytes"},{"name":"e","type":{"type":"enum","name":"colour","symbols":["red","green"]}},
 {"name":"x","type":{"type":"fixed","name":"two","size":2}},
 {"name":"a","type":{"type":"array","items":{"type":"record","name":"point","fields":[{"name":"px","type":"int"},{"name":"py","type":["null","int"]}]}}},
 {"name":"m","type":{"type":"map","values":"n.point"}},
 {"name":"day","type":{"type":"int","logicalType":"date"}},
 {"name":"tm","type":{"type":"int","logicalType":"time-millis"}},
 {"name":"tu","type":{"type":"long","logicalType":"time-micros"}},
 {"name":"ms","type":{"type":"long","logicalType":"timestamp-millis"}},
 {"name":"us","type":{"type":"long","logicalType":"local-timestamp-micros"}},
 {"name":"ns","type":{"type":"long","logicalType":"timestamp-nanos"}},
 {"name":"dec","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
 {"name":"decf","type":{"type":"fixed","name":"wide","size":20,"logicalType":"decimal","precision":38,"scale":0}},
 {"name":"u","type":{"type":"string","logicalType":"uuid"}},
 {"name":"dur","type":{"type":"fixed","name":"dur","size":12,"logicalType":"duration"}},
 {"name":"n","type":"null"},
 {"name":"num","type":["int","null","long"]},
 {"name":"mix","type":["string","null","n.point"]},
 {"name":"odd","type":{"type":"long","logicalType":"of nobody"}}]}`

const oneOfEverything = `{"b":true,"i":-7,"l":9007199254740993,"f":1.5,"d":-0.1,"s":"é\"","y":"\u0000\u00ff","e":"green","x":"ab",
 "a":[{"px":1,"py":null},{"px":2,"py":null}],"m":{"k":{"px":3,"py":null},"":{"px":4,"py":null}},"day":-1,"tm":1,"tu":86399999999,"ms":-1,"us":1,"ns":1700000000000000001,
 "dec":"\u00ff\u0085","decf":"\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00fe",
 "u":"550e8400-e29b-41d4-a716-446655440000","dur":"\u0001\u0000\u0000\u0000\u0002\u0000\u0000\u0000\u0003\u0000\u0000\u0000","n":null,"num":5,"mix":"z","odd":1}`

func TestEveryType(t *testing.T) {
	s := schema(t, everything)
	fields, err := s.Fields()
	if err != nil {
		t.Fatal(err)
	}
	want := `b BOOLEAN, i INTEGER, l BIGINT, f FLOAT, d DOUBLE, s VARCHAR, y BLOB, e VARCHAR, x BLOB, a STRUCT(px INTEGER, py INTEGER)[], m MAP(VARCHAR, STRUCT(px INTEGER, py INTEGER)), ` +
		`day DATE, tm TIME, tu TIME, ms TIMESTAMP, us TIMESTAMP, ns TIMESTAMP_NS, dec DECIMAL(10,2), decf DECIMAL(38,0), u UUID, dur INTERVAL, n "NULL", num BIGINT, mix STRUCT(string VARCHAR, point STRUCT(px INTEGER, py INTEGER)), odd BIGINT`
	if got := columns(fields); got != want {
		t.Errorf("columns %s\nwant    %s", got, want)
	}
	d, err := New(fields, Options{Writer: s})
	if err != nil {
		t.Fatal(err)
	}
	msg := encode(t, s, oneOfEverything)
	// A message that is cut anywhere leaves no trace.
	for cut := range len(msg) {
		if err := d.Append(msg[:cut]); err == nil {
			t.Fatalf("%d bytes of %d are a message", cut, len(msg))
		}
	}
	for range 2 {
		if err := d.Append(msg); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Append(append(msg, 0)); err == nil || !strings.Contains(err.Error(), "1 bytes follow") {
		t.Errorf("a byte too many: %v", err)
	}
	d.AppendNulls()
	got := rows(t, d)
	row := `{"b":true,"i":-7,"l":9007199254740993,"f":1.5,"d":-0.1,"s":"é\"","y":"AP8=","e":"green","x":"YWI=","a":[{"px":1,"py":null},{"px":2,"py":null}],"m":{"":{"px":4,"py":null},"k":{"px":3,"py":null}},` +
		`"day":"1969-12-31","tm":"00:00:00.001","tu":"23:59:59.999999","ms":"1969-12-31 23:59:59.999","us":"1970-01-01 00:00:00.000001","ns":"2023-11-14 22:13:20.000000001","dec":-1.23,"decf":-2,` +
		`"u":"550e8400-e29b-41d4-a716-446655440000","dur":"1 month 2 days 00:00:00.003","n":null,"num":5,"mix":{"string":"z","point":null},"odd":1}`
	if len(got) != 3 || got[0] != row || got[1] != row || strings.Count(got[2], "null") != len(fields) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), row)
	}
}

// Fields go by name, whatever their order; what the writer lacks has its default, what has another name its alias.
func TestReaderAndWriterSchemas(t *testing.T) {
	writers := map[int32]*Schema{
		1: schema(t, `{"type":"record","name":"r","fields":[{"name":"f1","type":"int"},{"name":"f2","type":"int"}]}`),
		2: schema(t, `{"type":"record","name":"r","fields":[{"name":"f2","type":"int"},{"name":"f1","type":"int"}]}`),
		3: schema(t, `{"type":"record","name":"r","fields":[{"name":"f1","type":"long"},{"name":"g","type":["null","string"],"default":null},{"name":"f2","type":"int"}]}`),
		4: schema(t, `{"type":"record","name":"r","fields":[{"name":"f1","type":"long"}]}`),
	}
	reader := schema(t, `{"type":"record","name":"r","fields":[{"name":"f2","type":"long"},{"name":"f1","type":"double"},{"name":"extra","type":"string","default":"d"},
		{"name":"h","aliases":["g"],"type":["null","string"],"default":null}]}`)
	fields, err := reader.Fields()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(fields, Options{Reader: reader, ByID: func(id int32) (*Schema, error) {
		if s := writers[id]; s != nil {
			return s, nil
		}
		return nil, errors.New("there is no such schema")
	}})
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	for _, msg := range []string{"0000000001f601d403", "0000000002d403f601", "0000000003f60102047879d403", "0000000003f60100d403", "0100000001f601", "000000006300", "0000000001f601", "0000000004f601", "00", ""} {
		b, err := hex.DecodeString(msg)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Append(b); err != nil {
			bad = append(bad, err.Error())
		}
	}
	want := `{"f2":234,"f1":123.0,"extra":"d","h":null} {"f2":234,"f1":123.0,"extra":"d","h":null} {"f2":234,"f1":123.0,"extra":"d","h":"xy"} {"f2":234,"f1":123.0,"extra":"d","h":null}`
	if got := strings.Join(rows(t, d), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(bad) != 6 || !strings.Contains(bad[3], "no default") || !strings.Contains(bad[2], "in the midst of a value") {
		t.Errorf("errors %q", bad)
	}
}

func TestDeclaredColumns(t *testing.T) {
	w := schema(t, `{"type":"record","name":"r","fields":[{"name":"i","type":["null","int"]},{"name":"s","type":"string"},{"name":"f","type":"float"},{"name":"ms","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"more","type":{"type":"map","values":["int","string"]}}]}`)
	fields := []types.Field{{Name: "ms", Type: types.TsTZ}, {Name: "f", Type: types.Float64}, {Name: "i", Type: types.Int8}, {Name: "s", Type: types.TsUS}, {Name: "none", Type: types.Int32}}
	d, err := New(fields, Options{Writer: w})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{`{"i":null,"s":"2020-01-01","f":1.5,"ms":1,"more":{}}`, `{"i":null,"s":"no time","f":1,"ms":1,"more":{"k":1}}`} {
		if err := d.Append(encode(t, w, m)); err != nil && !strings.Contains(err.Error(), `field "s": "no time" is not a value of TIMESTAMP`) {
			t.Error(err)
		}
	}
	big := append([]byte{2}, binary.AppendVarint(nil, 300)...)
	big = append(big, encode(t, w, `{"i":null,"s":"2020-01-01","f":1.5,"ms":1,"more":{}}`)[1:]...)
	if err := d.Append(big); err == nil || !strings.Contains(err.Error(), "300 is not a value of TINYINT") {
		t.Errorf("300: %v", err)
	}
	if got := rows(t, d); len(got) != 1 || got[0] != `{"ms":"1970-01-01 00:00:00.001+00","f":1.5,"i":null,"s":"2020-01-01 00:00:00","none":null}` {
		t.Errorf("rows %v", got)
	}
	if d.UnknownFields() != 1 || d.MissingFields() != 1 {
		t.Errorf("%d unknown, %d missing", d.UnknownFields(), d.MissingFields())
	}
	for _, f := range []types.Field{{Name: "f", Type: types.Int32}, {Name: "more", Type: types.String}, {Name: "ms", Type: types.Date32}, {Name: "s", Type: types.ListOf(types.String)}} {
		if _, err := New([]types.Field{f}, Options{Writer: w}); err == nil || !strings.Contains(err.Error(), f.Name) {
			t.Errorf("%s %s: %v", f.Name, f.Type, err)
		}
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	for _, c := range [][2]string{
		{`{"type":"record","name":"r","fields":[{"name":"x","type":"nothing"}]}`, `no type "nothing"`},
		{`{"type":"record","fields":[]}`, "no name"},
		{`[["int"]]`, "union"},
		{`[]`, "no branches"},
		{`{`, "Avro schema"},
		{``, "missing"},
		{`7`, "no type"},
		{strings.Repeat(`{"type":"array","items":`, 300) + `"int"` + strings.Repeat(`}`, 300), "deep"},
	} {
		if _, err := ParseSchema([]byte(c[0]), nil); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%.60s: %v", c[0], err)
		}
	}
	self := schema(t, `{"type":"record","name":"tree","fields":[{"name":"v","type":"int"},{"name":"left","type":["null","tree"]}]}`)
	if _, err := self.Fields(); err == nil || !strings.Contains(err.Error(), "contains itself") {
		t.Errorf("a tree: %v", err)
	}
	// Its other fields can be read, up to a depth.
	d, err := New([]types.Field{{Name: "v", Type: types.Int32}}, Options{Writer: self})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Append([]byte{2, 2, 4, 2, 6, 0}); err != nil {
		t.Error(err)
	}
	if err := d.Append(append(bytes.Repeat([]byte{2, 2}, 100_000), 2, 0)); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("a deep tree: %v", err)
	}
	empty := schema(t, `{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}`)
	if d, err = New([]types.Field{{Name: "b", Type: types.Int32}}, Options{Writer: empty}); err != nil {
		t.Fatal(err)
	}
	if err := d.Append(append(binary.AppendVarint(nil, 1<<60), 0)); err == nil || !strings.Contains(err.Error(), "empty items") {
		t.Errorf("2^60 items of no bytes: %v", err)
	}
}

// wrap makes an object container file.
func wrap(schema, codec string, blocks ...[]byte) []byte {
	text := func(dst []byte, s string) []byte { return append(binary.AppendVarint(dst, int64(len(s))), s...) }
	out := append([]byte{}, magic...)
	out = binary.AppendVarint(out, 2)
	out = text(text(out, "avro.schema"), schema)
	out = text(text(out, "avro.codec"), codec)
	out = append(out, 0)
	sync := bytes.Repeat([]byte{7}, 16)
	out = append(out, sync...)
	for _, b := range blocks {
		out = append(text(append(out, 2), string(b)), sync...)
	}
	return out
}

func TestContainers(t *testing.T) {
	text := `{"type":"record","name":"r","fields":[{"name":"i","type":"long"}]}`
	s := schema(t, text)
	record := encode(t, s, `{"i":-5}`)
	var deflated bytes.Buffer
	w, _ := flate.NewWriter(&deflated, 9)
	w.Write(record)
	w.Close()
	z, _ := zstd.NewWriter(nil)
	packed := map[string][]byte{"null": record, "deflate": deflated.Bytes(), "zstandard": z.EncodeAll(record, nil),
		"snappy": binary.BigEndian.AppendUint32(snappy.Encode(nil, record), crc32.ChecksumIEEE(record))}
	d, err := New([]types.Field{{Name: "i", Type: types.Int64}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for codec, block := range packed {
		if err := d.Append(wrap(text, codec, block)); err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		if codec != "null" {
			if err := d.Append(wrap(text, codec, append([]byte{0xff}, block...))); err == nil {
				t.Errorf("%s: a damaged block is read", codec)
			}
		}
	}
	if got := strings.Join(rows(t, d), " "); got != strings.TrimSpace(strings.Repeat(`{"i":-5} `, 4)) {
		t.Errorf("rows %s", got)
	}
	whole := wrap(text, "null", record)
	other := bytes.Clone(whole)
	other[len(other)-1]++
	for _, c := range []struct {
		msg  []byte
		want string
	}{
		{wrap(text, "bzip2", record), `"bzip2"`}, {wrap(text, "null", record, record), "several records"}, {wrap(text, "null"), "no record"}, {other, "its mark"}, {record, "begin with Obj"},
		{wrap(`"long"`, "null", record), "rows are read from a record"},
	} {
		if err := d.Append(c.msg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	for cut := range len(whole) {
		if err := d.Append(whole[:cut]); err == nil {
			t.Errorf("%d bytes of %d are a container", cut, len(whole))
		}
	}
	if d.Rows() != 0 {
		t.Errorf("%d rows", d.Rows())
	}
}

// packets are alerts of the Zwicky Transient Facility, from the folder that RIVERBED_TEST_PACKETS names; none where there is none.
func packets(t testing.TB) [][]byte {
	t.Helper()
	dir := os.Getenv("RIVERBED_TEST_PACKETS")
	if dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.avro"))
	if err != nil || len(files) == 0 {
		t.Fatal("no packets in ", dir, err)
	}
	var out [][]byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func TestPackets(t *testing.T) {
	for _, msg := range packets(t) {
		s, err := ContainerSchema(msg)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := s.Fields()
		if err != nil {
			t.Fatal(err)
		}
		d, err := New(fields, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Append(msg); err != nil {
			t.Fatal(err)
		}
		got := rows(t, d)[0]
		if !strings.Contains(got, `"objectId":"ZTF`) || !strings.Contains(got, `"candidate":{"jd":24`) || !strings.Contains(got, `"cutoutScience":{"fileName":"`) {
			t.Errorf("row %.300s", got)
		}
		for cut := 0; cut < len(msg); cut += 97 {
			if err := d.Append(msg[:cut]); err == nil {
				t.Fatalf("%d bytes of %d are a packet", cut, len(msg))
			}
		}
	}
}

func BenchmarkPackets(b *testing.B) {
	msgs := packets(b)
	if msgs == nil {
		b.Skip("RIVERBED_TEST_PACKETS names no folder of packets")
	}
	s, err := ContainerSchema(msgs[0])
	if err != nil {
		b.Fatal(err)
	}
	fields, err := s.Fields()
	if err != nil {
		b.Fatal(err)
	}
	d, err := New(fields, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(msgs[0])))
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Append(msgs[0]); err != nil {
			b.Fatal(err)
		}
		if d.Rows() == 1000 {
			d.Finish()
		}
	}
}

func FuzzMessages(f *testing.F) {
	s := schema(f, everything)
	fields, err := s.Fields()
	if err != nil {
		f.Fatal(err)
	}
	msg := encode(f, s, oneOfEverything)
	f.Add(msg)
	f.Add(wrap(everything, "null", msg))
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, opt := range []Options{{Writer: s}, {}} {
			d, err := New(fields, opt)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for range 2 {
				if d.Append(msg) == nil {
					n++
				}
			}
			if got := rows(t, d); len(got) != n {
				t.Fatalf("%d rows of %d", len(got), n)
			}
		}
	})
}
