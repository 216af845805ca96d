package fn_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

var alloc = memory.DefaultAllocator

var rewrite = flag.Bool("rewrite", false, "write testdata/hash.tsv anew")

// hashedRows is how many rows each variant of a function is called with.
const hashedRows = 96

// unhashed are the functions that no golden hash can hold, each with the reason.
var unhashed = map[string]string{
	"error":          "gives no value",
	"struct_pack":    "takes the names that only the binder has; testdata/duckdb.tsv calls it",
	"list_kurtosis":  "needs longer lists; it is the aggregate over them",
	"list_transform": "takes a lambda; testdata/duckdb_nested.tsv calls it", "list_filter": "takes a lambda; testdata/duckdb_nested.tsv calls it",
	"list_reduce": "takes a lambda; testdata/duckdb_nested.tsv calls it",
	"json_set":    "takes JSON, path and JSON that fit; testdata/duckdb_nested.tsv calls it", "json_insert": "as json_set", "json_replace": "as json_set",
}

// asked are the arguments that must be constants of a kind, by place.
var asked = map[string]map[int]types.Value{
	"any_of": {1: "<"}, "all_of": {1: ">="}, "list_aggregate": {1: "max"},
	"struct_extract": {1: "a"}, "struct_extract_at": {1: int64(1)},
}

