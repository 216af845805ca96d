package parquet

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
)

// layouts are ways in which pages hold their values.
var layouts = []struct {
	name      string
	distinct  int
	nullEvery int
	required  bool
	opts      []pq.WriterProperty
}{
	{"dictionary", 300, 5, false, []pq.WriterProperty{pq.WithDataPageSize(2048)}},
	{"few nulls", 300, 3000, false, []pq.WriterProperty{pq.WithDataPageSize(512)}},
	{"plain", 1 << 20, 4, false, []pq.WriterProperty{pq.WithDictionaryDefault(false), pq.WithDataPageSize(2048)}},
	{"dictionary falls back to plain", 1 << 20, 0, false, []pq.WriterProperty{pq.WithDictionaryPageSizeLimit(4096), pq.WithDataPageSize(2048)}},
	{"required", 50, 0, true, []pq.WriterProperty{pq.WithDataPageSize(1024), pq.WithCompression(compress.Codecs.Snappy)}},
	{"long runs", 1, 9, false, nil},
	{"pages of version 2", 300, 5, false, []pq.WriterProperty{pq.WithDataPageVersion(pq.DataPageV2), pq.WithDataPageSize(2048), pq.WithMaxRowGroupLength(700)}},
}

// Two stages drop random rows; every column must come as from a whole read of which these rows are taken.
func TestNarrowing(t *testing.T) {
	for _, c := range layouts {
		t.Run(c.name, func(t *testing.T) {
			const rows = 2500
			b := randomBatch(rows, c.distinct, c.nullEvery, c.required)
			path := filepath.Join(t.TempDir(), "x.parquet")
			write(t, path, b, c.opts...)
			rel := ct.OpenRelation(t, Source, map[string]string{"path": path})
			all := make([]int, len(allTypes))
			for i := range all {
				all[i] = i
			}
			whole := ct.Scan(t, rel, flow.ScanRequest{Columns: all, BatchRows: 400})
			for k, keep := range []float64{0, 0.001, 0.3, 0.97, 1} {
				for seed := k % 3; seed < len(all); seed += 3 {
					r := rand.New(rand.NewPCG(uint64(seed), 3))
					first, second := seed, r.IntN(len(all))
					var kept []int // rows of the file after the first stage
					var want []string
					base := 0
					stage := func(rows int) ([]int32, bool) {
						sel := []int32{}
						for i := range rows {
							if r.Float64() < keep {
								sel = append(sel, int32(i))
							}
						}
						return sel, len(sel) == rows
					}
					narrow := &flow.Narrowing{Take: kernels.Take, Stages: []flow.Stage{
						{Columns: []int{first}, Select: func(_ int, _ []arrow.Array, n int) ([]int32, bool, error) {
							sel, same := stage(n)
							kept = kept[:0]
							for _, i := range sel {
								kept = append(kept, base+int(i))
							}
							base += n
							return sel, same, nil
						}},
						{Columns: []int{second, first}, Select: func(_ int, in []arrow.Array, n int) ([]int32, bool, error) {
							if n != len(kept) || in[0].Len() != n || in[1].Len() != n {
								return nil, false, fmt.Errorf("%d rows, arrays of %d and %d, want %d", n, in[0].Len(), in[1].Len(), len(kept))
							}
							sel, same := stage(n)
							for _, i := range sel {
								want = append(want, whole[kept[i]])
							}
							return sel, same, nil
						}},
					}}
					got := ct.Scan(t, rel, flow.ScanRequest{Columns: all, BatchRows: 400, Narrow: narrow, Workers: 1})
					if base != rows {
						t.Fatalf("the filter saw %d rows", base)
					}
					if len(got) != len(want) {
						t.Fatalf("keep %g of %s, %s: %d rows, want %d", keep, allTypes[first].name, allTypes[second].name, len(got), len(want))
					}
					for i := range got {
						if got[i] != want[i] {
							t.Fatalf("keep %g of %s, %s: row %d\ngot  %s\nwant %s", keep, allTypes[first].name, allTypes[second].name, i, got[i], want[i])
						}
					}
				}
			}
		})
	}
}

