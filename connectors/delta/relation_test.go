package delta_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// simple makes a table of two columns with versions: two files, one more, the first removed.
func simple(t testing.TB) *maker {
	m := newMaker(t)
	a := m.file("a.parquet", nil, longs("id", 1, 2, 3), texts("s", "x", "y", "NULL"))
	b := m.file("b c%.parquet", nil, longs("id", 4), texts("s", "z"))
	m.commit("protocol", protocol(1), "metaData", table(field("id", "long")+","+field("s", "string")), "add", a, "add", b,
		"commitInfo", map[string]any{"timestamp": 1}, "txn", map[string]any{"appId": "a", "version": 1})
	m.commit("add", m.file("c.parquet", nil, longs("id", 5), texts("s", "w")), "domainMetadata", map[string]any{"domain": "d"})
	m.commit("remove", with(a, "deletionTimestamp", 1))
	return m
}

func TestVersions(t *testing.T) {
	m := simple(t)
	if got := ct.Columns(m.open().Fields()); got != "id BIGINT, s VARCHAR" {
		t.Fatal(got)
	}
	want(t, m.scan(), "4|z", "5|w")
	want(t, m.scan("version", "0"), "1|x", "2|y", "3|NULL", "4|z")
	want(t, m.scan("version", "1"), "1|x", "2|y", "3|NULL", "4|z", "5|w")
	want(t, m.scan("version", "2"), "4|z", "5|w")
	version := func(v string) string { return m.open("version", v).(interface{ Version() string }).Version() }
	if version("1") == version("2") || version("2") != m.open().(interface{ Version() string }).Version() {
		t.Error("versions do not tell themselves apart")
	}
	m.fails([]string{"version", "3"}, "has no version 3", "newest is 2")
	m.fails([]string{"version", "-1"}, "versions count from 0")
}