// TestHash holds every function to the bits of testdata/hash.tsv: the same on every build and machine, with whatever
// instructions (`make test-golden` runs it for several). A changed line is a changed result; `-rewrite` accepts it.
func TestHash(t *testing.T) {
	const path = "testdata/hash.tsv"
	var got strings.Builder
	got.WriteString("# One line a function: the hash of its results over fixed random arguments of every variant. Made by TestHash -rewrite.\n")
	var silent []string
	for _, f := range fn.All {
		if f.Purity == fn.Volatile || unhashed[f.Name] != "" {
			continue
		}
		h, rows := sha256.New(), 0
		for i := range f.Overloads {
			for _, args := range concrete(f.Overloads[i]) {
				rows += hashScalar(t, h, f, args)
			}
		}
		if rows == 0 {
			silent = append(silent, f.Name)
		}
		fmt.Fprintf(&got, "%s\t%x\t%d\n", f.Name, h.Sum(nil)[:8], rows)
	}
	for _, f := range fn.Aggregates {
		h, rows := sha256.New(), 0
		for i := range f.Overloads {
			for _, args := range fn.Variants(f, &f.Overloads[i]) {
				for of := range numbers(3) {
					rows += hashAggregate(t, h, f, args, of)
				}
			}
		}
		if rows == 0 {
			silent = append(silent, f.Name)
		}
		fmt.Fprintf(&got, "aggregate %s\t%x\t%d\n", f.Name, h.Sum(nil)[:8], rows)
	}
	if len(silent) > 0 {
		t.Errorf("no variant of these functions gives a value: %s; the hash says nothing of them", strings.Join(silent, ", "))
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	have, want := strings.Split(got.String(), "\n"), strings.Split(string(text), "\n")
	for _, l := range have {
		if !slices.Contains(want, l) {
			t.Errorf("not as in %s: %s", path, l)
		}
	}
	if len(have) != len(want) {
		t.Errorf("%s has %d lines, want %d: run `go test ./core/fn -run TestHash -rewrite`", path, len(want), len(have))
	}
}

// concrete are the argument types to call an overload with.
func concrete(o fn.Overload) [][]types.Type {
	if o.Variadic { // without the last, and with it twice
		last := len(o.Args) - 1
		return append(tuples(o.Args[:last]), tuples(append(slices.Clone(o.Args), o.Args[last]))...)
	}
	return tuples(o.Args)
}

// tuples are the concrete types of declared arguments, every combination.
func tuples(declared []types.Type) [][]types.Type {
	out := [][]types.Type{nil}
	pair := types.StructOf(types.Field{Name: "a", Type: types.Float64}, types.Field{Name: "b", Type: types.String})
	other := types.StructOf(types.Field{Name: "c", Type: types.String}, types.Field{Name: "d", Type: types.Int64})
	for i, a := range declared {
		choices := []types.Type{a}
		switch {
		case a.Kind == types.Any && i > 0:
			choices = []types.Type{types.Int64, types.Float64, types.String, types.ListOf(types.Int64)}
		case a.Kind == types.Any:
			choices = []types.Type{
				types.Bool, types.Int32, types.Int64, types.Int128, types.Uint64, types.Float32, types.Float64, types.Dec(9, 2), types.Dec(38, 10),
				types.String, types.Date32, types.TsUS, types.TsTZ, types.Span, types.UUIDType, types.ListOf(types.Int64),
				pair, types.MapOf(types.String, types.Int64),
			}
		case a.Kind == types.Decimal && a.Width == 0:
			choices = []types.Type{types.Dec(4, 1), types.Dec(9, 2), types.Dec(18, 4), types.Dec(38, 10)}
		case a.Kind == types.List && a.Elem.Kind == types.Any:
			choices = []types.Type{types.ListOf(types.Int64), types.ListOf(types.Float64), types.ListOf(types.String), types.ListOf(types.Bool), types.ListOf(types.ListOf(types.Int64)), types.ListOf(other)}
		case a.Kind == types.Map && a.Key.Kind == types.Any:
			choices = []types.Type{types.MapOf(types.String, types.Int64)}
		case a.Kind == types.Struct && len(a.Fields) == 0:
			choices = []types.Type{pair, other}
		}
		var next [][]types.Type
		for _, done := range out {
			for _, c := range choices {
				next = append(next, append(slices.Clone(done), c))
			}
		}
		out = next
	}
	return out
}

// hashScalar adds the results of one variant, and how many there were that are values.
func hashScalar(t *testing.T, h hash.Hash, f *fn.Scalar, given []types.Type) int {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(len(f.Name)), 7))
	values := 0
	// Once with all arguments as columns, once with all but the first as constants, which some functions ask for.
	for round := range 3 {
		consts := make([]types.Value, len(given))
		cols := make([]arrow.Array, len(given))
		for i, a := range given {
			cols[i] = argument(r, f.Name, a, i, anyNumber)
			if round > 0 && (i > 0 || len(given) == 1) {
				consts[i] = types.ValueAt(cols[i], r.IntN(hashedRows), a)
			}
			if v := asked[f.Name][i]; v != nil && suits(v, a) {
				consts[i] = v
			}
		}
		sig, o, err := f.Resolve(given, consts)
		if err != nil {
			continue
		}
		args, layout := make([]expr.Expr, len(given)), map[expr.ColID]int{}
		for i, a := range given {
			args[i] = &expr.Col{ID: expr.ColID(i), T: a}
			layout[expr.ColID(i)] = i
			if consts[i] != nil {
				args[i] = &expr.Lit{V: consts[i], T: a}
			}
			if !a.Equal(sig.Args[i]) {
				args[i] = &expr.Cast{Arg: args[i], T: sig.Args[i], Try: true}
			}
		}
		p, err := expr.Compile(&expr.Call{Fn: f, Sig: sig, Args: args, Fallible: o.Fallible}, layout)
		if err != nil {
			continue
		}
		out, bad, err := p.EvalDivert(testEnv, cols, hashedRows)
		if err != nil { // the call as a whole
			fmt.Fprintf(h, "%v fails\n", given)
			continue
		}
		failed := map[int]bool{}
		for _, b := range bad {
			failed[b.Row] = true
		}
		for row := range hashedRows {
			if failed[row] {
				fmt.Fprintf(h, "row %d fails\n", row)
				continue
			}
			v := types.ValueAt(out[0], row, sig.Returns)
			fmt.Fprintf(h, "%s\n", types.Format(v, sig.Returns))
			if v != nil {
				values++
			}
		}
	}
	return values
}

// suits reports whether an asked constant is a value of the type.
func suits(v types.Value, t types.Type) bool {
	if _, text := v.(string); text {
		return t.Kind == types.Varchar
	}
	return t.Kind == types.BigInt
}

