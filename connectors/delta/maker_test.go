package delta_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/delta"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// maker writes a table.
type maker struct {
	t    testing.TB
	dir  string
	next int
}

func newMaker(t testing.TB) *maker {
	m := &maker{t: t, dir: filepath.Join(t.TempDir(), "lake [1] of {x}")} // a folder is never a pattern
	if err := os.MkdirAll(filepath.Join(m.dir, "_delta_log"), 0o777); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *maker) write(name string, data []byte) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		m.t.Fatal(err)
	}
}

// col is a column of a data file.
type col struct {
	name   string
	t      types.Type
	id     int
	values []types.Value
}

// parquet makes a Parquet file, of several row groups when it has more than group rows.
func (m *maker) parquet(group int64, cols ...col) []byte {
	m.t.Helper()
	fields, arrays := make([]arrow.Field, len(cols)), make([]arrow.Array, len(cols))
	for i, c := range cols {
		fields[i] = c.t.ArrowField(c.name)
		if c.id > 0 {
			fields[i].Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(c.id)})
		}
		arrays[i] = types.ArrayOf(c.values, c.t)
	}
	schema := arrow.NewSchema(fields, nil)
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(group)), pqarrow.NewArrowWriterProperties())
	if err != nil {
		m.t.Fatal(err)
	}
	if err := w.WriteBuffered(array.NewRecordBatch(schema, arrays, int64(arrays[0].Len()))); err != nil {
		m.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		m.t.Fatal(err)
	}
	return buf.Bytes()
}

// file writes a data file and returns its add action; more are further members of it.
func (m *maker) file(name string, more map[string]any, cols ...col) map[string]any {
	m.t.Helper()
	data := m.parquet(4, cols...)
	m.write(name, data)
	add := map[string]any{"path": strings.ReplaceAll(strings.ReplaceAll(name, "%", "%25"), " ", "%20"), "size": len(data), "partitionValues": map[string]any{}, "dataChange": true,
		"stats": fmt.Sprintf(`{"numRecords":%d}`, len(cols[0].values))}
	for k, v := range more {
		add[k] = v
	}
	return add
}

