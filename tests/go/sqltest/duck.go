package sqltest

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/types"
)

//go:embed duck.py
var duckProgram string

// Duck is DuckDB in a Python process: a second opinion on batch answers.
type Duck struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Ask is one request: statements to run in a fresh database, and a query.
type Ask struct {
	Setup []string `json:"setup,omitempty"`
	Query string   `json:"query"`
}

// Answer is what DuckDB said: rows of values as text (nil is NULL), or an error.
type Answer struct {
	Types []string    `json:"types"`
	Rows  [][]*string `json:"rows"`
	Error string      `json:"error"`
}

// OpenDuck starts the process. The error says what is missing.
func OpenDuck() (*Duck, error) {
	python := os.Getenv("RIVERBED_PYTHON")
	if python == "" {
		_, here, _, _ := runtime.Caller(0)
		python = filepath.Join(filepath.Dir(here), "..", "..", "..", ".venv", "bin", "python")
		if _, err := os.Stat(python); err != nil {
			python = "python3"
		}
	}
	d := &Duck{cmd: exec.Command(python, "-c", duckProgram)}
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.out = bufio.NewScanner(out)
	d.out.Buffer(make([]byte, 1<<16), 1<<28)
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if !d.out.Scan() || d.out.Text() != "ready" {
		_ = d.cmd.Wait()
		return nil, fmt.Errorf("the Python module duckdb is missing (%s)", python)
	}
	return d, nil
}

// Close ends the process.
func (d *Duck) Close() {
	_ = d.in.Close()
	_ = d.cmd.Wait()
}

// All answers requests. They are sent together, so a request costs no round trip.
func (d *Duck) All(asks []Ask) ([]Answer, error) {
	sent := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(d.in)
		enc := json.NewEncoder(w)
		for _, a := range asks {
			if err := enc.Encode(a); err != nil {
				sent <- err
				return
			}
		}
		sent <- w.Flush()
	}()
	out := make([]Answer, len(asks))
	for i := range out {
		if !d.out.Scan() {
			return nil, fmt.Errorf("DuckDB ended: %w", d.out.Err())
		}
		if err := json.Unmarshal(d.out.Bytes(), &out[i]); err != nil {
			return nil, err
		}
	}
	return out, <-sent
}

// Literal writes a value as SQL that DuckDB and Riverbed read alike.
func Literal(v types.Value, t types.Type) string {
	if v == nil {
		return "CAST(NULL AS " + t.String() + ")"
	}
	return "CAST('" + strings.ReplaceAll(types.Format(v, t), "'", "''") + "' AS " + t.String() + ")"
}

// Inserts are the statements that make a table with rows.
func Inserts(r *Relation, rows [][]types.Value) []string {
	out := []string{createTable(r)}
	for at := 0; at < len(rows); at += 500 {
		var tuples []string
		for _, row := range rows[at:min(at+500, len(rows))] {
			vals := make([]string, len(row))
			for i, v := range row {
				vals[i] = Literal(v, r.Fields[i].Type)
			}
			tuples = append(tuples, "("+strings.Join(vals, ",")+")")
		}
		out = append(out, fmt.Sprintf("INSERT INTO %q VALUES %s", r.Name, strings.Join(tuples, ",")))
	}
	return out
}

// CTE is a relation as a common table expression; a query that begins with it needs no set-up.
func CTE(r *Relation, rows [][]types.Value) string {
	names, casts, holes := make([]string, len(r.Fields)), make([]string, len(r.Fields)), make([]string, len(r.Fields))
	for i, f := range r.Fields {
		names[i] = fmt.Sprintf("%q", f.Name)
		casts[i] = fmt.Sprintf("CAST(c%d AS %s)", i, f.Type)
		holes[i] = Literal(nil, f.Type)
	}
	head := fmt.Sprintf("%q(%s) AS ", r.Name, strings.Join(names, ","))
	if len(rows) == 0 {
		return head + "(SELECT " + strings.Join(holes, ",") + " WHERE FALSE)"
	}
	tuples := make([]string, len(rows))
	cols := make([]string, len(r.Fields))
	for i := range cols {
		cols[i] = fmt.Sprintf("c%d", i)
	}
	for i, row := range rows {
		vals := make([]string, len(row))
		for c, v := range row {
			vals[c] = "NULL"
			if v != nil {
				vals[c] = "'" + strings.ReplaceAll(types.Format(v, r.Fields[c].Type), "'", "''") + "'"
			}
		}
		tuples[i] = "(" + strings.Join(vals, ",") + ")"
	}
	return head + "(SELECT " + strings.Join(casts, ",") + " FROM (VALUES " + strings.Join(tuples, ",") + ") v(" + strings.Join(cols, ",") + "))"
}

// Tolerance says how far two doubles may differ: ulps, and an absolute part that grows with what was summed.
type Tolerance struct {
	Ulps float64
	Abs  float64
}

