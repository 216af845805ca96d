package sqltest

import (
	"fmt"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/types"
)

// Bag is a multiset of rows, by their exact text: -0.0 is not 0.0, and 30 days are not 1 month.
type Bag map[string]int64

// Add changes how often a row stands in the bag.
func (b Bag) Add(row string, n int64) {
	if b[row] += n; b[row] == 0 {
		delete(b, row)
	}
}

// AddBatch adds rows; weights nil is once each.
func (b Bag) AddBatch(cols []arrow.Array, ts []types.Type, n int, weights []int64) {
	for r, row := range Texts(cols, ts, n) {
		w := int64(1)
		if weights != nil {
			w = weights[r]
		}
		b.Add(row, w)
	}
}

// Negative returns a row that stands there less than zero times.
func (b Bag) Negative() (string, bool) {
	for row, n := range b {
		if n < 0 {
			return row, true
		}
	}
	return "", false
}

// Diff says how got differs from want; empty when they are equal.
func (b Bag) Diff(want Bag) string {
	var lines []string
	for row, n := range b {
		if d := n - want[row]; d != 0 {
			lines = append(lines, fmt.Sprintf("  %+d %s", d, row))
		}
	}
	for row, n := range want {
		if _, ok := b[row]; !ok {
			lines = append(lines, fmt.Sprintf("  %+d %s", -n, row))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// Sorted lists the rows, each as often as it stands there.
func (b Bag) Sorted() []string {
	var out []string
	for row, n := range b {
		for ; n > 0; n-- {
			out = append(out, row)
		}
	}
	sort.Strings(out)
	return out
}

// Clone copies.
func (b Bag) Clone() Bag {
	c := make(Bag, len(b))
	for k, v := range b {
		c[k] = v
	}
	return c
}

// Texts prints rows as files write them: values between spaces, quoted where that is needed.
func Texts(cols []arrow.Array, ts []types.Type, n int) []string {
	out := make([]string, n)
	var buf []byte
	for r := range out {
		buf = buf[:0]
		for c, a := range cols {
			if c > 0 {
				buf = append(buf, ' ')
			}
			buf = appendToken(buf, types.ValueAt(a, r, ts[c]), ts[c])
		}
		out[r] = string(buf)
	}
	return out
}

func appendToken(dst []byte, v types.Value, t types.Type) []byte {
	if v == nil {
		return append(dst, "NULL"...)
	}
	from := len(dst)
	dst = types.AppendText(dst, v, t, nil)
	text := string(dst[from:])
	if text != "" && text != "NULL" && !strings.ContainsAny(text, " '\t\n") {
		return dst
	}
	dst = append(dst[:from], '\'')
	dst = append(dst, strings.ReplaceAll(strings.ReplaceAll(text, "'", "''"), "\n", `\n`)...)
	return append(dst, '\'')
}

// RowText prints one row of Go values.
func RowText(vals []types.Value, fields []types.Field) string {
	var buf []byte
	for i, v := range vals {
		if i > 0 {
			buf = append(buf, ' ')
		}
		buf = appendToken(buf, v, fields[i].Type)
	}
	return string(buf)
}

// Batch makes a record batch of rows.
func Batch(fields []types.Field, rows [][]types.Value) arrow.RecordBatch {
	cols := make([]arrow.Array, len(fields))
	vals := make([]types.Value, len(rows))
	for c, f := range fields {
		for r, row := range rows {
			vals[r] = row[c]
		}
		cols[c] = types.ArrayOf(vals, f.Type)
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(len(rows)))
}

// TypesOf are the types of fields; a bare NULL has the type of its column.
func TypesOf(fields []types.Field) []types.Type {
	out := make([]types.Type, len(fields))
	for i, f := range fields {
		out[i] = f.Type
	}
	return out
}

// Values reads a batch as Go values.
func Values(b arrow.RecordBatch, fields []types.Field) [][]types.Value {
	out := make([][]types.Value, b.NumRows())
	for r := range out {
		out[r] = make([]types.Value, len(fields))
		for c, f := range fields {
			out[r][c] = types.ValueAt(b.Column(c), r, f.Type)
		}
	}
	return out
}