// hashAggregate adds the results of one variant over five groups.
func hashAggregate(t *testing.T, h hash.Hash, f *fn.Aggregate, given []types.Type, kind numbers) int {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(len(f.Name)), 9))
	_, sig, o, err := fn.ResolveAggregate(f.Name, given, fn.Constants(f.Name, given))
	if err != nil {
		t.Fatalf("%s%v: %v", f.Name, given, err)
	}
	const groups = 5
	cols := make([]arrow.Array, len(sig.Args))
	for i, a := range sig.Args {
		cols[i] = argument(r, f.Name, a, i, kind)
	}
	var live []int32
	var of []uint32
	for row := range int32(hashedRows) {
		if f.KeepNulls || !slices.ContainsFunc(cols, func(c arrow.Array) bool { return c.IsNull(int(row)) }) {
			live, of = append(live, row), append(of, uint32(r.IntN(groups)))
		}
	}
	args := make([]fn.Arg, len(cols))
	for i, a := range kernels.TakeBatch(cols, live) {
		args[i] = fn.Arg{Array: a}
	}
	a := o.New(fn.AggConfig{Args: sig.Args, Ret: sig.Returns, Data: sig.Data})
	a.Resize(groups)
	if err := a.Add(of, args, nil); err != nil {
		t.Fatalf("%s%v: %v", f.Name, given, err)
	}
	values := 0
	for g := range uint32(groups) {
		out, err := a.Result([]uint32{g})
		if err != nil {
			fmt.Fprintf(h, "group %d fails\n", g)
			continue
		}
		v := types.ValueAt(out, 0, sig.Returns)
		fmt.Fprintf(h, "%s\n", types.Format(v, sig.Returns))
		if v != nil {
			values++
		}
	}
	return values
}

// numbers says which floats a column has: a NaN or an infinity among the values of a group is all that most aggregates show.
type numbers int

const (
	anyNumber numbers = iota
	finite
	positive
)

// argument is a column for an argument: random values of all kinds, and for numbers many of everyday size too.
func argument(r *rand.Rand, name string, t types.Type, place int, kind numbers) arrow.Array {
	a := rowkeytest.Column(r, t, hashedRows)
	edit := func(b array.Builder, value func(row int)) arrow.Array {
		for row := range hashedRows {
			if a.IsNull(row) {
				b.AppendNull()
			} else {
				value(row)
			}
		}
		return b.NewArray()
	}
	switch c := a.(type) {
	case *array.Float64:
		b := array.NewFloat64Builder(alloc)
		return edit(b, func(row int) {
			v := c.Value(row)
			if kind != anyNumber || r.IntN(3) > 0 {
				v = r.NormFloat64() * [...]float64{1e-3, 1e-2, 0.1, 1, 10, 100, 1000}[r.IntN(7)]
			}
			if kind == positive {
				v = math.Abs(v)
			}
			b.Append(v)
		})
	case *array.Int64:
		b := array.NewInt64Builder(alloc)
		return edit(b, func(row int) {
			v := c.Value(row)
			// Lengths and counts: a huge one is an error at best, and gigabytes at worst.
			if place > 0 || name == "range" || name == "generate_series" || r.IntN(3) > 0 {
				v = int64(r.IntN(24) - 4)
			}
			b.Append(v)
		})
	case *array.Int32:
		b := array.NewInt32Builder(alloc)
		return edit(b, func(row int) {
			v := c.Value(row)
			if place > 0 || r.IntN(3) > 0 {
				v = int32(r.IntN(24) - 4)
			}
			b.Append(v)
		})
	case *array.String:
		b := array.NewStringBuilder(alloc)
		return edit(b, func(row int) {
			v := strings.ToValidUTF8(c.Value(row), "é")
			if r.IntN(2) == 0 {
				v = words[r.IntN(len(words))]
			}
			b.Append(v)
		})
	}
	return a
}

// words are texts that mean something to some function.
var words = []string{
	"", "a", "abc", "Ünïcode ß", "12", "-3.75", "2024-02-29", "2024-02-29 12:34:56.789", "12:34:56", "year", "day", "hour", "month", "microsecond",
	"%Y-%m-%d", "%H:%M", "a.c", "(b)(c)?", "[a-z]+", "%b%", "a_c", "g", "i", `{"a": [1, {"b": null}], "c": "x"}`, "$.a[0]", "/a/1/b", "a", "c", "[1, 2, 3]",
	"aGVsbG8=", "deadbeef", "UTC", "Europe/Berlin", "0101", "{} and {}", "%d %s", "https://example.org/a/b?c=d#e", "/data/a.b.csv", "true", "no",
}