// Agree compares our rows with DuckDB's as multisets, doubles within the tolerance. It returns the difference.
func (a Answer) Agree(ours [][]types.Value, fields []types.Field, tol Tolerance) string {
	if len(a.Rows) != len(ours) {
		return fmt.Sprintf("%d rows, DuckDB has %d\n  ours:   %v\n  DuckDB: %v", len(ours), len(a.Rows), show(ours, fields), a.show())
	}
	if len(a.Rows) > 0 && len(a.Rows[0]) != len(fields) {
		return fmt.Sprintf("%d columns, DuckDB has %d", len(fields), len(a.Rows[0]))
	}
	theirs := make([][]types.Value, len(a.Rows))
	for i, r := range a.Rows {
		theirs[i] = make([]types.Value, len(r))
		for c, text := range r {
			if text == nil {
				continue
			}
			if *text == "-nan" { // NaN has no sign here
				*text = "nan"
			}
			v, err := types.ParseValue(*text, fields[c].Type)
			if err != nil {
				return fmt.Sprintf("column %s: DuckDB has %s (%s), which is no %s", fields[c].Name, *text, a.Types[c], fields[c].Type)
			}
			theirs[i][c] = v
		}
	}
	if matched(ours, theirs, fields, tol) {
		return ""
	}
	return fmt.Sprintf("  ours:   %v\n  DuckDB: %v", show(ours, fields), a.show())
}

func show(rows [][]types.Value, fields []types.Field) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = RowText(r, fields)
	}
	sort.Strings(out)
	return out
}

func (a Answer) show() []string {
	out := make([]string, len(a.Rows))
	for i, r := range a.Rows {
		parts := make([]string, len(r))
		for c, v := range r {
			parts[c] = "NULL"
			if v != nil {
				parts[c] = string(appendToken(nil, *v, types.String))
			}
		}
		out[i] = strings.Join(parts, " ")
	}
	sort.Strings(out)
	return out
}

// matched pairs rows that are the same where columns compare exactly: first those whose doubles are equal, then each row
// with the nearest of what is left. Taking any row within the tolerance would use up another row's only partner, for a
// tolerance that grows with what was summed is wider than the distance between small values.
func matched(a, b [][]types.Value, fields []types.Field, tol Tolerance) bool {
	key := func(r []types.Value) string {
		var buf []byte
		for i, v := range r {
			if !fields[i].Type.IsFloat() {
				buf = append(appendToken(buf, v, fields[i].Type), ' ')
			}
		}
		return string(buf)
	}
	exact := func(r []types.Value) string {
		buf := []byte(key(r))
		for i, v := range r {
			if fields[i].Type.IsFloat() {
				buf = append(appendEqual(buf, v), ' ')
			}
		}
		return string(buf)
	}
	equal := map[string]int{} // of b, not yet paired: a large result must not be searched for each row
	for _, r := range b {
		equal[exact(r)]++
	}
	var rest [][]types.Value
	for _, r := range a {
		if k := exact(r); equal[k] > 0 {
			equal[k]--
		} else {
			rest = append(rest, r)
		}
	}
	byKey := map[string][][]types.Value{}
	for _, r := range b {
		if k := exact(r); equal[k] > 0 {
			equal[k]--
			byKey[key(r)] = append(byKey[key(r)], r)
		}
	}
	return !slices.ContainsFunc(rest, func(r []types.Value) bool {
		k, found := key(r), -1
		var least gap
		for i, o := range byKey[k] {
			if g, ok := apart(r, o, fields, tol); ok && (found < 0 || g.less(least)) {
				found, least = i, g
			}
		}
		if found < 0 {
			return true
		}
		left := byKey[k]
		left[found] = left[len(left)-1]
		byKey[k] = left[:len(left)-1]
		return false
	})
}

// appendEqual writes a double so that those which compare equal are the same bytes: zeros of both signs, and every NaN.
func appendEqual(buf []byte, v types.Value) []byte {
	if v == nil {
		return append(buf, 'N')
	}
	x := asFloat(v)
	switch {
	case x == 0:
		x = 0
	case math.IsNaN(x):
		x = math.NaN()
	}
	return binary.LittleEndian.AppendUint64(append(buf, 'F'), math.Float64bits(x))
}

// gap says how far the doubles of two rows are apart: how many differ, and by how much together.
type gap struct {
	columns int
	by      float64
}

func (g gap) less(o gap) bool {
	return g.columns < o.columns || g.columns == o.columns && g.by < o.by
}

// apart measures two rows; it is false where a double is further away than the tolerance.
func apart(a, b []types.Value, fields []types.Field, tol Tolerance) (g gap, ok bool) {
	for i := range fields {
		if !fields[i].Type.IsFloat() {
			continue
		}
		if (a[i] == nil) != (b[i] == nil) {
			return g, false
		}
		if a[i] == nil {
			continue
		}
		x, y := asFloat(a[i]), asFloat(b[i])
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		d := math.Abs(x - y)
		if math.IsInf(x, 0) || math.IsInf(y, 0) || !(d <= tol.Abs+tol.Ulps*math.Ldexp(math.Max(math.Abs(x), math.Abs(y)), -52)) {
			return g, false
		}
		g.columns++
		g.by += d
	}
	return g, true
}

func asFloat(v types.Value) float64 {
	switch v := v.(type) {
	case float32:
		return float64(v)
	case float64:
		return v
	}
	f, _ := strconv.ParseFloat(fmt.Sprint(v), 64)
	return f
}