func TestTimeTravel(t *testing.T) {
	m := simple(t)
	for v := range 3 {
		at := time.Date(2026, 1, 1+v, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(filepath.Join(m.dir, "_delta_log", fmt.Sprintf("%020d.json", v)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	want(t, m.scan("timestamp", "2026-01-01"), m.scan("version", "0")...)
	want(t, m.scan("timestamp", "2026-01-02 23:00:00"), m.scan("version", "1")...)
	want(t, m.scan("timestamp", "2026-01-03 00:30:00+01:00"), m.scan("version", "1")...)
	want(t, m.scan("timestamp", "2027-01-01"), m.scan("version", "2")...)
	m.fails([]string{"timestamp", "2025-12-31"}, "no version as old as 2025-12-31T00:00:00Z")
	m.fails([]string{"timestamp", "2026-01-01", "version", "1"}, "both say which version")
	// A table that keeps the times of its commits itself is believed, whatever the file system says.
	m.commit("commitInfo", map[string]any{"inCommitTimestamp": time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}, "add", m.file("d.parquet", nil, longs("id", 6), texts("s", "v")))
	want(t, m.scan("timestamp", "2026-01-31 23:59:59"), m.scan("version", "2")...)
	want(t, m.scan("timestamp", "2026-02-01"), m.scan("version", "3")...)
}

func TestPartitions(t *testing.T) {
	m := newMaker(t)
	part := func(name, day, p any, ids ...int64) map[string]any {
		return m.file(name.(string), map[string]any{"partitionValues": map[string]any{"day": day, "p": p}}, longs("id", ids...))
	}
	m.commit("protocol", protocol(1), "metaData", table(field("day", "date")+","+field("id", "long")+","+field("p", "string"), "partitionColumns", []string{"p", "day"}),
		"add", part("a.parquet", "2026-01-01", "x y", 1, 2), "add", part("p=x%20y/b.parquet", "2026-01-02", nil, 3), "add", part("c.parquet", "", "__HIVE_DEFAULT_PARTITION__", 4))
	want(t, m.scan(), "2026-01-01|1|x y", "2026-01-01|2|x y", "NULL|4|NULL", "2026-01-02|3|NULL")
	r := m.open()
	if st := r.Stats(); st.Rows != 4 || !st.Exact || st.Columns[2].Nulls != 2 || st.Columns[2].Distinct != 1 || st.Columns[2].Min != "x y" {
		t.Errorf("%+v", st)
	}
	want(t, ct.Scan(t, r, flow.ScanRequest{Columns: []int{2, 0}}), "x y|2026-01-01", "x y|2026-01-01", "NULL|NULL", "NULL|2026-01-02")
	want(t, ct.Scan(t, r, flow.ScanRequest{Columns: []int{}}), "", "", "", "")
	want(t, ct.Scan(t, r, flow.ScanRequest{Filters: []flow.Predicate{{Column: 0, Op: flow.CmpEq, Values: []types.Value{types.DateOf(2026, 1, 2)}}}}), "2026-01-02|3|NULL")
	want(t, ct.Scan(t, r, flow.ScanRequest{Filters: []flow.Predicate{{Column: 2, Op: flow.CmpIsNull}}}), "NULL|4|NULL", "2026-01-02|3|NULL")

	m.commit("add", part("d.parquet", "no day", "q", 5))
	m.fails(nil, `"no day"`, `"day"`, "DATE", "d.parquet")
}

// The log's bounds leave out files; they are bounds alone where a vector hides rows or timestamps are cut.
func TestStatistics(t *testing.T) {
	m := newMaker(t)
	stats := func(rows int, lo, hi, s, at string) map[string]any {
		return map[string]any{"stats": fmt.Sprintf(`{"numRecords":%d,"minValues":{"id":%s,"s":%q,"at":%q,"f":"-Infinity","d":0.5},"maxValues":{"id":%s,"s":%q,"at":%q,"f":1.5,"d":1.25},"nullCount":{"id":0,"s":1,"at":0}}`, rows, lo, s, at, hi, s, at)}
	}
	file := func(name string, st map[string]any, ids ...int64) map[string]any {
		n := len(ids)
		at, f, d := col{name: "at", t: types.TsTZ}, col{name: "f", t: types.Float64}, col{name: "d", t: types.Dec(5, 2)}
		for range n {
			at.values, f.values = append(at.values, int64(1_000_999)), append(f.values, 1.5)
			d.values = append(d.values, types.ValueAt(types.ArrayOf([]types.Value{nil}, types.Dec(5, 2)), 0, types.Dec(5, 2)))
		}
		return m.file(name, st, longs("id", ids...), texts("s", make([]string, n)...), at, f, d)
	}
	m.commit("protocol", protocol(1), "metaData", table(strings.Join([]string{field("id", "long"), field("s", "string"), field("at", "timestamp"), field("f", "double"), field("d", "decimal(5,2)")}, ",")),
		"add", file("a", stats(2, "1", "2", "m", "1970-01-01T00:00:01.000Z"), 1, 2), "add", file("b", stats(2, "9007199254740993", "9007199254740995", "n", "1970-01-01T00:00:01Z"), 9007199254740993, 9007199254740995))
	r := m.open()
	st := r.Stats()
	if c := st.Columns[0]; !st.Exact || st.Rows != 4 || c.Min != int64(1) || c.Max != int64(9007199254740995) || !c.Tight || c.Nulls != 0 {
		t.Errorf("%+v", st)
	}
	if c := st.Columns[2]; c.Max != int64(1_000_999) || c.Min != int64(1_000_000) || c.Tight {
		t.Errorf("timestamps: %+v", c)
	}
	if c, ok := st.Columns[3]; ok {
		t.Errorf("a bound that is no number is known: %+v", c)
	}
	count := func(p flow.Predicate) int { return len(ct.Scan(t, r, flow.ScanRequest{Filters: []flow.Predicate{p}})) }
	for _, c := range []struct {
		p    flow.Predicate
		rows int
	}{
		{flow.Predicate{Column: 0, Op: flow.CmpGt, Values: []types.Value{int64(2)}}, 2},
		{flow.Predicate{Column: 0, Op: flow.CmpEq, Values: []types.Value{int64(3)}}, 0},
		{flow.Predicate{Column: 1, Op: flow.CmpLe, Values: []types.Value{"m"}}, 2},
		{flow.Predicate{Column: 2, Op: flow.CmpEq, Values: []types.Value{int64(1_000_999)}}, 4},
		{flow.Predicate{Column: 2, Op: flow.CmpGt, Values: []types.Value{int64(1_000_999)}}, 0},
		{flow.Predicate{Column: 0, Op: flow.CmpIsNull}, 0},
	} {
		if got := count(c.p); got != c.rows {
			t.Errorf("%+v: %d rows, want %d", c.p, got, c.rows)
		}
	}
}

func TestDeletionVectors(t *testing.T) {
	for name, vector := range map[string]func(m *maker, rows ...uint32) map[string]any{
		"inline": func(_ *maker, rows ...uint32) map[string]any { return inlineVector(rows...) },
		"file":   func(m *maker, rows ...uint32) map[string]any { return m.fileVector(false, rows...) },
		"runs":   func(m *maker, rows ...uint32) map[string]any { return m.fileVector(true, rows...) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaker(t)
			a := m.file("a.parquet", map[string]any{"partitionValues": map[string]any{"p": "7"}}, longs("id", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), texts("s", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"))
			m.commit("protocol", protocol(3, "deletionVectors"), "metaData", table(field("id", "long")+","+field("s", "string")+","+field("p", "integer"), "partitionColumns", []string{"p"}), "add", a)
			m.commit("remove", a, "add", with(a, "deletionVector", vector(m, 0, 5, 9)))
			want(t, m.scan(), "1|b|7", "2|c|7", "3|d|7", "4|e|7", "6|g|7", "7|h|7", "8|i|7")
			r := m.open()
			if st := r.Stats(); st.Rows != 7 || !st.Exact {
				t.Errorf("%+v", st)
			}
			want(t, ct.Scan(t, r, flow.ScanRequest{Columns: []int{2}, BatchRows: 3}), "7", "7", "7", "7", "7", "7", "7")
			want(t, ct.Scan(t, r, flow.ScanRequest{Columns: []int{}}), "", "", "", "", "", "", "")
			want(t, m.scan("version", "0"), "0|a|7", "1|b|7", "2|c|7", "3|d|7", "4|e|7", "5|f|7", "6|g|7", "7|h|7", "8|i|7", "9|j|7")
			places(t, r, 2, 3, 4, 5, 7, 8, 9)
			narrowed(t, r)

			m.next-- // in place of the last version
			m.commit("remove", a, "add", with(a, "deletionVector", with(vector(m, 0, 5), "cardinality", 3)))
			m.fails(nil, "deletion vector", "a.parquet", "it holds 2 rows, and the log says 3")
			m.next--
			m.commit("remove", a, "add", with(a, "deletionVector", vector(m, 0, 10)))
			m.fails(nil, "deletion vector", "deletes row 10")
		})
	}
}

// places wants the rows of the file that the rows of the relation are, counted from 1.
func places(t *testing.T, r flow.Relation, numbers ...int64) {
	t.Helper()
	s, err := r.Scan(t.Context(), flow.ScanRequest{Columns: []int{0}, Workers: 1, Places: true, BatchRows: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var got []int64
	for {
		m, err := s.Next(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			break
		}
		for row := range int(m.Batch.NumRows()) {
			at, _ := m.Places.Of(row)
			got = append(got, at)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(numbers) {
		t.Errorf("places %v, want %v", got, numbers)
	}
}