// A stage that depends on values alone may be asked about dictionaries: the rows must be those of a stage that is asked about
// every row.
func TestNarrowingByCode(t *testing.T) {
	for k, c := range layouts {
		t.Run(c.name, func(t *testing.T) {
			const rows = 2500
			path := filepath.Join(t.TempDir(), "x.parquet")
			write(t, path, randomBatch(rows, c.distinct, c.nullEvery, c.required), c.opts...)
			rel := ct.OpenRelation(t, Source, map[string]string{"path": path})
			all := make([]int, len(allTypes))
			for i := range all {
				all[i] = i
			}
			asked := 0
			stage := func(column int, pure bool, modulus uint32) flow.Stage {
				return flow.Stage{Columns: []int{column}, Pure: pure, Select: func(_ int, in []arrow.Array, n int) ([]int32, bool, error) {
					if in[0].Len() != n {
						return nil, false, fmt.Errorf("%d rows, an array of %d", n, in[0].Len())
					}
					asked += n
					sel := []int32{}
					for i := range n {
						h := fnv.New32()
						_, _ = h.Write([]byte(in[0].ValueStr(i))) // of NULL too
						if h.Sum32()%modulus != 1 {
							sel = append(sel, int32(i))
						}
					}
					return sel, len(sel) == n, nil
				}}
			}
			for i := k % 3; i < len(all); i += 3 {
				for _, modulus := range []uint32{2, 7}[i%2:] {
					var got [3][]string
					var questions [3]int
					for p, pure := range []bool{false, true, true} {
						asked = 0
						next := (i + 1) % len(all)
						narrow := &flow.Narrowing{Take: kernels.Take, Stages: []flow.Stage{stage(i, pure, modulus), stage(next, pure, 3), stage(i, pure, 5)}}
						if p == 2 { // asked from the last to the first
							narrow.Kept = keptBefore(9999, 5000, 1)
						}
						got[p] = ct.Scan(t, rel, flow.ScanRequest{Columns: all, BatchRows: 400, Narrow: narrow, Workers: 1})
						questions[p] = asked
					}
					if !slices.Equal(got[0], got[1]) {
						t.Errorf("%s, modulus %d: %d rows by value, %d by row", allTypes[i].name, modulus, len(got[1]), len(got[0]))
					}
					if !slices.Equal(got[0], got[2]) {
						t.Errorf("%s, modulus %d: %d rows in another order of stages, %d in the given one", allTypes[i].name, modulus, len(got[2]), len(got[0]))
					}
					if c.name == "required" && (allTypes[i].name == "i64" || allTypes[i].name == "s") && questions[1] > questions[0]/2 {
						t.Errorf("%s: %d values were asked about, of %d rows", allTypes[i].name, questions[1], questions[0])
					}
				}
			}
		})
	}
}

// keptBefore is what stages have kept of 10,000 rows.
func keptBefore(kept ...int64) []flow.Kept {
	out := make([]flow.Kept, len(kept))
	for i, k := range kept {
		out[i].Shown.Store(10000)
		out[i].Kept.Store(k)
	}
	return out
}

// Stages are asked by what they drop for the columns that they need; those that must see what others leave keep their place, and so do
// all until each was asked about some rows.
func TestOrderOfStages(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: int64Type}, {Name: "s", Type: arrow.BinaryTypes.String}, {Name: "few", Type: arrow.BinaryTypes.String}}, nil)
	const n, s, few = 0, 1, 2
	pure := func(cols ...int) flow.Stage { return flow.Stage{Columns: cols, Pure: true} }
	for _, c := range []struct {
		stages []flow.Stage
		kept   []flow.Kept
		want   []int
	}{
		{[]flow.Stage{pure(n), pure(n)}, nil, []int{0, 1}},
		{[]flow.Stage{pure(n), pure(n)}, keptBefore(6000, 100), []int{1, 0}},
		{[]flow.Stage{pure(n), pure(n)}, keptBefore(10000, 10000), []int{0, 1}},
		{[]flow.Stage{pure(n), pure(s)}, keptBefore(6000, 5000), []int{0, 1}},
		{[]flow.Stage{pure(n), pure(few)}, keptBefore(10, 5000), []int{1, 0}},
		{[]flow.Stage{pure(n, s), pure(n)}, keptBefore(10, 5000), []int{1, 0}},
		{[]flow.Stage{{Columns: []int{n}}, pure(n), pure(n)}, keptBefore(9000, 9000, 1), []int{0, 2, 1}},
		{[]flow.Stage{pure(n), pure(n)}, make([]flow.Kept, 2), []int{0, 1}},
	} {
		g := &group{schema: schema, small: []bool{false, false, true}, narrow: &flow.Narrowing{Stages: c.stages, Kept: c.kept}}
		if got := g.order(); !slices.Equal(got, c.want) {
			t.Errorf("%v, %v: %v, want %v", c.stages, c.kept, got, c.want)
		}
	}
}
