package delta_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/delta"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

var source = delta.Source

var (
	mapType    = types.MapOf(types.String, types.String)
	vectorType = types.StructOf(types.Field{Name: "storageType", Type: types.String}, types.Field{Name: "pathOrInlineDv", Type: types.String},
		types.Field{Name: "offset", Type: types.Int32}, types.Field{Name: "sizeInBytes", Type: types.Int32}, types.Field{Name: "cardinality", Type: types.Int64})
	addType = types.StructOf(types.Field{Name: "path", Type: types.String}, types.Field{Name: "partitionValues", Type: mapType}, types.Field{Name: "size", Type: types.Int64},
		types.Field{Name: "modificationTime", Type: types.Int64}, types.Field{Name: "dataChange", Type: types.Bool}, types.Field{Name: "stats", Type: types.String}, types.Field{Name: "deletionVector", Type: vectorType})
	metaType = types.StructOf(types.Field{Name: "id", Type: types.String}, types.Field{Name: "schemaString", Type: types.String},
		types.Field{Name: "partitionColumns", Type: types.ListOf(types.String)}, types.Field{Name: "configuration", Type: mapType})
	protocolType = types.StructOf(types.Field{Name: "minReaderVersion", Type: types.Int32}, types.Field{Name: "readerFeatures", Type: types.ListOf(types.String)})
	sidecarType  = types.StructOf(types.Field{Name: "path", Type: types.String}, types.Field{Name: "sizeInBytes", Type: types.Int64})
	removeType   = types.StructOf(types.Field{Name: "path", Type: types.String})
)

// checkpoint writes actions as a checkpoint does: names of actions and bodies in turn, each a row.
func (m *maker) checkpoint(name string, actions ...any) {
	m.t.Helper()
	fields := []types.Field{{Name: "add", Type: addType}, {Name: "remove", Type: removeType}, {Name: "metaData", Type: metaType}, {Name: "protocol", Type: protocolType}, {Name: "sidecar", Type: sidecarType}}
	cols := make([]col, len(fields))
	for i, f := range fields {
		cols[i] = col{name: f.Name, t: f.Type}
		for a := 0; a < len(actions); a += 2 {
			var v types.Value
			if actions[a] == f.Name {
				v = valueOf(actions[a+1], f.Type)
			}
			cols[i].values = append(cols[i].values, v)
		}
	}
	m.write(filepath.Join("_delta_log", name), m.parquet(2, cols...))
}

// valueOf brings a body of JSON's kinds into a type.
func valueOf(body any, t types.Type) types.Value {
	switch b := body.(type) {
	case nil:
		return nil
	case map[string]any:
		if t.Kind == types.Map {
			entries := []types.MapEntry{}
			for k, v := range b {
				entries = append(entries, types.MapEntry{Key: k, Value: valueOf(v, types.String)})
			}
			return entries
		}
		out := make([]types.Value, len(t.Fields))
		for i, f := range t.Fields {
			out[i] = valueOf(b[f.Name], f.Type)
		}
		return out
	case []string:
		out := []types.Value{}
		for _, s := range b {
			out = append(out, s)
		}
		return out
	case int:
		return int64(b)
	}
	return body
}