// with is an action with other members.
func with(action map[string]any, more ...any) map[string]any {
	out := map[string]any{}
	for k, v := range action {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

// commit writes the next version: names of actions and their bodies in turn.
func (m *maker) commit(actions ...any) {
	m.t.Helper()
	var b bytes.Buffer
	for i := 0; i < len(actions); i += 2 {
		line, err := json.Marshal(map[string]any{actions[i].(string): actions[i+1]})
		if err != nil {
			m.t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	m.write(fmt.Sprintf("_delta_log/%020d.json", m.next), b.Bytes())
	m.next++
}

func protocol(version int, features ...string) map[string]any {
	p := map[string]any{"minReaderVersion": version, "minWriterVersion": 7}
	if version == 3 {
		p["readerFeatures"] = features
	}
	return p
}

// table is a metaData action; fields are in Delta's JSON.
func table(fields string, more ...any) map[string]any {
	return with(map[string]any{"id": "t", "format": map[string]any{"provider": "parquet"}, "schemaString": `{"type":"struct","fields":[` + fields + `]}`,
		"partitionColumns": []string{}, "configuration": map[string]any{}}, more...)
}

func field(name, typ string) string {
	if !strings.HasPrefix(typ, "{") {
		typ = `"` + typ + `"`
	}
	return fmt.Sprintf(`{"name":%q,"type":%s,"nullable":true,"metadata":{}}`, name, typ)
}

// mapped is a field of a table that maps its columns.
func mapped(name, typ, physical string, id int) string {
	return strings.Replace(field(name, typ), `"metadata":{}}`, fmt.Sprintf(`"metadata":{"delta.columnMapping.id":%d,"delta.columnMapping.physicalName":%q}}`, id, physical), 1)
}

func longs(name string, values ...int64) col {
	c := col{name: name, t: types.Int64}
	for _, v := range values {
		c.values = append(c.values, v)
	}
	return c
}

func texts(name string, values ...string) col {
	c := col{name: name, t: types.String}
	for _, v := range values {
		if v == "NULL" {
			c.values = append(c.values, nil)
			continue
		}
		c.values = append(c.values, v)
	}
	return c
}

// roaring makes a vector: an array of values, or runs of them in the other layout.
func roaring(runs bool, rows ...uint32) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, 1681511377)
	out = le.AppendUint64(out, 1) // bitmaps
	out = le.AppendUint32(out, 0) // of the first 2³² rows
	byKey := map[uint32][]uint32{}
	var keys []uint32
	for _, r := range rows {
		if len(byKey[r>>16]) == 0 {
			keys = append(keys, r>>16)
		}
		byKey[r>>16] = append(byKey[r>>16], r&0xffff)
	}
	if runs {
		out = le.AppendUint32(out, 12347|uint32(len(keys)-1)<<16)
		flags := make([]byte, (len(keys)+7)/8)
		for i := range keys {
			flags[i/8] |= 1 << (i % 8)
		}
		out = append(out, flags...)
	} else {
		out = le.AppendUint32(out, 12346)
		out = le.AppendUint32(out, uint32(len(keys)))
	}
	for _, k := range keys {
		out = le.AppendUint16(out, uint16(k))
		out = le.AppendUint16(out, uint16(len(byKey[k])-1))
	}
	if !runs || len(keys) >= 4 {
		out = append(out, make([]byte, 4*len(keys))...)
	}
	for _, k := range keys {
		values := byKey[k]
		switch {
		case runs: // one run a value
			out = le.AppendUint16(out, uint16(len(values)))
			for _, v := range values {
				out = le.AppendUint16(out, uint16(v))
				out = le.AppendUint16(out, 0)
			}
		case len(values) > 4096:
			words := make([]byte, 8192)
			for _, v := range values {
				words[v/8] |= 1 << (v % 8)
			}
			out = append(out, words...)
		default:
			for _, v := range values {
				out = le.AppendUint16(out, uint16(v))
			}
		}
	}
	return out
}

// z85 writes bytes, whose number is a multiple of four.
func z85(b []byte) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
	var out strings.Builder
	for ; len(b) > 0; b = b[4:] {
		word := binary.BigEndian.Uint32(b)
		for div := uint32(85 * 85 * 85 * 85); div > 0; div /= 85 {
			out.WriteByte(digits[word/div%85])
		}
	}
	return out.String()
}

func inlineVector(rows ...uint32) map[string]any {
	data := roaring(false, rows...)
	size := len(data)
	for len(data)%4 != 0 {
		data = append(data, 0)
	}
	return map[string]any{"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": size, "cardinality": len(rows)}
}

// fileVector writes a vector into a file, behind one that it does not name.
func (m *maker) fileVector(runs bool, rows ...uint32) map[string]any {
	m.t.Helper()
	id := []byte("0123456789abcdef")
	copy(id, fmt.Sprintf("%d", m.next))
	file := []byte{1}
	block := func(data []byte) {
		file = binary.BigEndian.AppendUint32(file, uint32(len(data)))
		file = append(file, data...)
		file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(data))
	}
	block(roaring(false, 1))
	offset := len(file)
	data := roaring(runs, rows...)
	block(data)
	m.write(fmt.Sprintf("ab/deletion_vector_%x-%x-%x-%x-%x.bin", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), file)
	return map[string]any{"storageType": "u", "pathOrInlineDv": "ab" + z85(id), "offset": offset, "sizeInBytes": len(data), "cardinality": len(rows)}
}

func (m *maker) scan(options ...string) []string {
	m.t.Helper()
	return ct.Scan(m.t, m.open(options...), flow.ScanRequest{})
}

func (m *maker) options(options ...string) map[string]string {
	out := map[string]string{"path": m.dir}
	for i := 0; i < len(options); i += 2 {
		out[options[i]] = options[i+1]
	}
	return out
}

func (m *maker) open(options ...string) flow.Relation {
	m.t.Helper()
	return ct.OpenRelation(m.t, delta.Source, m.options(options...))
}

// want compares rows, in order.
func want(t testing.TB, got []string, rows ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(rows, "\n") {
		t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(rows, "\n  "))
	}
}

// fails reads the table and wants an error that says all of the words, and has a hint.
func (m *maker) fails(options []string, words ...string) {
	m.t.Helper()
	r, err := ct.TryRelation(delta.Source, m.options(options...))
	if err == nil {
		_, err = ct.TryScan(r, flow.ScanRequest{})
	}
	failed(m.t, err, words...)
}

func failed(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range append(words, "\nHint: ") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error lacks %q:\n%s", w, err)
		}
	}
	if strings.Count(err.Error(), "Hint: ") > 1 {
		t.Errorf("the error has two hints:\n%s", err)
	}
}