func TestCheckpoints(t *testing.T) {
	const id = "80a083e8-7026-4e79-81be-64bd76c43a11"
	for name, write := range map[string]func(m *maker, actions ...any){
		"one file": func(m *maker, actions ...any) {
			m.checkpoint(fmt.Sprintf("%020d.checkpoint.parquet", 2), actions...)
			m.write("_delta_log/_last_checkpoint", []byte("{not even JSON"))
		},
		"two parts": func(m *maker, actions ...any) {
			m.checkpoint(fmt.Sprintf("%020d.checkpoint.0000000001.0000000002.parquet", 2), actions[:6]...)
			m.checkpoint(fmt.Sprintf("%020d.checkpoint.0000000002.0000000002.parquet", 2), actions[6:]...)
			m.checkpoint(fmt.Sprintf("%020d.checkpoint.0000000001.0000000003.parquet", 3), actions[:6]...) // not whole
		},
		"sidecars": func(m *maker, actions ...any) {
			m.checkpoint("_sidecars/one.parquet", actions[4:8]...)
			m.checkpoint("_sidecars/two.parquet", actions[8:]...)
			m.checkpoint(fmt.Sprintf("%020d.checkpoint.%s.parquet", 2, id), append(actions[:4:4], "sidecar", map[string]any{"path": "one.parquet"}, "sidecar", map[string]any{"path": "two.parquet"})...)
		},
		"JSON with sidecars": func(m *maker, actions ...any) {
			m.checkpoint("_sidecars/one.parquet", actions[4:]...)
			next := m.next
			m.next = 77
			m.commit(append(actions[:4:4], "checkpointMetadata", map[string]any{"version": 2}, "sidecar", map[string]any{"path": "one.parquet"})...)
			m.next = next
			if err := os.Rename(filepath.Join(m.dir, fmt.Sprintf("_delta_log/%020d.json", 77)), filepath.Join(m.dir, fmt.Sprintf("_delta_log/%020d.checkpoint.%s.json", 2, id))); err != nil {
				m.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaker(t)
			part := func(name, p string, ids ...int64) map[string]any {
				add := m.file(name, map[string]any{"partitionValues": map[string]any{"p": p}}, longs("id", ids...))
				if p == "NULL" {
					add["partitionValues"] = map[string]any{"p": nil}
				}
				return add
			}
			meta := table(field("id", "long")+","+field("p", "string"), "partitionColumns", []string{"p"}, "configuration", map[string]any{"a": "b"})
			proto := protocol(3, "deletionVectors", "v2Checkpoint")
			a, b, c, d := part("a x.parquet", "1", 1, 2, 3), part("b.parquet", "NULL", 4), part("c.parquet", "3", 5), part("d.parquet", "4", 6)
			a, c = with(a, "deletionVector", inlineVector(1), "modificationTime", 7), with(c, "modificationTime", 5) // the older one comes first
			m.commit("protocol", proto, "metaData", meta, "add", a, "add", b)
			m.commit("add", c)
			m.commit("commitInfo", map[string]any{})
			whole := m.scan()
			want(t, whole, "4|NULL", "5|3", "1|1", "3|1")
			wantTransactions(t, m.follow(), "4|NULL|1", "5|3|1", "1|1|1 3|1|1")
			write(m, "protocol", proto, "metaData", meta, "add", a, "add", b, "add", c, "remove", map[string]any{"path": "gone"})
			m.next = 3
			m.commit("add", d, "remove", b)
			for v := range 3 { // only the checkpoint is left of them
				if err := os.Remove(filepath.Join(m.dir, fmt.Sprintf("_delta_log/%020d.json", v))); err != nil {
					t.Fatal(err)
				}
			}
			want(t, m.scan("version", "2"), whole...)
			want(t, m.scan(), "6|4", "5|3", "1|1", "3|1")
			wantTransactions(t, m.follow("version", "2"), "4|NULL|1", "5|3|1", "1|1|1 3|1|1", "4|NULL|-1 6|4|1")
			if st := m.open().Stats(); st.Rows != 4 || !st.Exact {
				t.Errorf("%+v", st)
			}
			m.fails([]string{"version", "1"}, "version 0", "no longer in its log", "oldest version that can still be read is 2")
			m.next = 5
			m.commit("add", c)
			m.fails(nil, "version 4", fmt.Sprintf("%020d.json", 4))
		})
	}
}

func TestProtocols(t *testing.T) {
	for _, c := range []struct {
		protocol map[string]any
		words    []string
	}{
		{protocol(1), nil}, {protocol(2), nil},
		{protocol(3, "deletionVectors", "columnMapping", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType"), nil},
		{protocol(3, "deletionVectors", "rowLinks", "catalogManaged"), []string{"catalogManaged, rowLinks", "does not know", "deletionVectors"}},
		{protocol(4), []string{"protocol 4"}},
		{protocol(0), []string{"protocol 0"}},
	} {
		m := newMaker(t)
		m.commit("protocol", c.protocol, "metaData", table(field("id", "long")))
		if c.words == nil {
			want(t, m.scan())
			continue
		}
		m.fails(nil, c.words...)
	}
}

// Each way in which a log is broken is told by the file's name and what is wrong with it.
func TestBrokenLogs(t *testing.T) {
	log := func(v int) string { return fmt.Sprintf("_delta_log/%020d.json", v) }
	read := func(m *maker, name string) []byte {
		b, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	remove := func(m *maker, name string) {
		if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(m *maker)
		words []string
	}{
		"truncated":      {func(m *maker) { b := read(m, log(1)); m.write(log(1), b[:len(b)/2]) }, []string{log(1)[11:], "line 1", "ends in the middle"}},
		"empty":          {func(m *maker) { m.write(log(1), nil) }, []string{log(1)[11:], "it is empty"}},
		"no JSON":        {func(m *maker) { m.write(log(1), []byte("{}\n<html>")) }, []string{log(1)[11:], "line 2", "invalid character"}},
		"missing":        {func(m *maker) { remove(m, log(1)) }, []string{"version 1 of", "no longer in its log", "not whole"}},
		"begins late":    {func(m *maker) { remove(m, log(0)) }, []string{"version 0 of", "not whole"}},
		"unknown action": {func(m *maker) { m.commit("merge", map[string]any{"a": 1}) }, []string{log(3)[11:], `"merge"`, "not known"}},
		"no metadata":    {func(m *maker) { m.write(log(0), []byte(`{"protocol":{"minReaderVersion":1}}`)) }, []string{"says nothing of its schema"}},
		"no protocol":    {func(m *maker) { m.commit("protocol", nil); m.write(log(0), []byte(`{"metaData":{}}`)) }, []string{"says nothing of its protocol"}},
		"wrong types":    {func(m *maker) { m.commit("add", map[string]any{"path": 7}) }, []string{log(3)[11:], `"add"`, "path"}},
		"no path":        {func(m *maker) { m.commit("add", map[string]any{"path": "%zz"}) }, []string{log(3)[11:], "%zz", "no path"}},
		"bad statistics": {func(m *maker) { m.commit("add", map[string]any{"path": "a", "stats": "{"}) }, []string{"statistics", "ends in the middle"}},
		"a vector of no kind": {func(m *maker) {
			m.commit("add", map[string]any{"path": "a", "deletionVector": map[string]any{"storageType": "z"}})
		}, []string{`stored as "z"`}},
		"a corrupt checkpoint": {func(m *maker) {
			m.write(fmt.Sprintf("_delta_log/%020d.checkpoint.parquet", 1), []byte("PAR1 but not really PAR1"))
		}, []string{fmt.Sprintf("%020d.checkpoint.parquet", 1), "cannot be read"}},
		"a checkpoint of something else": {func(m *maker) {
			m.write(fmt.Sprintf("_delta_log/%020d.checkpoint.parquet", 1), m.parquet(4, longs("add", 1)))
		}, []string{"none of the columns of a checkpoint"}},
		"a lost sidecar": {func(m *maker) {
			m.checkpoint(fmt.Sprintf("%020d.checkpoint.parquet", 1), "sidecar", map[string]any{"path": "x.parquet"})
		}, []string{"_sidecars/x.parquet", "cannot be read"}},
		"a sidecar elsewhere": {func(m *maker) {
			m.checkpoint(fmt.Sprintf("%020d.checkpoint.parquet", 1), "sidecar", map[string]any{"path": "../x.parquet"})
		}, []string{"../x.parquet"}},
		"a lost file":  {func(m *maker) { remove(m, "c.parquet") }, []string{"c.parquet", "no longer there", "vacuumed", "deletedFileRetentionDuration"}},
		"a short file": {func(m *maker) { b := read(m, "c.parquet"); m.write("c.parquet", b[:len(b)-1]) }, []string{"c.parquet", "the log says"}},
		"a broken file": {func(m *maker) {
			b := read(m, "c.parquet")
			clear(b[len(b)-40:])
			m.write("c.parquet", b)
		}, []string{"c.parquet", "cannot be read"}},
		"no table": {func(m *maker) {
			if err := os.RemoveAll(filepath.Join(m.dir, "_delta_log")); err != nil {
				t.Fatal(err)
			}
		}, []string{"is no Delta table", "_delta_log"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := simple(t)
			m.t = t
			c.spoil(m)
			m.fails(nil, c.words...)
		})
	}
}

// What is in the folder beside commits and checkpoints does no harm.
func TestOtherFilesInTheLog(t *testing.T) {
	m := simple(t)
	for _, name := range []string{"_last_checkpoint", "00000000000000000001.crc", "00000000000000000000.00000000000000000002.compacted.json", ".00000000000000000003.json.tmp", "00000000000000000003.checkpoint.parquet"} {
		m.write("_delta_log/"+name, nil)
	}
	want(t, m.scan(), "4|z", "5|w")
}

// A log of many commits and files is read in one go.
func TestLongLogs(t *testing.T) {
	m := newMaker(t)
	add := m.file("a.parquet", nil, longs("id", 1))
	m.commit("protocol", protocol(1), "metaData", table(field("id", "long")))
	for range 300 {
		var actions []any
		for i := range 20 {
			actions = append(actions, "add", with(add, "path", fmt.Sprintf("f%d-%d.parquet", m.next, i)))
		}
		m.commit(actions...)
	}
	if st := m.open().Stats(); st.Rows != 6000 {
		t.Errorf("%d rows", st.Rows)
	}
}

// Columns may be declared, as WATERMARK FOR asks for: some of the table's, in any order, wider if need be.
func TestDeclaredColumns(t *testing.T) {
	m := simple(t)
	r := ct.OpenRelation(t, source, m.options(), types.Field{Name: "S", Type: types.String}, types.Field{Name: "id", Type: types.Float64})
	if got := ct.Columns(r.Fields()); got != "S VARCHAR, id DOUBLE" {
		t.Fatal(got)
	}
	want(t, ct.Scan(t, r, flow.ScanRequest{}), "z|4", "w|5")
	s, err := ct.OpenStream(t, source, m.options("version", "1"), types.Field{Name: "id", Type: types.Float64}).(flow.LatestStream).UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := transactions(t, s, "c2.0.0", 100)
	if err != nil {
		t.Fatal(err)
	}
	wantTransactions(t, got, "1|-1 2|-1 3|-1")
	m.commit("metaData", table(field("id", "long")+","+field("s", "string")+","+field("more", "string")), "add", m.file("e", nil, longs("id", 9)))
	if s, err = s.(flow.LatestStream).UntilLatest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err = transactions(t, s, "c3.0.0", 100); err != nil {
		t.Fatal(err)
	}
	wantTransactions(t, got, "9|1")
	_, err = ct.TryRelation(source, m.options(), types.Field{Name: "it", Type: types.Int64})
	failed(t, err, `no column "it"`, "id")
	_, err = ct.TryRelation(source, m.options(), types.Field{Name: "id", Type: types.String})
	failed(t, err, `column "id"`, "is BIGINT, not VARCHAR", "declare it as BIGINT")
}

// Files that lie elsewhere are named by URLs.
func TestFilesOfOtherFolders(t *testing.T) {
	m, other := newMaker(t), newMaker(t)
	add := other.file("a b.parquet", nil, longs("id", 1))
	place := "file://" + strings.ReplaceAll(strings.NewReplacer(" ", "%20", "[", "%5B", "]", "%5D").Replace(other.dir), "\\", "/")
	m.commit("protocol", protocol(1), "metaData", table(field("id", "long")), "add", with(add, "path", place+"/a%20b.parquet"))
	want(t, m.scan(), "1")
}

// growing is a local store whose listings are disturbed by a writer.
type growing struct {
	objstore.Local
	meanwhile func()                 // comes before the next listing
	unseen    func(name string) bool // came while each was made, and is not in it
}

func (s *growing) Glob(ctx context.Context, pattern string) ([]objstore.Info, error) {
	if s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile = nil
	}
	found, err := s.Local.Glob(ctx, pattern)
	return slices.DeleteFunc(found, func(i objstore.Info) bool { return s.unseen != nil && s.unseen(i.Name) }), err
}

func mountGrowing() *growing {
	s := &growing{}
	objstore.Mount("growing", func(rest string) (objstore.Store, string, error) { return s, rest, nil })
	return s
}

// A listing that is made while commits come may show a later one and not one before it, which is no gap in the log.
func TestLogsThatGrow(t *testing.T) {
	m, s := simple(t), mountGrowing()
	s.unseen = func(name string) bool { return strings.HasSuffix(name, "1.json") }
	want(t, m.scan("path", "growing://"+m.dir), "4|z", "5|w")
}

// Commits that come between the look for the next one and the look at the whole log lose nothing.
func TestStreamsOfLogsThatGrow(t *testing.T) {
	m, s := simple(t), mountGrowing()
	r, err := m.stream("path", "growing://"+m.dir, "start", "latest").Open(t.Context(), flow.Split{ID: "log"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	came := false
	s.meanwhile = func() {
		came = true
		m.commit("add", m.file("x", nil, longs("id", 6), texts("s", "a")))
		m.commit("add", m.file("y", nil, longs("id", 7), texts("s", "b")))
	}
	var got []string
	for len(got) < 2 {
		rows, err := r.Read(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if rows.Batch != nil {
			got = append(got, ct.Row(rows.Batch, 0))
		}
	}
	if want(t, got, "6|a|1", "7|b|1"); !came {
		t.Error("nobody looked at the whole log")
	}
}
